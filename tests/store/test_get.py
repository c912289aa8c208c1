"""Reading messages: every status, and every limit on how much one answer holds."""

from __future__ import annotations

from typing import Any

import pytest

from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.store import BoundaryType, BrokerRole, GetMessageStatus


class Wanting:
    """A filter that wants some tags codes, and some records."""

    def __init__(self, codes: set[int] | None = None, text: bytes = b"") -> None:
        self.codes = codes
        self.text = text

    def is_matched_by_consume_queue(self, tags_code: int) -> bool:
        return self.codes is None or tags_code in self.codes

    def is_matched_by_commit_log(self, record: bytes) -> bool:
        return self.text in record


def _get(sw: Any, offset: int, count: int = 32, message_filter: Any = None, **settings: Any) -> Any:
    return sw.store.get_message("group", "TopicTest", 0, offset, count, message_filter, **settings)


@pytest.mark.parametrize(
    ("offset", "status", "next_begin_offset"),
    [
        (-1, GetMessageStatus.OFFSET_TOO_SMALL, 0),
        (0, GetMessageStatus.FOUND, 5),
        (5, GetMessageStatus.OFFSET_OVERFLOW_ONE, 5),
        (6, GetMessageStatus.OFFSET_OVERFLOW_BADLY, 5),
    ],
)
def test_the_offset_decides_before_anything_is_read(
    store_world: Any, offset: int, status: GetMessageStatus, next_begin_offset: int
) -> None:
    sw = store_world()
    sw.put(5)
    result = _get(sw, offset)
    assert (result.status, result.next_begin_offset) == (status, next_begin_offset)
    assert (result.min_offset, result.max_offset) == (0, 5)


def test_a_queue_that_nobody_knows_has_no_messages(sw: Any) -> None:
    result = sw.store.get_message("group", "Nothing", 0, 7, 32)
    assert (result.status, result.next_begin_offset) == (GetMessageStatus.NO_MATCHED_LOGIC_QUEUE, 0)
    assert sw.store.get_min_offset_in_queue("Nothing", 0) == -1
    assert sw.store.get_max_offset_in_queue("Nothing", 0) == 0


@pytest.mark.parametrize(("checks", "told"), [(False, 7), (True, 0)])
def test_a_slave_that_does_not_know_a_queue_sends_nobody_back_to_its_beginning(
    sw: Any, checks: bool, told: int
) -> None:
    sw.store.config.broker_role = BrokerRole.SLAVE
    sw.store.config.offset_check_in_slave = checks
    assert sw.store.get_message("group", "Nothing", 0, 7, 32).next_begin_offset == told


def test_a_slave_does_not_correct_an_offset(sw: Any) -> None:
    sw.put(5)
    sw.store.config.broker_role = BrokerRole.SLAVE
    assert _get(sw, 9).next_begin_offset == 9
    sw.store.config.offset_check_in_slave = True
    assert _get(sw, 9).next_begin_offset == 5


def test_one_answer_holds_32_messages_from_memory(store_world: Any) -> None:
    sw = store_world(mapped_file_size_consume_queue=6_000_000)
    sw.put(100)
    assert _get(sw, 0, 100).message_count == 32
    assert _get(sw, 0, 7).message_count == 7


def test_one_answer_holds_256_kib_from_memory(store_world: Any) -> None:
    sw = store_world(mapped_file_size_commit_log=1 << 20, mapped_file_size_consume_queue=6_000_000)
    sizes = [stored.wrote_bytes for stored in sw.put(32, size=20_000)]
    result = _get(sw, 0)
    assert result.buffer_total_size == sum(sizes[: result.message_count]) <= 256 * 1024
    assert sum(sizes[: result.message_count + 1]) > 256 * 1024


def test_messages_that_are_no_longer_in_memory_come_in_lots_of_8(store_world: Any) -> None:
    """A machine with so little memory keeps only the newest 2,000 bytes of the log."""
    sw = store_world(mapped_file_size_consume_queue=6_000_000)
    sw.node.spec = sw.node.spec._replace(memory_bytes=5_000)
    sw.put(100)
    result = _get(sw, 0)
    assert result.message_count == 8
    assert result.suggest_pulling_from_slave
    assert not _get(sw, 98).suggest_pulling_from_slave


def test_from_the_disk_one_answer_holds_64_kib(store_world: Any) -> None:
    sw = store_world(mapped_file_size_commit_log=1 << 20, mapped_file_size_consume_queue=6_000_000)
    sw.node.spec = sw.node.spec._replace(memory_bytes=0)
    sw.put(8, size=20_000)
    assert _get(sw, 0).message_count == 3


