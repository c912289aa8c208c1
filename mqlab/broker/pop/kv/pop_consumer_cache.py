"""Records in memory: most messages are acknowledged soon, and their records never need to be written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from mqlab.broker.pop.kv.pop_consumer_record import PopConsumerRecord
from mqlab.sim import DiskFull, Future, ServiceThread

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.broker.pop.kv.pop_consumer_lock_service import PopConsumerLockService

OFFSET_NOT_EXIST = -1
CLEANUP_PERIOD_MS = 1_000

Queue = tuple[str, str, int]
"""Group, topic, queue id."""


class PopConsumerCache(ServiceThread):
    """Holds records for up to `pop_ck_stay_buffer_time`, and goes through them every second.

    Java: org.apache.rocketmq.broker.pop.PopConsumerCache. What is due is put into the retry topic from here, what stays
    too long is written to the store. The group's committed offset is the least that is held, so a broker that was
    killed, or stopped, gives all from there once more, acknowledged messages included. As in RocketMQ a record that
    cannot be put or written when it leaves is lost.
    """

    def __init__(
        self,
        broker: BrokerParts,
        write_to_store: Callable[[Sequence[PopConsumerRecord]], Future[None] | None],
        locks: PopConsumerLockService,
        revive: Callable[[PopConsumerRecord], bool | Future[bool]],
    ) -> None:
        super().__init__(broker.node, "PopConsumerCache", CLEANUP_PERIOD_MS)
        self._config = broker.broker_config
        self._offsets = broker.consumer_offset_manager
        self._write_to_store = write_to_store
        self._locks = locks
        self._revive = revive
        self._size = 0
        self._table: dict[Queue, dict[int, PopConsumerRecord]] = {}

    # -- what is there ----------------------------------------------------------------------------------------------

    def has_work(self) -> bool:
        """Is any queue known? Its committed offset may have to follow."""
        return bool(self._table)

    @property
    def is_full(self) -> bool:
        """Are there more records than `pop_ck_max_buffer_size`? The next ones go to the store."""
        return self._size > self._config.pop_ck_max_buffer_size

    def min_offset(self, queue: Queue) -> int:
        """The least offset that is held of a queue; -1 when nothing is."""
        return min(self._table.get(queue, ()), default=OFFSET_NOT_EXIST)

    def in_flight(self, queue: Queue) -> int:
        """How many records of a queue are held."""
        return len(self._table.get(queue, ()))

    # -- changing ---------------------------------------------------------------------------------------------------

    def write_records(self, records: Iterable[PopConsumerRecord]) -> None:
        """Hold these; one of the same message is replaced."""
        for record in records:
            self._table.setdefault(_queue_of(record), {})[record.offset] = record
            self._size += 1
        self.wakeup_for_work()

    def delete_record(self, record: PopConsumerRecord) -> bool:
        """Forget what is held of a message, whichever delivery it is of; False when nothing is."""
        held = self._table.get(_queue_of(record))
        if held is None or held.pop(record.offset, None) is None:
            return False
        self._size -= 1
        return True

    def remove_records(self, queue: Queue) -> None:
        """Forget all of a queue."""
        self._table.pop(queue, None)

    # -- the turn of each second --------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Let go of what is due or has stayed too long, and commit what is left."""
        for queue in list(self._table):
            self._clean_up(queue)
        self._size = sum(map(len, self._table.values()))

    def _clean_up(self, queue: Queue) -> None:
        held = self._table[queue]
        group, topic, _ = queue
        if self._locks.is_lock_timeout(group, topic):
            del self._table[queue]
            self._let_go(list(held.values()))
            return
        now_ms = self.node.now_ms()
        to_write = []
        for record in _take_expired(held, now_ms, self._config.pop_ck_stay_buffer_time):
            if record.visibility_timeout <= now_ms:
                self._revive(record)
            else:
                to_write.append(record)
        self._let_go(to_write)
        least = min(held, default=OFFSET_NOT_EXIST)
        if least > OFFSET_NOT_EXIST:
            self._commit_offset(queue, least)

    def _let_go(self, records: list[PopConsumerRecord]) -> None:
        # What a full disk does not take is lost, and told as not written.
        with suppress(DiskFull):
            self._write_to_store(records)

    def _commit_offset(self, queue: Queue, offset: int) -> None:
        group, topic, queue_id = queue
        if not self._locks.try_lock(group, topic):
            return
        try:
            self._offsets.commit_offset(group, topic, queue_id, offset, "popped")
        finally:
            self._locks.unlock(group, topic)


def _queue_of(record: PopConsumerRecord) -> Queue:
    return record.group, record.topic, record.queue_id


def _take_expired(held: dict[int, PopConsumerRecord], now_ms: int, stay_ms: int) -> list[PopConsumerRecord]:
    """Take out what can be seen again, and what was popped more than `stay_ms` ago; in the order of the offsets."""
    expired = [
        held[offset]
        for offset in sorted(held)
        if held[offset].visibility_timeout <= now_ms or held[offset].pop_time + stay_ms <= now_ms
    ]
    for record in expired:
        del held[record.offset]
    return expired
