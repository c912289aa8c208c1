"""Which brokers a producer avoids after slow or failed sends, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mqlab.sim import Node

LATENCY_MAX_MS = (50, 100, 550, 1_800, 3_000, 5_000, 15_000)
NOT_AVAILABLE_MS = (0, 0, 2_000, 5_000, 6_000, 10_000, 30_000)
ISOLATED_LATENCY_MS = 10_000

Probe = Callable[[str, int], Coroutine[Any, Any, bool | None]]
"""(broker name, time-out in ms) -> does it answer? None: it has no address any more."""


def not_available_duration_ms(latency_ms: int) -> int:
    """How long a broker rests that took so long (MQFaultStrategy.computeNotAvailableDuration).

    Java: org.apache.rocketmq.client.latency.MQFaultStrategy.computeNotAvailableDuration.
    """
    for latency_max, duration in zip(reversed(LATENCY_MAX_MS), reversed(NOT_AVAILABLE_MS), strict=True):
        if latency_ms >= latency_max:
            return duration
    return 0


class FaultItem:
    """What is known of one broker (LatencyFaultToleranceImpl.FaultItem); times in ms of the node's clock."""

    __slots__ = ("check_stamp", "current_latency", "name", "reachable", "start_timestamp")

    def __init__(self, name: str) -> None:
        self.name = name
        self.current_latency = 0
        self.start_timestamp = 0
        self.check_stamp = 0
        self.reachable = True

    def __repr__(self) -> str:
        return f"<FaultItem {self.name}: {self.current_latency} ms, reachable={self.reachable}>"


class LatencyFaultTolerance:
    """The fault table (org.apache.rocketmq.client.latency.LatencyFaultToleranceImpl)."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.fault_item_table: dict[str, FaultItem] = {}

    def update_fault_item(self, name: str, latency_ms: int, not_available_ms: int, reachable: bool) -> None:
        """Note a send; a rest that is already under way never becomes shorter."""
        item = self.fault_item_table.setdefault(name, FaultItem(name))
        item.current_latency = latency_ms
        item.reachable = reachable
        until = self._node.now_ms() + not_available_ms
        if not_available_ms > 0 and until > item.start_timestamp:
            item.start_timestamp = until

    def is_available(self, name: str) -> bool:
        """Whether the broker rests no longer; unknown ones are available."""
        item = self.fault_item_table.get(name)
        return item is None or self._node.now_ms() >= item.start_timestamp

    def is_reachable(self, name: str) -> bool:
        """Whether the broker answered the last time; unknown ones count as reachable."""
        item = self.fault_item_table.get(name)
        return item is None or item.reachable

    def remove(self, name: str) -> None:
        """Forget what is known of a broker's latency, and use it again."""
        self.fault_item_table.pop(name, None)

    async def detect_by_one_round(self, probe: Probe, timeout_ms: int, interval_ms: int) -> None:
        """Probe the brokers whose time has come; one that answers is reachable again, an unknown one is forgotten.

        Java: org.apache.rocketmq.client.latency.LatencyFaultToleranceImpl.detectByOneRound.
        """
        for item in list(self.fault_item_table.values()):
            now_ms = self._node.now_ms()
            if now_ms < item.check_stamp:
                continue
            item.check_stamp = now_ms + interval_ms
            answered = await probe(item.name, timeout_ms)
            if answered is None:
                self.remove(item.name)
            elif answered:
                item.reachable = True
