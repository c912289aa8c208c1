"""One lock for each group and topic: who pops, acknowledges in order or commits holds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mqlab.protocol.topics import parse_normal_topic

LOCK_TIMEOUT_MS = 120_000


@dataclass(slots=True)
class TimedLock:
    """A lock that knows when it was last taken, ms since 1970."""

    lock_time: int
    locked: bool = False


class PopConsumerLockService:
    """Locks by group and topic (org.apache.rocketmq.broker.pop.PopConsumerLockService).

    Nobody waits for one: a pop that finds it taken finds nothing. One that nobody took for two minutes says that the
    group's consumers are gone, and is thrown away even if it is still held.
    """

    def __init__(self, now_ms: Callable[[], int], timeout_ms: int = LOCK_TIMEOUT_MS) -> None:
        self._now_ms = now_ms
        self._timeout_ms = timeout_ms
        self._locks: dict[tuple[str, str], TimedLock] = {}

    def try_lock(self, group: str, topic: str) -> bool:
        """Take the lock of a group and a topic, unless somebody has it."""
        lock = self._locks.setdefault((group, topic), TimedLock(self._now_ms()))
        if lock.locked:
            return False
        lock.locked = True
        lock.lock_time = self._now_ms()
        return True

    def unlock(self, group: str, topic: str) -> None:
        """Give it back; nothing happens when it was thrown away meanwhile."""
        lock = self._locks.get((group, topic))
        if lock is not None:
            lock.locked = False

    def is_lock_timeout(self, group: str, topic: str) -> bool:
        """Has nobody popped for that long? A retry topic has the lock of the topic behind it."""
        lock = self._locks.get((group, parse_normal_topic(topic, group)))
        return lock is None or self._now_ms() - lock.lock_time > self._timeout_ms

    def remove_timeout(self) -> None:
        """Throw away what nobody took for that long."""
        now_ms = self._now_ms()
        for key in [key for key, lock in self._locks.items() if now_ms - lock.lock_time > self._timeout_ms]:
            del self._locks[key]
