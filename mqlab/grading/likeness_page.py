"""The page of a comparison: which pairs, how alike, and both solutions side by side."""

from __future__ import annotations

from html import escape
from pathlib import Path

from mqlab.grading.likeness import Alike, Comparison, Pair
from mqlab.grading.normal_form import normal_form

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 84rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
details { border: 1px solid #ddd; border-radius: 4px; margin: .6rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; } summary b { font-variant-numeric: tabular-nums; }
.both { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }
.both h4 { margin: .4rem 0; } .both > div { min-width: 0; }
pre { background: #f4f4f4; padding: .6rem; margin: 0; overflow-x: auto; font-size: .8rem; line-height: 1.4; }
mark { background: #ffe9a8; color: inherit; }
"""


def write_page(found: Comparison, path: Path) -> None:
    """Write the page of a comparison."""
    path.write_text(page(found), encoding="utf-8")


def page(found: Comparison) -> str:
    """The page as text. Everything that a student wrote stands in it as text."""
    title = f"Pairs that are alike: {len(found.pairs)}"
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    parts = [
        f"<h1>{title}</h1>",
        f"<p>{found.compared:,} solutions were compared, without names, comments, docstrings, texts, layout and what "
        f"was handed out; {found.short:,} were too short to say anything. Alike means: ask both. It says nothing of "
        "who had it from whom, and two people may have had the same thought. Marked lines are the same in both.</p>",
        *(f"<p><b>{escape(line)}</b></p>" for line in found.same),
        *(_pair(pair, found) for pair in found.pairs),
        _common(found),
        _left(found),
    ]
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'


def _pair(pair: Pair, found: Comparison) -> str:
    told = ", ".join(f"{escape(alike.exercise)} {alike.likeness:.0%}" for alike in pair.exercises)
    sides = "".join(_exercise(pair, alike, found) for alike in pair.exercises)
    who = f"<b>{escape(pair.one)}</b> and <b>{escape(pair.other)}</b>"
    return f"<details><summary>{who}: {told}</summary>{sides}</details>"


def _exercise(pair: Pair, alike: Alike, found: Comparison) -> str:
    texts = [found.texts[student, alike.exercise] for student in (pair.one, pair.other)]
    sides = "".join(
        f"<div><h4>{escape(student)}</h4><pre>{_marked(text, other)}</pre></div>"
        for student, text, other in zip((pair.one, pair.other), texts, reversed(texts), strict=True)
    )
    about = f"{escape(alike.exercise)}: {alike.likeness:.0%} alike, {alike.tokens} tokens"
    return f'<p>{about}</p><div class="both">{sides}</div>'


def _marked(text: str, other: str) -> str:
    """The text, with the lines marked on which a statement begins that the other one has, too."""
    form, theirs = normal_form(text), normal_form(other)
    if form is None or theirs is None:
        return escape(text)
    known = {unit.tokens for unit in theirs.units}
    same = {unit.line for unit in form.units if unit.tokens in known}
    return "\n".join(
        f"<mark>{escape(line)}</mark>" if number in same else escape(line)
        for number, line in enumerate(text.splitlines(), 1)
    )


def _common(found: Comparison) -> str:
    if not found.common:
        return ""
    rows = "".join(
        f"<li>{escape(common.exercise)}: {len(common.students)} students"
        f"{', as the lab solves it itself' if common.like_the_reference else ''}"
        f"<details><summary>who</summary>{escape(', '.join(common.students))}</details></li>"
        for common in found.common
    )
    return (
        "<h2>Common ways</h2><p>Many have written the same, or it is the solution to which the hints lead: that is no "
        f"sign.</p><ul>{rows}</ul>"
    )


def _left(found: Comparison) -> str:
    if not found.left:
        return ""
    return f"<h2>Not compared</h2><ul>{''.join(f'<li>{escape(line)}</li>' for line in found.left)}</ul>"
