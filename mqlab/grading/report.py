"""What a student gets back: one page of HTML that needs nothing beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mqlab.grading.pages import rendered


def write_report(result: dict[str, Any], path: Path) -> None:
    """Write the page of one result."""
    path.write_text(report(result), encoding="utf-8")


def report(result: dict[str, Any]) -> str:
    """The page as text. Everything that a student wrote stands in it as text."""
    title = f"{result['lab']}: {result['points']:g} of {result['most']} points"
    # What only some results have.
    extras: dict[str, Any] = {"arrival": {}, "late": {}, "by_hand": [], "hand_in": {}, "made_of": {}}
    extras |= {"before_late": 0, "confined": False}
    return rendered("report", title=title, with_cases=_with_cases, share_line=share_line, **{**extras, **result})


def share_line(mark: dict[str, Any]) -> str:
    """A line for a notebook, below the exercise: it opens the world in which the solution failed."""
    given = ", ".join([f'"{mark["check"]}"', *mark["functions"]])
    return f"Stepper(check({given}, seeds=[{mark['failing_seed']}]).open())"


def _with_cases(mark: dict[str, Any]) -> str:
    """What the points are made of, where cases of seeds that went wrong count, too."""
    public, hidden = mark.get("shares", (0, 0))
    seeds = [well / played if played else 0 for well, played in (mark["public"], mark["hidden"])]
    if public <= seeds[0] + 0.001 and hidden <= seeds[1] + 0.001:
        return ""
    return f" With the cases that went well in the other seeds: {public:.0%} and {hidden:.0%}."
