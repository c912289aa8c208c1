"""The records of the key-value engine on the disk: written before an answer leaves, read when their time is over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mqlab.broker.pop.kv.ordered_store import OrderedStore
from mqlab.broker.pop.kv.pop_consumer_record import PopConsumerRecord, time_key
from mqlab.sim import Future
from mqlab.store.errors import StoreError
from mqlab.trace.events.pop import PopRecordsRecovered

if TYPE_CHECKING:
    from mqlab.sim import Node

FILE_NAME = "popState.log"

CURRENT = "CURRENT"
"""The file from which RocksDB learns which files are its own; a store that is not RocksDB's has a text in it."""

ROCKSDB = b"MANIFEST-"
"""What RocksDB writes into it begins so."""

NOT_FOR_ROCKSDB = (
    b"mqlab keeps the Pop records of this broker in popState.log, which RocketMQ cannot read. Before a RocketMQ broker "
    b"opens this store, send POP_ROLLBACK to its broker in mqlab and stop it cleanly; that removes this file, too."
)
"""Without a line's end behind it: for that RocksDB takes the store for damaged, and the broker refuses to start."""


class PopConsumerStore:
    """Keeps the records in the order of the times at which their messages can be seen again.

    Java: org.apache.rocketmq.broker.pop.PopConsumerRocksdbStore (and PopConsumerKVStore). Differs from RocketMQ: there
    it is a RocksDB with a synced write-ahead log, in the folder kvStore; here an ordered map with a synced log of its
    own in that folder. Keys and values are RocketMQ's, the files are not, so neither opens what the other one left:
    the messages that are in hand there would never come again.
    """

    def __init__(self, node: Node, folder: str) -> None:
        self._node = node
        self._folder = folder
        self._records = OrderedStore(node.disk, f"{folder}/{FILE_NAME}")
        self._flush: Future[None] | None = None

    def __len__(self) -> int:
        return len(self._records)

    # -- life -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Read what is there; DiskFull when the log cannot be made, StoreError where the records are RocksDB's."""
        if self._current().startswith(ROCKSDB):
            raise StoreError(
                self._folder,
                "the Pop records of this store are in RocksDB, which mqlab does not read: messages that are in hand "
                "would never come again",
                "let a RocketMQ broker open the store once more, with popConsumerKVServiceInit=true and "
                "popConsumerKVServiceEnable=false; send it POP_ROLLBACK (request code 200056), which makes check "
                f"points of the records; stop it, remove the folder {self._folder}, and open the store again",
            )
        marker = self._node.disk.open(self._current_path)
        marker.write(0, NOT_FOR_ROCKSDB)
        marker.flush()
        torn_bytes = self._records.open()
        if self._node.hooks.on and (len(self) or torn_bytes):
            self._node.hooks.emit(PopRecordsRecovered(len(self), torn_bytes))

    def shutdown(self) -> None:
        """Make everything safe; what holds no record is a store that a RocketMQ broker may open."""
        self._records.flush()
        if not len(self) and self._current() == NOT_FOR_ROCKSDB:
            self._node.disk.remove(self._current_path)

    @property
    def _current_path(self) -> str:
        return f"{self._folder}/{CURRENT}"

    def _current(self) -> bytes:
        disk = self._node.disk
        return disk.read_bytes(self._current_path) if disk.exists(self._current_path) else b""

    # -- changing ---------------------------------------------------------------------------------------------------

    def write_records(self, records: Sequence[PopConsumerRecord]) -> Future[None] | None:
        """Keep these; DiskFull with none of them kept. While the disk takes its time a Future tells of the flush."""
        return self._change([(record.key(), record.value()) for record in records], [])

    def delete_records(self, records: Sequence[PopConsumerRecord]) -> Future[None] | None:
        """Forget these; those that are not there change nothing. DiskFull with none of them forgotten."""
        return self._change([], [record.key() for record in records])

    def _change(self, puts: list[tuple[bytes, bytes]], deletes: list[bytes]) -> Future[None] | None:
        if not puts and not deletes:
            return None
        self._records.write(puts, deletes)
        if self._flush is None and not self._node.disk.is_slow:
            self._records.flush()
            return None
        if self._flush is None:
            self._flush = self._node.future("the flush of the Pop records")
            self._node.spawn(self._flush_when_settled(self._flush), "PopConsumerStore sync")
        return self._flush

    async def _flush_when_settled(self, done: Future[None]) -> None:
        await self._node.disk.settle()
        self._flush = None
        self._records.flush()
        done.set_result(None)

    # -- reading ----------------------------------------------------------------------------------------------------

    def __contains__(self, record: PopConsumerRecord) -> bool:
        return record.key() in self._records

    def scan_expired_records(self, lower_ms: int, upper_ms: int, most: int) -> list[PopConsumerRecord]:
        """The first `most` records whose messages can be seen again from `lower_ms` on, and before `upper_ms`."""
        pairs = self._records.scan(time_key(lower_ms), time_key(upper_ms), most)
        return [PopConsumerRecord.decode(value) for _, value in pairs]
