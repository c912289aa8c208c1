"""What does not fit into the 20 bytes of a queue entry: bits that say which filters a message has passed.

A unit has a size i16, the tags code i64, the store time i64 (ms), the length of the bits i16, and the bits. Where a
queue has such units, the tags code of its entries is the address of one: its offset, counted from the smallest i64.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from mqlab.sim.disk import Disk
from mqlab.store.consume_queue import MAX_ADDR, RECOVERED_FILES, ConsumeQueue, CqUnit
from mqlab.store.dispatch_request import DispatchRequest
from mqlab.store.mapped_file import MappedFile, MappedFileQueue
from mqlab.store.message_store_config import CQ_STORE_UNIT_SIZE

LONG_MIN = -(1 << 63)
MAX_REAL_OFFSET = MAX_ADDR - LONG_MIN
MAX_EXT_UNIT_SIZE = (1 << 15) - 1
END_BLANK_DATA_LENGTH = 4
NOT_SAVED = 1

_HEAD = struct.Struct(">hqqh")
_SIZE = struct.Struct(">h")
_TRIES = 3


class CqExtUnit(NamedTuple):
    """One unit (org.apache.rocketmq.store.ConsumeQueueExt.CqExtUnit); no bits: nobody looked at the message."""

    tags_code: int
    msg_store_time: int
    filter_bit_map: bytes | None

    @property
    def size(self) -> int:
        """Its bytes in the file."""
        return _HEAD.size + len(self.filter_bit_map or b"")

    def encode(self) -> bytes:
        """As it lies in the file."""
        bits = self.filter_bit_map or b""
        return _HEAD.pack(self.size, self.tags_code, self.msg_store_time, len(bits)) + bits


def is_ext_addr(address: int) -> bool:
    """Is this the address of a unit, and no tags code?"""
    return address <= MAX_ADDR


class ConsumeQueueExt:
    """The units of one queue, in files of their own (org.apache.rocketmq.store.ConsumeQueueExt).

    They lie in consumequeue_ext/TOPIC/QUEUE. At least four bytes at the end of a file stay free; where a unit finds no
    room in front of them, -1 stands in its place, and it goes to the next file.
    """

    __slots__ = ("mapped_file_queue",)

    def __init__(self, disk: Disk, path: str, file_size: int) -> None:
        self.mapped_file_queue = MappedFileQueue(disk, path, file_size)

    # -- writing and reading ----------------------------------------------------------------------------------------

    def put(self, unit: CqExtUnit) -> int:
        """Add a unit; its address, or NOT_SAVED when it is too large."""
        files = self.mapped_file_queue
        data = unit.encode() if unit.size <= MAX_EXT_UNIT_SIZE else b""
        if not data or files.max_offset + len(data) > MAX_REAL_OFFSET:
            return NOT_SAVED
        for _ in range(_TRIES):
            last = files.last_for_append()
            if len(data) <= last.file_size - last.wrote_position - END_BLANK_DATA_LENGTH:
                address = LONG_MIN + last.file_from_offset + last.wrote_position
                last.append(data)
                return address
            last.file.write(last.wrote_position, _SIZE.pack(-1))
            last.wrote_position = last.file_size
        return NOT_SAVED

    def get(self, address: int) -> CqExtUnit | None:
        """The unit at an address; None where there is none."""
        if not is_ext_addr(address):
            return None
        offset = address - LONG_MIN
        file = self.mapped_file_queue.find(offset, first_if_missing=offset == 0)
        if file is None:
            return None
        position = offset % file.file_size
        if position >= file.wrote_position:
            return None
        return _unit_at(file, position)

    # -- after a stop -----------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Take in the files."""
        self.mapped_file_queue.load()

    def recover(self) -> None:
        """Find the end of the units: that of the last file's."""
        files = self.mapped_file_queue.mapped_files
        if files:
            last = files[-1]
            self.mapped_file_queue.set_position(last.file_from_offset + _end_of_units(last))

    def truncate_by_max_address(self, address: int) -> None:
        """Drop the units behind the one at this address; nothing where there is none."""
        unit = self.get(address)
        if unit is not None:
            self.mapped_file_queue.truncate_dirty_files(address - LONG_MIN + unit.size)

    def truncate_by_min_address(self, address: int) -> None:
        """Delete the files that end before this address."""
        files = self.mapped_file_queue
        if is_ext_addr(address):
            while files.mapped_files and files.mapped_files[0].file_from_offset + files.file_size < address - LONG_MIN:
                files.drop_first()


