"""The timer's check file: how far it has read, and from where it goes on after a stop.

    0  lastReadTimeMs          i64, ms: the slots before it are done
    8  lastTimerLogFlushPos    i64: the timer log is on the disk up to there
   16  lastTimerQueueOffset    i64: the messages of the timer's topic before it are on the wheel
   24  masterTimerQueueOffset  i64: the same, as the master says it
   32  dataVersion             i64 stateVersion, i64 ms timestamp, i64 counter

The file has 4096 bytes; the rest is zero.
"""

from __future__ import annotations

import struct

from mqlab.protocol.topic_config import DataVersion
from mqlab.sim.disk import PAGE_BYTES, Disk

_FIELDS = struct.Struct(">qqqqqqq")


class TimerCheckpoint:
    """How far the timer has come (org.apache.rocketmq.store.timer.TimerCheckpoint); times are ms."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self.last_read_time_ms = 0
        self.last_timer_log_flush_pos = 0
        self.last_timer_queue_offset = 0
        self.master_timer_queue_offset = 0
        self.data_version = DataVersion()
        if disk.exists(path) and not disk.is_dir(path):
            self.decode(disk.read_bytes(path))
        self.written = self.encode()

    def decode(self, data: bytes) -> None:
        """Take over what another one encoded."""
        (
            self.last_read_time_ms,
            self.last_timer_log_flush_pos,
            self.last_timer_queue_offset,
            self.master_timer_queue_offset,
            state_version,
            timestamp,
            counter,
        ) = _FIELDS.unpack(data[: _FIELDS.size].ljust(_FIELDS.size, b"\0"))
        self.data_version = DataVersion(timestamp, counter, state_version)

    def take_masters(self, data: bytes) -> None:
        """Take over what a master's file says, but for the places in its own log and topic."""
        places = self.last_timer_log_flush_pos, self.last_timer_queue_offset
        self.decode(data)
        self.last_timer_log_flush_pos, self.last_timer_queue_offset = places

    def encode(self) -> bytes:
        """The 56 bytes of the file that are in use; also what administrators and slaves are answered."""
        version = self.data_version
        return _FIELDS.pack(
            self.last_read_time_ms,
            self.last_timer_log_flush_pos,
            self.last_timer_queue_offset,
            self.master_timer_queue_offset,
            version.state_version,
            version.timestamp,
            version.counter,
        )

    def flush(self) -> None:
        """Write the file, safe from a power loss, if it says something else."""
        data = self.encode()
        if data != self.written or not self._disk.exists(self._path):
            file = self._disk.open(self._path, PAGE_BYTES)
            file.write(0, data)
            file.flush()
            self.written = data
