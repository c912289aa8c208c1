"""Locks of queues at their brokers: an orderly consumer may only consume what it alone holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.errors import MQBrokerException, RemotingException
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.route import MASTER_ID
from mqlab.trace.events.client import QueueLockLost, QueueLockTaken

if TYPE_CHECKING:
    from mqlab.client.consumer.consumer_impl import ConsumerImpl
    from mqlab.client.consumer.process_queue import ProcessQueue

LOCK_TIMEOUT_MS = 1_000
UNLOCK_DELAY_MS = 20_000
"""A dropped queue is unlocked by force so long after its last renewal (rocketmq.client.unlockDelayTimeMills)."""
CONSUME_LOCK_WAIT_MS = 500


class QueueLocks:
    """Takes, renews and gives back the locks of one consumer's queues (the lock part of RebalanceImpl).

    Java: org.apache.rocketmq.client.impl.consumer.RebalanceImpl.
    """

    def __init__(self, owner: ConsumerImpl) -> None:
        self._owner = owner
        self._node = owner.node

    def _master(self, broker_name: str) -> str | None:
        found = self._owner.instance.routes.find_broker_address_in_subscribe(broker_name, MASTER_ID, True)
        return found.address if found is not None else None

    async def _ask(self, broker_name: str, queues: list[MessageQueue]) -> list[MessageQueue] | None:
        """The queues that the broker gave us; None when it could not be asked."""
        address = self._master(broker_name)
        if address is None:
            return None
        instance = self._owner.instance
        try:
            return await instance.api.lock_batch_mq(
                address, self._owner.group_name, instance.client_id, queues, LOCK_TIMEOUT_MS
            )
        except (RemotingException, MQBrokerException):
            return None

    async def lock(self, queue: MessageQueue) -> bool:
        locked = await self._ask(queue.broker_name, [queue]) or []
        for each in locked:
            self._note(each, True)
        return queue in locked

    async def lock_all(self) -> None:
        """Renew the locks of all queues held, one request to each broker."""
        for broker_name, queues in self._by_broker().items():
            locked = await self._ask(broker_name, queues)
            if locked is not None:
                for queue in queues:
                    self._note(queue, queue in locked)

    def _note(self, queue: MessageQueue, locked: bool) -> None:
        process_queue = self._owner.rebalance_impl.process_queue_table.get(queue)
        if process_queue is None:
            return
        if locked:
            process_queue.last_lock_us = self._node.now_us()
        if locked != process_queue.locked and self._node.hooks.on:
            event = QueueLockTaken if locked else QueueLockLost
            self._node.hooks.emit(event(self._owner.group_name, *queue))
        process_queue.locked = locked

    def _by_broker(self) -> dict[str, list[MessageQueue]]:
        brokers: dict[str, list[MessageQueue]] = {}
        for queue in self._owner.rebalance_impl.process_queue_table:
            brokers.setdefault(queue.broker_name, []).append(queue)
        return brokers

    async def unlock_all(self) -> None:
        """Give all locks back, at the end of the consumer."""
        for broker_name, queues in self._by_broker().items():
            await self._unlock(broker_name, queues, oneway=False)
            for queue in queues:
                self._note(queue, False)

    async def _unlock(self, broker_name: str, queues: list[MessageQueue], *, oneway: bool) -> None:
        address = self._master(broker_name)
        if address is None:
            return
        instance = self._owner.instance
        try:
            await instance.api.unlock_batch_mq(
                address, self._owner.group_name, instance.client_id, queues, LOCK_TIMEOUT_MS, oneway
            )
        except (RemotingException, MQBrokerException):
            # The broker lets an unrenewed lock go by itself after 60 s.
            return

    async def give_up(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Write the offset and give the lock back, once no listener is at it; False: not now, try again later.

        The offset is written in any case, at once: what the listener has behind it shall not come again.

        Java: org.apache.rocketmq.client.impl.consumer.RebalancePushImpl.removeUnnecessaryMessageQueue.
        """
        store = self._owner.offset_store
        store.persist(queue)
        forced = self._node.now_us() > process_queue.last_lock_us + UNLOCK_DELAY_MS * 1_000
        lock = process_queue.consume_lock
        if not forced and not await lock.acquire(CONSUME_LOCK_WAIT_MS):
            process_queue.try_unlock_times += 1
            return False
        try:
            store.persist(queue)
            store.remove_offset(queue)
            process_queue.locked = False
            await self._unlock(queue.broker_name, [queue], oneway=True)
        finally:
            if not forced:
                lock.release()
        return True
