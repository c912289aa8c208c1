"""From a bet to its reveal: which cells lie between, and which of them must not show the end first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from mqlab.check.bets import REVEAL_MIME
from mqlab.labs.source import Cell, LabSource, text_argument

_NUMBER = re.compile(r"-?\d[\d.]*")
_TELLING_DIGITS = 3
_TELLING_LETTERS = 12


def between(lab: LabSource) -> dict[str, range]:
    """For each bet that has a reveal the places of the cells behind the bet, up to the reveal and with it."""
    spans = {}
    for at, cell in enumerate(lab.cells):
        for call in cell.calls("predict"):
            name = text_argument(call) or ""
            last = [n for n, other in enumerate(lab.cells) if n > at and _reveals(other, name)]
            if last:
                spans[name] = range(at + 1, last[-1] + 1)
    return spans


def _reveals(cell: Cell, name: str) -> bool:
    return any(text_argument(call) == name for call in cell.calls("reveal"))


def hidden_cells(lab: LabSource) -> list[Cell]:
    """The code cells whose output a student shall not see before running them; questions are always shown.

    Beside what lies between bets and reveals it is what stands directly below a reveal (the picture of the answer), and
    the overview of all bets at the end.
    """
    places = {at for span in between(lab).values() for at in [*span, *_directly_below(lab, span.stop)]}
    places |= {at for at, cell in enumerate(lab.cells) if any(not call.args for call in cell.calls("reveal"))}
    cells = [lab.cells[at] for at in sorted(places)]
    return [cell for cell in cells if cell.kind == "code" and not {"prediction", "check"} & set(cell.tags)]


def _directly_below(lab: LabSource, start: int) -> Iterator[int]:
    """The places of the code cells from there on, up to the next text or question."""
    for at in range(start, len(lab.cells)):
        cell = lab.cells[at]
        if cell.kind != "code" or cell.calls("predict"):
            return
        yield at


def reveals_in(outputs: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Bet -> what the outputs of an executed notebook say of it: `question`, `said`, `truth`, `why`."""
    shown = (output.get("data", {}).get(REVEAL_MIME) for output in outputs)
    return {facts["bet"]: facts for facts in shown if facts is not None}


def told_too_early(lab: LabSource, executed: dict[str, Any]) -> list[str]:
    """Texts between a bet and its reveal that name what will be revealed; `executed` holds what was seen.

    Known by its words: a number of three digits or with a point (shorter ones stand everywhere), a choice of some
    length. What was said before the bet already is no answer.
    """
    outputs = (cell["outputs"] for cell in executed["cells"] if cell["cell_type"] == "code")
    truths = {bet: facts["truth"] for bet, facts in reveals_in(chain.from_iterable(outputs)).items()}
    problems = []
    for name, span in between(lab).items():
        telling = _telling(truths.get(name, ""))
        if telling and any(telling.search(" ".join(cell.source.split())) for cell in lab.cells[: span.start]):
            continue
        for cell in (lab.cells[at] for at in span):
            text = " ".join(cell.source.split())
            if telling and cell.kind == "markdown" and "teacher" not in cell.tags and telling.search(text):
                problems.append(
                    f"{cell.place}: tells {truths[name]!r}, the answer to the bet {name!r}, before it is revealed; "
                    "move the sentence behind the reveal"
                )
    return problems


def _telling(truth: str) -> re.Pattern[str] | None:
    number = _NUMBER.match(truth)
    if number:
        digits = re.sub(r"\D", "", number[0])
        if len(digits) < _TELLING_DIGITS and "." not in number[0]:
            return None
        return re.compile(rf"(?<![\d.,]){re.escape(number[0])}(?![\d]|[.,]\d)")
    return re.compile(re.escape(truth)) if len(truth) >= _TELLING_LETTERS else None
