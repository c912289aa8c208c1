"""The key-value engine of Pop inside of a broker: records, retries, restarts, a full and a hanging disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.broker.pop.kv.pop_consumer_context import PopConsumerContext
from mqlab.broker.pop.kv.pop_consumer_scan import REWRITE_INTERVALS_S
from mqlab.broker.pop.kv.pop_consumer_service import PopConsumerService
from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.record import decode_record, scan_records
from mqlab.sim import DiskFull, Future
from mqlab.store import FlushDiskType, GetMessageStatus
from mqlab.store.errors import StoreError
from mqlab.store.running_flags import RunningFlags

RETRY = "%RETRY%G_T"
MIN, MAX = 0, 1


class Engine:
    """A cluster whose broker has the engine, and what the tests do with it."""

    def __init__(self, make: Callable[..., Any], messages: int = 8, *, queues: int = 1, **settings: Any) -> None:
        store = settings.pop("store", None)
        self.cluster = make(store, pop_consumer_kv_service_enable=True, **settings)
        self.cluster.topic("T", queues)
        client = self.cluster.client()
        for n in range(messages):
            client.send("T", b"m%d" % n, queue_id=n % queues)
        self.cluster.run(100)

    @property
    def broker(self) -> Any:
        return self.cluster.broker

    @property
    def service(self) -> PopConsumerService:
        service = self.broker.pop.pop_consumer_service
        assert service is not None
        return service

    def pop(self, most: int = 32, invisible_ms: int = 10_000, *, queue_id: int = -1, **more: Any) -> Any:
        values: dict[str, Any] = {"fifo": False, "attempt_id": None, "init_mode": MIN, **more}
        now_ms = self.cluster.broker_node.now_ms()
        return self.service.pop(now_ms, invisible_ms, "G", "T", queue_id, most, **values)

    def ack(self, context: PopConsumerContext, place: int = 0, *, pop_time: int | None = None) -> Any:
        record = context.records()[place]
        time = record.pop_time if pop_time is None else pop_time
        return self.service.ack(time, record.invisible_time, "G", record.topic, record.queue_id, record.offset)

    def bodies(self, context: PopConsumerContext) -> list[str]:
        return [decode_record(record).body.decode() for one in context.found for record in one.result.messages]

    def offsets(self, queue_id: int = 0, topic: str = "T") -> tuple[int, int]:
        """The group's progress, and up to where it was given messages."""
        offsets = self.broker.consumer_offset_manager
        return offsets.query_offset("G", topic, queue_id), offsets.query_pull_offset("G", topic, queue_id)

    def retried(self) -> list[tuple[str, int]]:
        """Bodies and reconsume times in the retry topic."""
        store = self.broker.message_store
        result = store.get_message("tests", RETRY, 0, 0, 32)
        if result is None or result.status is not GetMessageStatus.FOUND:
            return []
        messages = [decode_record(record) for record in result.messages]
        return [(message.body.decode(), message.reconsume_times) for message in messages]

    def seen(self, kind: str) -> list[tuple[Any, ...]]:
        return [row[8:] for row in self.cluster.events if row[7] == kind]


@pytest.fixture
def make_engine(make_cluster: Callable[..., Any]) -> Callable[..., Engine]:
    """Make a broker with the engine."""
    return lambda messages=8, **settings: Engine(make_cluster, messages, **settings)


@pytest.fixture
def engine(make_engine: Callable[..., Engine]) -> Engine:
    """One queue with eight messages."""
    return make_engine()


# -- popping and acknowledging ----------------------------------------------------------------------------------------


