"""A pool of threads whose jobs begin after a delay."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlab.sim import Node


class ScheduledThreadPool:
    """Runs each job after its delay, as soon as a thread is free (java.util.concurrent.ScheduledThreadPoolExecutor).

    Java: org.apache.rocketmq.client.consumer.MQPullConsumerScheduleService.
    """

    def __init__(self, node: Node, name: str, threads: int) -> None:
        self._node = node
        self.pool = node.pool(name, threads)
        self.is_shutdown = False

    def schedule(self, job: Callable[[], object], delay_ms: int) -> bool:
        """Run a job once, in `delay_ms`; False after the shutdown. A coroutine keeps its thread until it has ended."""
        if self.is_shutdown:
            return False
        self._node.call_later(max(0, delay_ms), self.pool.submit, job, name=self.pool.name)
        return True

    def shutdown(self) -> None:
        """Take no new jobs; those that wait for their time still run, as Java's executor has it."""
        self.is_shutdown = True
