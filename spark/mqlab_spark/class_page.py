"""The page of a class: pictures and tables of what `mqlab_spark.class_tables` found, in one file of HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from bokeh.embed import components
from bokeh.models import BasicTicker, ColumnDataSource, FactorRange, Range1d
from bokeh.plotting import figure
from bokeh.resources import Resources
from pyspark.sql import DataFrame, Row, SparkSession

from mqlab_spark.class_tables import bets_gone_wrong, bets_made, hardest_checks, points_of, read_results

BLUE, ORANGE, VERMILION, GREY = "#0072B2", "#E69F00", "#D55E00", "#999999"
"""Colours that people tell apart who don't see red and green (Okabe and Ito)."""

PARTS = 10
"""The columns of a histogram."""
_SHOWN = 4
"""So many answers of a bet are named."""
_WIDTH = 900

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
td, th { text-align: left; padding: .3rem .6rem; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr { border-bottom: 1px solid #ddd; }
"""


def write_page(spark: SparkSession, marks: Path, out: Path) -> str:
    """Write OUT/class.html from the results below `marks`; what it is of, in words. LearnerError without a result."""
    results = read_results(spark, marks).cache()
    try:
        page, told = class_page(results, _without_result(marks))
    finally:
        results.unpersist()
    out.mkdir(parents=True, exist_ok=True)
    unfinished = out / ".class.html.unfinished"
    unfinished.write_text(page, encoding="utf-8")
    unfinished.replace(out / "class.html")
    return told


def _without_result(marks: Path) -> list[str]:
    places = (place for place in marks.glob("*/*") if place.is_dir() and not (place / "result.json").exists())
    return sorted(str(place.relative_to(marks)) for place in places)


def class_page(results: DataFrame, without: Sequence[str] = ()) -> tuple[str, str]:
    """The page, and what it is of in words. `without` names the notebooks of which there is no result."""
    points = points_of(results).collect()
    checks = hardest_checks(results).collect()
    bets = bets_gone_wrong(bets_made(results)).collect()
    labs = sorted({row.lab for row in points})
    told = f"{_count(len(points), 'notebook')} of {_count(len(labs), 'lab')}"
    pictures: dict[str, Any] = {
        **{f"points-{lab}": _points_picture(lab, [row for row in points if row.lab == lab]) for lab in labs},
        **({"checks": _checks_picture(checks)} if checks else {}),
        **({"bets": _bets_picture(bets)} if bets else {}),
        **{f"time-{lab}": picture for lab in labs if (picture := _time_picture(lab, points)) is not None},
    }
    script, drawn = components(pictures)
    parts = [
        f"<h1>The class: {escape(told)}</h1>",
        _left_out(without),
        "<h2>Points</h2>",
        *(drawn[f"points-{lab}"] for lab in labs),
        "<h2>Which check was hardest</h2>",
        drawn.get("checks", "<p>Nothing was checked.</p>"),
        _checks_table(checks),
        "<h2>What was bet wrongly</h2>",
        "<p>A bet gives no points. A truth may differ from student to student, since each has a world of its own.</p>",
        drawn.get("bets", "<p>Nothing was bet.</p>"),
        _bets_table(bets),
        "<h2>How long the notebooks ran</h2>",
        *(drawn.get(f"time-{lab}", f"<p>{escape(lab)} was not run.</p>") for lab in labs),
        _runs_table(points),
    ]
    library = Resources(mode="inline", components=["bokeh"]).render()
    head = f'<meta charset="utf-8"><title>The class</title><style>{_STYLE}</style>{library}'
    body = "".join(parts)
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}{script}</body></html>\n', told


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _left_out(without: Sequence[str]) -> str:
    if not without:
        return ""
    names = ", ".join(map(escape, without))
    return f"<p><b>Without a result, and so not in what follows:</b> {names}.</p>"


# -- pictures --


def _histogram(title: str, x_label: str, values: Sequence[float], low: float, high: float) -> figure:
    wide = (high - low) / PARTS
    counts = [0] * PARTS
    for value in values:
        counts[min(PARTS - 1, max(0, int((value - low) / wide)))] += 1
    picture = figure(
        title=title, width=_WIDTH, height=260, x_axis_label=x_label, y_axis_label="students", toolbar_location=None,
        y_range=Range1d(start=0, end=max([*counts, 1]) * 1.1),
        x_range=Range1d(start=low, end=high),
    )  # fmt: skip
    edges = [low + number * wide for number in range(PARTS + 1)]
    picture.quad(left=edges[:-1], right=edges[1:], bottom=0, top=counts, color=BLUE, line_color="white")
    picture.yaxis.ticker = BasicTicker(min_interval=1)
    picture.xgrid.visible = False
    return picture


def _points_picture(lab: str, rows: Sequence[Row]) -> figure:
    most = max([row.most for row in rows] + [1])
    title = f"{lab}: {_count(len(rows), 'student')}, {most:g} points at most"
    return _histogram(title, "points", [row.points for row in rows], 0, most)


def _time_picture(lab: str, points: Sequence[Row]) -> figure | None:
    seconds = [row.run_s for row in points if row.lab == lab and row.run_s is not None]
    if not seconds:
        return None
    title = f"{lab}: {_count(len(seconds), 'run')}, from the first cell to the last"
    return _histogram(title, "time of a run (s)", seconds, 0, max([*seconds, 1.0]) * 1.001)


def _stacked(
    title: str, x_label: str, names: Sequence[str], parts: Mapping[str, tuple[str, Sequence[int]]]
) -> figure:
    """Bars that lie, the first name at the top; parts: what it is -> its colour and how many of each name."""
    most = max(map(sum, zip(*(counts for _, counts in parts.values()), strict=True)))
    data: dict[str, Any] = {"name": names, **{part: counts for part, (_, counts) in parts.items()}}
    picture = figure(
        title=title, width=_WIDTH, height=110 + 24 * len(names), x_axis_label=x_label,
        x_range=Range1d(start=0, end=most), y_range=FactorRange(factors=list(reversed(names))), toolbar_location=None,
        tooltips=[("", "@name"), *((part, f"@{{{part}}}") for part in parts)], tools="hover",
    )  # fmt: skip
    drawn = picture.hbar_stack(
        list(parts), y="name", height=0.75, source=ColumnDataSource(data),
        color=[colour for colour, _ in parts.values()], legend_label=list(parts),
    )  # fmt: skip
    assert drawn
    picture.xaxis.ticker = BasicTicker(min_interval=1)
    picture.ygrid.visible = False
    picture.add_layout(picture.legend[0], "above")
    picture.legend.orientation = "horizontal"
    return picture


def _checks_picture(checks: Sequence[Row]) -> figure:
    parts = {
        "all points": (BLUE, [row.all_points for row in checks]),
        "some points": (ORANGE, [row.some_points for row in checks]),
        "no points": (VERMILION, [row.no_points for row in checks]),
    }
    return _stacked("Checks, the hardest at the top", "students", [row.check for row in checks], parts)


def _bets_picture(bets: Sequence[Row]) -> figure:
    parts = {
        "wrong": (VERMILION, [row.wrong for row in bets]),
        "right": (BLUE, [row.right for row in bets]),
        "no truth was shown": (ORANGE, [row.unknown for row in bets]),
        "not made": (GREY, [row.not_made for row in bets]),
    }
    title = "Bets, those that most have lost at the top"
    return _stacked(title, "students", [f"{row.lab[:2]} {row.bet}" for row in bets], parts)


# -- tables --


def _table(head: Sequence[str], rows: Iterable[Sequence[str | int]], numbers: Sequence[int] = ()) -> str:
    def cells(tag: str, row: Sequence[str | int]) -> str:
        return "".join(
            f'<{tag}{" class=n" if place in numbers else ""}>{escape(str(cell))}</{tag}>'
            for place, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><tr>{cells('th', head)}</tr>{body}</table>"


def _checks_table(checks: Sequence[Row]) -> str:
    rows = [
        (row.check, row.students, row.all_points, row.some_points, row.no_points, f"{row.share:.0%}") for row in checks
    ]
    head = ("check", "students", "all points", "some", "none", "mean share")
    return _table(head, rows, range(1, 6)) if rows else ""


def _bets_table(bets: Sequence[Row]) -> str:
    rows = [
        (f"{row.lab[:2]} {row.bet}", row.question or "", _told(row.answers), _told(row.truths), row.wrong, row.students)
        for row in bets
    ]
    head = ("bet", "question", "what was bet (students)", "what is true (students)", "wrong", "of")
    return _table(head, rows, (4, 5)) if rows else ""


def _told(found: Sequence[Row] | None) -> str:
    named = [f"{pair.text} ({pair['count']})" for pair in (found or ())[:_SHOWN]]
    left = len(found or ()) - len(named)
    return "; ".join([*named, *([f"and {left} more"] if left > 0 else [])])


def _runs_table(points: Sequence[Row]) -> str:
    rows = [(row.student, row.lab, row.run) for row in points if row.run not in (None, "ok")]
    return "<h2>Runs that did not come to their end</h2>" + _table(("student", "lab", "how"), rows) if rows else ""