def test_what_is_acknowledged_does_not_come_again_and_the_rest_comes_by_the_retry_topic(engine: Engine) -> None:
    popped = engine.pop(3)
    assert engine.bodies(popped) == ["m0", "m1", "m2"]
    assert (popped.start_offset_infos(), popped.msg_offset_infos(), popped.rest_count) == (["0 0 0"], ["0 0 0,1,2"], 5)
    assert len(engine.service.records.store) == 3
    engine.ack(popped, 1)
    assert engine.bodies(engine.pop(1)) == ["m3"]
    engine.cluster.run(9_500)
    assert engine.retried() == []
    engine.cluster.run(1_200)
    assert engine.retried() == [("m0", 1), ("m2", 1), ("m3", 1)]
    again = engine.pop(1)
    assert engine.bodies(again) == ["m4"], "the retry topic comes first in one pop of five"
    engine.pop(1), engine.pop(1)
    assert engine.bodies(engine.pop(2)) == ["m0", "m2"]


def test_a_message_that_fails_again_goes_back_to_the_same_retry_topic(engine: Engine) -> None:
    for _ in range(4):
        engine.pop(0)
    engine.pop(1, invisible_ms=1_000)
    engine.cluster.run(2_000)
    for _ in range(5):
        popped = engine.pop(1, 1_000)
        if popped.found[0].topic == RETRY:
            break
    assert [(one.topic, one.retry_type) for one in popped.found] == [(RETRY, 1)]
    assert popped.start_offset_infos() == ["1 0 0"]
    engine.cluster.run(2_000)
    assert ("m0", 2) in engine.retried()
    assert RETRY in engine.broker.topic_config_manager.topic_config_table


def test_the_first_time_that_it_was_popped_stays_with_a_message(engine: Engine) -> None:
    popped = engine.pop(1, 1_000)
    engine.cluster.run(2_000)
    retry = decode_record(engine.broker.message_store.get_message("tests", RETRY, 0, 0, 1).messages[0])
    assert retry.properties["1ST_POP_TIME"] == str(popped.pop_time)
    assert retry.born_host == engine.broker.store_host


def test_the_progress_is_where_the_last_pop_began(engine: Engine) -> None:
    engine.pop(3)
    assert engine.offsets() == (0, 3)
    engine.pop(2)
    assert engine.offsets() == (3, 5)
    engine.pop(32)
    assert engine.offsets() == (5, 8)
    assert not engine.pop(32).is_found
    assert engine.offsets() == (8, 8)


def test_queues_are_visited_from_another_one_each_time(make_engine: Callable[..., Engine]) -> None:
    engine = make_engine(12, queues=3)
    assert [one.queue_id for one in engine.pop(1).found] == [0]
    assert [one.queue_id for one in engine.pop(1).found] == [1]
    assert [one.queue_id for one in engine.pop(7).found] == [2, 0]
    assert [one.queue_id for one in engine.pop(1, queue_id=1).found] == [1]


def test_a_pop_while_another_one_of_the_group_is_at_work_finds_nothing(engine: Engine) -> None:
    assert engine.service.locks.try_lock("G", "T")
    busy = engine.pop()
    assert (busy.is_found, busy.rest_count) == (False, 0)
    assert engine.seen("PopQueueBusy") == [("G", "T", -1)]
    engine.service.locks.unlock("G", "T")
    assert engine.pop().is_found


def test_an_ack_by_the_old_handle_after_a_change_succeeds_and_does_nothing(engine: Engine) -> None:
    popped = engine.pop(1)
    now_ms = engine.cluster.broker_node.now_ms()
    engine.service.change_invisibility_duration(popped.pop_time, 10_000, now_ms + 1, 30_000, "G", "T", 0, 0)
    assert engine.ack(popped) is None
    assert engine.seen("AckLost")[-1][-1] == "there is no record of this delivery"
    engine.cluster.run(29_000)
    assert engine.retried() == []
    engine.cluster.run(2_000)
    assert engine.retried() == [("m0", 1)]


def test_an_ack_by_the_new_handle_after_a_change_counts(engine: Engine) -> None:
    popped = engine.pop(1)
    now_ms = engine.cluster.broker_node.now_ms()
    engine.service.change_invisibility_duration(popped.pop_time, 10_000, now_ms + 1, 30_000, "G", "T", 0, 0)
    engine.service.ack(now_ms + 1, 30_000, "G", "T", 0, 0)
    assert len(engine.service.records.store) == 0
    engine.cluster.run(40_000)
    assert engine.retried() == []


