"""The page of a class: pictures and tables of what `mqlab.grading.class_tables` found, in one file of HTML."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bokeh.embed import components
from bokeh.models import BasicTicker, ColumnDataSource, FactorRange, FixedTicker, Range1d
from bokeh.plotting import figure
from bokeh.resources import Resources

from mqlab.grading.class_tables import BetRow, CheckRow, ClassTables, NotebookRow, class_tables
from mqlab.grading.course import missing, strangers
from mqlab.grading.pages import rendered
from mqlab.grading.roster import kept_roster
from mqlab.views.colours import BLUE, ORANGE, VERMILION

GREY = "#999999"
"""Colours that people tell apart who don't see red and green (Okabe and Ito)."""

HandedIn = tuple[str, str]
"""Whose notebook, and of which lab."""

Cells = tuple[str | int, ...]
"""A row of a table."""

PARTS = 10
"""The columns of a histogram of times."""
_SHOWN = 4
"""So many answers of a bet are named."""
_WIDTH = 900

def write_page(marks: Path, out: Path) -> str:
    """Write OUT/class.html from the results below `marks`; what it is of, in words. LearnerError without a result."""
    page, told = class_page(class_tables(marks), _handed_in(marks), kept_roster(marks))
    out.mkdir(parents=True, exist_ok=True)
    unfinished = out / ".class.html.unfinished"
    unfinished.write_text(page, encoding="utf-8")
    unfinished.replace(out / "class.html")
    return told


def _handed_in(marks: Path) -> list[HandedIn]:
    """Of whom and of which lab there is a directory, with a result or without."""
    return sorted((place.parent.name, place.name) for place in marks.glob("*/*") if place.is_dir())


def class_page(tables: ClassTables, handed_in: Sequence[HandedIn] = (), roster: Sequence[str] = ()) -> tuple[str, str]:
    """The page, and what it is of in words.

    `handed_in` says what was handed in, also where there is no result of it; `roster` who is in the class, if known.
    """
    points, checks, bets = tables
    labs = sorted({row.lab for row in points})
    marked = [(row.student, row.lab) for row in points]
    without = sorted(set(handed_in) - set(marked))
    there = [{"student": student, "lab": lab, "most": 0} for student, lab in (*marked, *without)]
    absent = [(nothing["student"], nothing["lab"]) for nothing in missing(there, roster)]
    told = f"{_count(len(points), 'notebook')} of {_count(len(labs), 'lab')}"
    told += f", {len(absent)} not handed in" if absent else ""
    pictures: dict[str, Any] = {
        **{f"points-{lab}": _points_picture(lab, [row for row in points if row.lab == lab]) for lab in labs},
        **({"checks": _checks_picture(checks)} if checks else {}),
        **({"bets": _bets_picture(bets)} if bets else {}),
        **{f"time-{lab}": picture for lab in labs if (picture := _time_picture(lab, points)) is not None},
    }
    script, divisions = components(pictures)
    page = rendered(
        "class",
        title="The class",
        told=told,
        without=["/".join(whose) for whose in without],
        unreadable=_said((row, row.unreadable) for row in points),
        absent=_absent(labs, absent, roster) if roster else None,
        unknown=strangers(there, roster),
        labs=labs,
        checks=[_check(row) for row in checks],
        bets=[_bet(row) for row in bets],
        runs=_said((row, row.run) for row in points if row.run != "ok"),
        late=_said((row, row.late) for row in points),
        by_hand=_said((row, row.by_hand) for row in points),
        pictures=divisions,
        script=script,
        library=Resources(mode="inline", components=["bokeh"]).render(),
    )
    return page, told


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


# -- pictures --


def _histogram(title: str, x_label: str, edges: Sequence[float], values: Sequence[float]) -> figure:
    """How many of the values stand in each column; one at the last edge, and behind it, in the last."""
    columns = len(edges) - 1
    counts = [0] * columns
    for value in values:
        counts[min(columns - 1, max(0, bisect_right(edges, value) - 1))] += 1
    picture = figure(
        title=title, height=260, sizing_mode="stretch_width", max_width=_WIDTH, x_axis_label=x_label,
        y_axis_label="students", toolbar_location=None, min_border_left=60,
        y_range=Range1d(start=0, end=max([*counts, 1]) * 1.1), x_range=Range1d(start=edges[0], end=edges[-1]),
    )  # fmt: skip
    picture.quad(left=edges[:-1], right=edges[1:], bottom=0, top=counts, color=BLUE, line_color="white")
    picture.yaxis.ticker = BasicTicker(min_interval=1, num_minor_ticks=0)
    picture.xgrid.visible = False
    return picture


