"""What a task yields to the scheduler while it waits: a number of microseconds, a Park, or an AtMost.

This module is never compiled: a compiled function can't be a coroutine that yields.
"""

from __future__ import annotations

import types
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from mqlab.sim.timer import Timer, time_out

if TYPE_CHECKING:
    from mqlab.sim.future import Future
    from mqlab.sim.task import Task


class Park:
    """What a task yields to wait until somebody resumes it by name; `label` says for what."""

    __slots__ = ("label",)

    def __init__(self, label: str) -> None:
        self.label = label


class AtMost:
    """What a task yields to wait for a future, but not for longer than `us` microseconds."""

    __slots__ = ("future", "timer", "us")

    def __init__(self, future: Future[Any], us: int) -> None:
        self.future = future
        self.us = us
        self.timer: Timer

    def begin(self, task: Task) -> None:
        """Let the task wait (the scheduler calls this)."""
        self.timer = time_out(task.life, self.us, self._end, (task,), f"time-out of {self.future.label}")
        self.future.add_waiter(task)

    def _end(self, task: Task) -> None:
        if not self.future.done:
            self.future.remove_waiter(task)
            task.resume()


@types.coroutine
def wait_at_most(future: Future[Any], us: int) -> Generator[AtMost, None, bool]:
    """Wait until the future is complete, but not longer than `us` microseconds; whether it is complete then.

    The future stays as it is, so whoever gives up must tell the one who would have completed it.
    """
    if not future.done:
        limit = AtMost(future, us)
        try:
            yield limit
        except BaseException:
            if future.on_abandon is not None:
                future.on_abandon(future)
            raise
        finally:
            limit.timer.cancel()
    return future.done


@types.coroutine
def sleep_us(us: int) -> Generator[int, None, None]:
    """Let `us` microseconds of the world's time pass (0: let the others at this instant go first)."""
    yield us


@types.coroutine
def park(label: str) -> Generator[Park, None, None]:
    """Wait until `task.resume()` or `task.resume_at(...)` is called on this task."""
    yield Park(label)
