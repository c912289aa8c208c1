"""How a lab's world is played: for a while, until something happens, slice by slice, or at a speed for the eye."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar
from weakref import WeakSet

from mqlab.arguments import check_condition, check_count, check_limit, check_number, span_us
from mqlab.errors import LearnerError
from mqlab.sim import Call, World
from mqlab.trace.breakpoints import Breakpoint
from mqlab.trace.history import History
from mqlab.trace.matching import Kinds
from mqlab.trace.record import Record

if TYPE_CHECKING:
    from mqlab.views.source_line import SourceLine

T = TypeVar("T")


class Watcher(Protocol):
    """A view of a world."""

    def changed(self) -> None:
        """Another view has done something to the world or moved its cursor."""


class Playing:
    """The part of a Lab that lets time pass, and stops it at breakpoints."""

    world: World
    _history: History | None
    _breakpoints: list[Breakpoint]
    _sources: dict[tuple[int, int], tuple[str, int]]
    watchers: WeakSet[Watcher]
    """The views of this world: they share its cursor, so what one of them does is told to all."""

    _stopped_at: Record | None = None

    @property
    def now_ms(self) -> float:
        """The world's time in ms since it began."""
        return self.world.now_us / 1_000

    def run(self, call: Call[T], limit_ms: int = 600_000) -> T:
        """Play until the call's answer is there: what `await call` does in a cell, for plain scripts."""
        if not isinstance(call, Call):
            raise LearnerError(
                f"lab.run plays a call of mqlab, not {type(call).__name__}",
                "write lab.run(producer.send(message)): one method that is awaited in a cell, with its parentheses",
            )
        check_limit(limit_ms)
        return call.play(limit_ms)

    def run_for(self, ms: float = 0, *, seconds: float = 0) -> Self:
        """Let time pass. A breakpoint ends it early (see `stopped_at`)."""
        us = span_us(ms, seconds)
        with self.world.door:
            self._stopped_at = None
            self.world.run_for(us)
        return self

    def run_until(self, condition: Callable[[], bool], *, limit_ms: int = 600_000) -> Self:
        """Play until `condition()` holds, tested after each slice; a breakpoint ends it early."""
        check_condition(condition)
        check_limit(limit_ms)
        with self.world.door:
            self._stopped_at = None
            self.world.run_until(condition, limit_ms)
        return self

    def run_until_event(self, kind: Kinds, *, limit_ms: int = 600_000, **fields: Any) -> Record:
        """Play until the next event of this kind (with these field values), through all other breakpoints, and return
        it; LearnerError if somebody stops the world before.
        """
        check_limit(limit_ms)
        with self.world.door, self.break_on(kind, **fields) as awaited:
            began_us = self.world.now_us
            while awaited.first_hit is None:
                self._stopped_at = None
                self.world.run_until(lambda: awaited.hits > 0, limit_ms, f"an event {awaited.about}", began_us)
                if self._stopped_at is None:
                    raise LearnerError(f"the world was stopped before an event {awaited.about} came", "go on playing")
            self._stopped_at = awaited.first_hit
        return awaited.first_hit

    def step(self, slices: int = 1) -> list[Record]:
        """Play one slice (or some) and return the events of it; an empty list means that nothing worth an event
        happened.
        """
        check_count("slices", slices, "write lab.step() or lab.step(10)")
        history = self.history
        with self.noting_sources():
            before = len(history)
            for _ in range(slices):
                if not self.world.step():
                    break
            history.cursor = len(history)
            return history.records(before, len(history))

    def step_event(self) -> Record:
        """Move the cursor one event on, playing slices when it stands at the end, and return the event."""
        history = self.history
        with self.noting_sources():
            place = history.cursor
            while place >= len(history):
                if not self.world.step():
                    raise LearnerError("nothing is left to happen in this world", "start a process or send a message")
            history.cursor = place + 1
            return history.record(place)

    @contextmanager
    def noting_sources(self) -> Iterator[None]:
        """Note the source line of every event meanwhile."""
        hooks = self.world.hooks
        with self.world.door:
            before, hooks.sources = hooks.sources, self._sources
            try:
                yield
            finally:
                hooks.sources = before

    def note_sources(self, noting: bool = True) -> None:
        """Note the source line of every event from now on, not only while stepping (see `forget_sources`); or not."""
        self.world.hooks.sources = self._sources if noting else None

    def forget_sources(self, keep: int = 20_000) -> None:
        """Forget the oldest noted source lines when there are twice as many as shall be kept."""
        if len(self._sources) > 2 * keep:
            for at in list(self._sources)[:-keep]:
                del self._sources[at]

    def source_of(self, record: Record) -> SourceLine:
        """The line of code that emitted an event; known for events that `step` and `step_event` played."""
        if not isinstance(record, Record):
            raise LearnerError(f"{record!r} is not an event", "give one that lab.step() or lab.step_event() returned")
        found = self._sources.get(record.at)
        if found is None:
            raise LearnerError(
                "the source line of this event was not noted",
                "only stepping notes it, unless lab.note_sources() was called before",
            )
        from mqlab.views.source_line import SourceLine

        return SourceLine(*found)

    async def play(self, speed: float = 1.0, *, seconds: float | None = None) -> Self:
        """Play at a speed for the eye, `speed` seconds of the world per real second, for `seconds` of its time."""
        from mqlab.sim.pacing import play_in_real_time

        for name, value in (("speed", speed), ("seconds", 0 if seconds is None else seconds)):
            check_number(name, value, "write await lab.play(speed=0.5, seconds=3)")
        span_us(0, seconds or 0)
        await play_in_real_time(self.world, speed, None if seconds is None else round(seconds * 1_000))
        return self

    @property
    def history(self) -> History:
        """Every event of this world so far."""
        if self._history is None:
            raise LearnerError("this lab keeps no history", "make it with Lab(history=True)")
        return self._history

    @property
    def stopped_at(self) -> Record | None:
        """The event whose breakpoint ended the last run, or None."""
        return self._stopped_at

    @contextmanager
    def break_on(self, kind: Kinds | Callable[[Record], bool], **fields: Any) -> Iterator[Breakpoint]:
        """Stop `run_for` and `run_until` at each event of this kind with these field values, inside a `with` block."""
        breakpoint_ = self.add_breakpoint(kind, **fields)
        try:
            yield breakpoint_
        finally:
            self.remove_breakpoint(breakpoint_)

    def add_breakpoint(self, kind: Kinds | Callable[[Record], bool], **fields: Any) -> Breakpoint:
        """Stop at each event of this kind with these field values, until the breakpoint is removed."""
        breakpoint_ = Breakpoint(kind, self._hit, **fields)
        self._breakpoints.append(breakpoint_)
        self.world.hooks.attach(breakpoint_)
        return breakpoint_

    def remove_breakpoint(self, breakpoint_: Breakpoint) -> None:
        """Remove a breakpoint; the world no longer stops there."""
        self.world.hooks.detach(breakpoint_)
        if breakpoint_ in self._breakpoints:
            self._breakpoints.remove(breakpoint_)

    @property
    def breakpoints(self) -> list[Breakpoint]:
        """The breakpoints that are set."""
        return list(self._breakpoints)

    def _hit(self, record: Record) -> None:
        if self._stopped_at is None:
            self._stopped_at = record
        if self._history is not None:
            self._history.cursor = len(self._history)
        self.world.request_stop()
