"""Sights: goals that no rule is about, and what shows that one was reached."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

from mqlab.explore.rule import Rule
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
        for name, value in fields.items():  # noqa: SIM110  all() would make a generator for each event
            if getattr(record, name) != value:
                return False
        return True

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

    def looks_at(self, kind: str) -> Sequence[Callable[[Record], None]]:
        """One for each goal that an event of this kind may show, and `follow`."""
        shown = [partial(self._look, sight) for sight in self.SEEN if sight.kind == kind]
        return (*shown, self.follow) if kind in self.FOLLOWS else shown

    def _look(self, sight: Sight, record: Record) -> None:
        if sight.when(record):
            self.reach(sight.goal, record)

    def follow(self, record: Record) -> None:
        """Look at an event of a kind in `FOLLOWS`, beside others of them or the world."""
