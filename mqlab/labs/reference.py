"""The reference solutions of a lab, without its notebook: its exercise cells, run alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlab.check import NotSolvedYet
from mqlab.labs.rules import answers_of
from mqlab.labs.solution import remove_solutions
from mqlab.labs.source import LabSource, text_argument

Answers = tuple[Callable[..., Any], ...]


def reference_answers(lab: LabSource) -> dict[str, Answers]:
    """For each check of the lab the functions that its solution notebook gives it.

    An exercise cell imports what it uses, so it runs without the cells before it.
    """
    return _answers(lab, [cell.source for cell in lab.tagged("exercise")])


def unsolved_answers(lab: LabSource) -> dict[str, Answers]:
    """The same functions as a student finds them, each with a stub for a body."""
    return _answers(lab, [remove_solutions(cell.source) for cell in lab.tagged("exercise")])


def _answers(lab: LabSource, sources: list[str]) -> dict[str, Answers]:
    names: dict[str, Any] = {"__name__": f"lab_{lab.name}", "NotSolvedYet": NotSolvedYet}
    for source in sources:
        # The cells of a lab are the project's own code, run as the notebook runs them.
        exec(compile(source, f"labs/{lab.name}", "exec", dont_inherit=True), names)  # noqa: S102
    calls = [call for cell in lab.tagged("check") for call in cell.calls("check")]
    return {text_argument(call) or "": tuple(names[answer] for answer in answers_of(call)) for call in calls}
