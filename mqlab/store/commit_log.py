"""The commit log: all messages of a broker, of all topics, one behind the other.

A record never crosses the end of a file: where the next one does not fit with 8 bytes to spare, a blank record closes
the file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from mqlab.protocol.errors import RecordError
from mqlab.protocol.message import MessageExt
from mqlab.protocol.record import BLANK_MAGIC_CODE, BLANK_MIN_BYTES, decode_record, encode_blank
from mqlab.sim.disk import Disk
from mqlab.store.dispatch_request import DispatchRequest, read_request
from mqlab.store.errors import RecordTooLarge
from mqlab.store.host import Hooks
from mqlab.store.mapped_file import MappedFile, MappedFileQueue
from mqlab.store.message_store_config import BrokerRole, FlushDiskType, MessageStoreConfig
from mqlab.trace.events.store import CommitLogFileCreated


class CommitLog:
    """The log of all messages (org.apache.rocketmq.store.CommitLog).

    Differs from RocketMQ: a world plays one slice at a time, so there is no put lock but on a slow disk;
    `begin_time_in_lock_ms` is when the put that holds it got it (machine's clock), 0 while nobody does. The file after
    the one in use is made ahead, as AllocateMappedFileService does.
    """

    def __init__(self, disk: Disk, hooks: Hooks, config: MessageStoreConfig, delays_ms: tuple[int, ...]) -> None:
        self.disk = disk
        self.hooks = hooks
        self.config = config
        self.delays_ms = delays_ms
        self.file_size = config.mapped_file_size_commit_log
        self.mapped_file_queue = MappedFileQueue(disk, config.path("commitlog"), self.file_size)
        self.requests: deque[DispatchRequest] = deque()
        """What to dispatch of the records that puts have appended, oldest first; of other bytes there is none."""
        self.begin_time_in_lock_ms = 0

    # -- writing ----------------------------------------------------------------------------------------------------

    def append(self, encode: Callable[[int], bytes], store_timestamp: int) -> tuple[int, int]:
        """Write what `encode(offset)` makes for the offset at which it will lie, all of it or nothing: offset and size.

        One record or those of a whole batch: where they do not fit together they go to the next file together. Raises
        DiskFull, and RecordTooLarge when no file could hold them.
        """
        files = self.mapped_file_queue.mapped_files
        file = files[-1] if files else self._next_file(0)
        offset = file.file_from_offset + file.wrote_position
        data = encode(offset)
        size = len(data)
        if size + BLANK_MIN_BYTES > file.file_size - file.wrote_position:
            file = self._next_file(size)
            offset = file.file_from_offset
            data = encode(offset)
        file.file.write(file.wrote_position, data)
        file.wrote_position += size
        file.store_timestamp = store_timestamp
        return offset, size

    def append_data(self, start_offset: int, data: bytes) -> bool:
        """Write bytes of another broker's log, which lie at `start_offset` there; False if they do not continue this
        one, or reach over the end of a file.

        They need not be whole records: dispatching waits for the rest of the last one. A log without files may begin
        with any file. Java: org.apache.rocketmq.store.CommitLog.appendData. Differs from RocketMQ: a log whose only
        file a full disk has left empty may begin with another one, too; there the bytes go into that file, at a place
        that is not theirs.
        """
        files = self.mapped_file_queue.mapped_files
        is_empty = len(files) == 1 and not files[0].wrote_position
        if is_empty and start_offset != files[0].file_from_offset and start_offset % self.file_size == 0:
            self.drop_preallocated()
            self.mapped_file_queue.drop_last()
        begins_file = not files or files[-1].is_full
        continues = start_offset % self.file_size == 0 if not files else start_offset == self.max_offset
        if not continues or len(data) > self.file_size - (0 if begins_file else files[-1].wrote_position):
            return False
        (self._create(start_offset) if begins_file else files[-1]).append(data)
        return True

    def _next_file(self, size: int) -> MappedFile:
        """The file for `size` bytes that the last one has no room for; what is left of that is blanked."""
        if size + BLANK_MIN_BYTES > self.file_size:
            raise RecordTooLarge(size, self.file_size)
        files = self.mapped_file_queue.mapped_files
        if not files:
            return self._create(0)
        last = files[-1]
        room = last.file_size - last.wrote_position
        if room:
            last.file.write(last.wrote_position, encode_blank(room))
            last.wrote_position = last.file_size
        return self._create(last.file_from_offset + last.file_size)

    def _create(self, from_offset: int) -> MappedFile:
        created = self.mapped_file_queue.create(from_offset)
        self.disk.open(self.mapped_file_queue.path_of(from_offset + self.file_size), self.file_size)
        if self.hooks.on:
            self.hooks.emit(CommitLogFileCreated(from_offset))
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
        sync = self.config.flush_disk_type is FlushDiskType.SYNC_FLUSH
        return self.mapped_file_queue.flushed_where if sync else self.mapped_file_queue.max_offset

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
        """The records that lie whole in [start, end), and where the next one begins, which is behind `start`.

        As in RocketMQ's reput service a master passes over damage, up to the end of the file, and over a missing file;
        a slave waits in front of it, as it may be a record that has not come whole yet.
        """
        requests: list[DispatchRequest] = []
        while start < end:
            file = self.mapped_file_queue.find(start)
            if file is None:
                start = self._next_file_offset(start, end)
                continue
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
                if self.config.broker_role is BrokerRole.SLAVE:
                    return requests, start
                written_end = file.file_from_offset + file.wrote_position
                return requests, min(end, written_end if written_end > start else self._next_file_offset(start, end))
            start += size
        return requests, start

    def _next_file_offset(self, offset: int, end: int) -> int:
        behind = self.mapped_file_queue.next_file_offset(offset)
        return end if behind is None else behind