def test_the_first_message_is_always_given(store_world: Any) -> None:
    sw = store_world(mapped_file_size_commit_log=1 << 20)
    sw.put(2, size=300_000)
    assert _get(sw, 0).message_count == 1
    assert _get(sw, 0, max_total_msg_size=100).message_count == 1


def test_the_caller_s_limit_on_bytes_holds(sw: Any) -> None:
    size = sw.put(10)[0].wrote_bytes
    assert _get(sw, 0, max_total_msg_size=3 * size).message_count == 3


def test_a_filter_passes_over_what_it_does_not_want(store_world: Any) -> None:
    sw = store_world(mapped_file_size_consume_queue=6_000_000)
    sw.put(9)
    codes = [unit.tags_code for unit in sw.store.find_consume_queue("TopicTest", 0).units()]
    result = _get(sw, 0, 32, Wanting({codes[1]}))
    assert (result.queue_offsets, result.next_begin_offset) == ([1, 4, 7], 9)
    result = _get(sw, 0, 32, Wanting(text=b"message 5"))
    assert (result.queue_offsets, result.next_begin_offset) == ([5], 9)
    nothing = _get(sw, 3, 32, Wanting({-1}))
    assert (nothing.status, nothing.next_begin_offset) == (GetMessageStatus.NO_MATCHED_MESSAGE, 9)
    assert _get(sw, 0, 32, Wanting(text=b"nowhere")).status is GetMessageStatus.NO_MATCHED_MESSAGE


def test_one_pull_looks_at_800_entries(store_world: Any) -> None:
    """16,000 bytes of entries; up to 5.3.2 it was one more, since the broker compared with "greater than"."""
    sw = store_world(mapped_file_size_consume_queue=6_000_000, mapped_file_size_commit_log=1 << 20)
    sw.put(1_000)
    result = _get(sw, 0, 32, Wanting(text=b"nowhere"))
    assert (result.status, result.next_begin_offset) == (GetMessageStatus.NO_MATCHED_MESSAGE, 800)


def test_reading_stops_at_the_end_of_a_queue_file(sw: Any) -> None:
    sw.put(30)
    assert _get(sw, 15).next_begin_offset == 20


def test_offsets_are_found_by_store_time(sw: Any) -> None:
    for i in range(5):
        sw.store.put_message(sw.message(i))
        sw.store.put_message(sw.message(i))
        sw.run(100)
    start = sw.world.epoch_ms

    def find(ms: int, boundary: BoundaryType) -> int:
        return sw.store.get_offset_in_queue_by_time("TopicTest", 0, start + ms, boundary)

    assert [find(ms, BoundaryType.LOWER) for ms in (-1, 0, 1, 100, 400, 401)] == [0, 0, 2, 2, 8, 10]
    assert [find(ms, BoundaryType.UPPER) for ms in (-1, 0, 1, 100, 400, 401)] == [0, 1, 1, 3, 9, 9]
    assert sw.store.get_offset_in_queue_by_time("Nothing", 0, start) == 0


def test_messages_are_found_by_key_and_by_unique_key(sw: Any) -> None:
    results = sw.put(30)
    found = sw.store.query_message("TopicTest", "k7", 32, 0, sw.node.now_ms())
    assert found.messages == [sw.store.select_one_message_by_offset(results[7].wrote_offset)]
    assert sw.store.query_message("TopicTest", f"{7:032X}", 32, 0, sw.node.now_ms()).messages == found.messages
    assert sw.store.query_message("TopicTest", "k99", 32, 0, sw.node.now_ms()).messages == []
    assert sw.store.query_message("Other", "k7", 32, 0, sw.node.now_ms()).messages == []
    assert found.index_last_update_phyoffset == results[-1].wrote_offset


def test_a_query_gives_the_newest_64_at_most_and_keeps_to_its_time(store_world: Any) -> None:
    sw = store_world(max_hash_slot_num=1_000, max_index_num=4_000)
    for i in range(100):
        message = sw.message(i)
        message.keys = "same"
        sw.store.put_message(message)
        sw.run(1_000)
    start, now = sw.world.epoch_ms, sw.node.now_ms()
    found = sw.store.query_message("TopicTest", "same", 1_000, 0, now).messages
    assert len(found) == 64
    assert found[-1] == sw.store.select_one_message_by_offset(sw.store.find_consume_queue("TopicTest", 0).get(99).pos)
    assert len(sw.store.query_message("TopicTest", "same", 32, start + 10_000, start + 14_000).messages) == 5


def test_the_index_rolls_over_and_finds_across_its_files(sw: Any) -> None:
    sw.put(500)
    assert sw.store.query_message("TopicTest", "k3", 32, 0, sw.node.now_ms()).messages
    assert sw.store.query_message("TopicTest", "k499", 32, 0, sw.node.now_ms()).messages
    assert len(sw.store.index_service.files) == 3
    assert sw.store.store_checkpoint.index_msg_timestamp == sw.store.index_service.files[1].end_timestamp


