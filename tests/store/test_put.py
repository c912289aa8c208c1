"""Putting messages: where they go, what is refused, and how files roll over."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from mqlab.protocol.batch import encode_batch
from mqlab.protocol.hashing import tags_code
from mqlab.protocol.message import Message
from mqlab.protocol.record import BLANK_MAGIC_CODE, decode_record
from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.store import BrokerRole, PutMessageResult, PutMessageStatus, RunningFlags


def test_a_message_is_stored_dispatched_and_readable(sw: Any) -> None:
    result = sw.store.put_message(sw.message(1))
    assert (result.status, result.wrote_offset, result.logics_offset) == (PutMessageStatus.PUT_OK, 0, 0)
    assert sw.store.dispatch_behind_bytes == result.wrote_bytes
    assert sw.store.get_max_offset_in_queue("TopicTest", 0) == 0
    assert sw.store.get_max_offset_in_queue("TopicTest", 0, committed=False) == 1
    sw.run(1)
    assert sw.store.dispatch_behind_bytes == 0
    (record,) = sw.store.get_message("group", "TopicTest", 0, 0, 32).messages
    message = decode_record(record)
    assert (message.topic, message.tags, message.keys, message.body[:9]) == ("TopicTest", "Tag1", "k1", b"message 1")
    assert (message.store_timestamp, message.store_host) == (sw.world.epoch_ms, "10.0.0.1:10911")
    assert message.offset_msg_id == result.msg_id == "0A00000100002A9F0000000000000000"


def _calls_of(function: Callable[[], object]) -> int:
    """How many functions run in it: the same number on every machine."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def test_a_put_costs_the_same_behind_a_backlog_that_nobody_consumes(store_world: Any) -> None:
    sw = store_world(mapped_file_size_commit_log=4_000_000, mapped_file_size_consume_queue=100_000)
    sw.put(10)
    message, late = sw.message(11), sw.message(3_011)
    first = _calls_of(lambda: sw.store.put_message(message))
    sw.put(3_000)
    used_bytes = sw.node.disk.used_bytes
    assert _calls_of(lambda: sw.store.put_message(late)) == first
    assert sw.store.get_max_offset_in_queue("TopicTest", 0, committed=False) == 3_012
    assert sw.node.disk.used_bytes - used_bytes <= 4_096


def test_each_queue_counts_its_own_messages(sw: Any) -> None:
    offsets = [sw.store.put_message(sw.message(i, queue_id=i % 2)).logics_offset for i in range(5)]
    assert offsets == [0, 0, 1, 1, 2]


def test_the_listener_hears_of_each_message_that_can_be_read(sw: Any) -> None:
    heard: list[tuple[Any, ...]] = []
    sw.store.message_arriving_listener = lambda *arrived: heard.append(arrived)
    message = sw.message(1)
    sw.store.put_message(message)
    assert heard == []
    sw.run(1)
    assert heard == [("TopicTest", 0, 1, tags_code("Tag1"), sw.world.epoch_ms, None, message.properties)]


def test_a_record_never_crosses_the_end_of_a_file(sw: Any) -> None:
    results = sw.put(20, size=10_000)
    size = results[0].wrote_bytes
    per_file = 65536 // size
    assert results[per_file].wrote_offset == 65536
    file = sw.store.commit_log.mapped_file_queue.mapped_files[0].file
    used = per_file * size
    assert int.from_bytes(file.read(used, 4), "big") == 65536 - used
    assert int.from_bytes(file.read(used + 4, 4), "big", signed=True) == BLANK_MAGIC_CODE
    assert sw.store.get_max_offset_in_queue("TopicTest", 0) == 20


def test_a_file_keeps_eight_bytes_for_the_blank(store_world: Any, sw: Any) -> None:
    """A record that would fit exactly goes to the next file."""
    empty = sw.store.put_message(sw.message(0, size=10)).wrote_bytes
    room = 65536 - empty
    overhead = empty - 10
    assert sw.store.put_message(sw.message(0, size=room - overhead - 7)).wrote_offset == 65536
    sw = store_world()
    sw.store.put_message(sw.message(0, size=10))
    assert sw.store.put_message(sw.message(0, size=room - overhead - 8)).wrote_offset == empty


def test_the_next_file_is_made_ahead_and_dropped_at_a_clean_stop(sw: Any) -> None:
    sw.put()
    assert sw.node.disk.list("store/commitlog") == ["00000000000000000000", "00000000000000065536"]
    sw.store.shutdown()
    assert sw.node.disk.list("store/commitlog") == ["00000000000000000000"]


