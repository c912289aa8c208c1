"""How much of a solution its hints give away: a hint is to stop one step before the answer."""

from __future__ import annotations

import io
import keyword
import re
import tokenize
from collections.abc import Iterable
from difflib import SequenceMatcher

from mqlab.labs.hints import hints_of
from mqlab.labs.solution import BEGIN, END

MOST_TOLD = 0.35
"""The hints of an exercise may hold so much of its solution's code, all three together."""
_SHORTEST_RUN = 4
"""So many tokens in a row are no accident."""
_CODE = re.compile(r"`([^`]+)`")
_BLANKS = (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT, tokenize.ENDMARKER)


def told_share(hints: str, exercise: str) -> float:
    """How much of the solution's code stands in the hints: 0.0 nothing, 1.0 all of it.

    What an author calls a variable does not count: every name that the exercise's head or the language does not have is
    the same. Only code between backticks is looked at.
    """
    head, solution = _parts(exercise)
    known = {token for token in _tokens(head) if token.isidentifier()}
    wanted = _forms(solution, known)
    told: set[int] = set()
    for hint in hints_of(hints):
        for code in _CODE.findall(hint):
            match = SequenceMatcher(None, _forms([code], known), wanted, autojunk=False)
            for _, at, size in match.get_matching_blocks():
                if size >= _SHORTEST_RUN:
                    told.update(range(at, at + size))
    return len(told) / max(1, len(wanted))


def giveaway_problems(hints: str, exercise: str) -> list[str]:
    """What is wrong with hints that hold the answer; empty when they leave a step to the student."""
    share = told_share(hints, exercise)
    if share <= MOST_TOLD:
        return []
    return [
        f"the hints hold {share:.0%} of the solution's code, and may hold {MOST_TOLD:.0%}; let the last one stop one "
        "step before the answer, and say in words what is left to do"
    ]


def _parts(exercise: str) -> tuple[list[str], list[str]]:
    """The lines that the student is given, and those of the solution."""
    head: list[str] = []
    solution: list[str] = []
    inside = False
    for line in exercise.splitlines():
        mark = line.strip()
        if mark in (BEGIN, END):
            inside = mark == BEGIN
        else:
            (solution if inside else head).append(line)
    return head, solution


def _forms(lines: Iterable[str], known: set[str]) -> list[str]:
    """The tokens of code; a name of the author's own is written as `_`, unless it follows a point."""
    tokens = _tokens(lines)
    before = ["", *tokens]
    return [
        "_" if token.isidentifier() and token not in known and not keyword.iskeyword(token) and last != "." else token
        for last, token in zip(before, tokens, strict=False)
    ]


def _tokens(lines: Iterable[str]) -> list[str]:
    """The tokens of each line by itself, so that a piece of code needs neither a beginning nor an end."""
    found: list[str] = []
    for line in lines:
        try:
            for token in tokenize.generate_tokens(io.StringIO(line.strip()).readline):
                if token.type not in _BLANKS:
                    found.append(token.string)
        except (tokenize.TokenError, SyntaxError):
            continue
    return found
