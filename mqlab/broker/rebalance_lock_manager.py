"""Who may consume which queue alone: the broker's side of ordered consumption."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.message import MessageQueue
from mqlab.trace.events.broker import QueueLocked, QueueUnlocked

if TYPE_CHECKING:
    from mqlab.sim import Node

GroupLocks = dict[MessageQueue, "LockEntry"]


class LockEntry:
    """One queue's owner and when it last said so, in microseconds of the world."""

    __slots__ = ("client_id", "updated_us")

    def __init__(self, client_id: str, updated_us: int) -> None:
        self.client_id = client_id
        self.updated_us = updated_us


class RebalanceLockManager:
    """Locks of queues, by group, that live for 60 s unless renewed.

    Java: org.apache.rocketmq.broker.client.rebalance.RebalanceLockManager. A closed connection releases nothing: the
    queue of a killed owner is free 60 s after its last renewal.
    """

    def __init__(self, node: Node, max_live_ms: int) -> None:
        self._node = node
        self._max_live_us = max_live_ms * 1_000
        self.lock_table: dict[str, GroupLocks] = {}

    def is_locked(self, group: str, queue: MessageQueue, client_id: str) -> bool:
        """Does this client hold the queue? A yes renews the lock."""
        entry = self.lock_table.get(group, {}).get(queue)
        if entry is None or entry.client_id != client_id or self._expired(entry):
            return False
        entry.updated_us = self._node.now_us()
        return True

    def is_lock_all_expired(self, group: str) -> bool:
        """True when no queue of the group is held at present."""
        return all(self._expired(entry) for entry in self.lock_table.get(group, {}).values())

    def try_lock_batch(self, group: str, queues: list[MessageQueue], client_id: str) -> list[MessageQueue]:
        """Lock what is free, expired or held by this client already; returns the queues that it holds now."""
        locks = self.lock_table.setdefault(group, {})
        now_us = self._node.now_us()
        held = []
        for queue in queues:
            entry = locks.get(queue)
            if entry is None or (entry.client_id != client_id and self._expired(entry)):
                locks[queue] = LockEntry(client_id, now_us)
                if self._node.hooks.on:
                    self._node.hooks.emit(QueueLocked(group, queue.topic, queue.queue_id, client_id))
            elif entry.client_id == client_id:
                entry.updated_us = now_us
            else:
                continue
            held.append(queue)
        return held

    def unlock_batch(self, group: str, queues: list[MessageQueue], client_id: str) -> None:
        """Let go of the queues that this client holds; those of others stay as they are."""
        locks = self.lock_table.get(group, {})
        for queue in queues:
            entry = locks.get(queue)
            if entry is not None and entry.client_id == client_id:
                del locks[queue]
                if self._node.hooks.on:
                    self._node.hooks.emit(QueueUnlocked(group, queue.topic, queue.queue_id, client_id))

    def _expired(self, entry: LockEntry) -> bool:
        return self._node.now_us() - entry.updated_us > self._max_live_us
