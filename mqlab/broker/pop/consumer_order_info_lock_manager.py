"""The alarm clock of ordered pops: it rings when the messages of a queue's last pop become visible again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlab.broker.pop.order_info import OrderInfo
    from mqlab.sim import Node
    from mqlab.sim.timer import Timer

TIMER_TICK_MS = 100
_TICK_US = TIMER_TICK_MS * 1_000


class ConsumerOrderInfoLockManager:
    """Tells who waits for a queue when its block ends (org.apache.rocketmq.broker.offset.ConsumerOrderInfoLockManager).

    The alarms are those of a hashed wheel timer with ticks of 100 ms, which begin with the first alarm: each rings at
    the end of the tick into which it falls, so up to 100 ms late. Differs from RocketMQ: the wheel does not turn while
    nothing is set.
    """

    def __init__(
        self, node: Node, enabled: Callable[[], bool], notify_lock_is_free: Callable[[str, str, int], None]
    ) -> None:
        self._node = node
        self._enabled = enabled
        self._notify_lock_is_free = notify_lock_is_free
        self._began_us: int | None = None
        self.timeouts: dict[tuple[str, str, int], Timer] = {}

    def recover(self, table: dict[str, dict[int, OrderInfo]]) -> None:
        """Set the alarms for the blocks that were read from the disk; those that ended meanwhile ring for nobody."""
        now_ms = self._node.now_ms()
        for key, queues in table.items():
            topic, group = key.split("@", 1)
            for queue_id, info in queues.items():
                free_ms = info.lock_free_timestamp(now_ms)
                if free_ms is not None and free_ms > now_ms:
                    self._set(topic, group, queue_id, free_ms)

    def update_lock_free_timestamp(self, topic: str, group: str, queue_id: int, info: OrderInfo) -> None:
        """The messages of a queue have changed: set its alarm anew, for now if nothing blocks any longer."""
        free_ms = info.lock_free_timestamp(self._node.now_ms())
        if free_ms is not None:
            self._set(topic, group, queue_id, free_ms)

    def _set(self, topic: str, group: str, queue_id: int, free_ms: int) -> None:
        if not self._enabled():
            return
        node = self._node
        now_us = node.now_us()
        if self._began_us is None:
            self._began_us = now_us
        ticks = (now_us + node.us_until(free_ms) - self._began_us) // _TICK_US + 1
        rings_in_us = self._began_us + ticks * _TICK_US - now_us
        key = (topic, group, queue_id)
        self._cancel(key)
        self.timeouts[key] = node.call_later(rings_in_us / 1_000, self._ring, key, name="ConsumerOrderInfoLockManager")

    def _ring(self, key: tuple[str, str, int]) -> None:
        del self.timeouts[key]
        if self._enabled():
            self._notify_lock_is_free(*key)

    def _cancel(self, key: tuple[str, str, int]) -> None:
        timeout = self.timeouts.pop(key, None)
        if timeout is not None:
            timeout.cancel()

    def shutdown(self) -> None:
        """No alarm rings any more."""
        for key in list(self.timeouts):
            self._cancel(key)