def _points_picture(lab: str, rows: Sequence[NotebookRow]) -> figure:
    """A column for each number of whole points."""
    most = int(max([row.most for row in rows] + [1]))
    title = f"{lab}: {_count(len(rows), 'student')}, {most} points at most"
    edges = [number - 0.5 for number in range(most + 2)]
    picture = _histogram(title, "whole points", edges, [int(row.points) for row in rows])
    picture.xaxis.ticker = FixedTicker(ticks=list(range(most + 1)))
    return picture


def _time_picture(lab: str, points: Sequence[NotebookRow]) -> figure | None:
    seconds = [row.run_s for row in points if row.lab == lab and row.run_s is not None]
    if not seconds:
        return None
    title = f"{lab}: {_count(len(seconds), 'run')}, from the first cell to the last"
    wide = max([*seconds, 1.0]) / PARTS
    return _histogram(title, "time of a run (s)", [number * wide for number in range(PARTS + 1)], seconds)


def _stacked(title: str, x_label: str, names: Sequence[str], parts: Mapping[str, tuple[str, Sequence[int]]]) -> figure:
    """Bars that lie, the first name at the top; parts: what it is -> its colour and how many of each name."""
    most = max(map(sum, zip(*(counts for _, counts in parts.values()), strict=True)))
    data: dict[str, Any] = {"name": names, **{part: counts for part, (_, counts) in parts.items()}}
    picture = figure(
        title=title, height=110 + 24 * len(names), sizing_mode="stretch_width", max_width=_WIDTH, x_axis_label=x_label,
        x_range=Range1d(start=0, end=most), y_range=FactorRange(factors=list(reversed(names))), toolbar_location=None,
        tooltips=[("", "@name"), *((part, f"@{{{part}}}") for part in parts)], tools="hover",
    )  # fmt: skip
    drawn = picture.hbar_stack(
        list(parts), y="name", height=0.75, source=ColumnDataSource(data),
        color=[colour for colour, _ in parts.values()], legend_label=list(parts),
    )  # fmt: skip
    assert drawn
    picture.xaxis.ticker = BasicTicker(min_interval=1, num_minor_ticks=0)
    picture.ygrid.visible = False
    picture.add_layout(picture.legend[0], "above")
    picture.legend.orientation = "horizontal"
    picture.legend.location = "left"
    picture.legend.border_line_color = None
    return picture


def _checks_picture(checks: Sequence[CheckRow]) -> figure:
    parts = {
        "all points": (BLUE, [row.all_points for row in checks]),
        "some points": (ORANGE, [row.some_points for row in checks]),
        "no points": (VERMILION, [row.no_points for row in checks]),
    }
    return _stacked("Checks, the hardest at the top", "students", [row.check for row in checks], parts)


def _bets_picture(bets: Sequence[BetRow]) -> figure:
    parts = {
        "wrong": (VERMILION, [row.wrong for row in bets]),
        "right": (BLUE, [row.right for row in bets]),
        "no truth was shown": (ORANGE, [row.unknown for row in bets]),
        "not made": (GREY, [row.not_made for row in bets]),
    }
    title = "Bets, those that most have lost at the top"
    return _stacked(title, "students", [f"{row.lab[:2]} {row.bet}" for row in bets], parts)


# -- rows of tables --


def _absent(labs: Sequence[str], absent: Sequence[HandedIn], roster: Sequence[str]) -> list[Cells]:
    rows: list[Cells] = []
    for lab in labs:
        names = [student for student, of in absent if of == lab]
        rows.append((lab, f"{len(roster) - len(names)} of {len(roster)}", len(names), ", ".join(names)))
    return rows


def _check(row: CheckRow) -> Cells:
    return row.check, row.students, row.all_points, row.some_points, row.no_points, f"{row.share:.0%}"


def _bet(row: BetRow) -> Cells:
    return f"{row.lab[:2]} {row.bet}", row.question, _told(row.answers), _told(row.truths), row.wrong, row.students


def _told(found: Sequence[tuple[str, int]]) -> str:
    named = [f"{text} ({count})" for text, count in found[:_SHOWN]]
    left = len(found) - len(named)
    return "; ".join([*named, *([f"and {left} more"] if left else [])])


def _said(found: Iterable[tuple[NotebookRow, str | None]]) -> list[Cells]:
    """The notebooks of which there is something to say, with that."""
    return [(row.student, row.lab, text) for row, text in found if text]
