"""The page of `mqlab corpus --html`: how thorough an exploration was, in one file that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bokeh.embed import components
from bokeh.models import ColumnDataSource, HoverTool, NumeralTickFormatter, Range1d
from bokeh.plotting import figure
from bokeh.resources import Resources

from mqlab.commands.corpus import HOW_CHANCE, NEVER, PLURALS, chance, forecast, told
from mqlab.explore.corpus import Header
from mqlab.explore.seen import kind_of
from mqlab.explore.thoroughness import Curve, Point, Thoroughness
from mqlab.grading.pages import rendered
from mqlab.views.colours import BLUE, ORANGE

MOST_POINTS = 400
"""So many points of a curve are drawn; no screen shows more."""
_WIDTH = 900
WORLDS = "worlds played"


def page(headers: Sequence[Header], found: Thoroughness) -> str:
    """The page as text."""
    pictures: dict[str, Any] = {
        "things": _growing("Different things seen, without pairs of events", "different things", found.named, BLUE),
        "pairs": _growing("Different pairs of events seen", "different pairs", found.pairs, ORANGE),
        "chance": _chances(found),
    }
    script, divisions = components(pictures)
    return rendered(
        "corpus",
        title=f"How thorough: {', '.join(header.scenario for header in headers)}",
        told=told(headers, found),
        mqlab=", ".join(sorted({header.mqlab for header in headers})),
        shortly=_shortly(found),
        chance=chance(found.named),
        pair_chance=chance(found.pairs),
        how_chance=HOW_CHANCE,
        forecasts=[said for said in map(forecast, (found.named, found.pairs)) if said],
        kinds=[_kind(found, kind) for kind in found.kinds],
        pairs=(len(found.pairs.first), len(found.pairs.once)),
        never=[(NEVER[kind], never) for kind in found.kinds if (never := found.never(kind))],
        firsts=[(PLURALS[kind], _firsts(found, kind)) for kind in found.kinds if found.seen(kind)],
        judged=sorted(((name, *count) for name, count in found.judged.items()), key=lambda row: (-row[2], row[0])),
        excused=sorted(((name, *count) for name, count in found.excused.items()), key=lambda row: (-row[2], row[0])),
        worlds=len(found.seeds),
        unended=found.unended,
        failures=[(f"{world.label} seed {world.seed}", *world.failure) for world in found.failures if world.failure],
        pictures=divisions,
        script=script,
        library=Resources(mode="inline", components=["bokeh"]).render(),
    )


def _shortly(found: Thoroughness) -> list[str]:
    """The whole page in a few lines."""
    never = [f"{len(names):,} of {len(found.could[kind]):,} {PLURALS[kind].partition(' that ')[0]}"
             for kind in ("event", "setting", "rule") if (names := found.never(kind))]  # fmt: skip
    return [
        f"{len(found.failures):,} of {len(found.seeds):,} worlds broke a rule.",
        f"The chance that one more world shows something new is {found.named.chance:.1%}, pairs of events left aside.",
        *([f"Nothing was seen of {', '.join(never)}: of these the worlds say nothing."] if never else []),
    ]


def _kind(found: Thoroughness, kind: str) -> tuple[str, int, int, int | str, int | str]:
    could = found.could.get(kind)
    of, never = ("", "") if could is None else (len(could), len(found.never(kind)))
    return PLURALS[kind], len(found.seen(kind)), found.once(kind), of, never


def _firsts(found: Thoroughness, kind: str) -> list[tuple[str, str, str]]:
    """What was seen of a kind, the world that showed it first, and whether no other has; the newest first."""
    once = {name.partition(" ")[2] for name in found.named.once if kind_of(name) == kind}
    newest = reversed(found.seen(kind).items())
    return [(name, str(whose), "only there" if name in once else "") for name, whose in newest]


# -- pictures --


def _things(point: Point) -> float:
    return point.things


def _chance(point: Point) -> float:
    return point.chance


def _source(curve: Curve, value: Callable[[Point], float]) -> ColumnDataSource:
    points = _thinned(curve.points)
    return ColumnDataSource({"worlds": [point.worlds for point in points], "value": [value(point) for point in points]})


def _thinned(points: Sequence[Point]) -> Sequence[Point]:
    """At most some hundred of the points, at even distances, the first and the last among them."""
    if len(points) <= MOST_POINTS:
        return points
    return [points[round(n * (len(points) - 1) / (MOST_POINTS - 1))] for n in range(MOST_POINTS)]


def _frame(title: str, label: str, found: int, top: float) -> figure:
    picture = figure(
        title=title, height=300, sizing_mode="stretch_width", max_width=_WIDTH, x_axis_label=WORLDS, y_axis_label=label,
        x_range=Range1d(start=0, end=max(found, 1)), y_range=Range1d(start=0, end=top), toolbar_location=None,
        min_border_left=70, tools="",
    )  # fmt: skip
    picture.xaxis.formatter = NumeralTickFormatter(format="0,0")
    return picture


def _growing(title: str, label: str, curve: Curve, colour: str) -> figure:
    """A curve that begins at nothing and gets flat when little is new any more."""
    picture = _frame(title, label, len(curve.points), 1.05 * max([1, len(curve.first)]))
    picture.yaxis.formatter = NumeralTickFormatter(format="0,0")
    drawn = picture.line("worlds", "value", source=_source(curve, _things), line_width=2.5, color=colour)
    tips = [("after", "@worlds{0,0} worlds"), (label, "@value{0,0}")]
    picture.add_tools(HoverTool(tooltips=tips, renderers=[drawn], mode="vline"))
    return picture


def _chances(found: Thoroughness) -> figure:
    """Both chances in one picture; the line of pairs is broken, too, for who does not see the colours."""
    picture = _frame("Chance that the next world shows something new", "chance (%)", len(found.seeds), 1.05)
    picture.yaxis.formatter = NumeralTickFormatter(format="0%")
    for curve, colour, dash, name in (
        (found.named, BLUE, "solid", "a thing other than a pair"), (found.pairs, ORANGE, "dashed", "a pair of events"),
    ):  # fmt: skip
        drawn = picture.line(
            "worlds", "value", source=_source(curve, _chance), line_width=2.5, color=colour, line_dash=dash,
            legend_label=name,
        )  # fmt: skip
        tips = [("after", "@worlds{0,0} worlds"), (name, "@value{0.0%}")]
        picture.add_tools(HoverTool(tooltips=tips, renderers=[drawn], mode="vline"))
    picture.add_layout(picture.legend[0], "above")
    picture.legend.orientation = "horizontal"
    picture.legend.location = "left"
    picture.legend.border_line_color = None
    return picture
