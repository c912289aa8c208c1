"""Batch consume queues: an entry for each batch, found by search; after stops, losses and deletions as in RocketMQ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.protocol.batch import encode_batch, unwrap_inner_batch
from mqlab.protocol.message import Message
from mqlab.protocol.record import decode_record
from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.sim.faults import FAULTS, start
from mqlab.store import GetMessageStatus, PutMessageStatus
from mqlab.store.batch_consume_queue import BATCH_ENTRY, BatchConsumeQueue
from mqlab.store.search_by_time import BoundaryType

HOUR_MS = 3_600_000
WHOLE = MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP
FILE_BYTES = 5 * 46


@pytest.fixture
def sw(store_world: Callable[..., Any]) -> Any:
    """A store whose topic "Whole" keeps batches whole, five entries in a file."""
    world = store_world(mapper_file_size_batch_consume_queue=FILE_BYTES)
    world.batch_topics.add("Whole")
    return world


def put(sw: Any, count: int, size: int = 100) -> Any:
    """Store a whole batch of so many messages."""
    body = encode_batch([Message("Whole", b"%d" % i + b"." * size) for i in range(count)])
    message = sw.message(0, "Whole", sys_flag=WHOLE)
    message.body = body
    message.properties["INNER_NUM"] = str(count)
    result = sw.store.put_message(message)
    sw.run()
    return result


def queue_of(sw: Any) -> BatchConsumeQueue:
    queue = sw.store.find_consume_queue("Whole", 0)
    assert isinstance(queue, BatchConsumeQueue)
    return queue


def entries(sw: Any) -> list[tuple[int, int]]:
    """(queue offset, number of messages) of each entry."""
    return [(unit.queue_offset, unit.batch_num) for unit in queue_of(sw).units()]


def restarted(sw: Any, verb: str = "crash") -> None:
    if not sw.node.life.started:
        start(sw.world, "broker-a")
        sw.run(0)
    FAULTS[verb](sw.world, "broker-a")
    FAULTS["restart"](sw.world, "broker-a")
    sw.run()


def test_an_entry_has_46_bytes_and_offsets_go_by_the_size_of_batches(sw: Any) -> None:
    results = [put(sw, count) for count in (3, 1, 20)]
    assert [result.logics_offset for result in results] == [0, 3, 4]
    queue = queue_of(sw)
    assert (queue.unit_size, queue.min_offset_in_queue, queue.max_offset_in_queue) == (46, 0, 24)
    data = queue.mapped_file_queue.mapped_files[0].file.read(46, 46)
    result = results[1]
    assert BATCH_ENTRY.unpack(data)[:2] == (result.wrote_offset, result.wrote_bytes)
    assert BATCH_ENTRY.unpack(data)[3:] == (result.store_timestamp, 3, 1, -1, 0)


def test_every_offset_leads_to_the_batch_that_holds_it_over_files(sw: Any) -> None:
    sizes = [1 + number % 4 for number in range(13)]
    bases = [put(sw, size).logics_offset for size in sizes]
    queue = queue_of(sw)
    assert len(queue.mapped_file_queue.mapped_files) == 3
    for base, size in zip(bases, sizes, strict=True):
        for offset in range(base, base + size):
            unit = queue.get(offset)
            assert unit is not None
            assert (unit.queue_offset, unit.batch_num) == (base, size)
    assert queue.get(sum(sizes)) is None
    assert queue.get(-1) is None
    assert queue.roll_next_file(7) == 0


def test_a_read_ends_with_a_file_and_counts_messages_not_batches(sw: Any) -> None:
    for _ in range(7):
        put(sw, 3)
    found = sw.store.get_message("G", "Whole", 0, 4, 32)
    assert (found.status, found.queue_offsets) == (GetMessageStatus.FOUND, [3, 6, 9, 12])
    assert (found.message_count, found.next_begin_offset) == (12, 15)
    few = sw.store.get_message("G", "Whole", 0, 15, 4)
    assert (few.queue_offsets, few.next_begin_offset) == ([15], 18)


def test_a_client_unwraps_a_batch_into_messages_with_offsets_of_their_own(sw: Any) -> None:
    put(sw, 2)
    put(sw, 3)
    (record,) = sw.store.get_message("G", "Whole", 0, 2, 32).messages
    message = decode_record(record)
    assert (message.properties["INNER_BASE"], message.properties["INNER_NUM"]) == ("2", "3")
    assert message.sys_flag & WHOLE == WHOLE
    single = unwrap_inner_batch(message)
    assert [(one.queue_offset, one.body[:1]) for one in single] == [(2, b"0"), (3, b"1"), (4, b"2")]
    assert {one.sys_flag for one in single} == {0}


def test_a_message_that_comes_alone_takes_an_offset_and_is_never_found(sw: Any) -> None:
    """As in RocketMQ: DispatchRequest.msgBaseOffset stays -1, and BatchConsumeQueue passes it over."""
    put(sw, 3)
    alone = sw.store.put_message(sw.message(1, "Whole"))
    sw.run()
    assert (alone.status, alone.logics_offset) == (PutMessageStatus.PUT_OK, 3)
    assert "INNER_BASE" not in sw.store.look_message_by_offset(alone.wrote_offset).properties
    assert put(sw, 2).logics_offset == 4
    assert entries(sw) == [(0, 3), (4, 2)]
    again = sw.store.get_message("G", "Whole", 0, 3, 32)
    assert again.queue_offsets == [0, 4], "the batch before stands in its place"
    restarted(sw)
    assert entries(sw) == [(0, 3), (4, 2)]


def test_what_only_looks_like_a_whole_batch_is_refused(sw: Any) -> None:
    for topic in ("TopicTest", "Whole"):
        message = sw.message(0, topic)
        message.properties["INNER_NUM"] = "3"
        assert sw.store.put_message(message).status is PutMessageStatus.MESSAGE_ILLEGAL
    flagged = sw.message(0, "TopicTest", sys_flag=WHOLE)
    flagged.properties["INNER_NUM"] = "3"
    assert sw.store.put_message(flagged).status is PutMessageStatus.MESSAGE_ILLEGAL
    unwrapped = sw.store.put_message(sw.message(0, "TopicTest", sys_flag=MessageSysFlag.NEED_UNWRAP))
    assert unwrapped.status is PutMessageStatus.PUT_OK


@pytest.mark.parametrize("verb", ["crash", "power_off"])
def test_the_queue_is_the_same_after_a_hard_stop(sw: Any, verb: str) -> None:
    for count in (3, 1, 4, 2, 2, 5, 1):
        put(sw, count)
    sw.run(61_000)
    before = entries(sw)
    restarted(sw, verb)
    assert entries(sw) == before
    assert put(sw, 2).logics_offset == 18


def test_entries_that_were_lost_are_made_again_from_the_log(sw: Any) -> None:
    for count in (3, 1, 4, 2, 2, 5, 1):
        put(sw, count)
    before = entries(sw)
    last = queue_of(sw).mapped_file_queue.mapped_files[-1]
    last.file.write(46, bytes(46))
    restarted(sw)
    assert entries(sw) == before


def test_entries_behind_the_end_of_the_log_are_dropped(sw: Any) -> None:
    results = [put(sw, 2) for _ in range(8)]
    queue = queue_of(sw)
    queue.truncate_dirty_logic_files(results[6].wrote_offset)
    assert entries(sw) == [(2 * number, 2) for number in range(6)]
    assert queue.max_physic_offset == results[6].wrote_offset
    assert queue.max_offset_in_queue == 12
    queue.truncate_dirty_logic_files(results[3].wrote_offset)
    assert (len(queue.mapped_file_queue.mapped_files), queue.max_offset_in_queue) == (1, 6)
    queue.truncate_dirty_logic_files(0)
    assert (queue.min_offset_in_queue, queue.max_offset_in_queue, list(queue.units())) == (-1, 0, [])


def test_files_go_with_the_log_and_the_queue_begins_with_the_first_batch_that_is_left(
    store_world: Callable[..., Any],
) -> None:
    sw = store_world(mapper_file_size_batch_consume_queue=FILE_BYTES, file_reserved_time=0, delete_when="00")
    sw.batch_topics.add("Whole")
    for _ in range(60):
        put(sw, 3, 2_000)
    sw.run(75_000)
    queue, least = queue_of(sw), sw.store.min_phy_offset
    assert least > 0
    first = next(queue.units())
    assert first.pos >= least
    assert queue.min_offset_in_queue == first.queue_offset > 0
    assert queue.mapped_file_queue.mapped_files[0].file_from_offset > 0
    assert sw.store.get_message("G", "Whole", 0, 0, 32).status is GetMessageStatus.OFFSET_TOO_SMALL
    restarted(sw)
    assert queue_of(sw).min_offset_in_queue == first.queue_offset


def test_an_offset_is_found_by_the_times_of_batches(sw: Any) -> None:
    times = []
    for _ in range(8):
        times.append(put(sw, 3).store_timestamp)
        sw.run(1_000)

    def found(ms: int, boundary: BoundaryType = BoundaryType.LOWER) -> int:
        offset: int = sw.store.get_offset_in_queue_by_time("Whole", 0, ms, boundary)
        return offset

    assert [found(at) for at in times] == [3 * number for number in range(8)]
    assert found(times[0] - 1) == 0
    assert found(times[7] + 5_000) == found(times[7] + 5_000, BoundaryType.UPPER) == 21
    assert found(times[2] + 1) == 9, "between two batches the later one"


def test_a_topic_is_deleted_with_its_batch_queues(sw: Any) -> None:
    put(sw, 3)
    path = sw.config.path("batchconsumequeue", "Whole")
    assert sw.node.disk.exists(path)
    assert sw.store.delete_topics(["Whole"]) == 1
    assert not sw.node.disk.exists(path)
    assert put(sw, 2).logics_offset == 0
