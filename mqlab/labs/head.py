"""The head of a lab: its question, what a student will be able to do, how long it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TEXTS = ("title", "question")
_LISTS = ("objectives", "prerequisites", "wrong_predictions")
_FIELDS = (*_TEXTS, "minutes", *_LISTS)
OBJECTIVES = 3
HOW_TO_WORK = (
    "Run the cells from the top, one after the other (Shift and Enter). If your course has given you a student id, "
    "write it between the quotation marks of `student_id` first: your numbers are then others than your neighbour's, "
    "and than those that stand below a cell before you run it. Where a bet is asked for, write yours in place of the "
    "three dots."
)
"""What somebody has to know who opens any of the labs as the first one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The fixed parts at the top of every lab. `wrong_predictions` is shown to teachers only."""

    title: str
    question: str
    objectives: tuple[str, ...]
    minutes: int
    prerequisites: tuple[str, ...]
    wrong_predictions: tuple[str, ...]

    def markdown(self, number: str, *, for_teacher: bool) -> str:
        """The text of the notebook's first cell."""
        wanted = ", ".join(self.prerequisites) or "none"
        parts = [
            f"# {number} · {self.title}",
            f"**{self.question}**",
            f"{self.minutes} minutes. Needed before: {wanted}.",
            "After this lab you can\n\n" + _bullets(self.objectives),
            HOW_TO_WORK,
        ]
        if for_teacher:
            parts.append("**For the teacher.** Often predicted wrongly:\n\n" + _bullets(self.wrong_predictions))
        return "\n\n".join(parts)


def _bullets(items: tuple[str, ...]) -> str:
    return "\n".join(f"- {item}" for item in items)


def head_problems(given: object) -> list[str]:
    """What is wrong with the head as it was written; empty when nothing is."""
    if not isinstance(given, Mapping):
        return ["the header has no `mqlab:` part below `jupyter:` with title, question, objectives, ..."]
    problems = [f"head: `{field}` is missing" for field in _FIELDS if field not in given]
    problems += [f"head: `{field}` is none of {', '.join(_FIELDS)}" for field in given if field not in _FIELDS]
    problems += [f"head: `{field}` must be one line of text" for field in _TEXTS if not _is_line(given.get(field, "-"))]
    problems += [f"head: `{field}` must be a list of lines" for field in _LISTS if not _is_list(given.get(field, []))]
    if not problems:
        problems += _counts(given)
    return problems


def _counts(given: Mapping[str, Any]) -> list[str]:
    problems = []
    if isinstance(given["minutes"], bool) or not isinstance(given["minutes"], int) or given["minutes"] <= 0:
        problems.append("head: `minutes` must be a whole number above 0")
    if len(given["objectives"]) != OBJECTIVES:
        problems.append(f"head: `objectives` has {len(given['objectives'])} lines; write {OBJECTIVES}")
    if not given["wrong_predictions"]:
        problems.append("head: `wrong_predictions` is empty; write what students usually expect, for the teacher")
    return problems


def _is_line(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\n" not in value.strip()


def _is_list(value: object) -> bool:
    return isinstance(value, list) and all(_is_line(item) for item in value)


def make_head(given: Mapping[str, Any]) -> Head:
    """The head, once `head_problems` found nothing."""
    return Head(
        title=given["title"].strip(),
        question=given["question"].strip(),
        objectives=tuple(given["objectives"]),
        minutes=given["minutes"],
        prerequisites=tuple(given["prerequisites"]),
        wrong_predictions=tuple(given["wrong_predictions"]),
    )
