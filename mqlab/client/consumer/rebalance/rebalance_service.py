"""The rebalance thread of a client instance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.sim import Semaphore, Task

if TYPE_CHECKING:
    from mqlab.client.mq_client_instance import MQClientInstance

WAIT_INTERVAL_MS = 20_000
MIN_INTERVAL_MS = 1_000


class RebalanceService:
    """Rebalances every 20 seconds, or when woken, but never twice within one second.

    Java: org.apache.rocketmq.client.impl.consumer.RebalanceService. Its creation counts as a first run, so the first
    real one comes a second later at the earliest; after a run that left something unbalanced the next one comes in 1 s.
    """

    def __init__(self, instance: MQClientInstance) -> None:
        self._instance = instance
        self._node = instance.node
        self._last_us = instance.node.now_us()
        self._task: Task | None = None
        self._wait_point = Semaphore(0, "a reason to rebalance")
        self._notified = False

    def start(self) -> None:
        self._task = self._node.spawn(self._run(), "RebalanceService")

    def shutdown(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def wakeup(self) -> None:
        """Rebalance as soon as possible; a call while a run is under way is not lost."""
        if not self._notified:
            self._notified = True
            self._wait_point.release()

    async def _run(self) -> None:
        wait_ms = WAIT_INTERVAL_MS
        while True:
            await self._wait_point.acquire(1, wait_ms)
            self._notified = False
            passed_ms = (self._node.now_us() - self._last_us) // 1_000
            if passed_ms < MIN_INTERVAL_MS:
                wait_ms = MIN_INTERVAL_MS - passed_ms
                continue
            balanced = await self._instance.do_rebalance()
            wait_ms = WAIT_INTERVAL_MS if balanced else MIN_INTERVAL_MS
            self._last_us = self._node.now_us()
