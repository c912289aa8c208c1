"""What a class has bet, from the text of what is handed in, before the truth is shown. No code is run."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from mqlab.errors import LearnerError
from mqlab.grading.course import HandedIn, Settings, handed_in
from mqlab.grading.printable import printable
from mqlab.grading.questions import Question, is_number, question_of
from mqlab.grading.submission import read_submission
from mqlab.labs.build import read_lab
from mqlab.labs.source import LabSource, text_argument

BARS = 12
"""More different numbers than this are put together in ranges."""


def question(sources: Path, bet: str, lab: str = "") -> Question:
    """The bet of that name, in the lab of that number or name ("": in the only one that has it).

    LearnerError where there is none, or where more than one lab has a bet of that name.
    """
    paths = [path for path in sorted(sources.glob("*.py")) if lab in ("", path.stem, path.stem[:2])]
    if lab and not paths:
        labs = ", ".join(path.stem for path in sorted(sources.glob("*.py")))
        raise LearnerError(f"there is no lab {lab!r}", f"labs that there are: {labs}")
    # To read all labs takes seconds.
    named = [path for path in paths if bet in path.read_text(encoding="utf-8")]
    found = [(read, call) for read, call in _bets_of(named) if text_argument(call) == bet]
    if not found:
        known = {text_argument(call) or "": read.number for read, call in _bets_of(paths)}
        near = list(known) if lab else get_close_matches(bet, known, 5)
        names = ", ".join(f"{known[name]} {name}" for name in near)
        hint = f"{'bets of this lab' if lab else 'near it'}: {names}" if names else "docs/teaching/labs.md has all"
        raise LearnerError(f"there is no bet {bet!r}{f' in lab {lab}' if lab else ''}", hint)
    if len(found) > 1:
        labs = ", ".join(read.number for read, _ in found)
        raise LearnerError(f"more than one lab has a bet {bet!r}: {labs}", f"say which: --lab {labs[:2]}")
    return question_of(*found[0])


def _bets_of(sources: Sequence[Path]) -> list[tuple[LabSource, ast.Call]]:
    labs = [read_lab(path) for path in sources]
    return [(lab, call) for lab in labs for cell in lab.tagged("prediction") for call in cell.calls("predict")]


@dataclass(slots=True)
class Bets:
    """The bets of a class at one moment."""

    question: Question
    said: dict[str, Any] = field(default_factory=dict)
    """student -> what was bet."""
    not_made: list[str] = field(default_factory=list)
    """Students whose notebook has no answer yet."""
    left_out: list[str] = field(default_factory=list)
    """Files that don't count, each with its reason."""

    def bars(self) -> list[tuple[str, int]]:
        """The histogram: choices in their order, numbers by size (many of them in ranges), texts by how often."""
        chosen = self.question.choices
        counts = Counter(self.question.answer(said) for said in self.said.values())
        if chosen:
            known = [f"{letter}) {text}" for letter, text in zip(ascii_lowercase, chosen, strict=False)]
            return [(name, counts.pop(name, 0)) for name in known] + sorted(counts.items())
        numbers = [said for said in self.said.values() if self.question.unit and is_number(said)]
        others = [said for said in self.said.values() if not (self.question.unit and is_number(said))]
        return [*_ranges(numbers), *sorted(Counter(map(self.question.answer, others)).items())]


def _ranges(numbers: Sequence[float]) -> list[tuple[str, int]]:
    counts = Counter(numbers)
    if len(counts) <= BARS:
        return [(f"{number:g}", count) for number, count in sorted(counts.items())]
    low, high = min(numbers), max(numbers)
    wide = (high - low) / BARS
    bins = Counter(min(BARS - 1, int((number - low) / wide)) for number in numbers)
    return [(f"{low + place * wide:g} to {low + (place + 1) * wide:g}", bins[place]) for place in range(BARS)]


class BetsReader:
    """Reads a directory again and again; a notebook that has not changed since is not read anew."""

    def __init__(self, directory: Path, asked: Question, sources: Path, hide: Sequence[str] = ()) -> None:
        """`hide`: students whose bet is left out of the picture."""
        self._hide = {student.strip().lower() for student in hide}
        self._directory = directory
        self._question = asked
        self._settings = Settings(Path(), Path(), sources, (asked.lab.name,))
        self._known: dict[Path, tuple[tuple[int, int], Any, str]] = {}

    def read(self) -> Bets:
        """What has been handed in by now. LearnerError when there is no such directory."""
        work, left = handed_in(self._directory, self._settings)
        bets = Bets(self._question, left_out=list(map(str, left)))
        for each in work:
            if each.student.strip().lower() in self._hide:
                continue
            said, unreadable = self._read(each)
            if unreadable:
                bets.left_out.append(f"{each.student}/{each.notebook.name}: {unreadable}")
            elif said is None:
                bets.not_made.append(each.student)
            else:
                bets.said[each.student] = said
        return bets

    def _read(self, each: HandedIn) -> tuple[Any, str]:
        try:
            status = each.notebook.lstat()
        except OSError as error:
            return None, f"the notebook can't be read: {error.strerror}"
        state = (status.st_mtime_ns, status.st_size)
        known = self._known.get(each.notebook)
        if known is None or known[0] != state:
            read = read_submission(each.notebook, each.student, self._question.lab)
            known = self._known[each.notebook] = state, read.bets.get(self._question.name), read.unreadable
        return known[1], known[2]


def drawn(bets: Bets, width: int = 40) -> str:
    """The histogram as text."""
    bars = bets.bars()
    most = max([count for _, count in bars] + [1])
    column = max([len(name) for name, _ in bars] + [1])
    handed = len(bets.said) + len(bets.not_made)
    lines = [bets.question.title, f"{len(bets.said)} of {handed} have bet"]
    lines += [f"  {name:<{column}}  {'█' * round(width * count / most):<{width}} {count:>3}" for name, count in bars]
    lines += [printable(f"not counted: {line}") for line in bets.left_out]
    return "\n".join(lines)
