"""The commit log: all messages of a broker, of all topics, one behind the other.

A record never crosses the end of a file: where the next one does not fit with 8 bytes to spare, a blank record closes
the file.
"""

from __future__ import annotations

from ..protocol.errors import RecordError
from ..protocol.message import MessageExt
from ..protocol.record import BLANK_MAGIC_CODE, BLANK_MIN_BYTES, decode_record, encode_blank
from ..sim.disk import Disk
from .dispatch_request import DispatchRequest, read_request
from .mapped_file import MappedFile, MappedFileQueue
from .message_store_config import FlushDiskType, MessageStoreConfig


class CommitLog:
    """The log of all messages (org.apache.rocketmq.store.CommitLog).

    Differs from RocketMQ: a world plays one slice at a time, so there is no put lock; `begin_time_in_lock_ms` exists
    for faults that let a put hang. The file after the one in use is made ahead, as AllocateMappedFileService does.
    """

    def __init__(self, disk: Disk, config: MessageStoreConfig, delays_ms: tuple[int, ...]) -> None:
        self.disk = disk
        self.config = config
        self.delays_ms = delays_ms
        self.file_size = config.mapped_file_size_commit_log
        self.mapped_file_queue = MappedFileQueue(disk, config.path("commitlog"), self.file_size)
        self.begin_time_in_lock_ms = 0
        self._sync = config.flush_disk_type is FlushDiskType.SYNC_FLUSH

    # -- writing ----------------------------------------------------------------------------------------------------

    def file_for(self, size: int) -> MappedFile:
        """The file that a record of `size` bytes goes to; what is left of the last one is blanked when it does not
        fit.
        """
        files = self.mapped_file_queue.mapped_files
        if not files:
            return self._create(0)
        last = files[-1]
        room = last.file_size - last.wrote_position
        if size + BLANK_MIN_BYTES <= room:
            return last
        if room:
            last.file.write(last.wrote_position, encode_blank(room))
            last.wrote_position = last.file_size
        return self._create(last.file_from_offset + last.file_size)

    def _create(self, from_offset: int) -> MappedFile:
        created = self.mapped_file_queue.create(from_offset)
        self.disk.open(self.mapped_file_queue.path_of(from_offset + self.file_size), self.file_size)
        return created

    def drop_preallocated(self) -> None:
        """Delete the file that was made ahead, as a clean stop does."""
        if self.mapped_file_queue.mapped_files:
            path = self.mapped_file_queue.path_of(
                self.mapped_file_queue.mapped_files[-1].file_from_offset + self.file_size
            )
            if self.disk.exists(path):
                self.disk.remove(path)

    # -- where things are -------------------------------------------------------------------------------------------

    @property
    def min_offset(self) -> int:
        """The offset of the first byte that is still there, -1 in a log without files."""
        return self.mapped_file_queue.min_offset

    @property
    def max_offset(self) -> int:
        """The offset that the next record will get, unless it does not fit in the file."""
        return self.mapped_file_queue.max_offset

    @property
    def confirm_offset(self) -> int:
        """Up to where messages may be dispatched: with synchronous flush only what the disk has."""
        return self.mapped_file_queue.flushed_where if self._sync else self.mapped_file_queue.max_offset

    def roll_next_file(self, offset: int) -> int:
        """The offset at which the file behind that of `offset` begins."""
        return self.mapped_file_queue.roll_next(offset)

    # -- reading ----------------------------------------------------------------------------------------------------

    def get_message(self, offset: int, size: int) -> bytes | None:
        """The bytes of the record at an offset, None when its file is gone.

        As in RocketMQ, offset 0 is looked for in the first file there is, so after file 0 was taken away by hand the
        answer is not the record.
        """
        file = self.mapped_file_queue.find(offset, first_if_missing=offset == 0)
        return file.select(offset % self.file_size, size) if file is not None else None

    def record_size(self, offset: int) -> int:
        """The size field of the record at an offset; 0 when nothing was written there."""
        file = self.mapped_file_queue.find(offset)
        data = file.select(offset % self.file_size, 4) if file is not None else None
        return int.from_bytes(data, "big", signed=True) if data else 0

    def look_message_by_offset(self, offset: int, *, decompress: bool = True) -> MessageExt | None:
        """The message at an offset, None when there is no whole one."""
        size = self.record_size(offset)
        data = self.get_message(offset, size) if size > 0 else None
        if data is None:
            return None
        try:
            return decode_record(data, decompress=decompress)
        except RecordError:
            return None

    def store_time(self, offset: int, size: int) -> int:
        """When the message at an offset was stored, ms; -1 when it is gone."""
        data = self.get_message(offset, min(size, 80))
        if data is None or len(data) < 80:
            return -1
        at = 68 if data[39] & 0x10 else 56
        return int.from_bytes(data[at : at + 8], "big", signed=True)

    def read_requests(self, start: int, end: int) -> tuple[list[DispatchRequest], int]:
        """The records that lie whole in [start, end), and where the next one begins; broken bytes up to the file's end
        are left out.

        Damage inside the log of a running master is passed over, as the reput service does.
        """
        requests: list[DispatchRequest] = []
        while start < end:
            file = self.mapped_file_queue.find(start)
            if file is None:
                return requests, self.roll_next_file(start) if start < self.min_offset else end
            position = start - file.file_from_offset
            size = self.record_size(start)
            magic = int.from_bytes(file.file.read(position + 4, 4), "big", signed=True)
            if magic == BLANK_MAGIC_CODE:
                start = file.file_from_offset + self.file_size
                continue
            data = file.select(position, size) if size > 0 else None
            try:
                if data is None:
                    raise RecordError(start, f"its size is {size}")
                requests.append(read_request(data, 0, self.delays_ms, check_crc=False))
            except RecordError:
                return requests, min(end, file.file_from_offset + file.wrote_position)
            start += size
        return requests, start
