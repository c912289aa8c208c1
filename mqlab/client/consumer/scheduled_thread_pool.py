"""A pool of threads that begins each job after a delay."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mqlab.sim import Node


class ScheduledThreadPoolExecutor:
    """Runs jobs, after a delay, on a fixed number of threads: a job whose time has come waits while all are busy.

    A job is an `async` function; it holds its thread until it ends, also while it waits. Java:
    java.util.concurrent.ScheduledThreadPoolExecutor. Differs from RocketMQ: jobs still to come when the pool is shut
    down are dropped, where Java runs them once more against a closed client.
    """

    def __init__(self, node: Node, name: str, threads: int) -> None:
        self._node = node
        self._pool = node.pool(name, threads)
        self.name = name

    def schedule(self, job: Callable[[], Coroutine[Any, Any, None]], delay_ms: int) -> None:
        """Run a job in `delay_ms`; after the shutdown nothing happens."""
        if delay_ms <= 0:
            self._submit(job)
        else:
            self._node.timeout(delay_ms, self._submit, job, name=self.name)

    def _submit(self, job: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if not self._pool.closed:
            self._pool.submit(job)

    @property
    def busy(self) -> int:
        """How many threads run a job at present."""
        return self._pool.busy

    @property
    def waiting(self) -> int:
        """How many jobs wait for a thread."""
        return len(self._pool.queue)

    @property
    def is_shutdown(self) -> bool:
        """Whether the pool takes no more jobs."""
        return self._pool.closed

    def shutdown(self) -> None:
        """Take no more jobs and drop those that wait; running ones end."""
        self._pool.close()

    def __repr__(self) -> str:
        return f"<ScheduledThreadPoolExecutor {self.name}: {self.busy} of {self._pool.threads} busy>"
