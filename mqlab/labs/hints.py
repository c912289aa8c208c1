"""Hints to an exercise: three, from a nudge to one step before the answer, each folded away until it is opened."""

from __future__ import annotations

import re

HINTS = 3
HINTS_FOR = "hints_for"
"""In a cell of hints, `metadata.mqlab`: the name of the exercise to which they belong."""
HINTS_OPENED = "hints_opened"
"""There, too, written by our extension of JupyterLab: the numbers of the hints that were opened, [1, 2]."""
_ITEM = re.compile(r"(?m)^[-*] ")


def hints_of(source: str) -> list[str]:
    """The hints that are written as the items of a list, one after the other; none when something else stands there."""
    before, *items = _ITEM.split(source.strip())
    if before:
        return []
    return [re.sub(r"(?m)^  ", "", item).strip() for item in items]


def hint_problems(source: str) -> list[str]:
    """What is wrong with a cell of hints; empty when nothing is."""
    found = len(hints_of(source))
    return [] if found == HINTS else [f"has {found} hints; write a list of {HINTS}, each item beginning with `- `"]


def folded(source: str) -> str:
    """The hints as a student gets them: a line each, which opens when it is clicked."""
    return "\n\n".join(
        f"<details><summary>Hint {number} of {HINTS}</summary>\n\n{hint}\n\n</details>"
        for number, hint in enumerate(hints_of(source), 1)
    )
