"""Time charts: what a number did over time, as a stepped line or as dots, with the limits that matter to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mqlab.views.colours import BLUE, GREEN, ORANGE, VERMILION
from mqlab.views.scale import Scale
from mqlab.views.svg import FAINT, Drawing, line, picture, text

# Notebooks find the colours here, too.
__all__ = ["BLUE", "GREEN", "ORANGE", "VERMILION", "Limit", "Point", "Series", "TimeChart"]

_LEFT, _RIGHT, _TOP, _WIDTH, _HEIGHT, _BELOW = 64, 92, 82, 640, 220, 52
_LETTER, _FINEST = 6.6, 0.001

Point = tuple[float, float]
"""(time in s, value)"""


class Series(NamedTuple):
    """One kind of thing in a chart: a line of steps ("step", "broad", "dashed") or marks ("dot", "cross", "tick").

    A line keeps its value until the next step; a broad one is seen below another that covers it. A tick stands on the
    axis of time and has no value. Shapes tell series apart where colours cannot.
    """

    name: str
    points: Sequence[Point]
    colour: str
    shape: str = "step"


class Limit(NamedTuple):
    """A level that the value shall be compared with, drawn as a dashed line with its name."""

    name: str
    value: float


class TimeChart(Drawing):
    """A picture over time with a title, two axes named with their units, and a text twin that sums the series up."""

    def __init__(
        self, title: str, y_label: str, series: Sequence[Series], limits: Sequence[Limit] = (), x_label: str = "time, s"
    ) -> None:
        self.title = title
        self.x_label = x_label
        self.y_label = y_label
        self.series = list(series)
        self.limits = list(limits)

    def __str__(self) -> str:
        lines = [self.title]
        for drawn in self.series:
            lines.append(f"  {drawn.name}: {_summary(drawn, self.y_label)}")
        lines += [f"  limit: {limit.name}, {limit.value:g}" for limit in self.limits]
        return "\n".join(lines)

    # -- drawing ----------------------------------------------------------------------------------------------------

    def svg(self) -> str:
        """The picture as SVG text; the same numbers give the same text."""
        times = [x for drawn in self.series for x, _ in drawn.points]
        begin, end = (min(times), max(times)) if times else (0.0, 1.0)
        end = end if end > begin else begin + 1
        values = [y for drawn in self.series if drawn.shape != "tick" for _, y in drawn.points]
        top = 1.08 * max([*values, *(limit.value for limit in self.limits), 1e-9])
        across, up = Scale(begin, end, _LEFT, _LEFT + _WIDTH), Scale(0, top, _TOP + _HEIGHT, _TOP)
        body = [*self._legend(), *self._axes(across, up)]
        for limit in self.limits:
            y = up.exact(limit.value)
            body.append(line(_LEFT, y, _LEFT + _WIDTH, y, VERMILION, dash="6 4"))
            body.append(text(_LEFT + _WIDTH + 6, y + 4, limit.name, colour=VERMILION, bold=True))
        for drawn in self.series:
            if drawn.points:
                body.append(_DRAW[drawn.shape](drawn, [(across.exact(x), up.exact(y)) for x, y in drawn.points]))
        return picture(self.title, _LEFT + _WIDTH + _RIGHT, _TOP + _HEIGHT + _BELOW, body)

    def _legend(self) -> list[str]:
        body: list[str] = []
        x = 12.0
        for drawn in (drawn for drawn in self.series if drawn.points):
            body += [_key(drawn, x, 42), text(x + 20, 46, drawn.name)]
            x += 40 + len(drawn.name) * _LETTER
        return body

    def _axes(self, across: Scale, up: Scale) -> list[str]:
        floor = _TOP + _HEIGHT
        right = _LEFT + _WIDTH
        body = [line(_LEFT, floor, right, floor, FAINT, width=1), line(_LEFT, _TOP, _LEFT, floor, FAINT, width=1)]
        for x in across.ticks(12, _FINEST):
            left = across.exact(x)
            body += [line(left, floor, left, floor + 4, FAINT, width=1)]
            body.append(text(left, floor + 18, f"{x:g}", colour=FAINT, anchor="middle"))
        for y in up.ticks(6, _FINEST):
            height = up.exact(y)
            body += [line(_LEFT - 4, height, _LEFT, height, FAINT, width=1)]
            body.append(text(_LEFT - 8, height + 4, f"{y:g}", colour=FAINT, anchor="end"))
        body.append(text(_LEFT + _WIDTH, floor + 38, self.x_label, anchor="end"))
        body.append(text(12, _TOP - 12, self.y_label))
        return body


def _summary(drawn: Series, unit: str) -> str:
    if not drawn.points:
        return "none"
    times = f"{len(drawn.points)} from {drawn.points[0][0]:.3f} s to {drawn.points[-1][0]:.3f} s"
    if drawn.shape == "tick":
        return times
    values = [y for _, y in drawn.points]
    return f"{times}; lowest {min(values):g}, highest {max(values):g} ({unit})"


def _path(commands: str, drawn: Series, width: float, *, cap: str = "butt", dash: str = "") -> str:
    look = f'stroke="{drawn.colour}" stroke-width="{width:g}" stroke-linecap="{cap}"'
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path d="{commands}" fill="none" {look}{dashes}/>'


def _step(drawn: Series, places: list[Point]) -> str:
    steps = "".join(f"H{x:.1f}V{y:.1f}" for x, y in places[1:])
    width, dash = _LINES[drawn.shape]
    return _path(f"M{places[0][0]:.1f} {places[0][1]:.1f}{steps}", drawn, width, dash=dash)


def _dots(drawn: Series, places: list[Point]) -> str:
    return _path("".join(f"M{place}h0" for place in _pixels(places)), drawn, 5, cap="round")


def _crosses(drawn: Series, places: list[Point]) -> str:
    return _path("".join(f"M{place}m-2.5 -2.5l5 5m0 -5l-5 5" for place in _pixels(places)), drawn, 1.2)


def _pixels(places: list[Point]) -> dict[str, None]:
    """The places as whole pixels: of thousands of marks that fall on each other one is drawn."""
    return dict.fromkeys(f"{x:.0f} {y:.0f}" for x, y in places)


def _ticks(drawn: Series, places: list[Point]) -> str:
    return _path("".join(f"M{x:.1f} {_TOP + _HEIGHT:g}v-8" for x, _ in places), drawn, 1)


_LINES = {"step": (2.0, ""), "broad": (6.0, ""), "dashed": (2.0, "7 4")}
"""How wide a line of steps is, and its dashes."""

_DRAW = {"step": _step, "broad": _step, "dashed": _step, "dot": _dots, "cross": _crosses, "tick": _ticks}


def _key(drawn: Series, x: float, y: float) -> str:
    """The small sample of a series in the legend."""
    if drawn.shape in _LINES:
        width, dash = _LINES[drawn.shape]
        return line(x, y, x + 14, y, drawn.colour, width=width, dash=dash)
    if drawn.shape == "tick":
        return line(x + 7, y - 5, x + 7, y + 5, drawn.colour, width=1.5)
    return _DRAW[drawn.shape](drawn, [(x + 7, y)])
