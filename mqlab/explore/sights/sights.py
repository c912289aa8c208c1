"""Sights: goals that no rule is about, and what shows that one was reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from mqlab.explore.rule import Case, Rule
from mqlab.trace.record import Record


class Sight(NamedTuple):
    """A goal that one event shows: one of this kind of which `when` is true."""

    goal: str
    kind: str
    words: str
    when: Callable[[Record], bool]


def seen(goal: str, kind: str, words: str, when: Callable[[Record], bool] | None = None, **fields: Any) -> Sight:
    """A goal that an event of this kind shows, with these values of its fields, or of which `when` is true."""

    def has_fields(record: Record) -> bool:
        return all(getattr(record, name) == value for name, value in fields.items())

    return Sight(goal, kind, words, when or has_fields)


class Sights(Rule):
    """What must be seen of one subject for a pass to mean anything; it judges nothing.

    `SEEN` are the goals that a single event shows. Other goals are in `GOALS`: `follow` is called with the events of
    the kinds in `FOLLOWS`, and reaches them.
    """

    SEEN: ClassVar[tuple[Sight, ...]] = ()
    FOLLOWS: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.kinds = tuple(dict.fromkeys([*cls.FOLLOWS, *(sight.kind for sight in cls.SEEN)]))
        cls.GOALS = {**{sight.goal: sight.words for sight in cls.SEEN}, **cls.GOALS}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._seen_by: dict[str, list[Sight]] = {}
        for sight in self.SEEN:
            self._seen_by.setdefault(sight.kind, []).append(sight)

    def on_event(self, record: Record) -> None:
        """Look whether this event shows a goal."""
        kind = record.kind
        for sight in self._seen_by.get(kind, ()):
            if sight.when(record):
                self.reach(sight.goal, record)
        if kind in self.FOLLOWS:
            self.follow(record)

    def follow(self, record: Record) -> None:
        """Look at an event of a kind in `FOLLOWS`, beside others of them or the world."""