def test_a_reset_takes_the_group_back_and_frees_the_queue(engine: Engine) -> None:
    engine.pop(5)
    engine.broker.consumer_offset_manager.assign_reset_offset("G", "T", 0, 2)
    engine.broker.consumer_offset_manager.clear_pull_offset("G", "T")
    assert engine.bodies(engine.pop(2)) == ["m2", "m3"]
    assert engine.offsets() == (2, 4)


# -- scans ------------------------------------------------------------------------------------------------------------


def test_a_broker_whose_groups_have_nothing_in_hand_scans_nothing(engine: Engine) -> None:
    popped = engine.pop(3, 60_000)
    for place in range(3):
        engine.ack(popped, place)
    engine.cluster.run(1_000)
    before = engine.cluster.world.slice_no
    engine.cluster.run(60_000)
    assert engine.cluster.world.slice_no - before < 400
    engine.pop(1, 700)
    engine.cluster.run(1_200)
    assert engine.retried() == [("m3", 1)]


def test_scans_come_each_half_second_from_the_start_of_the_broker(engine: Engine) -> None:
    engine.pop(1, 3_000)
    engine.cluster.run(7_000)
    row = next(row for row in engine.cluster.events if row[7] == "MessageRevived")
    assert (row[2] - engine.broker.start_us) % 500_000 == 0
    assert 50 <= row[-1] <= 550


def test_records_that_are_due_while_the_broker_is_down_are_found_when_it_is_back(engine: Engine) -> None:
    engine.pop(2, 3_000)
    engine.cluster.run(100)
    engine.cluster.do("crash", node="broker-a")
    engine.cluster.run(60_000)
    engine.cluster.restart(1_000)
    assert engine.retried() == [("m0", 1), ("m1", 1)]


def test_what_cannot_be_put_is_tried_again_after_10_s_more(engine: Engine) -> None:
    engine.pop(1, 1_000)
    engine.broker.message_store.running_flags.set(RunningFlags.DISK_FULL)
    engine.cluster.run(2_000)
    again = engine.seen("CheckPointPutAgain")
    assert [(row[5], row[6]) for row in again] == [(11_000, 1)]
    engine.broker.message_store.running_flags.set(RunningFlags.DISK_FULL, on=False)
    engine.cluster.run(10_000)
    assert engine.retried() == []
    engine.cluster.run(1_200)
    assert engine.retried() == [("m0", 1)]


