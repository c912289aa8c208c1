"""Brokers that leave, taken out of the routes several at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mqlab.sim import Node


class UnregisterBroker(NamedTuple):
    """One broker that is to leave the routes, and why."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: int
    reason: str


class BatchUnregistrationService:
    """A bounded queue of departures (org.apache.rocketmq.namesrv.routeinfo.BatchUnregistrationService).

    Whatever has gathered when its turn comes is handled at once, so that hundreds of brokers may leave together.
    """

    def __init__(
        self, node: Node, capacity: int, unregister_brokers: Callable[[list[UnregisterBroker]], None]
    ) -> None:
        self._node = node
        self._capacity = capacity
        self._unregister_brokers = unregister_brokers
        self._queue: list[UnregisterBroker] = []

    def submit(self, request: UnregisterBroker) -> bool:
        """Queue a departure; False when the queue is full."""
        if len(self._queue) >= self._capacity:
            return False
        self._queue.append(request)
        if len(self._queue) == 1:
            self._node.call_soon(self._drain, name="BatchUnregistrationService")
        return True

    def _drain(self) -> None:
        requests, self._queue = self._queue, []
        self._unregister_brokers(requests)
