"""The page of a comparison: which pairs, how alike, and both solutions side by side."""

from __future__ import annotations

from pathlib import Path

from mqlab.grading.likeness import Comparison
from mqlab.grading.normal_form import normal_form
from mqlab.grading.pages import rendered


def write_page(found: Comparison, path: Path) -> None:
    """Write the page of a comparison."""
    path.write_text(page(found), encoding="utf-8")


def page(found: Comparison) -> str:
    """The page as text. Everything that a student wrote stands in it as text."""
    return rendered("likeness", title=f"Pairs that are alike: {len(found.pairs)}", found=found, lines_of=_lines_of)


def _lines_of(text: str, other: str) -> list[tuple[str, bool]]:
    """The lines of a text, and of each whether a statement begins on it that the other text has, too."""
    form, theirs = normal_form(text), normal_form(other)
    known = {unit.tokens for unit in theirs.units} if theirs else set()
    same = {unit.line for unit in form.units if unit.tokens in known} if form else set()
    return [(line, number in same) for number, line in enumerate(text.splitlines(), 1)]
