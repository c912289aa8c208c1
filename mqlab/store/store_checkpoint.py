"""The checkpoint file: up to when messages are known to be safe on the disk.

    0  physicMsgTimestamp   i64, ms: the newest message that a full flush of the commit log made safe
    8  logicsMsgTimestamp   i64, ms: the newest message that the consume queues have
   16  indexMsgTimestamp    i64, ms: the newest message of the last full index file
   24  masterFlushedOffset  i64
   32  confirmPhyOffset     i64

The file has 4096 bytes; the rest is zero.
"""

from __future__ import annotations

import struct

from mqlab.sim.disk import PAGE_BYTES, Disk

_FIELDS = struct.Struct(">qqqqq")
_SAFETY_MS = 3_000


class StoreCheckpoint:
    """Times (ms) up to which the parts of a store were flushed (org.apache.rocketmq.store.StoreCheckpoint)."""

    __slots__ = ("_disk", "_path", "confirm_phy_offset", "index_msg_timestamp", "logics_msg_timestamp",
                 "master_flushed_offset", "physic_msg_timestamp")  # fmt: skip

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self.physic_msg_timestamp = 0
        self.logics_msg_timestamp = 0
        self.index_msg_timestamp = 0
        self.master_flushed_offset = 0
        self.confirm_phy_offset = 0
        if disk.exists(path) and not disk.is_dir(path):
            data = disk.read_bytes(path)[: _FIELDS.size].ljust(_FIELDS.size, b"\0")
            (
                self.physic_msg_timestamp,
                self.logics_msg_timestamp,
                self.index_msg_timestamp,
                self.master_flushed_offset,
                self.confirm_phy_offset,
            ) = _FIELDS.unpack(data)

    def flush(self) -> None:
        """Write the times to the disk, safe from a power loss."""
        file = self._disk.open(self._path, PAGE_BYTES)
        file.write(0, self.encode())
        file.flush()

    def encode(self) -> bytes:
        """The 40 bytes of the file that are in use."""
        return _FIELDS.pack(
            self.physic_msg_timestamp,
            self.logics_msg_timestamp,
            self.index_msg_timestamp,
            self.master_flushed_offset,
            self.confirm_phy_offset,
        )

    @property
    def min_timestamp(self) -> int:
        """Messages older than this are safe in commit log and consume queues: three seconds before the older of the
        two.
        """
        return max(0, min(self.physic_msg_timestamp, self.logics_msg_timestamp) - _SAFETY_MS)

    @property
    def min_timestamp_index(self) -> int:
        """The same, with the index files."""
        return min(self.min_timestamp, self.index_msg_timestamp)
