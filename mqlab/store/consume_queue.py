"""A consume queue: for each message of one queue of a topic, where it lies in the commit log.

An entry has 20 bytes: physical offset i64, size i32, tags code i64. The n-th message of a queue is its n-th entry, so
reading at a queue offset is one multiplication.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from mqlab.sim.disk import Disk, DiskFull
from mqlab.store.dispatch_request import DispatchRequest
from mqlab.store.mapped_file import MappedFile, MappedFileQueue
from mqlab.store.message_store_config import CQ_STORE_UNIT_SIZE

if TYPE_CHECKING:
    from mqlab.store.consume_queue_ext import CqExtUnit

ENTRY = struct.Struct(">qiq")
MAX_ADDR = -(1 << 31) - 1
"""What stands in the place of a tags code is, up to this, the address of what an extended queue knows besides."""

PRE_BLANK_SIZE = 0x7FFF_FFFF
"""The size in the entries that fill a queue's first file before its first message."""

RECOVERED_FILES = 3
_LONG_MAX = (1 << 63) - 1
_AT_ONCE = 1024 * CQ_STORE_UNIT_SIZE
"""A file is read in pieces of so many bytes, since most of it is blank as a rule."""


def _entries(file: MappedFile) -> Iterator[tuple[int, int]]:
    """The physical offset and the size in each entry of a file, the blank ones behind the last with them."""
    for begin in range(0, file.file_size, _AT_ONCE):
        for offset, size, _ in ENTRY.iter_unpack(file.file.read(begin, min(_AT_ONCE, file.file_size - begin))):
            yield offset, size


class CqUnit(NamedTuple):
    """One entry of a queue (org.apache.rocketmq.store.queue.CqUnit); `batch_num` messages lie in its record.

    `ext` is what an extended queue knows besides.
    """

    queue_offset: int
    pos: int
    size: int
    tags_code: int
    batch_num: int = 1
    ext: CqExtUnit | None = None


def _units_in(entries: bytes, first_offset: int) -> Iterator[CqUnit]:
    for queue_offset, (pos, size, tags_code) in enumerate(ENTRY.iter_unpack(entries), first_offset):
        yield CqUnit(queue_offset, pos, size, tags_code)


