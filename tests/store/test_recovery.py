"""After a stop: a clean one, a killed process, a lost power, a damaged log."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mqlab.sim.disk import MemoryDisk
from mqlab.sim.faults import crash, power_off, restart
from mqlab.store import DiskHost, DispatchRequest, FlushDiskType, MessageStoreConfig, PutMessageStatus, ReadableStore
from mqlab.trace.events.store import StoreRecovered

LOG = "store/commitlog/00000000000000000000"


def _bodies(store: Any, topic: str = "TopicTest", queue_id: int = 0) -> list[bytes]:
    queue = store.find_consume_queue(topic, queue_id)
    if queue is None:
        return []
    # As recovery reads them: whether a body that says that it is packed can be unpacked is asked by nobody there.
    return [store.look_message_by_offset(unit.pos, decompress=False).body.rstrip(b".") for unit in queue.units()]


def _again(sw: Any) -> Any:
    restart(sw.world, "broker-a")
    sw.run(1)
    return sw.store


def test_a_clean_stop_is_seen_by_the_missing_abort_file(sw: Any) -> None:
    sw.put(30)
    assert sw.node.disk.exists("store/abort")
    sw.store.shutdown()
    assert not sw.node.disk.exists("store/abort")
    store = _again(sw)
    assert (store.recovery.clean, store.recovery.dispatched, store.recovery.cuts) == (True, 0, [])
    assert _bodies(store) == [b"message %d " % i for i in range(30)]
    assert sw.put(1)[0].logics_offset == 30


def test_a_killed_process_loses_nothing_that_it_wrote(sw: Any) -> None:
    sw.put(30)
    results = [sw.store.put_message(sw.message(30 + i)) for i in range(5)]
    crash(sw.world, "broker-a")
    store = _again(sw)
    assert not store.recovery.clean
    assert store.recovery.dispatched == 35
    assert store.max_phy_offset == results[-1].wrote_offset + results[-1].wrote_bytes
    assert store.get_max_offset_in_queue("TopicTest", 0) == 35


def test_a_store_goes_on_where_it_stopped(sw: Any) -> None:
    sw.put(250, size=1_000)
    crash(sw.world, "broker-a")
    store = _again(sw)
    end = store.max_phy_offset
    assert sw.put(1)[0].wrote_offset in (end, end - end % 65536 + 65536)
    assert store.get_max_offset_in_queue("TopicTest", 0) == 251
    assert store.query_message("TopicTest", "k249", 32, 0, sw.node.now_ms()).messages


def test_a_crash_reads_only_what_the_checkpoint_does_not_know(sw: Any) -> None:
    for _ in range(10):
        sw.put(60, size=1_000)
        sw.run(3_000)
    crash(sw.world, "broker-a")
    store = _again(sw)
    assert store.recovery.started_at > 0
    assert store.recovery.records < 600
    assert store.get_max_offset_in_queue("TopicTest", 0) == 600


def test_what_recovery_did_is_an_event(sw: Any) -> None:
    sw.put(3)
    crash(sw.world, "broker-a")
    sw.node.disk.open(LOG).write(700, b"\xff")
    seen: list[Any] = []
    sw.world.hooks.attach(lambda row: seen.append(row[8:]) if row[7] == StoreRecovered.__name__ else None)
    store = _again(sw)
    (event,) = (StoreRecovered(*fields) for fields in seen)
    assert (event.clean, event.records, event.commit_log_max_offset) == (False, 2, store.max_phy_offset)
    assert event.cut_bytes > 0
    assert "CRC" in event.reason or "parts" in event.reason


def test_without_a_commit_log_all_queues_go(sw: Any) -> None:
    sw.put(3)
    sw.store.shutdown()
    sw.node.disk.rmtree("store/commitlog")
    store = _again(sw)
    assert store.consume_queue_store.topics() == {}
    assert store.recovery.cuts == [
        {
            "what": "consume queue",
            "topic": "TopicTest",
            "queueId": 0,
            "entries": 3,
            "reason": "the commit log has no files",
        }
    ]
    assert sw.put(1)[0].logics_offset == 0


def test_after_a_clean_stop_damage_in_old_files_goes_unnoticed(sw: Any) -> None:
    """Only the newest files are read: as in RocketMQ, a bad body in an older one is found by whoever reads it."""
    sw.put(200, size=1_000)
    sw.store.shutdown()
    sw.node.disk.open(LOG).write(500, b"\xff")
    store = _again(sw)
    assert store.recovery.cuts == []
    assert store.get_max_offset_in_queue("TopicTest", 0) == 200


# -- power ----------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(20, 9_000), st.booleans()), min_size=1, max_size=25), st.booleans(), st.integers()
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_power_loss_takes_only_what_was_not_flushed(
    store_world: Any, puts: list[tuple[int, bool]], sync: bool, seed: int
) -> None:
    """Whichever pages survive: what is left begins with all that was flushed, and what was acknowledged after a
    flush is there. (A queue of several files may keep entries of lost messages, as RocketMQ's.)
    """
    flush = FlushDiskType.SYNC_FLUSH if sync else FlushDiskType.ASYNC_FLUSH
    sw = store_world(flush_disk_type=flush, mapped_file_size_consume_queue=6_000)
    sure = 0
    for i, (size, wait) in enumerate(puts):
        answer = sw.store.put_message(sw.message(i, size=size))
        if wait:
            sw.run(1)
            if sync:
                assert answer.result().is_ok
                sure = i + 1
    flushed = sw.store.commit_log.mapped_file_queue.flushed_where
    dice = Random(seed)
    sw.world.choose = lambda point, n: dice.randrange(n)
    power_off(sw.world, "broker-a")
    store = _again(sw)
    bodies = _bodies(store)
    assert bodies == [b"message %d " % i for i in range(len(bodies))]
    assert len(bodies) >= sure
    assert store.max_phy_offset >= flushed


def test_asynchronous_flush_may_lose_what_was_acknowledged(sw: Any) -> None:
    sw.put(5)
    sw.world.choose = lambda point, n: 0
    power_off(sw.world, "broker-a")
    store = _again(sw)
    assert store.max_phy_offset == 0
    assert store.get_max_offset_in_queue("TopicTest", 0) == 0


# -- damage ---------------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 200_000), st.binary(min_size=1, max_size=300)), min_size=1, max_size=4),
    st.booleans(),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example([(33, b"\x00\x00\x00\x00\x00\x00\x01")], False)
def test_whatever_is_damaged_recovery_ends_and_keeps_what_lies_before(
    store_world: Any, damage: list[tuple[int, bytes]], clean: bool
) -> None:
    sw = store_world()
    ends = [stored.wrote_offset + stored.wrote_bytes for stored in sw.put(150, size=1_000)]
    if clean:
        sw.store.shutdown()
    else:
        crash(sw.world, "broker-a")
    disk = sw.node.disk
    for where, data in damage:
        disk.open(f"store/commitlog/{where - where % 65536:020d}", 65536).write(min(where % 65536, 65236), data)
    store = ReadableStore(DiskHost(disk), sw.config)
    store.load()
    if not clean:
        untouched = sum(end <= min(where for where, _ in damage) - 300 for end in ends)
        bodies = _bodies(store)
        assert bodies == [b"message %d " % i for i in range(len(bodies))]
        assert len(bodies) >= untouched


@given(st.integers(0, 3_000), st.binary(min_size=1, max_size=60))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(1_329, b"\x00\x16;\x00\x00\x00\x00\x00\x00\x00\x00\x80")
def test_damaged_queue_entries_do_not_reach_back_beyond_their_file(store_world: Any, where: int, data: bytes) -> None:
    """Messages of earlier queue files stay readable, and what is read was stored.

    Later ones may be lost, as with RocketMQ: an entry whose damaged size reaches far into the log makes the queue take
    the messages up to there for built already.
    """
    sw = store_world()
    stored = [sw.store.select_one_message_by_offset(one.wrote_offset) for one in sw.put(100)]
    crash(sw.world, "broker-a")
    disk = sw.node.disk
    paths = [path for path in disk.files() if "consumequeue/" in path]
    damaged = where // 400 % len(paths)
    file = disk.open(paths[damaged])
    file.write(min(where % 400, 400 - len(data)), data)
    store = ReadableStore(DiskHost(disk), sw.config)
    store.load()
    readable, offset = set(), 0
    while offset < store.get_max_offset_in_queue("TopicTest", 0):
        result = store.get_message("group", "TopicTest", 0, offset, 32)
        readable |= {record for record in result.messages if record in stored}
        offset = max(result.next_begin_offset, offset + 1)
    assert set(stored[: damaged * 20]) <= readable


def test_an_empty_directory_is_an_empty_store() -> None:
    store = ReadableStore(DiskHost(MemoryDisk("alpha", lambda: 0)), MessageStoreConfig())
    recovery = store.load()
    assert (recovery.clean, store.max_phy_offset, store.min_phy_offset) == (True, 0, -1)


def test_of_a_last_queue_file_of_zeros_an_entry_is_kept_when_the_queues_are_cut(sw: Any) -> None:
    """A real 5.3.3 does so, too: truncation asks of the first entry of a file only where it points to."""
    sw.put(21)
    sw.put(1, topic="Other")
    sw.store.shutdown()
    sw.node.disk.open("store/consumequeue/TopicTest/0/00000000000000000400").write(0, bytes(20))
    store = ReadableStore(sw.node, sw.config)
    assert store.load().cuts == []
    queue = store.find_consume_queue("TopicTest", 0)
    assert queue.max_offset_in_queue == 21
    assert queue.get(20) == (20, 0, 0, 0, 1, None)
    assert store.consume_queue_store.topic_queue_table["TopicTest", 0] == 21


def test_queues_that_end_before_the_log_are_not_cut(sw: Any) -> None:
    """What counts is what they knew before recovery dispatched the rest, so the file of zeros stays empty here."""
    sw.put(21)
    sw.put(1, topic="Other")
    sw.store.shutdown()
    sw.node.disk.open("store/consumequeue/TopicTest/0/00000000000000000400").write(0, bytes(20))
    sw.node.disk.open("store/consumequeue/Other/0/00000000000000000000").write(0, bytes(20))
    store = ReadableStore(sw.node, sw.config)
    assert store.load().dispatched == 1
    assert store.get_max_offset_in_queue("TopicTest", 0) == 20
    assert store.get_max_offset_in_queue("Other", 0) == 1


def test_the_first_message_of_a_queue_is_appended_even_to_a_longer_one(sw: Any) -> None:
    """As in RocketMQ: only from the second one on it asks whether the queue is longer already."""
    sw.put(3)
    queue = sw.store.find_consume_queue("TopicTest", 0)
    end = sw.store.max_phy_offset
    for offset in (1, 0):
        request = DispatchRequest("TopicTest", 0, end, 100, 0, 0, offset, 0, 0, {})
        queue.put(request)
    assert [unit.pos for unit in queue.units()][3:] == [end]


@pytest.mark.parametrize(("asked", "size"), [(400, 400), (401, 420), (419, 420)])
def test_a_queue_file_holds_whole_entries(store_world: Any, asked: int, size: int) -> None:
    sw = store_world(mapped_file_size_consume_queue=asked)
    sw.put()
    assert sw.node.disk.open("store/consumequeue/TopicTest/0/00000000000000000000").size == size


def test_entries_of_lost_messages_come_back_after_one_more_clean_restart(sw: Any) -> None:
    """As in RocketMQ: cutting a queue moves its end and leaves the bytes behind it, which the next start finds again.

    By then the log has grown over their offsets: here they point to the messages of another queue.
    """
    sw.put(5)
    sw.run(11_000)
    sw.put(5)
    sw.world.choose = lambda point, n: int("consumequeue" in point)
    power_off(sw.world, "broker-a")
    store = _again(sw)
    assert (store.recovery.records, store.get_max_offset_in_queue("TopicTest", 0)) == (5, 5)
    sw.put(5, queue_id=1)
    assert store.get_max_offset_in_queue("TopicTest", 0) == 5
    store.shutdown()
    store = _again(sw)
    assert store.recovery.clean
    assert store.get_max_offset_in_queue("TopicTest", 0) == 10
    twice = [store.look_message_by_offset(unit.pos) for unit in store.find_consume_queue("TopicTest", 0).units()]
    assert [message.queue_id for message in twice] == [0] * 5 + [1] * 5


# -- keys -----------------------------------------------------------------------------------------------------------


def _times_found(store: Any, number: int) -> tuple[int, int]:
    """How often a message is found by its key and by its unique key."""
    found = [store.query_message("TopicTest", key, 64, 0, 1 << 60).messages for key in (f"k{number}", f"{number:032X}")]
    return len(found[0]), len(found[1])


@pytest.mark.parametrize(
    ("asked_before", "end"), [(0, crash), (50, crash), (260, crash), (0, power_off), (50, power_off)]
)
def test_keys_of_messages_stored_before_and_after_a_crash_are_found_once(
    store_world: Any, asked_before: int, end: Any
) -> None:
    """Whatever the index had at the crash: nothing, one file, or a full one and the beginning of the next.

    As in RocketMQ the message that was the last in a file that stays is put into it once more.
    """
    sw = store_world()
    for number in range(asked_before):
        sw.store.put_message(sw.message(number))
    sw.run()
    sw.store.build_index()
    for number in range(asked_before, 300):
        sw.store.put_message(sw.message(number))
    sw.run(11_000)
    end(sw.world, "broker-a")
    store = _again(sw)
    for number in range(300, 330):
        store.put_message(sw.message(number))
    sw.run()
    for number in (0, 49, 50, 199, 200, 260, 299, 300, 329):
        assert _times_found(store, number) == (1, 1)
    assert _times_found(store, 259) == ((2, 2) if asked_before == 260 else (1, 1))
    crash(sw.world, "broker-a")
    assert _times_found(_again(sw), 329) == (1, 1)


def test_a_store_without_room_for_queue_entries_starts_and_dispatches_when_there_is_room(sw: Any) -> None:
    sw.put(10)
    crash(sw.world, "broker-a")
    disk = sw.node.disk
    disk.rmtree("store/consumequeue")
    disk.capacity_bytes = disk.used_bytes
    store = _again(sw)
    assert store.dispatch_behind_bytes == store.commit_log.max_offset
    assert store.put_message(sw.message()).status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    disk.capacity_bytes += 100_000_000
    sw.run(70_000)
    assert store.get_max_offset_in_queue("TopicTest", 0) == 10
    (result,) = sw.put(1)
    assert (result.is_ok, result.logics_offset) == (True, 10)
    assert store.get_max_offset_in_queue("TopicTest", 0) == 11
    assert len(store.query_message("TopicTest", "k3", 32, 0, 1 << 62).messages) == 1
