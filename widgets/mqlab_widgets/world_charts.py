"""Charts of a world against its time, static and live: `WorldCharts(lab)`, and `WorldCharts(lab).live()`.

Static, they are one SVG and a text with the same numbers, which papermill and a page keep. Live, Bokeh draws them and
is sent the new numbers at most twice a second while the world plays; `live_chart.py` says how Bokeh comes to the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from mqlab.errors import LearnerError
from mqlab.views.scale import number
from mqlab.views.svg import Drawing, sheet
from mqlab_widgets.chart_svg import PALETTE
from mqlab_widgets.charts import LineChart
from mqlab_widgets.world_numbers import Interval, WorldNumbers

if TYPE_CHECKING:
    from bokeh.models import GridPlot

    from mqlab import Lab
    from mqlab_widgets.live_charts import LiveWorldCharts

TIME = "time of the world, s"
MOST = len(PALETTE)
OTHERS = "all other groups"
WIDTH, GAP = 500, 8

Points = tuple[tuple[float, float], ...]


class Charts(Drawing):
    """Line charts over one time: static one picture, live figures of Bokeh that are moved and zoomed together."""

    title: ClassVar[str]
    slots: ClassVar[int]
    """How many lines a chart may have at most."""

    def charts(self) -> list[LineChart]:
        """The charts as they are now."""
        raise NotImplementedError(f"{type(self).__name__} must define charts()")

    def __str__(self) -> str:
        return "\n".join(str(chart) for chart in self.charts())

    def svg(self) -> str:
        """All charts in one picture, two beside each other."""
        return side_by_side(self.charts(), self.title)

    def figure(self) -> GridPlot:
        """All charts as Bokeh figures."""
        from mqlab_widgets.chart_bokeh import world_grid

        return world_grid(self.charts(), self.slots)


class WorldCharts(Charts):
    """Throughput, backlog, what is not committed, what is in flight, lag and hold times of a lab, up to now."""

    title: ClassVar[str] = "The world in numbers"
    slots: ClassVar[int] = MOST

    def __init__(self, lab: Lab) -> None:
        if not hasattr(lab, "world"):
            raise LearnerError(f"{lab!r} is not a lab", "write WorldCharts(lab)")
        self.lab = lab
        self._numbers = WorldNumbers(lab)

    def charts(self) -> list[LineChart]:
        """The six charts as they are now."""
        numbers = self._numbers
        numbers.follow()
        rates = {
            "stored": self._line(lambda at: numbers.per_second(at.stored)),
            "consumed": self._line(lambda at: numbers.per_second(at.consumed)),
        }
        reasons = ("arrived", "timed out")
        held = {f"woken: {why}": self._line(_hold_of(why)) for why in reasons}
        backlog = self._by_group(lambda at: at.backlog, sum)
        unnoted = self._by_group(lambda at: at.unnoted, sum)
        in_flight = self._by_group(lambda at: at.in_flight, sum)
        lag = self._by_group(lambda at: {group: ms / 1_000 for group, ms in at.lag_ms.items()}, max)
        return [
            self._chart("Throughput", "messages a second", rates),
            self._chart("Backlog: stored, not consumed", "messages", backlog),
            self._chart("Consumed, not committed", "messages", unnoted),
            self._chart("In flight: pulled, not consumed", "messages", in_flight),
            self._chart("Lag: age of the oldest in the backlog", "lag, s", lag),
            self._chart("Hold times: the longest of each moment", "hold time, s", held, marks=True),
        ]

    def _chart(self, title: str, y_label: str, series: dict[str, Points], *, marks: bool = False) -> LineChart:
        until = (0.0, max(self.lab.now_ms / 1_000, 0.1))
        return LineChart(title, TIME, y_label, series, marks, until, legend=True)

    def _line(self, value: Callable[[Interval], float | None]) -> Points:
        values = ((self._numbers.end_s(n), value(interval)) for n, interval in enumerate(self._numbers.intervals))
        return tuple((round(at, 3), round(y, 4)) for at, y in values if y is not None)

    def _by_group(
        self, values: Callable[[Interval], Mapping[str, float]], join: Callable[[list[float]], float]
    ) -> dict[str, Points]:
        """A line for each group; when there are more than colours, the last one stands for the rest."""
        groups = self._numbers.groups
        alone, rest = (groups, []) if len(groups) <= MOST else (groups[: MOST - 1], groups[MOST - 1 :])
        lines = {group: self._line(_value_of(group, values)) for group in alone}
        if rest:
            lines[OTHERS] = self._line(lambda at: join([values(at).get(group, 0) for group in rest]))
        return lines

    def __str__(self) -> str:
        charts = self.charts()
        lines = [f"up to {number(round(self.lab.now_ms / 1_000, 3))} s of the world's time"]
        for chart in charts:
            lines.append(f"{chart.title} ({chart.y_label})")
            lines += [f"  {name}: {_summary(points)}" for name, points in chart.series.items()] or ["  nothing yet"]
        return "\n".join(lines)

    def live(self) -> LiveWorldCharts:
        """The charts drawn by Bokeh, which follow the world while it plays. MissingExtraError without anywidget.

        A front end that cannot run it keeps showing the static picture, and so does a notebook without a kernel.
        """
        from mqlab_widgets.live_charts import LiveWorldCharts

        return LiveWorldCharts(self)

def side_by_side(charts: Sequence[LineChart], title: str) -> str:
    """Charts in one picture, two beside each other, as SVG text."""
    pictures = [chart.svg(WIDTH) for chart in charts]
    height = row_height = 0
    placed = []
    for place, picture in enumerate(pictures):
        tall = int(picture.split('height="')[1].split('"')[0])
        x = (WIDTH + GAP) * (place % 2)
        placed.append(picture.replace("<svg ", f'<svg x="{x}" y="{height}" ', 1))
        row_height = max(row_height, tall)
        if place % 2 or place == len(pictures) - 1:
            height, row_height = height + row_height + GAP, 0
    width = 2 * WIDTH + GAP
    return sheet(title, width, height, placed)


def _hold_of(reason: str) -> Callable[[Interval], float | None]:
    return lambda at: at.held_ms[reason] / 1_000 if reason in at.held_ms else None


def _value_of(group: str, values: Callable[[Interval], Mapping[str, float]]) -> Callable[[Interval], float | None]:
    return lambda at: values(at).get(group)


def _summary(points: Points) -> str:
    if not points:
        return "nothing yet"
    at, most = max(points, key=lambda point: (point[1], -point[0]))
    return f"now {number(points[-1][1])}, at most {number(most)} (at {number(at)} s)"
