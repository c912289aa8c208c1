"""Timers: callbacks at a later time, cheap to make and to cancel."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqlab.errors import LearnerError
from mqlab.sim.target import Target

if TYPE_CHECKING:
    from mqlab.sim.agenda import Agenda
    from mqlab.sim.life import Life

DEAD = -1
"""The token of something that shall never run again."""


class Timer(Target):
    """One call of `callback(*args)` at `due_us`, unless cancelled before."""

    __slots__ = ("args", "callback", "cause", "due_us", "lane", "seq")

    def __init__(self, life: Life, name: str, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.life = life
        self.name = name
        self.callback = callback
        self.args = args
        self.token = 0
        self.due_us = 0
        self.seq = 0
        self.lane: Lane | None = None
        self.cause = life.world.cause

    @property
    def active(self) -> bool:
        """True until the timer has fired or was cancelled."""
        return self.token != DEAD

    def cancel(self) -> None:
        """Make sure that the callback will not be called; calling it twice is harmless."""
        if self.token != DEAD:
            self.token = DEAD
            self.args = ()
            lane = self.lane
            if lane is None:
                self.life.world.entry_died()
            else:
                lane.dead += 1
                if lane.dead > 1_000:
                    lane.throw_out()

    def fire(self) -> None:
        """Call the callback (the world does this when the timer is due)."""
        self.token = DEAD
        self.callback(*self.args)


def whole_us(ms: float) -> int:
    """Microseconds of a time in ms; LearnerError if it is below 0 or no whole number of them."""
    if type(ms) is int and ms >= 0:
        return ms * 1_000
    us = ms * 1_000
    whole = round(us)
    if whole != us and abs(whole - us) > 1e-6:
        raise LearnerError(
            f"{ms} ms is not a whole number of microseconds", "the world's clock counts whole microseconds"
        )
    if whole < 0:
        raise LearnerError(f"{ms} ms lie in the past", "give a delay of 0 or more")
    return whole


def time_out(life: Life, us: int, callback: Callable[..., Any], args: tuple[Any, ...], name: str) -> Timer:
    """A timer in the lane of its duration: thousands of equal ones that nearly all get cancelled cost little."""
    timer = Timer(life, name, callback, args)
    if us <= 0:
        life.world.push(0, timer, 0)
    else:
        lanes = life.world.lanes
        (lanes[us] if us in lanes else life.world.lane(us)).add(timer)
    return timer


class Lane(Target):
    """All timers of one duration, in one queue: only the head is in the agenda.

    Time-outs are nearly always cancelled. In a lane, making one is an append and cancelling one sets a mark; the head
    that was cancelled is skipped when its time comes, which is not a slice.
    """

    __slots__ = ("_agenda", "_queue", "dead", "duration_us")

    def __init__(self, agenda: Agenda, duration_us: int) -> None:
        self._agenda = agenda
        self.dead = 0
        """How many timers were cancelled since the dead ones were thrown out last."""
        self.duration_us = duration_us
        self.token = 0
        self._queue: deque[Timer] = deque()

    def add(self, timer: Timer) -> None:
        """Queue a timer that is due one duration from now."""
        agenda = self._agenda
        timer.lane = self
        timer.due_us = agenda.now_us + self.duration_us
        agenda.seq = timer.seq = agenda.seq + 1
        self._queue.append(timer)
        if self._queue[0] is timer:
            self._arm()

    def _arm(self) -> None:
        head = self._queue[0]
        self._agenda.push_in_order(head.due_us, head.seq, self)

    def settle(self, seq: int) -> bool:
        """Drop cancelled heads; True if the head is the live timer of that place, else the lane was armed anew."""
        queue = self._queue
        while queue and queue[0].token == DEAD:
            queue.popleft()
        if not queue:
            return False
        if queue[0].seq == seq:
            return True
        self._arm()
        return False

    def take(self) -> Timer:
        """Remove and return the head, and arm the lane for the next live one. Call `settle` before."""
        head = self._queue.popleft()
        queue = self._queue
        while queue and queue[0].token == DEAD:
            queue.popleft()
        if queue:
            self._arm()
        return head

    def waiting(self) -> list[Timer]:
        """The time-outs of running processes that still wait."""
        return [timer for timer in self._queue if timer.token != DEAD and not timer.life.state]

    def throw_out(self) -> None:
        """Throw out the timers that were cancelled, once they are half of the lane."""
        if self.dead * 2 > len(self._queue):
            head = self._queue[0]
            self._queue = deque([timer for timer in self._queue if timer is head or timer.token != DEAD])
            self.dead = 0

    def __len__(self) -> int:
        return len(self._queue)