def test_after_16_attempts_a_message_is_given_up(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mqlab.broker.pop.kv.pop_consumer_scan.REWRITE_INTERVALS_S", (0,) * 16)
    engine.pop(1, 500)
    engine.broker.message_store.running_flags.set(RunningFlags.DISK_FULL)
    engine.cluster.run(40_000)
    assert [row[6] for row in engine.seen("CheckPointPutAgain")] == list(range(1, 17))
    assert engine.seen("MessageNotRevived")[-1][-1] == "given up after 16 attempts"
    assert len(engine.service.records.store) == 0
    assert sum(REWRITE_INTERVALS_S) == 17_140


def test_a_message_whose_queue_is_gone_needs_no_retry(engine: Engine) -> None:
    engine.pop(1, 1_000)
    engine.broker.message_store.consume_queue_store.consume_queue_table.pop(("T", 0))
    engine.cluster.run(2_000)
    assert engine.seen("MessageNotRevived")[-1][-1] == "the queue does not have it"
    assert len(engine.service.records.store) == 0


def test_with_synchronous_flush_a_scan_waits_for_the_log(make_engine: Callable[..., Engine]) -> None:
    engine = make_engine(store={"flush_disk_type": FlushDiskType.SYNC_FLUSH})
    engine.pop(2, 1_000)
    engine.cluster.run(2_500)
    assert engine.retried() == [("m0", 1), ("m1", 1)]
    assert len(engine.service.records.store) == 0


# -- restarts and the disk --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["crash", "power_off"])
def test_records_survive_and_what_the_last_pop_took_is_given_once_more(engine: Engine, end: str) -> None:
    engine.pop(3, 60_000)
    engine.pop(3, 60_000)
    engine.cluster.run(20_000)
    engine.cluster.do(end, node="broker-a")
    engine.cluster.restart(500)
    assert len(engine.service.records.store) == 6
    assert engine.seen("PopRecordsRecovered")[-1] == (6, 0)
    assert engine.bodies(engine.pop(4)) == ["m3", "m4", "m5", "m6"]
    engine.cluster.run(41_000)
    assert sorted(engine.retried()) == [(f"m{n}", 1) for n in (0, 1, 2, 3, 3, 4, 4, 5, 5, 6)]


def test_a_clean_stop_keeps_the_records(engine: Engine) -> None:
    engine.pop(3, 30_000)
    engine.cluster.world.wait_for(engine.cluster.broker_node.spawn(engine.broker.shutdown(), "stop").join())
    engine.cluster.restart(1_000)
    assert len(engine.service.records.store) == 3


def test_on_a_full_disk_a_pop_is_not_answered_and_its_messages_are_passed_over(
    make_engine: Callable[..., Engine],
) -> None:
    engine = make_engine(64)
    engine.pop(1, 60_000)
    disk = engine.cluster.broker_node.disk
    disk.capacity_bytes = disk.used_bytes
    popped = engine.pop(32)
    assert popped.failed
    assert engine.seen("PopRecordsNotWritten")[-1][0] == 32
    assert engine.offsets() == (1, 33)
    disk.capacity_bytes = None
    assert engine.bodies(engine.pop(1)) == ["m33"]
    engine.cluster.run(11_000)
    assert engine.retried() == [("m33", 1)], "of the others there is no record"


def test_while_the_disk_hangs_a_pop_keeps_its_lock_and_is_answered_behind_it(engine: Engine) -> None:
    engine.cluster.do("hang_disk", node="broker-a")
    waiting = engine.pop(2)
    assert isinstance(waiting, Future)
    engine.cluster.run(3_000)
    assert not waiting.done
    assert not engine.pop(2).is_found, "the lock is taken"
    engine.cluster.do("unhang_disk", node="broker-a")
    engine.cluster.run(10)
    assert engine.bodies(waiting.result()) == ["m0", "m1"]
    assert engine.bodies(engine.pop(2)) == ["m2", "m3"]


def test_on_a_disk_with_room_to_delete_and_none_to_write_a_change_leaves_the_message_in_hand(engine: Engine) -> None:
    disk = engine.cluster.broker_node.disk
    log = disk.open("store/kvStore/popState.log")
    empty = log.size
    popped = engine.pop(1)
    to_write = log.size - empty
    engine.ack(popped, pop_time=1)
    to_delete = log.size - empty - to_write
    assert to_delete < to_write
    disk.capacity_bytes = disk.used_bytes
    pad = 0
    while not to_delete <= -log.size % 4_096 < to_write:
        pad += 1
        engine.service.ack(1, 10_000, "G" * (1 + pad % 7), "T", 0, 0)
    now_ms = engine.cluster.broker_node.now_ms()
    with pytest.raises(DiskFull):
        engine.service.change_invisibility_duration(popped.pop_time, 10_000, now_ms + 1, 30_000, "G", "T", 0, 0)
    assert len(engine.service.records.store) == 1, "the old record is there as long as there is no new one"
    disk.capacity_bytes = None
    engine.cluster.run(11_000)
    assert engine.retried() == [("m0", 1)]


# -- the cache --------------------------------------------------------------------------------------------------------


@pytest.fixture
def cached(make_engine: Callable[..., Engine]) -> Engine:
    """An engine with a cache before its store."""
    return make_engine(enable_pop_buffer_merge=True)


def test_a_changed_invisible_time_is_written_at_once(cached: Engine) -> None:
    popped = cached.pop(1)
    assert len(cached.service.records.store) == 0
    now_ms = cached.cluster.broker_node.now_ms()
    cached.service.change_invisibility_duration(popped.pop_time, 10_000, now_ms + 1, 30_000, "G", "T", 0, 0)
    assert len(cached.service.records.store) == 1
    assert cached.service.records.in_flight("G", "T", 0) == 0


def test_a_queue_that_is_cleared_is_held_no_more(cached: Engine) -> None:
    cached.pop(2)
    assert cached.service.records.in_flight("G", "T", 0) == 2
    cached.service.clear_cache("G", "T", 0)
    assert cached.service.records.in_flight("G", "T", 0) == 0
    cached.cluster.run(40_000)
    assert cached.retried() == []


def test_what_is_acknowledged_soon_is_never_written(cached: Engine) -> None:
    popped = cached.pop(3)
    for place in range(3):
        cached.ack(popped, place)
    cached.cluster.run(20_000)
    assert {row[-1] for row in cached.seen("PopRecordWritten")} == {"cache"}
    assert cached.retried() == []


def test_what_stays_for_10_s_is_written_and_comes_again_from_the_store(cached: Engine) -> None:
    popped = cached.pop(2, 15_000)
    cached.ack(popped, 0)
    assert len(cached.service.records.store) == 0
    cached.cluster.run(11_100)
    assert len(cached.service.records.store) == 1
    cached.cluster.run(5_000)
    assert cached.retried() == [("m1", 1)]


def test_what_is_due_before_it_was_written_comes_again_out_of_the_cache(cached: Engine) -> None:
    cached.pop(1, 3_000)
    cached.cluster.run(4_100)
    assert cached.retried() == [("m0", 1)]
    assert {row[-1] for row in cached.seen("PopRecordWritten")} == {"cache"}


def test_the_progress_is_the_least_message_in_the_cache(cached: Engine) -> None:
    first = cached.pop(3)
    cached.pop(2)
    assert cached.offsets() == (0, 5)
    cached.ack(first, 0)
    cached.cluster.run(1_000)
    assert cached.offsets() == (1, 5)


def test_a_stop_forgets_the_cache_and_all_comes_again_acknowledged_messages_too(cached: Engine) -> None:
    first = cached.pop(3, 60_000)
    cached.ack(first, 1)
    cached.cluster.run(1_500)
    cached.cluster.world.wait_for(cached.cluster.broker_node.spawn(cached.broker.shutdown(), "stop").join())
    cached.cluster.restart(1_000)
    assert len(cached.service.records.store) == 0
    assert cached.bodies(cached.pop(3)) == ["m0", "m1", "m2"]


def test_a_full_cache_lets_the_next_records_go_to_the_store(make_engine: Callable[..., Engine]) -> None:
    engine = make_engine(enable_pop_buffer_merge=True, pop_ck_max_buffer_size=2)
    engine.pop(3, 60_000), engine.pop(2, 60_000)
    assert [row[-1] for row in engine.seen("PopRecordWritten")] == ["cache"] * 3 + ["store"] * 2


def test_a_group_with_too_many_messages_in_hand_gets_no_more(make_engine: Callable[..., Engine]) -> None:
    engine = make_engine(
        enable_pop_buffer_merge=True, enable_pop_message_threshold=True, pop_inflight_message_threshold=3
    )
    popped = engine.pop(3)
    assert not engine.pop(3).is_found
    engine.ack(popped, 0)
    assert engine.bodies(engine.pop(1)) == ["m3"]


def test_a_queue_of_which_nothing_is_held_leaves_the_cache_two_minutes_behind_the_last_pop(cached: Engine) -> None:
    popped = cached.pop(1)
    cached.ack(popped)
    cached.cluster.run(119_000)
    assert cached.service.records.cache is not None
    assert cached.service.records.cache.has_work()
    cached.cluster.run(2_500)
    assert not cached.service.records.cache.has_work()


def test_what_is_held_of_a_retry_topic_is_written_when_nobody_pops_for_two_minutes(
    make_engine: Callable[..., Engine],
) -> None:
    engine = make_engine(enable_pop_buffer_merge=True, pop_ck_stay_buffer_time=600_000)
    engine.pop(8, 1_000)
    engine.cluster.run(3_000)
    while not engine.pop(1, 400_000).is_found:
        pass
    engine.cluster.run(119_000)
    assert len(engine.service.records.store) == 0
    engine.cluster.run(2_500)
    assert len(engine.service.records.store) == 1


# -- over the wire ----------------------------------------------------------------------------------------------------


def test_on_a_full_disk_acks_and_changes_are_refused_and_a_pop_is_never_answered(
    make_popper: Callable[..., Any],
) -> None:
    popper = make_popper(pop_consumer_kv_service_enable=True)
    popper.send(*[b"m"] * 40)
    answer = popper.pop(max_msg_nums=30).header_as(h.PopMessageResponseHeader)
    disk, log = popper.cluster.broker_node.disk, popper.cluster.broker_node.disk.open("store/kvStore/popState.log")
    disk.capacity_bytes = disk.used_bytes
    handle = f"0 {answer.pop_time} 10000 0 0 broker-a 0 0"
    while log.size % 4_096 < 4_000:  # fill the last page
        popper.raw.call(RequestCode.ACK_MESSAGE, h.AckMessageRequestHeader("G", "T", 0, handle, 0))
    refused = [
        popper.raw.call(RequestCode.ACK_MESSAGE, h.AckMessageRequestHeader("G", "T", 0, handle, 0)) for _ in range(3)
    ][-1]
    assert (refused.code, refused.remark) == (1, "RuntimeException: Delete record error")
    change = h.ChangeInvisibleTimeRequestHeader("G", "T", 0, handle, 0, 20_000)
    assert popper.raw.call(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, change).code == 1
    waiting = popper.begin()
    popper.cluster.run(20_000)
    assert not waiting.done


def test_a_group_in_order_is_blocked_by_what_it_has_in_hand_and_freed_by_the_last_ack(
    make_popper: Callable[..., Any],
) -> None:
    popper = make_popper(pop_consumer_kv_service_enable=True)
    popper.send(b"a", b"b", b"c")
    first = popper.pop(max_msg_nums=2, order=True, attempt_id="one").header_as(h.PopMessageResponseHeader)
    assert first.revive_qid == 999
    assert popper.bodies(max_msg_nums=1, order=True, attempt_id="two") == []
    waiting = popper.begin(max_msg_nums=1, order=True, attempt_id="two", poll_time=5_000, queue_id=0)
    for offset in (0, 1):
        handle = f"0 {first.pop_time} 10000 999 0 broker-a 0 {offset}"
        ack = h.AckMessageRequestHeader("G", "T", 0, handle, offset)
        assert popper.raw.call(RequestCode.ACK_MESSAGE, ack).code == 0
    popper.cluster.run(100)
    assert [message.body for message in scan_records(waiting.result().body)] == [b"c"]
    assert popper.seen("PopRecordWritten") == []


def test_in_order_a_pop_that_finds_nothing_says_nothing_of_attempts(make_popper: Callable[..., Any]) -> None:
    records, files = make_popper(pop_consumer_kv_service_enable=True), make_popper()
    said = [one.pop(order=True).header_as(h.PopMessageResponseHeader).order_count_info for one in (records, files)]
    assert said == [None, ""]


def test_a_damaged_body_is_popped_and_revived_as_it_is(engine: Engine) -> None:
    store = engine.broker.message_store
    record = store.get_message("tests", "T", 0, 1, 1).messages[0]
    log = store.commit_log.mapped_file_queue.mapped_files[0]
    log.file.write(store.find_consume_queue("T", 0).get(1).pos, record.replace(b"m1", b"??"))
    assert engine.bodies(engine.pop(2, 1_000)) == ["m0", "??"]
    engine.cluster.run(2_000)
    assert engine.retried() == [("m0", 1), ("??", 1)]


# -- beside a real broker ---------------------------------------------------------------------------------------------


def stop(engine: Engine) -> None:
    """A clean stop."""
    engine.cluster.world.wait_for(engine.cluster.broker_node.spawn(engine.broker.shutdown(), "stop").join())


def test_records_of_a_real_broker_are_refused_and_the_way_out_is_named(engine: Engine) -> None:
    stop(engine)
    disk, current = engine.cluster.broker_node.disk, engine.broker.message_store_config.path("kvStore/CURRENT")
    disk.open(current).write(0, b"MANIFEST-000005\n")
    engine.cluster.do("restart", node="broker-a")
    with pytest.raises(StoreError, match="in RocksDB, which mqlab does not read") as refused:
        engine.cluster.run(1_000)
    assert "POP_ROLLBACK" in (refused.value.hint or "")
    assert disk.read_bytes(current).startswith(b"MANIFEST-"), "it is left as it is"


def test_a_real_broker_refuses_our_records_and_opens_a_store_without_any(engine: Engine) -> None:
    """A RocketMQ 5.3.3 does not start on such a file: RocksDB says "CURRENT file does not end with newline"."""
    disk, current = engine.cluster.broker_node.disk, engine.broker.message_store_config.path("kvStore/CURRENT")
    popped = engine.pop(1, 60_000)
    stop(engine)
    text = disk.read_bytes(current)
    assert b"POP_ROLLBACK" in text
    assert not text.endswith(b"\n")
    engine.cluster.restart(1_000)
    assert len(engine.service.records.store) == 1
    engine.ack(popped)
    stop(engine)
    assert not disk.exists(current)


def test_an_administrator_s_reset_lets_the_group_begin_there(make_popper: Callable[..., Any]) -> None:
    popper = make_popper(pop_consumer_kv_service_enable=True)
    popper.send(b"a", b"b", b"c")
    assert popper.bodies() == [b"a", b"b", b"c"]
    reset = h.ResetOffsetRequestHeader(topic="T", group="G", timestamp=0, is_force=True, queue_id=0, offset=1)
    assert popper.raw.call(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, reset).code == 0
    assert popper.bodies() == [b"b", b"c"]


def test_a_rollback_turns_records_into_check_points_which_are_revived(make_popper: Callable[..., Any]) -> None:
    popper = make_popper(pop_consumer_kv_service_enable=True)
    popper.send(b"a", b"b", b"c")
    answer = popper.pop(max_msg_nums=3).header_as(h.PopMessageResponseHeader)
    handle = f"0 {answer.pop_time} 10000 0 0 broker-a 0 1"
    popper.raw.call(RequestCode.ACK_MESSAGE, h.AckMessageRequestHeader("G", "T", 0, handle, 1))
    assert popper.raw.call(RequestCode.POP_ROLLBACK).code == 0
    service = popper.cluster.broker.pop.pop_consumer_service
    assert len(service.records.store) == 0
    assert [event["reason"] for event in popper.seen("PopRecordDeleted")] == ["acked", "rolled back", "rolled back"]
    popper.cluster.run(9_000)
    assert popper.seen("MessageRevived") == []
    popper.cluster.run(6_000)
    assert sorted(event["queue_offset"] for event in popper.seen("MessageRevived")) == [0, 2]


def test_a_rollback_without_records_and_on_a_full_disk(make_popper: Callable[..., Any]) -> None:
    plain = make_popper()
    assert plain.raw.call(RequestCode.POP_ROLLBACK).code == 0
    popper = make_popper(pop_consumer_kv_service_enable=True)
    popper.send(*[b"m"] * 100)
    for _ in range(4):
        popper.pop(max_msg_nums=25, invisible_time=60_000)
    disk = popper.cluster.broker_node.disk
    disk.capacity_bytes = disk.used_bytes
    assert popper.raw.call(RequestCode.POP_ROLLBACK).code == 1
    assert len(popper.cluster.broker.pop.pop_consumer_service.records.store) == 100
