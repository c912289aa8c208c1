"""Where the records of the key-value engine are: in the store, or for a while in the cache before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mqlab.broker.pop.kv.pop_consumer_cache import OFFSET_NOT_EXIST, PopConsumerCache
from mqlab.broker.pop.kv.pop_consumer_record import PopConsumerRecord
from mqlab.broker.pop.kv.pop_consumer_store import PopConsumerStore
from mqlab.sim import DiskFull, Future
from mqlab.trace.events.pop import AckLost, PopRecordDeleted, PopRecordsNotWritten, PopRecordWritten

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.broker.pop.kv.pop_consumer_lock_service import PopConsumerLockService
    from mqlab.broker.pop.kv.pop_consumer_reviver import PopConsumerReviver

FOLDER = "kvStore"


class PopConsumerRecords:
    """The store and, with `enable_pop_buffer_merge`, the cache (fields of PopConsumerService in RocketMQ)."""

    def __init__(self, broker: BrokerParts, locks: PopConsumerLockService, reviver: PopConsumerReviver) -> None:
        self._node = broker.node
        self.store = PopConsumerStore(broker.node, broker.message_store_config.path(FOLDER))
        self.cache: PopConsumerCache | None = None
        self.on_written: Callable[[], None] | None = None
        """Told when the store has got a record."""
        if broker.broker_config.enable_pop_buffer_merge:
            self.cache = PopConsumerCache(broker, self.write_to_store, locks, reviver.revive)

    def start(self) -> None:
        """Read what is on the disk."""
        self.store.start()
        if self.cache is not None:
            self.cache.start()

    def shutdown(self) -> None:
        """Make the store safe; the cache is forgotten."""
        if self.cache is not None:
            self.cache.shutdown()
        self.store.shutdown()

    # -- what the cache holds ---------------------------------------------------------------------------------------

    def min_offset_in_cache(self, group: str, topic: str, queue_id: int) -> int:
        """The least offset of a queue that the cache holds; -1 when it holds none."""
        return self.cache.min_offset((group, topic, queue_id)) if self.cache is not None else OFFSET_NOT_EXIST

    def in_flight(self, group: str, topic: str, queue_id: int) -> int:
        """How many messages of a queue the cache knows to be in hand."""
        return self.cache.in_flight((group, topic, queue_id)) if self.cache is not None else 0

    def forget_cached(self, group: str, topic: str, queue_id: int) -> None:
        """Forget what the cache holds of a queue."""
        if self.cache is not None:
            self.cache.remove_records((group, topic, queue_id))

    # -- changing ---------------------------------------------------------------------------------------------------

    def write(self, records: Sequence[PopConsumerRecord], *, to_store: bool = False) -> Future[None] | None:
        """Note that messages are in hand; DiskFull with none noted. A full cache is left out."""
        if self.cache is None or self.cache.is_full or to_store:
            return self.write_to_store(records)
        self.cache.write_records(records)
        self._tell(records, "cache")
        return None

    def write_to_store(self, records: Sequence[PopConsumerRecord]) -> Future[None] | None:
        """Write records to the disk; DiskFull with none written."""
        if not records:
            return None
        try:
            written = self.store.write_records(records)
        except DiskFull as error:
            self._not_changed(len(records), error)
            raise
        self._tell(records, "store")
        if self.on_written is not None:
            self.on_written()
        return written

    def delete(self, record: PopConsumerRecord, reason: str) -> Future[None] | None:
        """A message is no longer in hand; DiskFull when its record stays."""
        hooks = self._node.hooks
        if self.cache is not None and self.cache.delete_record(record):
            known, deleted = True, None
        else:
            known = record in self.store
            deleted = self._delete_from_store([record])
        if hooks.on:
            place = (record.group, record.topic, record.queue_id, record.offset)
            if known:
                hooks.emit(PopRecordDeleted(*place, record.pop_time, reason))
            else:
                hooks.emit(AckLost(*place, record.offset, record.pop_time, "there is no record of this delivery"))
        return deleted

    def delete_all(self, records: Sequence[PopConsumerRecord], reason: str) -> Future[None] | None:
        """These are somewhere else now: in the retry topic, or written anew; DiskFull when their records stay."""
        deleted = self._delete_from_store(records)
        hooks = self._node.hooks
        if hooks.on:
            for record in records:
                place = (record.group, record.topic, record.queue_id, record.offset)
                hooks.emit(PopRecordDeleted(*place, record.pop_time, reason))
        return deleted

    def _delete_from_store(self, records: Sequence[PopConsumerRecord]) -> Future[None] | None:
        try:
            return self.store.delete_records(records)
        except DiskFull as error:
            self._not_changed(len(records), error)
            raise

    def _tell(self, records: Sequence[PopConsumerRecord], held_in: str) -> None:
        hooks = self._node.hooks
        if not hooks.on:
            return
        for record in records:
            hooks.emit(
                PopRecordWritten(
                    record.group,
                    record.topic,
                    record.queue_id,
                    record.offset,
                    record.pop_time,
                    record.invisible_time,
                    record.attempt_times,
                    held_in,
                )
            )

    def _not_changed(self, records: int, error: DiskFull) -> None:
        if self._node.hooks.on:
            self._node.hooks.emit(PopRecordsNotWritten(records, str(error).partition("\n")[0]))
