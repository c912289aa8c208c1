"""What an executed notebook has shown of its bets: read as text, and never believed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mqlab.check.bets import AFTERWARDS, BET_FIRST, IN_THE_REPORT, REVEAL_MIME
from mqlab.grading.outside import Unreadable, read_file, read_json
from mqlab.grading.running import MOST_BYTES
from mqlab.labs.source import LabSource

MOST_TEXT = 500
"""The characters of a question, of a bet and of a truth that are read; what has more is no output of a lab."""
_REVEALED = re.compile(r"""\breveal\(\s*["']([\w-]+)["']""")
_SEEN = re.compile(r"(?m)^(.{0,500})\n  you said: (.{1,500})\n  it is:    (.{1,500})$")
"""A reveal in a notebook that was run before reveals told their facts beside their text."""


class Shown(NamedTuple):
    """A bet as the notebook shows it at the end: what was said and what is true, in the same form."""

    question: str
    said: str
    truth: str


def truths_in(notebook: Path) -> dict[str, Shown]:
    """name of a bet -> what the notebook's own output says of it; nothing where it says nothing."""
    try:
        cells = read_json(read_file(notebook, MOST_BYTES))["cells"]
    except (Unreadable, KeyError, TypeError):
        return {}
    found: dict[str, Shown] = {}
    for cell in cells if isinstance(cells, list) else ():
        for bet, shown in _reveals(cell) if isinstance(cell, dict) else ():
            found.setdefault(bet, shown)
    return found


def foreign_truths(lab: LabSource, handed_in: Path, executed: Path) -> list[str]:
    """The bets whose truth, as the notebook was handed in, is not the one that this student's id gives.

    A lab whose data has another size when it is marked says nothing here; nor does an exam, which keeps its truths.
    """
    if any(cell.calls("size_of") for cell in lab.cells):
        return []
    shown, own = truths_in(handed_in), truths_in(executed)
    return [
        bet
        for bet, seen in shown.items()
        if seen.truth not in (IN_THE_REPORT, BET_FIRST) and own.get(bet, seen).truth != seen.truth
    ]


def bet_afterwards(handed_in: Path) -> list[str]:
    """The bets that were written when their truth had been shown: as the notebook itself notes it, which forgets it
    when its kernel is started anew and can be edited.
    """
    return [bet for bet, seen in truths_in(handed_in).items() if seen.said.endswith(AFTERWARDS)]


def _reveals(cell: dict[str, Any]) -> Iterator[tuple[str, Shown]]:
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        data = output.get("data") if isinstance(output, dict) else None
        if isinstance(data, dict):
            facts = data.get(REVEAL_MIME)
            yield from _told(facts) if isinstance(facts, dict) else _as_text(cell, _text(data.get("text/plain")))


def _told(facts: dict[str, Any]) -> Iterator[tuple[str, Shown]]:
    texts = [text for name in ("bet", *Shown._fields) if isinstance(text := facts.get(name), str)]
    if len(texts) == 1 + len(Shown._fields) and max(map(len, texts)) <= MOST_TEXT:
        yield texts[0], Shown(*texts[1:])


def _as_text(cell: dict[str, Any], text: str) -> Iterator[tuple[str, Shown]]:
    name = _REVEALED.search(_text(cell.get("source")))
    if name is not None:
        for shown in _SEEN.findall(text):
            yield name[1], Shown(*shown)


def _text(source: Any) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source or "")