def _unit_at(file: MappedFile, position: int) -> CqExtUnit | None:
    head = file.file.read(position, _HEAD.size)
    if len(head) < _HEAD.size:
        return None
    size, tags_code, msg_store_time, bits_length = _HEAD.unpack(head)
    if size < 1:
        return None
    bits = file.file.read(position + _HEAD.size, bits_length) if bits_length > 0 else None
    return CqExtUnit(tags_code, msg_store_time, bits)


def _end_of_units(file: MappedFile) -> int:
    data = file.file.read(0, file.file_size)
    end = 0
    while end + _SIZE.size <= len(data):
        (size,) = _SIZE.unpack_from(data, end)
        if size <= 0 or end + size > len(data):
            break
        end += size
    return end


class ExtendedConsumeQueue(ConsumeQueue):
    """A queue whose entries have units (`enable_consume_queue_ext`); who reads it sees the tags code of the unit.

    Java: org.apache.rocketmq.store.ConsumeQueue. As there a message that comes to the queue again, after a stop, gets
    one more unit, which nobody reads, and units of entries that are cut off stay. And as there the units that a loss of
    power has taken are not missed: an entry that outlived its unit names, later, the unit of another message, and who
    reads by tags may never see its message.

    Differs from RocketMQ: an entry that outlived its unit may name the midst of another one, and what stands there may
    call its bits longer than all that is written. Here they end where the file does; there the reading ends with a
    BufferUnderflowException, and so do the pulls of this queue, until enough units were written behind it.
    """

    __slots__ = ("ext",)

    def __init__(
        self, disk: Disk, path: str, topic: str, queue_id: int, file_size: int, ext_path: str, ext_file_size: int
    ) -> None:
        super().__init__(disk, path, topic, queue_id, file_size)
        self.ext = ConsumeQueueExt(disk, ext_path, ext_file_size)

    def put(self, request: DispatchRequest, address: int | None = None) -> None:
        """Add unit and entry of a message; where there is no room for the unit, the entry has the tags code itself."""
        saved_at = self.ext.put(CqExtUnit(request.tags_code, request.store_timestamp, request.bit_map))
        super().put(request, saved_at if is_ext_addr(saved_at) else address)

    def iterate_from(self, queue_offset: int, count: int) -> Iterator[CqUnit] | None:
        """As in any queue, with the units."""
        units = super().iterate_from(queue_offset, count)
        return None if units is None else map(self._with_unit, units)

    def _with_unit(self, entry: CqUnit) -> CqUnit:
        unit = self.ext.get(entry.tags_code)
        return entry if unit is None else entry._replace(tags_code=unit.tags_code, ext=unit)

    def load(self) -> None:
        """Take in the files of both."""
        super().load()
        self.ext.load()

    def recover(self) -> None:
        """Find the end of the queue, and drop the units behind the last one that an entry of it names."""
        super().recover()
        if self.mapped_file_queue.mapped_files:
            self.ext.recover()
            self.ext.truncate_by_max_address(self._last_address())

    def _last_address(self) -> int:
        """The last address in the entries that recovery looks at."""
        files = self.mapped_file_queue.mapped_files[-RECOVERED_FILES:]
        for unit_no in range(self.max_offset_in_queue - 1, files[0].file_from_offset // CQ_STORE_UNIT_SIZE - 1, -1):
            address = self._address_of(unit_no)
            if is_ext_addr(address):
                return address
        return NOT_SAVED

    def _address_of(self, unit_no: int) -> int:
        """The tags code that stands in an entry itself, NOT_SAVED where there is no entry."""
        units = super().iterate_from(unit_no, 1)
        return next(units).tags_code if units is not None else NOT_SAVED

    def correct_min_offset(self, min_commit_log_offset: int) -> None:
        """Move the queue's start, and delete the files of units before it."""
        before = self.min_logic_offset
        super().correct_min_offset(min_commit_log_offset)
        if self.min_logic_offset != before:
            self.ext.truncate_by_min_address(self._address_of(self.min_logic_offset // CQ_STORE_UNIT_SIZE))

    def flush(self, least_pages: int) -> bool:
        """Flush queue and units; True if something of the queue was written."""
        flushed = super().flush(least_pages)
        units = self.ext.mapped_file_queue
        units.flush_all() if least_pages == 0 else units.flush(least_pages)
        return flushed

    def destroy(self) -> None:
        """Delete the queue with its files, and those of the units."""
        super().destroy()
        self.ext.mapped_file_queue.destroy()
