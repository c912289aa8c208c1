"""Extended queues: units beside the entries, their bytes, and what is left of them after a stop."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from mqlab.errors import LearnerError
from mqlab.sim import MemoryDisk
from mqlab.store import MessageStoreConfig, ReadableStore
from mqlab.store.consume_queue_ext import (
    MAX_EXT_UNIT_SIZE,
    NOT_SAVED,
    ConsumeQueueExt,
    CqExtUnit,
    ExtendedConsumeQueue,
    is_ext_addr,
)
from mqlab.store.dispatch_request import DispatchRequest

LONG_MIN = -(1 << 63)


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk("alpha", lambda: 0)


def units_on(disk: MemoryDisk, file_size: int = 128) -> ConsumeQueueExt:
    ext = ConsumeQueueExt(disk, "consumequeue_ext/T/0", file_size)
    ext.load()
    ext.recover()
    return ext


def request(n: int, bits: bytes | None = None, tags_code: int = 7) -> DispatchRequest:
    made = DispatchRequest("T", 0, n * 100, 100, tags_code, 1_000 + n, n, 0, 0, {})
    made.bit_map = bits
    return made


def queue_on(disk: MemoryDisk, ext_size: int = 128) -> ExtendedConsumeQueue:
    queue = ExtendedConsumeQueue(disk, "consumequeue/T/0", "T", 0, 400, "consumequeue_ext/T/0", ext_size)
    queue.load()
    queue.recover()
    return queue


def test_a_unit_has_size_tags_code_store_time_and_bits(disk: MemoryDisk) -> None:
    ext = units_on(disk)
    assert ext.put(CqExtUnit(-5, 1_700_000_000_000, b"\x80\x01\xff")) == LONG_MIN
    assert ext.put(CqExtUnit(6, 2, None)) == LONG_MIN + 23
    data = disk.read_bytes("consumequeue_ext/T/0/00000000000000000000")
    first = struct.pack(">hqqh", 23, -5, 1_700_000_000_000, 3) + b"\x80\x01\xff"
    assert data[:43] == first + struct.pack(">hqqh", 20, 6, 2, 0)
    assert ext.get(LONG_MIN) == CqExtUnit(-5, 1_700_000_000_000, b"\x80\x01\xff")
    assert ext.get(LONG_MIN + 23) == CqExtUnit(6, 2, None)
    assert ext.get(LONG_MIN + 43) is None
    assert ext.get(7) is None


def test_a_unit_that_finds_no_room_before_the_last_four_bytes_goes_to_the_next_file(disk: MemoryDisk) -> None:
    ext = units_on(disk, 63)
    addresses = [ext.put(CqExtUnit(n, n, None)) - LONG_MIN for n in range(4)]
    assert addresses == [0, 20, 63, 83]
    first = disk.read_bytes("consumequeue_ext/T/0/00000000000000000000")
    assert first[40:] == b"\xff\xff".ljust(23, b"\0")
    assert [ext.get(LONG_MIN + at).tags_code for at in addresses] == [0, 1, 2, 3]  # type: ignore[union-attr]


def test_what_is_too_large_is_not_saved(disk: MemoryDisk) -> None:
    assert units_on(disk).put(CqExtUnit(1, 1, bytes(MAX_EXT_UNIT_SIZE))) == NOT_SAVED
    assert units_on(disk).put(CqExtUnit(1, 1, bytes(200))) == NOT_SAVED
    assert not is_ext_addr(NOT_SAVED)
    assert not is_ext_addr(-(1 << 31))
    assert is_ext_addr(-(1 << 31) - 1)


def test_entries_name_units_and_readers_see_tags_codes(disk: MemoryDisk) -> None:
    queue = queue_on(disk)
    for n in range(3):
        queue.put(request(n, bytes([n]), tags_code=70 + n))
    entries = struct.iter_unpack(">qiq", disk.read_bytes("consumequeue/T/0/00000000000000000000")[:60])
    assert [tags_code for _, _, tags_code in entries] == [LONG_MIN, LONG_MIN + 21, LONG_MIN + 42]
    units = list(queue.iterate_from(0, 3) or ())
    assert [unit.tags_code for unit in units] == [70, 71, 72]
    assert [unit.ext for unit in units] == [CqExtUnit(70 + n, 1_000 + n, bytes([n])) for n in range(3)]


def test_after_a_stop_the_units_end_with_the_last_that_an_entry_names(disk: MemoryDisk) -> None:
    queue = queue_on(disk)
    for n in range(8):
        queue.put(request(n, b"\x01"))
    kept = queue.ext.mapped_file_queue.max_offset
    queue.ext.put(CqExtUnit(1, 1, b"\x01"))
    again = queue_on(disk)
    assert again.ext.mapped_file_queue.max_offset == kept
    assert [unit.ext is not None for unit in again.units()] == [True] * 8
    again.put(request(8, b"\x02"))
    last = again.get(8)
    assert last is not None
    assert last.ext == CqExtUnit(7, 1_008, b"\x02")


def test_an_entry_that_outlived_its_unit_names_that_of_another_message_later(disk: MemoryDisk) -> None:
    """As in RocketMQ, whose recovery finds no unit at the last address, and leaves it at a line in its log."""
    queue = queue_on(disk)
    for n in range(3):
        queue.put(request(n, tags_code=70 + n))
    queue.mapped_file_queue.flush_all()
    disk.open("consumequeue_ext/T/0/00000000000000000000").write(20, bytes(40))
    again = queue_on(disk)
    assert again.ext.mapped_file_queue.max_offset == 20
    lost = again.get(1)
    assert lost is not None
    assert lost.ext is None
    again.put(request(3, tags_code=99))
    other = again.get(1)
    assert other is not None
    assert other.tags_code == 99


def test_a_message_that_comes_again_gets_one_more_unit_and_no_entry(disk: MemoryDisk) -> None:
    queue = queue_on(disk)
    queue.put(request(0))
    queue.put(request(0))
    assert queue.max_offset_in_queue == 1
    assert queue.ext.mapped_file_queue.max_offset == 40


def test_files_of_units_go_with_the_entries_that_name_them(disk: MemoryDisk) -> None:
    queue = queue_on(disk, 64)
    for n in range(30):
        queue.put(request(n))
    assert queue.ext.mapped_file_queue.min_offset == 0
    queue.delete_expired_file(2_500)
    assert queue.min_offset_in_queue == 25
    # Entry 25 names the second unit of the ninth file; RocketMQ keeps a file that ends just where the unit's begins.
    assert queue.ext.mapped_file_queue.min_offset == 8 * 64
    unit = queue.get(25)
    assert unit is not None
    assert unit.ext is not None
    queue.destroy()
    assert disk.files() == []


def test_an_address_without_a_unit_may_match_anything(disk: MemoryDisk) -> None:
    queue = queue_on(disk)
    queue.put(request(0))
    disk.remove("consumequeue_ext/T/0/00000000000000000000")
    unit = queue_on(disk).get(0)
    assert unit is not None
    assert (unit.tags_code, unit.ext) == (LONG_MIN, None)


def test_a_store_with_extended_queues_is_read_again_after_a_crash(store_world: Callable[..., Any]) -> None:
    sw = store_world(enable_consume_queue_ext=True, mapped_file_size_consume_queue_ext=256)
    sw.put(30)
    sw.run(100_000)
    sw.put(10)
    queue = sw.store.find_consume_queue("TopicTest", 0)
    tags = [unit.tags_code for unit in queue.units()]
    assert len(tags) == 40
    sw.node.disk.power_loss(lambda page, n: 0)
    store = ReadableStore(sw.node, sw.config)
    store.load()
    again = store.find_consume_queue("TopicTest", 0)
    assert isinstance(again, ExtendedConsumeQueue)
    assert 30 <= again.max_offset_in_queue <= 40
    assert [unit.tags_code for unit in again.units()] == tags[: again.max_offset_in_queue]
    assert all(unit.ext is not None for unit in again.units())


def test_the_files_of_units_have_room_for_one() -> None:
    with pytest.raises(LearnerError, match="mapped_file_size_consume_queue_ext"):
        MessageStoreConfig(mapped_file_size_consume_queue_ext=23)


def test_units_of_entries_that_are_cut_off_stay_and_the_next_message_gets_one_behind_them(disk: MemoryDisk) -> None:
    """As in RocketMQ, which leaves the loop over the entries before it comes to the units."""
    queue = queue_on(disk)
    for n in range(6):
        queue.put(request(n))
    end = queue.ext.mapped_file_queue.max_offset
    queue.truncate_dirty_logic_files(request(3).commit_log_offset)
    assert (queue.max_offset_in_queue, queue.ext.mapped_file_queue.max_offset) == (3, end)
    queue.put(request(3, b"\x05", tags_code=99))
    unit = queue.get(3)
    assert unit is not None
    assert unit.ext == CqExtUnit(99, 1_003, b"\x05")
    assert queue.ext.mapped_file_queue.max_offset > end


def test_a_topic_is_deleted_with_its_units(store_world: Callable[..., Any]) -> None:
    sw = store_world(enable_consume_queue_ext=True)
    sw.put(3)
    path = sw.config.path("consumequeue_ext", "TopicTest")
    assert sw.node.disk.exists(path)
    sw.store.delete_topics(["TopicTest"])
    assert not sw.node.disk.exists(path)
