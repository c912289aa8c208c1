"""An index file: a hash table from a message's keys to where the message lies.

    header  40 bytes       beginTimestamp i64, endTimestamp i64, beginPhyOffset i64, endPhyOffset i64,
                           hashSlotCount i32, indexCount i32
    slots    4 bytes each  the number of the newest item with this hash, 0 for none
    items   20 bytes each  key hash i32, physical offset i64, seconds since beginTimestamp i32, the item before it in
                           the slot i32

Items are numbered from 1. Only hashes of keys are kept, so whoever asks must compare the keys of what is found.
"""

from __future__ import annotations

import struct

from mqlab.protocol.hashing import index_key_hash
from mqlab.sim.disk import Disk

_HEADER = struct.Struct(">qqqqii")
_ITEM = struct.Struct(">iqii")
_SLOT = struct.Struct(">i")
_INT_MAX = 0x7FFF_FFFF


class IndexFile:
    """One file of the index (org.apache.rocketmq.store.index.IndexFile); times are ms, offsets those of the commit
    log.
    """

    __slots__ = ("begin_phy_offset", "begin_timestamp", "end_phy_offset", "end_timestamp", "file", "hash_slot_count",
                 "hash_slot_num", "index_count", "index_num")  # fmt: skip

    begin_timestamp: int
    end_timestamp: int
    begin_phy_offset: int
    end_phy_offset: int
    index_count: int

    def __init__(self, disk: Disk, path: str, hash_slot_num: int, index_num: int) -> None:
        self.hash_slot_num = hash_slot_num
        self.index_num = index_num
        size = index_file_size(hash_slot_num, index_num)
        self.file = disk.open(path, size)
        if self.file.size < size:
            # Mapping a file that is too short makes it longer.
            self.file.truncate(size)
        fields = _HEADER.unpack(self.file.read(0, _HEADER.size).ljust(_HEADER.size, b"\0"))
        self.begin_timestamp, self.end_timestamp, self.begin_phy_offset, self.end_phy_offset = fields[:4]
        self.hash_slot_count, self.index_count = fields[4], max(fields[5], 1)

    @property
    def is_full(self) -> bool:
        """Is there no room for another key?"""
        return self.index_count >= self.index_num

    def begin_after(self, previous: IndexFile) -> None:
        """Start where the file before this one ended."""
        self.begin_phy_offset = self.end_phy_offset = previous.end_phy_offset
        self.begin_timestamp = self.end_timestamp = previous.end_timestamp

    def put_key(self, key: str, phy_offset: int, store_timestamp: int) -> None:
        """Add a key (`topic#key`) of the message at `phy_offset`; the file must not be full."""
        key_hash = index_key_hash(key)
        slot_at = _HEADER.size + key_hash % self.hash_slot_num * _SLOT.size
        slot_value = self._slot(slot_at)
        seconds = (store_timestamp - self.begin_timestamp) // 1_000 if self.begin_timestamp > 0 else 0
        item = _ITEM.pack(key_hash, phy_offset, min(max(seconds, 0), _INT_MAX), slot_value)
        self.file.write(self._item_at(self.index_count), item)
        self.file.write(slot_at, _SLOT.pack(self.index_count))
        if self.index_count <= 1:
            self.begin_phy_offset = phy_offset
            self.begin_timestamp = store_timestamp
        if slot_value == 0:
            self.hash_slot_count = (self.hash_slot_count + 1) & _INT_MAX
        self.index_count += 1
        self.end_phy_offset = phy_offset
        self.end_timestamp = store_timestamp

    def _slot(self, at: int) -> int:
        (value,) = _SLOT.unpack(self.file.read(at, _SLOT.size))
        return value if 0 < value <= self.index_count else 0

    def _item_at(self, number: int) -> int:
        return _HEADER.size + self.hash_slot_num * _SLOT.size + number * _ITEM.size

    def write_header(self) -> None:
        """Put the header of now into the file."""
        header = _HEADER.pack(self.begin_timestamp, self.end_timestamp, self.begin_phy_offset, self.end_phy_offset,
                              self.hash_slot_count, self.index_count)  # fmt: skip
        self.file.write(0, header)

    def flush(self) -> None:
        """Make the file safe from a power loss."""
        self.write_header()
        self.file.flush()

    def is_time_matched(self, begin: int, end: int) -> bool:
        """Could the file hold messages stored in [begin, end]?"""
        return (
            (begin < self.begin_timestamp and end > self.end_timestamp)
            or self.begin_timestamp <= begin <= self.end_timestamp
            or self.begin_timestamp <= end <= self.end_timestamp
        )

    def select_phy_offset(self, found: list[int], key: str, max_num: int, begin: int, end: int) -> None:
        """Add to `found` the offsets of messages that may have the key and were stored in [begin, end], newest
        first.
        """
        key_hash = index_key_hash(key)
        number = self._slot(_HEADER.size + key_hash % self.hash_slot_num * _SLOT.size)
        # With a damaged head there may be more numbers than items.
        while 0 < number < self.index_num and len(found) < max_num:
            item_hash, phy_offset, seconds, before = _ITEM.unpack(self.file.read(self._item_at(number), _ITEM.size))
            stored = self.begin_timestamp + max(seconds, 0) * 1_000
            if item_hash == key_hash and begin <= stored <= end:
                found.append(phy_offset)
            # A chain only leads back: anything else is damage, and following it might never end.
            if not 0 < before < number or stored < begin:
                break
            number = before

    def __repr__(self) -> str:
        return f"<IndexFile {self.file.path}: {self.index_count - 1} of {self.index_num - 1} keys>"


def index_file_size(hash_slot_num: int, index_num: int) -> int:
    """The bytes of an index file with so many slots and items."""
    return _HEADER.size + hash_slot_num * _SLOT.size + index_num * _ITEM.size
