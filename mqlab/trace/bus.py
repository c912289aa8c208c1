"""The bus carries every event of a world to whoever listens: history, recorders, breakpoints, viewers.

Nobody instruments twice: a part emits one typed event where the thing happens, and everything that looks at a world
reads this one stream. With nobody listening, `bus.on` is False and a hook costs one attribute test.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from mqlab.errors import ObserverError

Row = tuple[Any, ...]
"""One event as atoms: (slice, i, ts_us, node, task, cause_slice, cause_i, kind, *fields)."""

Sink = Callable[[Row], None]

Cause = tuple[int, ...]
"""The event (slice, i) that has caused something. Not a pair to the types, so that compiled code hands the object on
instead of taking it apart and making it anew.
"""

COMMON_FIELDS = ("slice", "i", "ts_us", "node", "task", "cause_slice", "cause_i", "kind")
NO_CAUSE: Cause = (-1, -1)


class Actor(Protocol):
    """What is running in a slice: a task, a timer, a delivery, a pool's job."""

    name: str

    @property
    def life(self) -> Any: ...


class Moment:
    """What the bus must know of the world to number an event; a world is one."""

    now_us: int
    slice_no: int
    cause: Cause
    current: Any

    def observer_failed(self, error: ObserverError) -> None:
        """Tell whoever plays the world, when the slice has ended."""
        raise NotImplementedError(f"{type(self).__name__} must define observer_failed()")


class Bus:
    """Numbers the events of one world and hands them to its sinks, in the order in which the sinks came.

    Everybody sees the same numbering, because (slice, i) depends on the world alone: attaching or removing a sink
    changes no id, no hash and no choice, also when the sink fails: that is told to whoever plays the world, between two
    slices. The cause of an event is the event before it in the same slice, else the event
    that scheduled the slice; (-1, -1) means that there was none, or that nobody listened then.
    """

    __slots__ = ("_i", "_moment", "_sinks", "_slice", "on", "sources")

    def __init__(self, moment: Moment) -> None:
        self._moment = moment
        self._sinks: tuple[Sink, ...] = ()
        self._slice = -1
        self._i = 0
        self.on = False
        self.sources: dict[tuple[int, int], tuple[str, int]] | None = None
        """(slice, i) -> (file, line) of the emitting statement, while stepping keeps it; None costs nothing."""

    def attach(self, sink: Sink) -> None:
        """Let `sink` receive every event from now on."""
        self._sinks = (*self._sinks, sink)
        self.on = True

    def detach(self, sink: Sink) -> None:
        """Stop sending events to `sink`; unknown sinks are ignored."""
        self._sinks = tuple(s for s in self._sinks if s is not sink)
        self.on = bool(self._sinks)
        if not self.on:
            self._moment.cause = NO_CAUSE

    @property
    def sinks(self) -> Iterable[Sink]:
        """The sinks that receive events now."""
        return self._sinks

    def emit(self, event: tuple[Any, ...]) -> None:
        """Publish one event (a NamedTuple of the catalogue)."""
        moment = self._moment
        slice_no = moment.slice_no
        if slice_no == self._slice:
            self._i = i = self._i + 1
        else:
            self._slice = slice_no
            self._i = i = 0
        actor = moment.current
        cause_slice, cause_i = moment.cause
        at = (slice_no, i)
        moment.cause = at
        common = (
            slice_no, i, moment.now_us, actor.life.node_name, actor.name, cause_slice, cause_i, type(event).__name__
        )  # fmt: skip
        row = common + event
        if self.sources is not None:
            frame = sys._getframe(1)
            self.sources[at] = (frame.f_code.co_filename, frame.f_lineno)
        for sink in self._sinks:
            try:
                sink(row)
            except Exception as error:  # noqa: BLE001  # whatever it is, it must not become a part of the world
                self._sink_failed(sink, row, error)

    def _sink_failed(self, sink: Sink, row: Row, error: Exception) -> None:
        name = getattr(sink, "__qualname__", type(sink).__name__)
        about = getattr(sink, "about", "")
        failed = ObserverError(f"{name} {about}".rstrip(), row[7], error)
        failed.__cause__ = error
        self._moment.observer_failed(failed)