def test_prepared_and_rolled_back_messages_have_no_queue_entry(sw: Any) -> None:
    for kind in (MessageSysFlag.TRANSACTION_PREPARED, MessageSysFlag.TRANSACTION_ROLLBACK):
        assert sw.store.put_message(sw.message(sys_flag=kind)).logics_offset == 0
    committed = sw.store.put_message(sw.message(7, sys_flag=MessageSysFlag.TRANSACTION_COMMIT))
    sw.run()
    assert committed.logics_offset == 0
    assert sw.store.get_max_offset_in_queue("TopicTest", 0) == 1
    assert sw.store.dispatch_behind_bytes == 0


def test_the_schedule_topic_keeps_times_of_delivery(sw: Any) -> None:
    for level in ("3", "99"):
        message = sw.message(topic="SCHEDULE_TOPIC_XXXX", queue_id=2)
        message.properties["DELAY"] = level
        sw.store.put_message(message)
    sw.run()
    codes = [unit.tags_code for unit in sw.store.find_consume_queue("SCHEDULE_TOPIC_XXXX", 2).units()]
    assert codes == [sw.world.epoch_ms + 10_000, sw.world.epoch_ms + 7_200_000]


# -- batches --------------------------------------------------------------------------------------------------------


def _batch(sw: Any, bodies: list[bytes], **settings: Any) -> Any:
    body = encode_batch([Message("TopicTest", one, tags="TagA") for one in bodies])
    batch = sw.message(**settings)
    batch.body, batch.properties = body, {"CLUSTER": "DefaultCluster"}
    return batch


def test_a_batch_becomes_one_record_for_each_message(sw: Any) -> None:
    sw.put(2)
    result = sw.store.put_messages(_batch(sw, [b"a", b"bb", b"ccc"]))
    sw.run()
    assert (result.msg_num, result.logics_offset) == (3, 2)
    assert len(result.msg_id.split(",")) == 3
    stored = [sw.store.look_message_by_offset(offset) for offset in result.msg_offsets]
    assert [message.body for message in stored] == [b"a", b"bb", b"ccc"]
    assert [message.queue_offset for message in stored] == [2, 3, 4]
    assert stored[0].properties == {"WAIT": "true", "TAGS": "TagA", "CLUSTER": "DefaultCluster"}


def test_a_batch_that_does_not_fit_moves_to_the_next_file_as_a_whole(sw: Any) -> None:
    sw.put(1, size=60_000)
    result = sw.store.put_messages(_batch(sw, [b"x" * 3_000] * 4))
    assert result.msg_offsets[0] == 65536


def test_a_batch_over_the_limit_is_refused_with_the_broker_s_words(store_world: Any) -> None:
    sw = store_world(max_message_size=5_000)
    result = sw.store.put_messages(_batch(sw, [b"x" * 3_000] * 2))
    assert result.status is PutMessageStatus.UNKNOWN_ERROR
    assert result.remark.startswith("java.lang.RuntimeException: message body size exceeded, ")


def test_a_batch_that_can_not_be_is_refused(sw: Any) -> None:
    delayed = _batch(sw, [b"a"])
    delayed.properties["DELAY"] = "3"
    empty = _batch(sw, [])
    torn = _batch(sw, [b"a", b"b"])
    torn.body = torn.body[:-1]
    prepared = _batch(sw, [b"a"], sys_flag=MessageSysFlag.TRANSACTION_PREPARED)
    results = [sw.store.put_messages(batch) for batch in (delayed, empty, prepared, torn)]
    illegal = PutMessageStatus.MESSAGE_ILLEGAL
    assert [result.status for result in results] == [illegal, illegal, illegal, PutMessageStatus.UNKNOWN_ERROR]
    assert sw.store.max_phy_offset == 0


def test_a_whole_batch_needs_a_topic_that_keeps_batches(sw: Any) -> None:
    flags = MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP
    refused = sw.store.put_message(sw.message(sys_flag=flags))
    assert (refused.status, refused.is_stored) == (PutMessageStatus.MESSAGE_ILLEGAL, False)
    sw.batch_topics.add("Batches")
    for count in (3, 2):
        batch = sw.message(topic="Batches", sys_flag=flags)
        batch.properties["INNER_NUM"] = str(count)
        assert sw.store.put_message(batch).status is PutMessageStatus.PUT_OK
    sw.run()
    queue = sw.store.find_consume_queue("Batches", 0)
    assert [(unit.queue_offset, unit.batch_num) for unit in queue.units()] == [(0, 3), (3, 2)]
    assert (queue.min_offset_in_queue, queue.max_offset_in_queue) == (0, 5)
    assert sw.store.get_message("group", "Batches", 0, 4, 32).queue_offsets == [3]
    assert sw.store.get_message("group", "Batches", 0, 1, 3).message_count == 3


