"""What a solution awaits of its own (a lock, a future, a rest) passes in the judge's world."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from mqlab.errors import SimulationError
from mqlab.sim import Future
from mqlab.sim.traps import AtMost, sleep_us, wait_at_most


class Clock:
    """The judge's world, as far as a solution may wait in it."""

    def future(self, label: str) -> Future[None]:
        """A future of the world."""
        return Future(str(label))

    def sleep_us(self, us: int) -> Awaitable[None]:
        """Sleep for so many microseconds of the machine's time."""
        return sleep_us(int(us))

    def at_most(self, future: Future[None], us: int) -> Awaitable[bool]:
        """Until the future is complete, but not longer than so many microseconds."""
        return wait_at_most(future, int(us))


class _NoTimer:
    """The time-out of a wait that another process times."""

    def cancel(self) -> None:
        """Nothing was begun here."""


def waits_in(clock: Any, awaited: Any) -> Any:
    """What stands in `clock`, the judge's, for what a coroutine waits for here."""
    if isinstance(awaited, int):
        return clock.sleep_us(awaited)
    if isinstance(awaited, Future):
        return _mirrored(clock, awaited)
    if isinstance(awaited, AtMost):
        awaited.timer = _NoTimer()  # type: ignore[assignment]  # it is cancelled, and nothing else
        return clock.at_most(_mirrored(clock, awaited.future), awaited.us)
    raise SimulationError(f"a solution can't wait for {type(awaited).__name__}: await a call of mqlab, or node.sleep")


def _mirrored(clock: Any, future: Future[Any]) -> Any:
    there = clock.future(future.label)
    future.add_done_callback(lambda _: there.set_result(None))
    return there