class ConsumeQueue:
    """One queue of one topic (org.apache.rocketmq.store.ConsumeQueue).

    `max_physic_offset` is the end of the newest record that has an entry, -1 without one; `min_logic_offset` the byte
    offset in the queue of the first entry whose message is still in the commit log.
    """

    __slots__ = ("mapped_file_queue", "max_physic_offset", "min_logic_offset", "queue_id", "topic", "unit_size")

    def __init__(
        self,
        disk: Disk,
        path: str,
        topic: str,
        queue_id: int,
        file_size: int,
        unit_size: int = CQ_STORE_UNIT_SIZE,
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.unit_size = unit_size
        self.mapped_file_queue = MappedFileQueue(disk, path, -(-file_size // unit_size) * unit_size)
        self.max_physic_offset = -1
        self.min_logic_offset = 0

    # -- writing ----------------------------------------------------------------------------------------------------

    def put(self, request: DispatchRequest, address: int | None = None) -> None:
        """Add the entry of a message, with an `address` in the place of its tags code if there is one.

        A message that the queue already knows is passed over.
        """
        offset = request.commit_log_offset
        end = offset + request.msg_size
        if end <= self.max_physic_offset:
            return
        position = request.consume_queue_offset * CQ_STORE_UNIT_SIZE
        files = self.mapped_file_queue.mapped_files
        last = files[-1] if files else None
        if (
            last is None
            or position != last.file_from_offset + last.wrote_position
            or last.wrote_position == last.file_size
        ):
            last = self._file_for(position)
            if last is None:
                return
        code = request.tags_code if address is None else address
        last.file.write(last.wrote_position, ENTRY.pack(offset, request.msg_size, code))
        last.wrote_position += CQ_STORE_UNIT_SIZE
        self.max_physic_offset = end

    def _file_for(self, position: int) -> MappedFile | None:
        """The file to append the entry at `position` to; None when the queue is already longer than that."""
        files = self.mapped_file_queue
        if position > _LONG_MAX - files.file_size:
            # A damaged record with a queue offset that no queue can have.
            return None
        is_new = not files.mapped_files
        last = files.last_for_append(position)
        if is_new and position:
            try:
                self._fill_pre_blank(last, position)
            except DiskFull:
                files.drop_last()
                raise
        # As in RocketMQ the first message of a queue is never taken for one that is there already.
        if position and position < last.file_from_offset + last.wrote_position:
            return None
        # A gap: RocketMQ only writes it to its log, and so the entry stands at an earlier queue offset than it should.
        return last

    def _fill_pre_blank(self, first: MappedFile, until: int) -> None:
        first.append(ENTRY.pack(0, PRE_BLANK_SIZE, 0) * ((until - first.file_from_offset) // self.unit_size))
        self.min_logic_offset = until
        self.mapped_file_queue.flushed_where = until

    # -- reading ----------------------------------------------------------------------------------------------------

    @property
    def min_offset_in_queue(self) -> int:
        """The queue offset of the first message that is still there."""
        return self.min_logic_offset // self.unit_size

    @property
    def max_offset_in_queue(self) -> int:
        """The queue offset that the next message will get."""
        return self.mapped_file_queue.max_offset // self.unit_size

    def iterate_from(self, queue_offset: int, count: int) -> Iterator[CqUnit] | None:
        """At most `count` entries from `queue_offset` to the end of the file that holds it; None when it is not there.

        That reading stops at the end of a file, as in RocketMQ, shows in the offsets that a pull returns.
        """
        at = queue_offset * CQ_STORE_UNIT_SIZE
        if at < self.min_logic_offset:
            return None
        file = self.mapped_file_queue.find(at)
        if file is None:
            return None
        position = at - file.file_from_offset
        size = min(count * CQ_STORE_UNIT_SIZE, file.wrote_position - position)
        if size <= 0:
            return None
        return _units_in(file.file.read(position, size), queue_offset)

    def get(self, queue_offset: int) -> CqUnit | None:
        """The entry at a queue offset."""
        units = self.iterate_from(queue_offset, 1)
        return next(units) if units else None

    def units(self) -> Iterator[CqUnit]:
        """All entries whose messages are still there, first to last."""
        unit_no = self.min_logic_offset // self.unit_size
        while (unit := self.offset_of_unit(unit_no)) is not None:
            yield unit
            unit_no += 1

    def roll_next_file(self, queue_offset: int) -> int:
        """The queue offset at which the next file begins."""
        units = self.mapped_file_queue.file_size // self.unit_size
        return queue_offset + units - queue_offset % units

    def offset_of_unit(self, unit_no: int) -> CqUnit | None:
        """The entry number `unit_no`, counted in entries: the way that searches by time count."""
        return self.get(unit_no)

    # -- after a stop -----------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Take in the files."""
        self.mapped_file_queue.load()

    def recover(self) -> None:
        """Find the end of the queue by walking over the entries of its last three files; what follows is dropped."""
        files = self.mapped_file_queue.mapped_files
        if not files:
            return
        end = 0
        for file in files[max(0, len(files) - RECOVERED_FILES) :]:
            wrote = self._recover_file(file)
            end = file.file_from_offset + wrote
            if wrote < file.file_size:
                break
        self.mapped_file_queue.set_position(end)

    def _recover_file(self, file: MappedFile) -> int:
        wrote = 0
        for offset, size in _entries(file):
            if offset < 0 or size <= 0:
                break
            wrote += CQ_STORE_UNIT_SIZE
            self.max_physic_offset = offset + size
        return wrote

    def truncate_dirty_logic_files(self, phy_offset: int) -> None:
        """Drop the entries of messages at and behind `phy_offset` in the commit log."""
        files = self.mapped_file_queue
        self.max_physic_offset = phy_offset
        while files.mapped_files:
            last = files.mapped_files[-1]
            keep = self._units_before(last, phy_offset)
            if keep == 0:
                files.drop_last()
                continue
            last.wrote_position = last.flushed_position = keep * self.unit_size
            files.flushed_where = last.file_from_offset + last.wrote_position
            self._read_max_physic_offset(last)
            return
        files.flushed_where = 0

    def _units_before(self, file: MappedFile, phy_offset: int) -> int:
        """How many entries at the head of a file belong to messages before `phy_offset`.

        As in RocketMQ nobody asks whether the first one is an entry: of a file of zeros it is kept.
        """
        count = 0
        for offset, size in _entries(file):
            if offset >= phy_offset or (count and (offset < 0 or size <= 0)):
                break
            count += 1
        return count

    def _read_max_physic_offset(self, last: MappedFile) -> None:
        offset, size, _ = ENTRY.unpack(last.file.read(last.wrote_position - CQ_STORE_UNIT_SIZE, CQ_STORE_UNIT_SIZE))
        self.max_physic_offset = offset + size

    def flush(self, least_pages: int) -> bool:
        """Flush what is written, if it has so many dirty pages (0: any dirty byte); True if something was written."""
        files = self.mapped_file_queue
        return files.flush_all() if least_pages == 0 else files.flush(least_pages)

    # -- deletion ---------------------------------------------------------------------------------------------------

    def correct_min_offset(self, min_commit_log_offset: int) -> None:
        """Move the queue's start to the first message that the commit log still has.

        As in RocketMQ only the first file is searched, and a queue all of whose messages are gone starts at its end.
        """
        if self.min_logic_offset >= self.mapped_file_queue.max_offset:
            return
        last = self.mapped_file_queue.mapped_files[-1]
        if last.wrote_position and self._phy_offset(last, last.wrote_position - self.unit_size) < min_commit_log_offset:
            self.min_logic_offset = last.file_from_offset + last.wrote_position
            return
        first = self.mapped_file_queue.mapped_files[0]
        start = self.min_logic_offset - first.file_from_offset
        if start > first.wrote_position:
            return
        if start < 0:
            start = 0
        elif start < first.wrote_position and self._phy_offset(first, start) >= min_commit_log_offset:
            return
        low, high = start // self.unit_size, first.wrote_position // self.unit_size
        while low < high:
            middle = (low + high) // 2
            if self._phy_offset(first, middle * self.unit_size) >= min_commit_log_offset:
                high = middle
            else:
                low = middle + 1
        if low * self.unit_size < first.wrote_position:
            self.min_logic_offset = first.file_from_offset + low * self.unit_size

    def _phy_offset(self, file: MappedFile, position: int) -> int:
        return int.from_bytes(file.file.read(position, 8), "big", signed=True)

    def delete_expired_file(self, min_commit_log_offset: int) -> list[str]:
        """Delete the files all of whose messages the commit log has lost, never the last one; the paths of those
        deleted.
        """
        deleted = []
        files = self.mapped_file_queue
        while len(files.mapped_files) > 1:
            first = files.mapped_files[0]
            if self._phy_offset(first, first.file_size - self.unit_size) >= min_commit_log_offset:
                break
            deleted.append(files.drop_first().file.path)
        self.correct_min_offset(min_commit_log_offset)
        return deleted

    def destroy(self) -> None:
        """Delete the queue with its files."""
        self.mapped_file_queue.destroy()
        self.max_physic_offset = -1
        self.min_logic_offset = 0

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"<{kind} {self.topic}@{self.queue_id}: [{self.min_offset_in_queue}, {self.max_offset_in_queue})>"
