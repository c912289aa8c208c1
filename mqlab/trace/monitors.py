"""Monitors: small judges that watch events and say whether what must always hold has held.

The same class lights a lamp while a world plays, judges a student's run, and reads a recorded trace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import NamedTuple

from mqlab.trace.bus import Row
from mqlab.trace.matching import Kinds, row_filter
from mqlab.trace.record import Record


class Violation(NamedTuple):
    """One breach: what was wrong, in a sentence, and the event that showed it."""

    reason: str
    record: Record

    def __str__(self) -> str:
        return f"{self.reason}\n  {self.record}"


class Judgement(NamedTuple):
    """What a monitor has to say: the rule, whether it held, and every breach."""

    rule: str
    holds: bool
    violations: tuple[Violation, ...]

    def __str__(self) -> str:
        if self.holds:
            return f"holds: {self.rule}"
        return "\n".join([f"BROKEN {len(self.violations)} times: {self.rule}", *map(str, self.violations)])


class Monitor(ABC):
    """A sink that judges: it looks at the events of its `kinds` and notes every one that breaks its rule.

    The rule is the first line of the class's docstring.
    """

    kinds: Kinds = None

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self._matches = row_filter(self.kinds)

    @property
    def rule(self) -> str:
        """The rule in one sentence."""
        return (type(self).__doc__ or type(self).__name__).partition("\n")[0]

    def __call__(self, row: Row) -> None:
        if self._matches(row):
            self.on_event(Record(row))

    @abstractmethod
    def on_event(self, record: Record) -> None:
        """Look at one event of the monitor's kinds."""

    def broken(self, record: Record, reason: str) -> None:
        """Note that `record` breaks the rule."""
        self.violations.append(Violation(reason, record))

    def verdict(self) -> Judgement:
        """The judgement on all events so far."""
        return Judgement(self.rule, not self.violations, tuple(self.violations))


def judge(rows: Iterable[Row], *monitors: Monitor) -> list[Judgement]:
    """Let monitors read a whole trace, and return their judgements in the same order."""
    for row in rows:
        for monitor in monitors:
            monitor(row)
    return [monitor.verdict() for monitor in monitors]