def test_the_index_is_built_when_it_is_asked_and_only_then(sw: Any) -> None:
    sw.put(10)
    assert sw.store.index_service.watermark == 0
    assert sw.store.build_index() == 20
    assert sw.store.index_service.watermark == sw.store.max_phy_offset
    assert sw.store.build_index() == 0


def test_on_a_full_disk_a_query_finds_what_is_in_the_index_and_the_rest_once_there_is_room(sw: Any) -> None:
    """No key is lost by it and none is there twice."""
    sw.put(60)
    assert sw.store.build_index() == 120
    for i in range(60, 500):
        sw.store.put_message(sw.message(i))
    sw.run(5)
    assert sw.store.dispatch_behind_bytes == 0
    disk, now = sw.node.disk, sw.node.now_ms()
    disk.capacity_bytes = disk.used_bytes
    counts = []
    while sw.store.index_service.is_behind:
        counts.append(sw.store.build_index())
        assert len(sw.store.query_message("TopicTest", "k30", 32, 0, now).messages) == 1
        assert (len(sw.store.query_message("TopicTest", "k499", 32, 0, now).messages) == 0) is (
            sw.store.index_service.is_behind
        )
        disk.capacity_bytes += 4096
    assert sum(counts) <= 880
    assert len(counts) > 3
    for i in range(500):
        assert len(sw.store.query_message("TopicTest", f"k{i}", 32, 0, now).messages) == 1
        assert len(sw.store.query_message("TopicTest", f"{i:032X}", 32, 0, now).messages) == 1


def test_a_deleted_topic_can_no_longer_be_read(sw: Any) -> None:
    sw.put(3)
    assert sw.store.delete_topics(["TopicTest"]) == 1
    assert _get(sw, 0).status is GetMessageStatus.NO_MATCHED_LOGIC_QUEUE
    assert not sw.node.disk.exists("store/consumequeue/TopicTest")
    sw.put(1)
    assert _get(sw, 0).message_count == 1


def test_the_earliest_time_is_that_of_the_first_message(sw: Any) -> None:
    assert sw.store.get_earliest_message_time() == -1
    sw.run(50)
    sw.put(2)
    assert sw.store.get_earliest_message_time() == sw.world.epoch_ms + 50
    assert sw.store.get_earliest_message_time("TopicTest", 0) == sw.world.epoch_ms + 50


BATCHES = [
    # (ms after the start, LOWER, UPPER), with batches of 3, 2, 4 and 1 messages stored at 100, 200, 300 and 400 ms
    (50, 0, 0),
    (100, 0, 0),
    (150, 3, -1),
    (200, 3, 3),
    (250, 5, -1),
    (300, 5, 5),
    (350, 9, 9),
    (400, 9, 9),
    (10_000, 9, 9),
]


@pytest.mark.parametrize(("at_ms", "lower", "upper"), BATCHES)
def test_a_batch_queue_is_searched_by_time_in_rocketmqs_own_way(
    store_world: Any, at_ms: int, lower: int, upper: int
) -> None:
    """Behind the newest batch that batch is the answer, not the end; UPPER may find nothing between two batches."""
    sw = _with_batches(store_world, 46 * 100)
    moment = sw.world.epoch_ms + at_ms
    assert sw.store.get_offset_in_queue_by_time("Batches", 0, moment, BoundaryType.LOWER) == lower
    assert sw.store.get_offset_in_queue_by_time("Batches", 0, moment, BoundaryType.UPPER) == upper


def _with_batches(store_world: Any, file_size: int) -> Any:
    sw = store_world(mapper_file_size_batch_consume_queue=file_size)
    sw.batch_topics.add("Batches")
    for count in (3, 2, 4, 1):
        sw.run(100 - sw.node.now_ms() % 100)
        message = sw.message(topic="Batches", sys_flag=MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP)
        message.properties["INNER_NUM"] = str(count)
        sw.store.put_message(message)
        sw.run(1)
    return sw


def test_a_batch_queue_of_several_files_is_searched_in_one(store_world: Any) -> None:
    """Behind the newest batch of a file that batch is the answer, even when the next file begins later."""
    sw = _with_batches(store_world, 46 * 2)

    def found(at_ms: int) -> int:
        offset: int = sw.store.get_offset_in_queue_by_time("Batches", 0, sw.world.epoch_ms + at_ms)
        return offset

    assert [found(at_ms) for at_ms in (50, 150, 250, 299, 300, 350, 500)] == [0, 3, 3, 3, 5, 9, 9]
