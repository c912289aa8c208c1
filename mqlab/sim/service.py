"""Service threads: the loops that a RocketMQ process keeps turning, and that cost nothing here while there is no work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.sim.task import Cancelled, Task
from mqlab.sim.traps import park

if TYPE_CHECKING:
    from mqlab.sim.node import Node


class ServiceThread:
    """A loop that looks for work every `period_ms` (org.apache.rocketmq.common.ServiceThread).

    Subclasses write `run` as the Java thread's loop, around `await self.wait_for_running()`. Differs from RocketMQ: a
    service without work (`has_work()` is False) arms no timer. New work must call `wakeup_for_work()`, which arms the
    next tick on the thread's own grid, so that things happen when a loop that always turns would have done them.
    """

    def __init__(self, node: Node, name: str = "", period_ms: int = 1) -> None:
        self.node = node
        self.name = name or type(self).__name__
        self.period_ms = period_ms
        self.stopped = False
        self._task: Task | None = None
        self._origin_us = 0
        self._waiting = False
        self.idle = False
        """Whether the thread sleeps until there is work; only then it needs to hear of new work."""
        self._notified = False

    def has_work(self) -> bool:
        """Is there anything to do at the next tick? A service that always has something says True."""
        return True

    async def run(self) -> None:
        """The loop of the thread; the default calls `tick()` at each turn."""
        while not self.stopped:
            await self.wait_for_running()
            self.tick()

    def tick(self) -> Any:
        """One turn of the loop."""
        raise NotImplementedError(f"{type(self).__name__} must define run() or tick()")

    def start(self) -> None:
        """Start the thread; its grid of ticks begins now."""
        self.stopped = False
        self._origin_us = self.node.world.now_us
        self._task = self.node.spawn(self.run(), self.name)

    def shutdown(self) -> None:
        """Let the thread end at its next turn, which comes at once."""
        self.stopped = True
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def set_origin(self, origin_us: int) -> None:
        """Turn on the grid that began then: that of a thread which began late, and would have turned since."""
        self._origin_us = origin_us

    def next_tick_us(self) -> int:
        """The time of the next turn on the thread's grid."""
        period_us = self.period_ms * 1_000
        now = self.node.world.now_us
        return now + period_us - (now - self._origin_us) % period_us

    def tick_at(self, earliest_us: int) -> int:
        """The time of the first turn on the thread's grid that is not before `earliest_us`."""
        period_us = self.period_ms * 1_000
        return earliest_us + -(earliest_us - self._origin_us) % period_us

    async def wait_for_running(self) -> None:
        """Wait for the next turn: a tick of the grid with work, or `wakeup()`."""
        if self._notified:
            self._notified = False
            return
        assert self._task is not None
        if self.has_work():
            self._task.resume_at(self.next_tick_us())
        else:
            self.idle = True
        self._waiting = True
        try:
            await park(f"the next turn of {self.name}")
        except Cancelled:
            if not self.stopped:
                raise
        finally:
            self._waiting = self.idle = self._notified = False

    def wakeup_for_work(self) -> None:
        """There is work now: an idle service arms its next tick."""
        if self.idle and self._task is not None:
            self.idle = False
            self._task.resume_at(self.next_tick_us())

    def rearm(self) -> None:
        """The next turn with work may come at another time than the one that is armed: arm the right one."""
        if self._task is None or self._notified or not self._waiting:
            return
        if not self.idle:
            self.node.world.entry_died()
            self._task.token += 1
        self.idle = not self.has_work()
        if not self.idle:
            self._task.resume_at(self.next_tick_us())

    def wakeup(self) -> None:
        """Turn once more at once, whatever the time (ServiceThread.wakeup)."""
        if self._task is None or self._notified:
            return
        self._notified = True
        if self._waiting:
            if not self.idle:
                self.node.world.entry_died()
            self.idle = False
            self._task.resume()
