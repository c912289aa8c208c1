"""Goals: what must have happened in some world for the passes of many to mean anything."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from typing import NamedTuple

from mqlab.errors import LearnerError
from mqlab.explore.sights import SIGHTS
from mqlab.explore.trial import RULES


class Goal(NamedTuple):
    """One goal: its name, what it is in a sentence, and the subject that it is about."""

    name: str
    words: str
    subject: str


@cache
def goals() -> dict[str, Goal]:
    """All goals by name, in the order of their subjects."""
    every = [Goal(name, words, rule.SUBJECT) for rule in (*SIGHTS, *RULES) for name, words in rule.GOALS.items()]
    subjects = list(dict.fromkeys(goal.subject for goal in every))
    return {goal.name: goal for goal in sorted(every, key=lambda goal: subjects.index(goal.subject))}


def goal_named(name: str) -> Goal:
    """The goal of this name; LearnerError with the names that come near."""
    found = goals().get(name)
    if found is None:
        close = get_close_matches(name, goals(), 3)
        parts = set(name.split("-"))
        alike = sorted(goals(), key=lambda known: -len(parts & set(known.split("-"))))[:3]
        raise LearnerError(
            f"there is no goal {name!r}", f"did you mean {' or '.join(close or alike)}? docs/checks.md lists all goals"
        )
    return found
