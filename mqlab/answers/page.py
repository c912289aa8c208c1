"""A page of docs/answers, taken apart."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mqlab.errors import LearnerError
from mqlab.material import INSTALL, root

SECTIONS = ("See it", "Why", "What to do", "Where it stands")
"""The parts of every page, in their order."""

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ASKED = re.compile(r"^\*Also asked as:\* (.*?)\n\n", re.MULTILINE | re.DOTALL)
_SHORT = re.compile(r"^\*\*In short:\*\* (.*?)\n\n", re.MULTILINE | re.DOTALL)
_SECTION = re.compile(r"^## (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """A few lines of Python, and what they print."""

    code: str
    prints: str


@dataclass(frozen=True, eq=False)
class Answer:
    """A question, and what there is to say to it."""

    name: str
    """Its page, without ".md"."""
    question: str
    asked: tuple[str, ...]
    """The question in other people's words, in English and in Chinese."""
    short: str
    """The answer in a few sentences."""
    sections: dict[str, str]
    """What the page says, by SECTIONS."""
    cells: tuple[Cell, ...]
    """Its world, to be run one after the other."""
    text: str
    """The whole page."""


def read_page(name: str, text: str) -> Answer:
    """Take a page apart; LearnerError if a part of it is missing, or out of order."""
    title, _, rest = text.partition("\n")
    asked, short = _ASKED.search(rest), _SHORT.search(rest)
    headings = _SECTION.findall(text)
    if not title.startswith("# ") or asked is None or short is None or headings != list(SECTIONS):
        raise LearnerError(
            f"docs/answers/{name}.md is no answer",
            f"write a title, '*Also asked as:* ... · ...', '**In short:** ...', then {', '.join(SECTIONS)}",
        )
    parts = _SECTION.split(text)[1:]
    sections = {heading: body.strip() for heading, body in zip(parts[::2], parts[1::2], strict=True)}
    words = tuple(" ".join(words.split()) for words in asked[1].split("·"))
    return Answer(name, title[2:].strip(), words, " ".join(short[1].split()), sections, _cells(name, text), text)


def _cells(name: str, text: str) -> tuple[Cell, ...]:
    """Each block of Python with the block of text behind it, which is what it prints; the last must print something."""
    cells: list[Cell] = []
    for kind, content in _BLOCK.findall(text):
        if kind == "python":
            cells.append(Cell(content, ""))
        elif kind == "text" and cells and not cells[-1].prints:
            cells[-1] = Cell(cells[-1].code, content)
    if not cells or not cells[-1].prints:
        raise LearnerError(f"docs/answers/{name}.md has a world that shows nothing", "put ```text behind ```python")
    return tuple(cells)


@cache
def answers() -> tuple[Answer, ...]:
    """All of them, by name; LearnerError where the pages are not there."""
    place: Path = root() / "docs" / "answers"
    pages = sorted(page for page in place.glob("*.md") if page.stem != "README") if place.is_dir() else []
    if not pages:
        raise LearnerError("the pages of docs/answers are not here", INSTALL)
    return tuple(read_page(page.stem, page.read_text(encoding="utf-8")) for page in pages)


@cache
def phrasings() -> dict[str, tuple[str, ...]]:
    """What people ask when they need a page, by its name: more ways to say it than the page itself shows."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    name = ""
    for line in (root() / "docs" / "answers" / "phrasings.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            name = line[2:]
        elif line:
            found[name].append(line)
    return {name: tuple(lines) for name, lines in found.items()}
