"""What a class has made of its labs: tables of the results that `mqlab grade` has written.

tables = class_tables(Path("marks"))
tables.checks[0].check  # the hardest
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mqlab.check.bets import AFTERWARDS, BET_FIRST, IN_THE_REPORT, NO_BET
from mqlab.errors import LearnerError
from mqlab.grading.marking import read_result
from mqlab.grading.wide_gradebook import by_hand_in_words

_WHOLE = re.compile(r"^(-?\d+)\.0+(?![\d.e])")


class NotebookRow(NamedTuple):
    """One notebook: its points, why it can't be read (""), and how its run ended."""

    student: str
    lab: str
    points: float
    most: float
    unreadable: str
    run_s: float | None
    """The seconds of its run; None where it was not run."""
    run: str | None
    """How it ended: "ok", or a sentence."""
    late: str
    """How late it came in; "" where it was in time."""
    by_hand: str
    """What was set by hand, with its reasons; "" where nothing was."""


@dataclass(slots=True)
class CheckRow:
    """One check: how many students have all of its points, some and none, and the mean share of them."""

    lab: str
    check: str
    students: int = 0
    all_points: int = 0
    some_points: int = 0
    no_points: int = 0
    _shares: float = 0.0

    @property
    def share(self) -> float:
        """The mean share of its points, 0 to 1."""
        return round(self._shares / self.students, 4)

    def add(self, points: float, most: float) -> None:
        """Count what one student has reached."""
        self.students += 1
        self._shares += points / most
        if points >= most:
            self.all_points += 1
        elif points > 0:
            self.some_points += 1
        else:
            self.no_points += 1


@dataclass(slots=True)
class BetRow:
    """One bet: how many students were right, wrong, or made none, and what they said.

    A truth may differ from student to student, since each has a world of its own.
    """

    lab: str
    bet: str
    question: str = ""
    students: int = 0
    right: int = 0
    wrong: int = 0
    unknown: int = 0
    """Bets of which the run showed no truth."""
    not_made: int = 0
    _answers: Counter[str] = field(default_factory=Counter)
    _truths: Counter[str] = field(default_factory=Counter)

    @property
    def answers(self) -> list[tuple[str, int]]:
        """What was bet, in the words of the reveal, with how many did, the most frequent first."""
        return _frequent(self._answers)

    @property
    def truths(self) -> list[tuple[str, int]]:
        """What was true, and of how many, the most frequent first."""
        return _frequent(self._truths)

    def add(self, made: Mapping[str, Any]) -> None:
        """Count one student's bet, as a result has it."""
        told, truth = _form(made.get("told")), _form(made.get("truth"))
        said = None if told == NO_BET else told if told is not None else _form(made.get("said"))
        truth = None if truth in (IN_THE_REPORT, BET_FIRST) else truth
        self.students += 1
        self.question = max(self.question, made.get("question") or "")
        if truth is not None:
            self._truths[truth] += 1
        if said is None:
            self.not_made += 1
            return
        self._answers[said] += 1
        if truth is None or told is None:
            self.unknown += 1
        elif told == truth:
            self.right += 1
        else:
            self.wrong += 1


class ClassTables(NamedTuple):
    """The tables of a class."""

    notebooks: list[NotebookRow]
    """By lab and student."""
    checks: list[CheckRow]
    """The hardest first."""
    bets: list[BetRow]
    """Those that most have lost first."""


def class_tables(marks: Path) -> ClassTables:
    """The tables of all whole results below a directory, read one after the other. LearnerError when there is none."""
    notebooks: list[NotebookRow] = []
    checks: dict[tuple[str, str], CheckRow] = {}
    bets: dict[tuple[str, str], BetRow] = {}
    for result in _results(marks):
        lab, run = result["lab"], result.get("run") or {}
        why = result.get("unreadable") or ""
        late = (result.get("late") or {}).get("told") or ""
        by_hand = "; ".join(map(by_hand_in_words, result.get("by_hand") or ()))
        points = result["points"], result["most"]
        seconds, verdict = run.get("seconds"), run.get("verdict")
        notebooks.append(NotebookRow(result["student"], lab, *points, why, seconds, verdict, late, by_hand))
        for mark in result.get("marks") or ():
            checks.setdefault((lab, mark["check"]), CheckRow(lab, mark["check"])).add(mark["points"], mark["most"])
        for made in result.get("bets") or ():
            bets.setdefault((lab, made["bet"]), BetRow(lab, made["bet"])).add(made)
    if not notebooks:
        raise LearnerError(f"there is no result in {marks}", "mark something first: mqlab grade")
    return ClassTables(
        sorted(notebooks, key=lambda row: (row.lab, row.student)),
        sorted(checks.values(), key=lambda row: (row.share, row.lab, row.check)),
        sorted(bets.values(), key=lambda row: (-row.wrong / row.students, row.lab, row.bet)),
    )


def _results(marks: Path) -> Iterator[dict[str, Any]]:
    for place in sorted(marks.glob("*/*/result.json")):
        result = read_result(place.parent)
        if result is not None:
            yield result


def _form(said: Any) -> str | None:
    """The same bet in the same words, whenever it was written, and whether as 15 or as 15.0."""
    return None if said is None else _WHOLE.sub(r"\1", str(said).removesuffix(AFTERWARDS))


def _frequent(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