# -- refusals -------------------------------------------------------------------------------------------------------


def _refusal(sw: Any, **settings: Any) -> PutMessageResult:
    result = sw.store.put_message(sw.message(**settings))
    assert not result.is_stored
    assert result.remark
    assert result.msg_id == ""
    return result


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ({"topic": "t" * 128}, PutMessageStatus.MESSAGE_ILLEGAL),
        ({"topic": "%RETRY%" + "g" * 249}, PutMessageStatus.MESSAGE_ILLEGAL),
        ({"size": 4 * 1024 * 1024 + 1}, PutMessageStatus.MESSAGE_ILLEGAL),
        ({"properties": {"a": "x" * 32_765}}, PutMessageStatus.PROPERTIES_SIZE_EXCEEDED),
    ],
)
def test_what_can_not_be_stored_is_refused(store_world: Any, settings: Any, status: PutMessageStatus) -> None:
    assert _refusal(store_world(), **settings).status is status


def test_the_longest_topics_and_properties_are_stored(sw: Any) -> None:
    for settings in ({"topic": "t" * 127}, {"topic": "%RETRY%" + "g" * 248}, {"properties": {"a": "x" * 32_764}}):
        assert sw.store.put_message(sw.message(**settings)).is_ok


def test_a_message_without_body_is_refused(sw: Any) -> None:
    message = sw.message()
    message.body = None
    assert sw.store.put_message(message).status is PutMessageStatus.MESSAGE_ILLEGAL


def test_a_slave_and_a_stopped_store_take_nothing(store_world: Any) -> None:
    assert _refusal(store_world(broker_role=BrokerRole.SLAVE)).status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    sw = store_world()
    sw.store.shutdown()
    assert "shut down" in _refusal(sw).remark


def test_a_store_that_may_not_write_says_why(sw: Any) -> None:
    sw.store.running_flags.set(RunningFlags.FENCED)
    assert _refusal(sw).remark == "FENCED"


def test_a_put_that_hangs_makes_the_page_cache_busy(sw: Any) -> None:
    sw.node.disk.set_slow(2_000_000)
    pending = sw.store.put_message(sw.message(0))
    sw.run(1_002)
    assert sw.store.is_os_page_cache_busy()
    assert _refusal(sw).status is PutMessageStatus.OS_PAGE_CACHE_BUSY
    sw.run(1_000)
    assert pending.result().is_ok
    assert not sw.store.is_os_page_cache_busy()


def test_a_hook_may_rewrite_or_refuse_a_message(sw: Any) -> None:
    def hook(message: Any) -> PutMessageResult | None:
        message.queue_id = 3
        if message.keys == "k1":
            return PutMessageResult(PutMessageStatus.WHEEL_TIMER_NOT_ENABLE, remark="no timers here")
        return None

    sw.store.put_message_hooks.append(hook)
    sw.store.put_message(sw.message(0))
    assert sw.store.put_message(sw.message(1)).status is PutMessageStatus.WHEEL_TIMER_NOT_ENABLE
    sw.run()
    assert sw.store.consume_queue_store.topics() == {"TopicTest": [3]}


def test_a_full_disk_refuses_until_there_is_room(sw: Any) -> None:
    sw.put()
    sw.node.disk.capacity_bytes = sw.node.disk.used_bytes
    refused = [r for r in sw.put(100, size=1_000) if not r.is_stored]
    assert refused[0].status is PutMessageStatus.SERVICE_NOT_AVAILABLE
    assert "no space left" in refused[0].remark
    assert refused[1].remark == "DISK_FULL"
    sw.node.disk.capacity_bytes = 100 << 20
    sw.run(70_000)
    assert sw.store.put_message(sw.message()).is_ok


def _readable(sw: Any, topic: str = "TopicTest") -> list[bytes]:
    found = sw.store.get_message("group", topic, 0, 0, 999)
    return [] if found is None else [decode_record(record).body for record in found.messages]


def test_a_broker_whose_first_message_for_a_while_meets_a_full_disk_writes_again_when_there_is_room(
    store_world: Any,
) -> None:
    sw = store_world()
    sw.put()
    sw.run(90_000)
    sw.node.disk.capacity_bytes = sw.node.disk.used_bytes
    assert not sw.store.put_message(sw.message(size=5_000)).is_stored
    sw.node.disk.capacity_bytes = None
    sw.run(11_000)
    assert sw.store.put_message(sw.message()).is_ok


