"""Charts as Bokeh figures: the same data, colours and words as the static pictures, with zoom and exact values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mqlab.errors import MissingExtraError
from mqlab_widgets.chart_svg import LEFT, PALETTE, RIGHT, WIDTH
from mqlab_widgets.charts import BarChart, Chart, DotChart, Histogram, LineChart

try:
    from bokeh.layouts import gridplot
    from bokeh.models import ColumnDataSource, DataRange1d, GridPlot, HoverTool, NumeralTickFormatter
    from bokeh.models.annotations import Legend, LegendItem
    from bokeh.plotting import figure
    from bokeh.transform import dodge
except ImportError:
    raise MissingExtraError("bokeh", "widgets") from None

HEIGHT = 340
TOOLS = "xbox_zoom,xwheel_zoom,reset"
DASHES = ("solid", "dashed", "dotted", "dotdash", [12, 4], [4, 2])
_MARKERS = ("circle", "square", "diamond", "triangle", "circle", "square")


def figure_of(chart: Chart) -> figure:
    """A chart as a figure."""
    drawn: figure = _FIGURES[type(chart)](chart)
    return drawn


def _bars_figure(chart: BarChart) -> figure:
    """A bar chart: the bars of one category side by side."""
    drawn = _figure(chart, x_range=list(chart.categories), y_range=DataRange1d(start=0), tools="reset")
    width = 0.76 / len(chart.series)
    source = ColumnDataSource({"category": list(chart.categories), **{k: list(v) for k, v in chart.series.items()}})
    for place, name in enumerate(chart.series):
        at = dodge("category", (place + 0.5) * width - 0.38, range=drawn.x_range)
        bars = drawn.vbar(x=at, top=name, width=width * 0.94, source=source, color=PALETTE[place], legend_label=name)
        tips = [(chart.x_label, "@category"), (name, f"@{{{name}}}")]
        drawn.add_tools(HoverTool(renderers=[bars], tooltips=tips))
    return _finished(drawn, len(chart.series))


def _histogram_figure(chart: Histogram) -> figure:
    """A histogram: the bars of one bin on top of each other."""
    drawn = _figure(chart, x_range=chart.x_range, y_range=DataRange1d(start=0), tools=TOOLS)
    bins = chart.bins()
    below = [0] * len(bins)
    for place, name in enumerate(chart.series):
        counts = [chart.counts(start)[place] for start, _ in bins]
        top = [low + count for low, count in zip(below, counts, strict=True)]
        left, right = [start for start, _ in bins], [end for _, end in bins]
        source = ColumnDataSource({"left": left, "right": right, "bottom": below, "top": top, "count": counts})
        bars = drawn.quad(
            source=source, fill_color=PALETTE[place], line_color="white", legend_label=name,
            left="left", right="right", bottom="bottom", top="top",
        )  # fmt: skip
        tips = [(chart.x_label, "@left{0.00} to @right{0.00}"), (f"{name}, {chart.y_label}", "@count")]
        drawn.add_tools(HoverTool(renderers=[bars], tooltips=tips))
        below = top
    return _finished(drawn, len(chart.series))


def _dots_figure(chart: DotChart) -> figure:
    """A line for each row with its values as dots on it."""
    rows = list(chart.rows)
    drawn = _figure(chart, y_range=rows[::-1], x_axis_type="log" if chart.log else "linear", tools=TOOLS)
    filled = {label: values for label, values in chart.rows.items() if values}
    drawn.segment(
        x0=[min(values.values()) for values in filled.values()],
        x1=[max(values.values()) for values in filled.values()],
        y0=list(filled), y1=list(filled), color="#b5b5b5", line_width=2,
    )  # fmt: skip
    for place, name in enumerate(chart.names):
        having = [label for label, values in chart.rows.items() if name in values]
        source = ColumnDataSource({"row": having, "value": [chart.rows[label][name] for label in having]})
        dots = drawn.scatter(
            x="value", y="row", source=source, size=12, color=PALETTE[place], marker=_MARKERS[place], legend_label=name
        )
        tips = [(chart.y_label, "@row"), (f"{name}: {chart.x_label}", "@value{0,0.[000]}")]
        drawn.add_tools(HoverTool(renderers=[dots], tooltips=tips))
    return _finished(drawn, len(chart.names))


def lines_figure(chart: LineChart, *, slots: int = 0, **options: Any) -> figure:
    """Points over a number line.

    With `slots` there are so many series, the last ones empty and not in the legend, so that a front end can fill them:
    a source is called `source_name`, its item in the legend the same and " name".
    """
    drawn = _figure(chart, y_range=DataRange1d(start=0), **{"tools": TOOLS, **options})
    names = list(chart.series)
    items = []
    for place in range(max(slots, len(names))):
        name = names[place] if place < len(names) else ""
        points = chart.series.get(name, ())
        source = ColumnDataSource(line_columns(points), name=source_name(chart, place))
        drawn_as: dict[str, Any] = {"x": "x", "y": "y", "source": source, "color": PALETTE[place]}
        shape = {"size": 7, "marker": _MARKERS[place]} if chart.marks else {"line_width": 2, "line_dash": DASHES[place]}
        draw: Any = drawn.scatter if chart.marks else drawn.line
        glyph = draw(**drawn_as, **shape)
        tips = [(chart.x_label, "@x{0,0.[000]}"), (chart.y_label, "@y{0,0.[000]}")]
        drawn.add_tools(HoverTool(renderers=[glyph], tooltips=tips, visible=False))
        called = f"{source_name(chart, place)} name"
        items.append(LegendItem(label=name, renderers=[glyph], visible=bool(name), name=called))
    look: dict[str, Any] = {"location": "left", "padding": 0, "margin": 4, "spacing": 16}
    drawn.add_layout(Legend(items=items, border_line_color=None, **look))
    drawn.axis.minor_tick_line_color = None
    return _finished(drawn, max(slots, len(names)))


_FIGURES: dict[type[Chart], Any] = {
    BarChart: _bars_figure, Histogram: _histogram_figure, DotChart: _dots_figure, LineChart: lines_figure,
}  # fmt: skip


def world_grid(charts: Sequence[LineChart], slots: int) -> GridPlot:
    """Charts over one time, two beside each other, which are moved and zoomed together."""
    shared = DataRange1d(start=0, range_padding=0.02)
    options = {"height": 250, "width": None, "sizing_mode": "stretch_width", "x_range": shared}
    drawn = [lines_figure(chart, slots=slots, **options) for chart in charts]
    grid: GridPlot = gridplot([*drawn], ncols=2, sizing_mode="stretch_width", toolbar_options={"logo": None})
    return grid


def source_name(chart: LineChart, place: int) -> str:
    """What the source of a series is called."""
    return f"{chart.title} {place}"


def frame_of(charts: Iterable[LineChart]) -> dict[str, Any]:
    """The columns of each source of these charts, with the name of its series: what a live figure is sent."""
    return {
        source_name(chart, place): {"name": name, "data": line_columns(points)}
        for chart in charts
        for place, (name, points) in enumerate(chart.series.items())
    }


def line_columns(points: Iterable[tuple[float, float]]) -> dict[str, Any]:
    """The columns of a source."""
    taken = list(points)
    return {"x": [x for x, _ in taken], "y": [y for _, y in taken]}


def _figure(chart: Chart, **options: Any) -> figure:
    drawn = figure(
        title=chart.title, x_axis_label=chart.x_label, y_axis_label=chart.y_label,
        min_border_left=LEFT, min_border_right=RIGHT, toolbar_location="right",
        **{"width": WIDTH, "height": HEIGHT, **options},
    )  # fmt: skip
    drawn.toolbar.logo = None
    drawn.axis.axis_label_text_font_style = "normal"
    return drawn


def _finished(drawn: figure, series: int) -> figure:
    """The legend above the plot, where it hides nothing; one series needs none."""
    legend = drawn.legend[0]
    legend.visible = series > 1
    legend.orientation = "horizontal"
    drawn.add_layout(legend, "above")
    for axis in drawn.axis:
        if type(axis).__name__ in ("LinearAxis", "LogAxis"):
            axis.formatter = NumeralTickFormatter(format="0,0.[000]")
    return drawn
