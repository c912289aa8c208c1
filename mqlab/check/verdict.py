"""What a check found out about your function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from mqlab.check import show

VERDICT_MIME = "application/vnd.mqlab.verdict+json"

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
    failed_seed: int | None = None
    explanation: str = ""
    trace: str = ""

    @property
    def passed(self) -> bool:
        """Whether every seed went well."""
        return self.state == "passed"

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        if self.state == "passed":
            return f"{self.name}: passed ({_count(self.points, 'point')})"
        if self.state == "wrong":
            return f"{self.name}: not right yet ({self.tried - self.failed} of {_count(self.tried, 'seed')} went well)"
        return f"{self.name}: not solved yet ({_count(self.points, 'point')})"

    def __repr__(self) -> str:
        rows = [self.headline, f"  what is tried: {self.tries}"]
        if self.state == "passed":
            rows.append(f"  {_count(self.tried, 'seed')} played, all went well")
        if self.state == "wrong":
            rows.append(f"  seed {self.failed_seed}: {_continued(self.explanation)}")
        if self.trace:
            rows.append(show.indent(self.trace, 4))
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        colour = {"passed": show.GREEN, "wrong": show.AMBER, "not solved yet": show.GREY}[self.state]
        return show.box(
            colour,
            self.headline,
            show.line("what is tried:", self.tries),
            show.line("", f"{_count(self.tried, 'seed')} played, all went well") if self.passed else "",
            show.line(f"seed {self.failed_seed}:", self.explanation),
            show.block(self.trace),
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Text for people, and the facts as JSON for programs that read the notebook."""
        facts = {
            "check": self.name,
            "state": self.state,
            "points": self.points,
            "tried": self.tried,
            "failed": self.failed,
            "failed_seed": self.failed_seed,
        }
        return {"text/plain": repr(self), "text/html": self._repr_html_(), VERDICT_MIME: facts}


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _continued(text: str) -> str:
    """Further lines of the text, moved under the first."""
    return text.replace("\n", "\n    ")
