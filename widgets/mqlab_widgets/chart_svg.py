"""Charts as static SVG: title, axes with their names, a grid that stays in the background, a legend, tips under the
mouse.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from mqlab.views.colours import BLUE, GREEN, ORANGE, PINK, SKY, VERMILION
from mqlab.views.scale import Scale, height_scale, number, value_scale
from mqlab.views.svg import FAINT, INK, box, line, picture, text

if TYPE_CHECKING:
    from mqlab_widgets.charts import BarChart, DotChart, Histogram, LineChart

PALETTE = (BLUE, VERMILION, GREEN, PINK, SKY, ORANGE)

WIDTH, LEFT, RIGHT, PLOT, BOTTOM = 760, 70, 20, 210, 46
"""`LEFT` is the least: long numbers at the y axis take more."""
HEAD, LEGEND = 44, 22
MOST_LABELLED = 16
"""With more bars than this the numbers above them would touch."""
GRID = "#e2e2e2"
ROW, DOT, MARK, LABEL_LETTER = 30, 6, 4, 7
Y_NAME, Y_GAP, DIGIT, SIGN = 25, 8, 8, 4
"""px: where the name of the y axis ends, from there on the widest number, then the gap between it and the plot."""
DASHES = ("", "7 3", "2 3", "9 3 2 3", "12 4", "4 2")
"""Lines differ in these, too."""
_SHAPES = ("circle", "square", "diamond", "triangle", "circle", "square")


def bars_svg(chart: BarChart) -> str:
    """A bar chart: the bars of one category side by side."""
    top = _top(chart.series)
    floor = top + PLOT
    height = height_scale([h for heights in chart.series.values() for h in heights], floor, top)
    left = _left(height)
    body = [*_legend(list(chart.series)), *_height_axis(height, chart.y_label, left)]
    body += _x_name(chart.x_label, floor, left)
    slot = (WIDTH - left - RIGHT) / len(chart.categories)
    width = min(46.0, slot * 0.76 / len(chart.series))
    for at, category in enumerate(chart.categories):
        middle = left + (at + 0.5) * slot
        first = middle - width * len(chart.series) / 2
        body.append(text(_px(middle), floor + 18, category, anchor="middle"))
        for place, (name, heights) in enumerate(chart.series.items()):
            value = heights[at]
            tip = f"{category}, {name}: {number(value)}"
            y = height(value)
            x = _px(first + place * width)
            body.append(box(x, y, _px(width - 1), _px(floor - y), PALETTE[place], tip=tip))
            if len(chart.categories) * len(chart.series) <= MOST_LABELLED:
                body.append(text(_px(x + width / 2), y - 4, number(value), colour=FAINT, anchor="middle"))
    return picture(chart.title, WIDTH, floor + BOTTOM, body)


def histogram_svg(chart: Histogram) -> str:
    """A histogram: the bars of one bin on top of each other."""
    bins = chart.bins()
    top = _top(chart.series)
    floor = top + PLOT
    height = height_scale([sum(chart.counts(start)) for start, _ in bins], floor, top)
    begin = _left(height)
    x_axis = Scale(*chart.x_range, begin, WIDTH - RIGHT)
    body = [*_legend(list(chart.series)), *_height_axis(height, chart.y_label, begin)]
    body += [*_x_name(chart.x_label, floor, begin), *_x_ticks(x_axis, floor)]
    for start, end in bins:
        left, right, below = x_axis(start), x_axis(end), 0
        for place, (name, count) in enumerate(zip(chart.series, chart.counts(start), strict=True)):
            if count:
                tip = f"{number(start)} to {number(end)}, {name}: {count}"
                y = height(below + count)
                body.append(
                    box(left, y, _px(max(right - left - 1, 1.5)), _px(height(below) - y), PALETTE[place], tip=tip)
                )
            below += count
    return picture(chart.title, WIDTH, floor + BOTTOM, body)


def dots_svg(chart: DotChart) -> str:
    """A line for each row with its values as dots on it; each kind of dot has a colour and a shape."""
    left = max(LEFT, 24 + LABEL_LETTER * max(len(label) for label in [*chart.rows, chart.y_label]))
    names = chart.names
    top = _top(names)
    bottom = top + 14 + ROW * len(chart.rows)
    scale = value_scale(
        [value for values in chart.rows.values() for value in values.values()], left, WIDTH - RIGHT, log=chart.log
    )
    body = [*_legend(names, shapes=True), text(left - 12, top + 4, chart.y_label, colour=FAINT, anchor="end")]
    for tick in scale.ticks():
        x = scale(tick)
        body += [line(x, top, x, bottom, GRID, width=1)]
        body += [text(x, bottom + 16, number(tick), colour=FAINT, anchor="middle")]
    body.append(text(_px((left + WIDTH - RIGHT) / 2), bottom + 36, chart.x_label, anchor="middle"))
    for at, (label, values) in enumerate(chart.rows.items()):
        y = top + 14 + ROW * (at + 0.5)
        body.append(text(left - 12, y + 4, label, anchor="end"))
        if values:
            body.append(line(scale(min(values.values())), y, scale(max(values.values())), y, "#b5b5b5", width=2))
        for name, value in values.items():
            place = names.index(name)
            body.append(_dot(place, scale(value), y, tip=f"{label}, {name}: {number(value)}"))
    return picture(chart.title, WIDTH, bottom + BOTTOM, body)


def lines_svg(chart: LineChart, width: int = WIDTH) -> str:
    """Points over a number line; each series has a colour, and a shape or a dash of its own."""
    names = list(chart.series)
    top = HEAD + LEGEND if chart.legend else _top(names)
    floor = top + PLOT
    points = chart.points() or [(0.0, 0.0)]
    right = width - RIGHT
    heights = [y for _, y in points]
    below_zero = min(heights) < 0
    height = value_scale(heights, floor, top, log=False) if below_zero else height_scale(heights, floor, top)
    begin, end = chart.x_range or (min(x for x, _ in points), max(x for x, _ in points))
    left = _left(height)
    x_axis = Scale(begin, end if end > begin else begin + 1, left, right)
    least = 1 if chart.legend else 2
    body = [*_legend(names, shapes=chart.marks, lines=not chart.marks, least=least)]
    body += [*_height_axis(height, chart.y_label, left, right), *_x_name(chart.x_label, floor, left, right)]
    body += _x_ticks(x_axis, floor)
    for place, (name, drawn) in enumerate(chart.series.items()):
        places = [(x_axis(x), height(y)) for x, y in drawn]
        if chart.marks:
            tips = [f"{name}: {number(y)} at {number(x)}" for x, y in drawn]
            body += [_dot(place, x, y, tip=tip, r=MARK) for (x, y), tip in zip(places, tips, strict=True)]
        elif places:
            body.append(_line_of(place, places, name))
    return picture(chart.title, width, floor + BOTTOM, body)


def _line_of(place: int, places: Sequence[tuple[float, float]], name: str) -> str:
    path = "M" + "L".join(f"{x:g} {y:g}" for x, y in places)
    path += "h0" if len(places) == 1 else ""
    dashes = f' stroke-dasharray="{DASHES[place]}"' if DASHES[place] else ""
    return (
        f'<path d="{path}" fill="none" stroke="{PALETTE[place]}" stroke-width="2" stroke-linejoin="round" '
        f'stroke-linecap="round"{dashes}><title>{escape(name)}</title></path>'
    )


def _top(names: Collection[str]) -> int:
    """Where the plot begins: below the title, and below the legend where there is one."""
    return HEAD + (LEGEND if len(names) > 1 else 0)


def _legend(names: Sequence[str], *, shapes: bool = False, lines: bool = False, least: int = 2) -> Iterable[str]:
    """The names of the series under the title; a single series needs none."""
    if len(names) < least:
        return
    x = 18.0 if lines else 14.0
    for place, name in enumerate(names):
        if lines:
            yield line(x - 6, 41, x + 14, 41, PALETTE[place], width=2.5, dash=DASHES[place])
        else:
            yield _dot(place, x + 6, 41) if shapes else box(x, 35, 12, 12, PALETTE[place])
        yield text(_px(x + 18), 45, name, colour=INK)
        x += 34 + 7.2 * len(name)


def _left(scale: Scale) -> int:
    """Where the plot begins, so that the numbers of this y axis stand clear of its name in every usual font."""
    labels = [number(tick) for tick in scale.ticks()]
    widest = max(sum(DIGIT if letter.isalnum() else SIGN for letter in label) for label in labels)
    return max(LEFT, Y_NAME + widest + Y_GAP)


def _height_axis(scale: Scale, name: str, left: int, right: float = WIDTH - RIGHT) -> Iterable[str]:
    for tick in scale.ticks():
        y = scale(tick)
        yield line(left, y, right, y, FAINT if tick == 0 else GRID, width=1)
        yield text(left - Y_GAP, y + 4, number(tick), colour=FAINT, anchor="end")
    middle = (scale.start + scale.end) / 2
    yield (
        f'<text transform="translate(18 {middle:g}) rotate(-90)" text-anchor="middle" fill="{INK}">'
        f"{escape(name)}</text>"
    )


def _x_name(name: str, floor: float, left: int, right: float = WIDTH - RIGHT) -> Iterable[str]:
    yield text(_px((left + right) / 2), floor + 38, name, anchor="middle")


def _x_ticks(scale: Scale, floor: float) -> Iterable[str]:
    for tick in scale.ticks():
        x = scale(tick)
        yield line(x, floor, x, floor + 5, FAINT, width=1)
        yield text(x, floor + 18, number(tick), colour=FAINT, anchor="middle")


def _dot(place: int, x: float, y: float, *, tip: str = "", r: int = DOT) -> str:
    shape, colour = _SHAPES[place], PALETTE[place]
    points = {
        "square": [(-r, -r), (r, -r), (r, r), (-r, r)],
        "diamond": [(0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0)],
        "triangle": [(0, -r - 1), (r + 1, r), (-r - 1, r)],
    }.get(shape)
    title = f"<title>{escape(tip)}</title>" if tip else ""
    if points is None:
        return f'<circle cx="{x:g}" cy="{y:g}" r="{r}" fill="{colour}" stroke="#ffffff">{title}</circle>'
    corners = " ".join(f"{x + dx:g},{y + dy:g}" for dx, dy in points)
    return f'<polygon points="{corners}" fill="{colour}" stroke="#ffffff">{title}</polygon>'


def _px(value: float) -> float:
    return round(value, 2)