@pytest.mark.parametrize("free_bytes", [0, 4096, 8192])
def test_a_batch_that_meets_a_full_disk_stores_all_of_its_messages_or_none(sw: Any, free_bytes: int) -> None:
    """None of a refused batch is ever consumed, and no acknowledged message after it is lost."""
    sw.put(2, size=10)
    before = sw.store.max_phy_offset
    sw.node.disk.capacity_bytes = sw.node.disk.used_bytes + free_bytes
    batch = _batch(sw, [b"batch %d" % i + b"." * 1_500 for i in range(8)])
    refused = sw.store.put_messages(batch)
    sw.run()
    assert (refused.is_stored, sw.store.max_phy_offset) == (False, before)
    assert len(_readable(sw)) == 2
    sw.node.disk.capacity_bytes = 100 << 20
    sw.run(70_000)
    later = sw.put(10, size=20)
    assert [result.logics_offset for result in later] == list(range(2, 12))
    assert [body[:9] for body in _readable(sw)[2:]] == [b"message %d" % i for i in range(10)]
    sw.store.shutdown()
    assert not sw.node.disk.exists("store/abort")


def test_a_whole_batch_that_meets_a_full_disk_leaves_nothing(sw: Any) -> None:
    sw.batch_topics.add("Batches")
    flags = MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP

    def put_batch(size: int) -> PutMessageResult:
        batch = sw.message(topic="Batches", size=size, sys_flag=flags)
        batch.properties["INNER_NUM"] = "3"
        result: PutMessageResult = sw.store.put_message(batch)
        sw.run()
        return result

    assert put_batch(100).logics_offset == 0
    sw.node.disk.capacity_bytes = sw.node.disk.used_bytes
    assert not put_batch(9_000).is_stored
    sw.node.disk.capacity_bytes = 100 << 20
    sw.run(70_000)
    assert put_batch(100).logics_offset == 3
    assert [unit.queue_offset for unit in sw.store.find_consume_queue("Batches", 0).units()] == [0, 3]


def test_what_is_larger_than_a_file_of_the_commit_log_is_refused(sw: Any) -> None:
    """RocketMQ's own limits (4 MB in files of 1 GB) rule it out; with small files it has to be said."""
    alone = sw.store.put_message(sw.message(size=70_000))
    together = sw.store.put_messages(_batch(sw, [b"x" * 30_000] * 3))
    for refused in (alone, together):
        assert (refused.status, refused.is_stored) == (PutMessageStatus.MESSAGE_ILLEGAL, False)
        assert "a file of the commit log has 65536" in refused.remark
    assert sw.store.max_phy_offset == 0
    assert sw.store.put_message(sw.message()).wrote_offset == 0


def test_dispatching_waits_for_room_and_loses_nothing(sw: Any) -> None:
    """The commit log still has room in its page, the first entry of a queue would need a page of its own."""
    sw.store.put_message(sw.message())
    sw.node.disk.capacity_bytes = sw.node.disk.used_bytes
    sw.run()
    assert sw.store.running_flags.reasons() == ["LOGIC_DISK_FULL"]
    assert sw.store.get_max_offset_in_queue("TopicTest", 0) == 0
    sw.node.disk.capacity_bytes = 100 << 20
    sw.run(70_000)
    assert sw.store.get_max_offset_in_queue("TopicTest", 0) == 1
    assert sw.store.running_flags.is_writeable


def test_what_put_hands_over_is_what_the_bytes_say(sw: Any) -> None:
    """Recovery reads the log; dispatching does not: both must make the same queues."""
    for i in range(300):
        transaction = (0, 0, 0, MessageSysFlag.TRANSACTION_PREPARED, MessageSysFlag.TRANSACTION_COMMIT)[i % 5]
        message = sw.message(i, topic=f"Topic{i % 3}", queue_id=i % 4, size=i * 7, sys_flag=transaction)
        if i % 11 == 0:
            message.topic, message.properties["DELAY"] = "SCHEDULE_TOPIC_XXXX", str(i % 20)
        if i % 13 == 0:
            del message.properties["TAGS"]
        sw.store.put_message(message)
    handed = list(sw.store.commit_log.requests)
    read, end = sw.store.commit_log.read_requests(0, sw.store.max_phy_offset)
    assert [request.fields() for request in read] == [request.fields() for request in handed]
    assert end == sw.store.max_phy_offset
