"""Charts: bars over categories or over a number line, dots on a line, lines over time; static by default, live on
demand.

    show_bars("orders per queue", "queue", "orders", ["0", "1"], {"stored": [204, 203]})
    show_histogram("hold times", "hold time, s", "pulls", {"timed out": [(15.0, 15.25, 6), (19.75, 20.0, 124)]})
    show_dots("waiting times", "time, ms", "queue", {"0": {"median": 0.6, "longest": 2315.4}}, log=True)
    show_lines("backlog", "time, s", "messages", {"readers": [(0.0, 0), (0.5, 12), (1.0, 3)]})

What a chart shows in a notebook is an SVG and, as text, a table with the same numbers: the same bytes every time, so
both may be committed. `chart.live()` draws the same data with Bokeh where a front end answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING

from mqlab.errors import LearnerError
from mqlab.views import Table
from mqlab.views.scale import number
from mqlab.views.svg import Drawing
from mqlab_widgets.chart_svg import PALETTE, WIDTH, bars_svg, dots_svg, histogram_svg, lines_svg

if TYPE_CHECKING:
    from bokeh.plotting import figure

    from mqlab_widgets.live_chart import LiveChart

_TEXT_BAR = 40
_TEXT_ROWS = 24


@dataclass(frozen=True, slots=True, repr=False)
class Chart(Drawing):
    """What every chart has: a title, two axes named with their units, and a picture and a text of the same numbers."""

    title: str
    x_label: str
    y_label: str

    def table(self) -> Table:
        """The numbers of the chart as a table, for readers who do not see it."""
        raise NotImplementedError

    def figure(self) -> figure:
        """The chart as a Bokeh figure; needs the extra `widgets`."""
        from mqlab_widgets.chart_bokeh import figure_of

        return figure_of(self)

    def live(self) -> LiveChart:
        """The chart drawn by Bokeh, with zoom and exact values under the mouse. MissingExtraError without anywidget.

        A front end that cannot run it keeps showing the static picture, and so does a notebook without a kernel.
        """
        from mqlab_widgets.live_chart import LiveChart

        return LiveChart(self)

    def __str__(self) -> str:
        return str(self.table())


@dataclass(frozen=True, slots=True, repr=False)
class BarChart(Chart):
    """Bars side by side over named categories; `series` has a height for each category."""

    categories: tuple[str, ...]
    series: dict[str, tuple[float, ...]]

    def table(self) -> Table:
        """One row for each category, one column for each series."""
        columns = list(self.series.values())
        rows = [[name, *heights] for name, *heights in zip(self.categories, *columns, strict=True)]
        return Table(_with_axis(self.title, self.y_label), [self.x_label, *self.series], rows, most=len(rows))

    def svg(self) -> str:
        """The picture as SVG text."""
        return bars_svg(self)


@dataclass(frozen=True, slots=True, repr=False)
class Histogram(Chart):
    """Bars over a number line, those of one bin on top of each other; a bin is (from, to, how many)."""

    series: dict[str, tuple[tuple[float, float, int], ...]]
    x_range: tuple[float, float]

    def bins(self) -> list[tuple[float, float]]:
        """The bins that hold anything, in order."""
        return sorted({(start, end) for bins in self.series.values() for start, end, _ in bins})

    def counts(self, start: float) -> list[int]:
        """How many each series has in the bin that begins at `start`."""
        return [sum(n for at, _, n in bins if at == start) for bins in self.series.values()]

    def table(self) -> Table:
        """One row for each bin that holds anything, with a bar of signs for the eye."""
        tallest = max(sum(self.counts(start)) for start, _ in self.bins())
        rows = [
            [number(start), number(end), *self.counts(start), _signs(sum(self.counts(start)), tallest)]
            for start, end in self.bins()
        ]
        names = list(self.series)
        header = [f"{self.x_label}: from", "to", *(names if len(names) > 1 else [self.y_label]), ""]
        title = _with_axis(self.title, self.y_label) if len(names) > 1 else self.title
        return Table(title, header, rows, most=len(rows))

    def svg(self) -> str:
        """The picture as SVG text."""
        return histogram_svg(self)


@dataclass(frozen=True, slots=True, repr=False)
class DotChart(Chart):
    """A line for each row with its values as dots on it; `log` makes each step of the axis ten times the one before."""

    rows: dict[str, dict[str, float]]
    log: bool

    @property
    def names(self) -> list[str]:
        """What the dots stand for, in order of first use."""
        return list(dict.fromkeys(name for values in self.rows.values() for name in values))

    def table(self) -> Table:
        """One row for each line, one column for each kind of dot."""
        rows = [[label, *(values.get(name) for name in self.names)] for label, values in self.rows.items()]
        return Table(_with_axis(self.title, self.x_label), [self.y_label, *self.names], rows, most=len(rows))

    def svg(self) -> str:
        """The picture as SVG text."""
        return dots_svg(self)


@dataclass(frozen=True, slots=True, repr=False)
class LineChart(Chart):
    """Points over a number line, joined in their order; with `marks` they stand alone, each series with a shape."""

    series: dict[str, tuple[tuple[float, float], ...]]
    marks: bool = False
    x_range: tuple[float, float] | None = None
    legend: bool = False
    """Whether a single series is named, too."""

    def points(self) -> list[tuple[float, float]]:
        """The points of all series."""
        return [point for points in self.series.values() for point in points]

    def table(self) -> Table:
        """One row for each place on the x axis, one column for each series; of many places a few."""
        columns = {name: dict(points) for name, points in self.series.items()}
        places = sorted({x for x, _ in self.points()})
        every = max(1, -(-len(places) // _TEXT_ROWS))
        shown = places[::every] if not places or (len(places) - 1) % every == 0 else [*places[::every], places[-1]]
        rows = [[number(x), *(_known(columns[name].get(x)) for name in columns)] for x in shown]
        return Table(_with_axis(self.title, self.y_label), [self.x_label, *columns], rows, most=len(rows))

    def svg(self, width: int = WIDTH) -> str:
        """The picture as SVG text, `width` px wide."""
        return lines_svg(self, width)


def show_bars(
    title: str, x_label: str, y_label: str, categories: Sequence[object], series: Mapping[str, Sequence[float]]
) -> BarChart:
    """Bars over named categories. Name both axes with their unit. LearnerError when a series has another length."""
    names = tuple(str(category) for category in categories)
    _require_data(title, names, series)
    for name, heights in series.items():
        if len(heights) != len(names):
            raise LearnerError(
                f"series {name!r} has {len(heights)} values, and there are {len(names)} categories",
                "give one value for each category",
            )
        _require_numbers(name, heights)
        if any(height < 0 for height in heights):
            raise LearnerError(f"series {name!r} has a value below 0", "bars stand on 0; use show_dots")
    return BarChart(title, x_label, y_label, names, {name: tuple(heights) for name, heights in series.items()})


def show_histogram(
    title: str,
    x_label: str,
    y_label: str,
    series: Mapping[str, Iterable[Sequence[float]]],
    *,
    x_range: tuple[float, float] | None = None,
) -> Histogram:
    """Bars over a number line: for each series the bins as (from, to, how many). LearnerError for bins that overlap."""
    taken = {
        name: tuple(sorted((start, end, int(count)) for start, end, count in bins)) for name, bins in series.items()
    }
    bins = sorted({(start, end) for found in taken.values() for start, end, _ in found})
    _require_data(title, bins, taken)
    for name, found in taken.items():
        _require_numbers(name, [value for one in found for value in one])
    backwards = [(start, end) for start, end in bins if end <= start]
    overlapping = [(one, other) for one, other in pairwise(bins) if other[0] < one[1]]
    if backwards or overlapping:
        raise LearnerError(f"the bins {backwards or overlapping[0]} do not stand side by side", "use bins of one width")
    low, high = x_range or (bins[0][0], bins[-1][1])
    if low > bins[0][0] or high < bins[-1][1]:
        raise LearnerError(
            f"the bins of the chart {title!r} go from {bins[0][0]} to {bins[-1][1]}, and its axis from {low} to {high}",
            "give x_range room for all bins, or leave it out",
        )
    return Histogram(title, x_label, y_label, taken, (low, high))


def show_dots(
    title: str, x_label: str, y_label: str, rows: Mapping[object, Mapping[str, float]], *, log: bool = False
) -> DotChart:
    """Values as dots on one line for each row. LearnerError for a value that a logarithmic axis has no place for."""
    taken = {str(label): dict(values) for label, values in rows.items()}
    _require_data(title, taken, {name: value for values in taken.values() for name, value in values.items()})
    for label, values in taken.items():
        _require_numbers(label, list(values.values()))
        if log and any(value <= 0 for value in values.values()):
            raise LearnerError(f"row {label!r} has a value that is not above 0", "leave log=True out")
    return DotChart(title, x_label, y_label, taken, log)


def show_lines(
    title: str,
    x_label: str,
    y_label: str,
    series: Mapping[str, Iterable[Sequence[float]]],
    *,
    marks: bool = False,
) -> LineChart:
    """Points over a number line, as (x, y) for each series: joined by lines, or with `marks` for themselves.

    LearnerError when the points of a line go back on the x axis.
    """
    taken = {str(name): tuple((x, y) for x, y in points) for name, points in series.items()}
    _require_data(title, [point for points in taken.values() for point in points], taken)
    for name, points in taken.items():
        _require_numbers(name, [value for point in points for value in point])
        if not marks and any(after[0] < before[0] for before, after in pairwise(points)):
            raise LearnerError(f"the points of {name!r} go back on the x axis", "sort them, or draw with marks=True")
    return LineChart(title, x_label, y_label, taken, marks)


def _require_data(title: str, places: Sequence[object] | Mapping[str, object], series: Mapping[str, object]) -> None:
    if not places or not series:
        raise LearnerError(f"there is nothing to draw in the chart {title!r}", "give it at least one value")
    if len(series) > len(PALETTE):
        raise LearnerError(
            f"the chart {title!r} has {len(series)} series; colours can be told apart for {len(PALETTE)}",
            "draw two charts",
        )


def _require_numbers(name: str, values: Sequence[float]) -> None:
    wrong = [value for value in values if not isinstance(value, int | float) or not isfinite(value)]
    if wrong:
        raise LearnerError(f"{name!r} has a value that is no number: {wrong[0]!r}", "leave it out, or give a number")


def _with_axis(title: str, axis: str) -> str:
    return f"{title} ({axis})"


def _known(value: float | None) -> str:
    return "" if value is None else number(value)


def _signs(count: int, tallest: int) -> str:
    return "#" * max(1, round(count / max(tallest, 1) * _TEXT_BAR)) if count else ""
