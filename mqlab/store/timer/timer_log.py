"""The timer log: a record of 52 bytes for each message on the wheel; those of one slot are a list, the newest first.

    0  size        i32, 52
    4  prevPos     i64: the record before this one in the same slot, -1 for none
   12  magic       i32: 1, with 2 for a message that rolls and 4 for one that recalls another
   16  writeTime   i64, ms: where the wheel was written when this record was
   24  delay       i32, ms: from there to the slot
   28  offsetPy    i64: the message in the commit log
   36  sizePy      i32
   40  topicHash   i32: of the topic that the message is for
   44  reserved    i64, 0

A file ends with a blank of 16 bytes: what is left of it, 0, and the blank magic.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from mqlab.sim.disk import Disk, DiskFull
from mqlab.store.mapped_file import MappedFile, MappedFileQueue

UNIT_SIZE = 52
MAGIC_DEFAULT = 1
MAGIC_ROLL = 2
MAGIC_DELETE = 4
BLANK_MAGIC_CODE = struct.unpack(">i", (0xBBCCDDEE ^ (1880681586 + 8)).to_bytes(4, "big"))[0]

_MESSAGE_AT = 28
_RECORD = struct.Struct(">iqiqiqiiq")
_BLANK = struct.Struct(">iqi")
_MESSAGE = struct.Struct(">qi")


class TimerRecord(NamedTuple):
    """One record of the timer log, with its own position."""

    position: int
    size: int
    previous: int
    magic: int
    write_time_ms: int
    delay_ms: int
    offset_py: int
    size_py: int
    topic_hash: int
    reserved: int = 0

    @property
    def slot_ms(self) -> int:
        """The moment of the slot that the record is in."""
        return self.write_time_ms + self.delay_ms

    @property
    def rolls(self) -> bool:
        """Is the slot only a station on the way?"""
        return bool(self.magic & MAGIC_ROLL)

    @property
    def recalls(self) -> bool:
        """Does the message recall another one?"""
        return bool(self.magic & MAGIC_DELETE)

    @property
    def is_sound(self) -> bool:
        """Can this be a record at all?"""
        return self.size == UNIT_SIZE and 0 <= self.magic <= 0xF


class TimerLog:
    """The records, one behind the other in files of one size (org.apache.rocketmq.store.timer.TimerLog)."""

    def __init__(self, disk: Disk, path: str, file_size: int) -> None:
        self.mapped_file_queue = MappedFileQueue(disk, path, file_size)
        self.file_size = file_size

    def append(self, record: TimerRecord) -> int:
        """Write a record; its position, -1 when the disk has no room for it."""
        data = _RECORD.pack(*record[1:])
        try:
            file = self.mapped_file_queue.last_for_append()
            if len(data) + _BLANK.size > file.file_size - file.wrote_position:
                file.append(_BLANK.pack(file.file_size - file.wrote_position, 0, BLANK_MAGIC_CODE))
                file.wrote_position = file.file_size
                file = self.mapped_file_queue.last_for_append()
            position = file.file_from_offset + file.wrote_position
            file.append(data)
        except DiskFull:
            return -1
        return position

    def read(self, position: int) -> TimerRecord | None:
        """The record at a position, None when nothing is written there."""
        data = self.mapped_file_queue.read(position, UNIT_SIZE) if position >= 0 else b""
        return TimerRecord(position, *_RECORD.unpack(data)) if len(data) == UNIT_SIZE else None

    def message_before(self, position: int) -> tuple[int, int]:
        """Commit-log offset and size of the message whose record ends at a position; zeros when there is none."""
        data = self.mapped_file_queue.read(position - UNIT_SIZE + _MESSAGE_AT, _MESSAGE.size)
        return _MESSAGE.unpack(data) if len(data) == _MESSAGE.size else (0, 0)

    def records_of(self, file: MappedFile, *, to_end: bool) -> tuple[list[TimerRecord], bool]:
        """The records of one file up to the first bytes that are none; True if a blank ends them, so that the next
        file goes on. `to_end` looks at the whole file, and else only at what counts as written.
        """
        size = file.file_size if to_end else file.wrote_position
        records: list[TimerRecord] = []
        for position in range(0, size, UNIT_SIZE):
            data = file.file.read(position, min(UNIT_SIZE, size - position))
            if len(data) >= _BLANK.size and _BLANK.unpack_from(data)[2] == BLANK_MAGIC_CODE:
                return records, True
            if len(data) < UNIT_SIZE:
                return records, not to_end and not data
            record = TimerRecord(file.file_from_offset + position, *_RECORD.unpack(data))
            if not record.is_sound:
                return records, False
            records.append(record)
        return records, True

    def delete_expired_files(self, min_offset: int) -> list[str]:
        """Delete files all of whose messages lie before `min_offset` in the commit log, never the last; their paths.

        Java: org.apache.rocketmq.store.MappedFileQueue.deleteExpiredFileByOffsetForTimerLog.
        """
        files, deleted = self.mapped_file_queue, []
        last_unit = self.file_size - (self.file_size - _BLANK.size) % UNIT_SIZE - _BLANK.size - UNIT_SIZE
        while len(files.mapped_files) > 1:
            record = self.read(files.mapped_files[0].file_from_offset + last_unit)
            if record is None or not record.is_sound or record.offset_py >= min_offset:
                break
            deleted.append(files.drop_first().file.path)
        return deleted

    def __repr__(self) -> str:
        return f"<TimerLog {self.mapped_file_queue!r}>"
