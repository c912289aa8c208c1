"""Breakpoints: stop the world where an event of interest happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlab.errors import LearnerError
from mqlab.trace.bus import Row
from mqlab.trace.matching import Kinds, row_filter
from mqlab.trace.record import Record


class Breakpoint:
    """A sink that waits for events of a kind (with these field values), or for those that a predicate picks.

    `kind` is a name or class of an event, several of them in a tuple, or a function that looks at a `Record` and says
    yes or no. Each hit is counted and given to `on_hit`, which asks the world to stop after the present slice.
    """

    def __init__(
        self, kind: Kinds | Callable[[Record], bool], on_hit: Callable[[Record], None] | None = None, **fields: Any
    ) -> None:
        self.hits = 0
        self.first_hit: Record | None = None
        self._on_hit = on_hit
        if callable(kind) and not isinstance(kind, type):
            if fields:
                raise LearnerError(
                    "a breakpoint with a function takes no field values", "test the fields inside the function"
                )
            predicate = kind
            self.about = f"where {getattr(kind, '__name__', 'predicate')}(record)"
            self.matches: Callable[[Row], bool] = lambda row: bool(predicate(Record(row)))
        else:
            self.matches = row_filter(kind, **fields)
            names = "any event" if kind is None else _names(kind)
            self.about = " ".join([names, *(f"{field}={value!r}" for field, value in fields.items())])

    def __call__(self, row: Row) -> None:
        if self.matches(row):
            record = Record(row)
            self.hits += 1
            self.first_hit = self.first_hit or record
            if self._on_hit is not None:
                self._on_hit(record)

    def __repr__(self) -> str:
        return f"<Breakpoint {self.about}: {self.hits} hits>"


def _names(kind: str | type | tuple[str | type, ...]) -> str:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return " or ".join(one if isinstance(one, str) else one.__name__ for one in kinds)
