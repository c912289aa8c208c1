"""One pop at a time: who pops a queue for a group holds its lock meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlab.sim import Node

CLEAN_PERIOD_MS = 60_000
"""How often the thread looks for old locks, and how old they must be."""


class QueueLockManager:
    """The locks `topic@group@queueId` (org.apache.rocketmq.broker.processor.PopMessageProcessor.QueueLockManager).

    Nobody waits for a lock: who finds it taken leaves the queue out. Every 60 s locks that were taken more than 60 s
    ago are thrown away, even if they are still held, so that one which was never given back heals. Whose lock was
    thrown away gives back the next one's in the end, as in RocketMQ. Differs from RocketMQ: locks that nobody holds are
    not kept, and there is no thread: whether it would have passed is worked out when a lock is found taken.
    """

    def __init__(self, node: Node, origin_us: int) -> None:
        self._node = node
        self._origin_us = origin_us
        self.held: dict[str, int] = {}
        """Lock -> since when, us since the world began."""

    @staticmethod
    def build_lock_key(topic: str, group: str, queue_id: int) -> str:
        """The name of a lock."""
        return f"{topic}@{group}@{queue_id}"

    def try_lock(self, topic: str, group: str, queue_id: int) -> bool:
        """Take the lock of a queue for a group; False when somebody has it."""
        return self.try_lock_key(f"{topic}@{group}@{queue_id}")

    def try_lock_key(self, key: str) -> bool:
        """Take a lock by its name; False when somebody has it."""
        since_us = self.held.get(key)
        if since_us is not None and not self._was_thrown_away(since_us):
            return False
        self.held[key] = self._node.now_us()
        return True

    def _was_thrown_away(self, since_us: int) -> bool:
        """Has the thread, which turns every 60 s since the broker's start, found this lock too old?"""
        period_us = CLEAN_PERIOD_MS * 1_000
        now_us = self._node.now_us()
        last_turn_us = now_us - (now_us - self._origin_us) % period_us
        return last_turn_us - since_us > period_us

    def unlock(self, topic: str, group: str, queue_id: int) -> None:
        """Give the lock of a queue back."""
        self.held.pop(f"{topic}@{group}@{queue_id}", None)

    def unlock_key(self, key: str) -> None:
        """Give a lock back by its name."""
        self.held.pop(key, None)
