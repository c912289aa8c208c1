"""A batch consume queue: one entry for each batch, for topics with `queue.type=BatchCQ`.

An entry has 46 bytes: physical offset i64, size i32, tags code i64, store time i64, queue offset of the first message
i64, number of messages i16, compacted offset i32 (-1), reserved i32 (0). A queue offset has to be searched for, since
entries stand for different numbers of messages.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from mqlab.sim.disk import Disk
from mqlab.store.consume_queue import ConsumeQueue, CqUnit
from mqlab.store.dispatch_request import DispatchRequest
from mqlab.store.mapped_file import MappedFile
from mqlab.store.message_store_config import BATCH_CQ_STORE_UNIT_SIZE

BATCH_ENTRY = struct.Struct(">qiqqqhii")
_BASE_INDEX = 28
_NO_COMPACTED_OFFSET = -1


class BatchConsumeQueue(ConsumeQueue):
    """One queue of a topic whose batches stay whole (org.apache.rocketmq.store.queue.BatchConsumeQueue).

    As in RocketMQ a message that comes alone gets a queue offset and no entry: it lies in the commit log, and nobody
    will ever get it. An offset for which there is no entry is answered with the batch before it.

    Differs from RocketMQ: the last entry is read when the end of the queue is asked for, no cache of offsets is kept.
    """

    __slots__ = ()

    def __init__(self, disk: Disk, path: str, topic: str, queue_id: int, file_size: int) -> None:
        super().__init__(disk, path, topic, queue_id, file_size, BATCH_CQ_STORE_UNIT_SIZE)

    def put(self, request: DispatchRequest, address: int | None = None) -> None:
        """Add the entry of a batch; one that the queue already knows is passed over. There are no addresses here."""
        end = request.commit_log_offset + request.msg_size
        if not request.batch_size or end <= self.max_physic_offset:
            return
        last = self.mapped_file_queue.last_for_append()
        entry = BATCH_ENTRY.pack(
            request.commit_log_offset,
            request.msg_size,
            request.tags_code,
            request.store_timestamp,
            request.consume_queue_offset,
            request.batch_size,
            _NO_COMPACTED_OFFSET,
            0,
        )
        last.append(entry)
        self.max_physic_offset = end

    @property
    def min_offset_in_queue(self) -> int:
        """The queue offset of the first message of the first batch that is still there; -1 in a queue that is empty."""
        unit = self.offset_of_unit(self.min_logic_offset // self.unit_size)
        return unit.queue_offset if unit is not None else self.max_offset_in_queue or -1

    @property
    def max_offset_in_queue(self) -> int:
        """The queue offset that the next message will get."""
        files = self.mapped_file_queue
        unit = self.offset_of_unit(files.max_offset // self.unit_size - 1)
        return unit.queue_offset + unit.batch_num if unit is not None else 0

    def offset_of_unit(self, unit_no: int) -> CqUnit | None:
        """The entry number `unit_no`."""
        file = self.mapped_file_queue.find(unit_no * self.unit_size) if unit_no >= 0 else None
        data = (
            file.select(unit_no * self.unit_size - file.file_from_offset, self.unit_size) if file is not None else None
        )
        return _unit(BATCH_ENTRY.unpack(data)) if data else None

    def entries_of(self, file: MappedFile) -> list[tuple[int, int]]:
        """(store time in ms, queue offset of the first message) of each entry of a file."""
        entries = BATCH_ENTRY.iter_unpack(file.file.read(0, file.wrote_position))
        return [(entry[3], entry[4]) for entry in entries]

    def iterate_from(self, queue_offset: int, count: int) -> Iterator[CqUnit] | None:
        """At most `count` entries to the end of the file, from the last one that begins at or before `queue_offset`;
        None where there is none, and behind the end of the queue.
        """
        if queue_offset >= self.max_offset_in_queue:
            return None
        for file in reversed(self.mapped_file_queue.mapped_files):
            last = file.wrote_position // self.unit_size - 1
            if last >= 0 and self._base(file, 0) <= queue_offset:
                first = self._find(file, last, queue_offset)
                size = min(count, last + 1 - first) * self.unit_size
                data = file.file.read(first * self.unit_size, size)
                return (_unit(entry) for entry in BATCH_ENTRY.iter_unpack(data))
        return None

    def _find(self, file: MappedFile, last: int, queue_offset: int) -> int:
        """The last entry of a file that begins at or before a queue offset, as the first one does."""
        low, high = 0, last
        while low < high:
            middle = (low + high + 1) // 2
            if self._base(file, middle) <= queue_offset:
                low = middle
            else:
                high = middle - 1
        return low

    def _base(self, file: MappedFile, unit_no: int) -> int:
        """The queue offset of the first message of an entry."""
        return int.from_bytes(file.file.read(unit_no * self.unit_size + _BASE_INDEX, 8), "big", signed=True)

    def roll_next_file(self, queue_offset: int) -> int:
        """Always 0: batches are not counted in files."""
        return 0

    def _recover_file(self, file: MappedFile) -> int:
        wrote = 0
        for entry in BATCH_ENTRY.iter_unpack(file.file.read(0, file.file_size)):
            if not _is_entry(entry):
                break
            wrote += self.unit_size
            self.max_physic_offset = entry[0] + entry[1]
        return wrote

    def _units_before(self, file: MappedFile, phy_offset: int) -> int:
        count = 0
        for entry in BATCH_ENTRY.iter_unpack(file.file.read(0, file.file_size)):
            if entry[0] >= phy_offset or (count and not _is_entry(entry)):
                break
            count += 1
        return count

    def _read_max_physic_offset(self, last: MappedFile) -> None:
        offset, size = BATCH_ENTRY.unpack(last.file.read(last.wrote_position - self.unit_size, self.unit_size))[:2]
        self.max_physic_offset = offset + size


def _is_entry(entry: tuple[int, ...]) -> bool:
    offset, size, _, _, base, batch_num, _, _ = entry
    return offset >= 0 and size > 0 and base >= 0 and batch_num > 0


def _unit(entry: tuple[int, ...]) -> CqUnit:
    offset, size, tags, _, base, batch_num, _, _ = entry
    return CqUnit(base, offset, size, tags, batch_num)
