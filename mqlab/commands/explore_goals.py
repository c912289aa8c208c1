"""What `mqlab explore` says of goals: which were reached how often, by which seed first, and which never."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import fill
from typing import Any, NamedTuple

from mqlab.errors import LearnerError
from mqlab.explore import Goal, Outcome, goal_named, goals

PREFIX = "goal:"
LINE_LETTERS = 120


class Reached(NamedTuple):
    """How often a goal was reached, in how many seeds, and in which of them first."""

    times: int
    seeds: int
    first_seed: int | str


class Tally:
    """Counts the goals that the seeds of a scenario reach; `wanted` are those that the scenario is there for."""

    def __init__(self, scenario: str, wanted: Iterable[str]) -> None:
        self._scenario = scenario
        self._wanted = tuple(wanted)
        self.reached: dict[str, Reached] = {}

    def add(self, outcome: Outcome) -> None:
        """Count what one more seed has reached."""
        for name, times in outcome.goals.items():
            before = self.reached.get(name, Reached(0, 0, outcome.seed))
            self.reached[name] = Reached(before.times + times, before.seeds + 1, before.first_seed)

    @property
    def missed(self) -> list[str]:
        """The goals that the scenario is there for and that no seed has reached."""
        return [name for name in self._wanted if name not in self.reached]

    def not_reached(self) -> dict[str, list[str]]:
        """Subject -> its goals that no seed has reached, in the order of all goals."""
        left: dict[str, list[str]] = {}
        for goal in goals().values():
            if goal.name not in self.reached:
                left.setdefault(goal.subject, []).append(goal.name)
        return left

    def lines(self) -> list[str]:
        """What is printed: a line for each goal that was reached, then those that were not.

        Of a subject of which nothing at all was reached, as of Pop where nobody pops, the goals are only counted.
        """
        by_subject: dict[str, list[str]] = {}
        for goal in goals().values():
            if goal.name in self.reached:
                by_subject.setdefault(goal.subject, []).append(goal.name)
        width = max(map(len, self.reached), default=0) + 4
        heading = f"{len(self.reached)} of {len(goals())} goals were reached"
        said = [f"{heading:<{width}} {'times':>9} {'seeds':>7} {'first seed':>11}" if self.reached else heading]
        for subject, names in by_subject.items():
            said.append(f"  {subject}")
            for name in names:
                times, seeds, first = self.reached[name]
                said.append(f"{f'    {name}':<{width}} {times:>9,} {seeds:>7,} {first:>11}")
        left = self.not_reached()
        said += [_filled(f"not reached of {subject}: {', '.join(left[subject])}")
                 for subject in by_subject if subject in left]  # fmt: skip
        elsewhere = [f"{subject} ({len(names)})" for subject, names in left.items() if subject not in by_subject]
        if elsewhere:
            said.append(_filled(f"nothing was reached of {', '.join(elsewhere)}"))
        if self.missed:
            said.append(_filled(f"NOT REACHED, though {self._scenario} is there for it: {', '.join(self.missed)}"))
        return said

    def as_json(self) -> dict[str, Any]:
        """The same as JSON-able data."""
        return {
            "reached": {name: self.reached[name]._asdict() for name in goals() if name in self.reached},
            "not_reached": self.not_reached(),
            "missed": self.missed,
        }


def goal_until(text: str) -> Goal:
    """The goal of `--until goal:NAME`; LearnerError for one that there is not."""
    if not text.startswith(PREFIX):
        raise LearnerError(f"--until {text!r} names no goal", f"write --until {PREFIX}NAME; docs/checks.md lists them")
    return goal_named(text.removeprefix(PREFIX))


def _filled(text: str) -> str:
    return fill(text, LINE_LETTERS, subsequent_indent="  ", break_on_hyphens=False)
