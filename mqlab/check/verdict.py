"""What a check found out about your function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mqlab.check import show
from mqlab.check.failure import Failure
from mqlab.errors import LearnerError
from mqlab.lab import Lab

VERDICT_MIME = "application/vnd.mqlab.verdict+json"

OPENS = "to look into this world: from mqlab_widgets import Stepper, and Stepper(_.open()) in the next cell"
State = Literal["passed", "wrong", "not solved yet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The judgement of one check: passed, wrong (with the shortest failure), or not solved yet.

    `tried` counts the seeds that were played, `failed` those that went wrong. `failed_seed`, `explanation` and `trace`
    belong to the failure with the shortest trace.
    """

    name: str
    tries: str
    points: int
    state: State
    tried: int
    failed: int = 0
    well: float = 0
    """How many seeds went well, where of a seed with several cases its share counts."""
    cases: tuple[int, int] | None = None
    """Of the failed seed: how many of its cases went well, and of how many; None where a seed is one case."""
    failed_seed: int | None = None
    explanation: str = ""
    trace: str = ""
    figures: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What could be beaten, over all seeds: what is counted -> whose rule -> how much of it there was."""
    failure: Failure | None = field(default=None, repr=False, compare=False)
    """What plays once more what has failed."""

    has_world: bool = False
    """Whether the failed seed had a world that can be opened."""

    def open(self) -> Lab:
        """The world in which it went wrong, as it was at that moment, with its history: `Stepper(verdict.open())`.

        It is played again for this. Raises LearnerError when the check did not fail, or plays no world.
        """
        if self.failure is None:
            raise LearnerError(f"{self.name} has no failure to open", "a world is opened when the check fails")
        return self.failure.open()

    @property
    def passed(self) -> bool:
        """Whether every seed went well."""
        return self.state == "passed"

    @property
    def beaten(self) -> list[str]:
        """The figures as sentences: `queues moved: yours 312, the best possible 240`."""
        return [
            f"{what}: " + ", ".join(f"{whose} {count:,.10g}" for whose, count in counts.items())
            for what, counts in self.figures.items()
        ]

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        if self.state == "passed":
            return f"{self.name}: passed ({_count(self.points, 'point')})"
        if self.state == "wrong":
            told = f"{self.tried - self.failed} of {_count(self.tried, 'seed')} went well"
            if self.well > self.tried - self.failed:
                told += f", and with the cases of the others {self.well / self.tried:.0%}"
            return f"{self.name}: not right yet ({told})"
        return f"{self.name}: not solved yet ({_count(self.points, 'point')})"

    @property
    def _seed(self) -> str:
        cases = "" if self.cases is None else f" ({self.cases[0]} of {_count(self.cases[1], 'case')} right)"
        return f"seed {self.failed_seed}{cases}:"

    def __repr__(self) -> str:
        rows = [self.headline, f"  what is tried: {self.tries}"]
        if self.state == "passed":
            rows.append(f"  {_count(self.tried, 'seed')} played, all went well")
            rows += [f"  {told}" for told in self.beaten]
        if self.state == "wrong":
            rows.append(f"  {self._seed} {_continued(self.explanation)}")
        if self.trace:
            rows.append(show.indent(self.trace, 4))
        if self.has_world:
            rows.append(f"  {OPENS}")
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        return self.card()

    def card(self, *, offer: bool = True) -> str:
        """The verdict as a box of HTML; with the line of code that opens its world, unless something else offers it."""
        colour = {"passed": show.GREEN, "wrong": show.AMBER, "not solved yet": show.GREY}[self.state]
        return show.box(
            colour,
            self.headline,
            show.line("what is tried:", self.tries),
            show.line("", f"{_count(self.tried, 'seed')} played, all went well") if self.passed else "",
            *(show.line("", told) for told in self.beaten),
            show.line(self._seed, self.explanation),
            show.block(self.trace),
            show.line("", OPENS) if self.has_world and offer else "",
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Text for people, and the facts as JSON for programs that read the notebook."""
        facts: dict[str, Any] = {
            "check": self.name,
            "state": self.state,
            "points": self.points,
            "tried": self.tried,
            "failed": self.failed,
            "failed_seed": self.failed_seed,
        }
        if self.figures:
            facts["figures"] = {what: dict(counts) for what, counts in self.figures.items()}
        return {"text/plain": repr(self), "text/html": self._repr_html_(), VERDICT_MIME: facts}


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _continued(text: str) -> str:
    """Further lines of the text, moved under the first."""
    return text.replace("\n", "\n    ")
