"""Charts: the same numbers as picture and as text, the same bytes every time, clear words for what cannot be drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from mqlab.errors import LearnerError
from mqlab_widgets.charts import Chart, show_bars, show_dots, show_histogram, show_lines
from mqlab_widgets.live_chart import LiveChart, bokeh_js

SVG = "{http://www.w3.org/2000/svg}"


def bars() -> Chart:
    return show_bars("Orders per queue", "queue", "orders", [0, 1], {"day": [200, 203], "night": [20, 0]})


def teeth() -> Chart:
    return show_histogram(
        "Holds", "hold time, s", "pulls", {"a": [(19.75, 20.0, 95), (15.0, 15.25, 6)], "b": [(19.75, 20.0, 5)]}
    )


def dots() -> Chart:
    rows = {"queue 0": {"median": 0.5, "longest": 2315.0}, "queue 1": {"median": 0.25}}
    return show_dots("Waits", "time, ms", "queue", rows, log=True)


def lines() -> Chart:
    return show_lines("Backlog", "time, s", "messages", {"a": [(0, 0), (0.5, 12), (1, 3)], "b": [(1, 6)]})


def marks() -> Chart:
    return show_lines("Holds", "time, s", "hold time, s", {"a": [(2, 15), (1, 5)], "b": [(1, 20)]}, marks=True)


ALL = pytest.mark.parametrize(
    "chart", [bars(), teeth(), dots(), lines(), marks()], ids=["bars", "histogram", "dots", "lines", "marks"]
)


def parsed(chart: Chart) -> ET.Element:
    return ET.fromstring(chart.svg())


def texts(chart: Chart) -> list[str]:
    return [node.text or "" for node in parsed(chart).iter(f"{SVG}text")]


def tips(chart: Chart) -> list[str]:
    """What is shown under the mouse; the first title is the chart's own."""
    return [node.text or "" for node in parsed(chart).iter(f"{SVG}title")][1:]


@ALL
def test_a_chart_names_itself_and_both_axes(chart: Chart) -> None:
    assert {chart.title, chart.x_label, chart.y_label} <= set(texts(chart))
    assert parsed(chart).get("aria-label") == chart.title


@ALL
def test_a_chart_shows_text_and_picture_and_nothing_else(chart: Chart) -> None:
    shown = chart._repr_mimebundle_()
    assert sorted(shown) == ["image/svg+xml", "text/plain"]
    assert shown["text/plain"] == repr(chart)
    assert "<script" not in shown["image/svg+xml"]


def test_the_same_numbers_give_the_same_bytes() -> None:
    for make in (bars, teeth, dots, lines, marks):
        assert make().svg() == make().svg()
        assert repr(make()) == repr(make())


def test_the_text_of_bars_has_every_number() -> None:
    assert repr(bars()).splitlines() == [
        "Orders per queue (orders)",
        "queue  day  night",
        "-----  ---  -----",
        "0      200     20",
        "1      203      0",
    ]
    assert tips(bars()) == ["0, day: 200", "0, night: 20", "1, day: 203", "1, night: 0"]


def test_bars_are_as_high_as_their_numbers() -> None:
    heights = [float(node.get("height", 0)) for node in parsed(bars()).iter(f"{SVG}rect") if len(node)]
    assert heights[0] / heights[1] == pytest.approx(10, rel=0.01)


def test_a_histogram_sorts_its_bins_and_stacks_its_series() -> None:
    lines = repr(teeth()).splitlines()
    assert [line.split()[:4] for line in lines[3:]] == [["15", "15.25", "6", "0"], ["19.75", "20", "95", "5"]]
    assert lines[-1].endswith("#" * 40)
    assert tips(teeth()) == ["15 to 15.25, a: 6", "19.75 to 20, a: 95", "19.75 to 20, b: 5"]
    lower, upper = [node for node in parsed(teeth()).iter(f"{SVG}rect") if len(node)][1:]
    assert float(upper.get("y", 0)) + float(upper.get("height", 0)) == pytest.approx(float(lower.get("y", 0)))


def test_a_histogram_of_one_series_says_what_it_counts() -> None:
    one = show_histogram("Holds", "hold time, s", "pulls", {"holds": [(15.0, 15.25, 6)]}, x_range=(14, 21))
    assert repr(one).splitlines()[:2] == ["Holds", "hold time, s: from  to     pulls"]
    assert {"14", "21"} <= set(texts(one))


def test_dots_on_a_logarithmic_axis_are_equal_factors_apart() -> None:
    chart = show_dots("x", "ms", "row", {"a": {"one": 1, "ten": 10, "hundred": 100}}, log=True)
    circle = next(parsed(chart).iter(f"{SVG}circle"))
    assert tips(chart) == ["a, one: 1", "a, ten: 10", "a, hundred: 100"]
    assert {"1", "10", "100"} <= set(texts(chart))
    assert float(circle.get("cy", 0)) < 66


def test_a_row_need_not_have_every_dot() -> None:
    assert [line.split() for line in repr(dots()).splitlines()[3:]] == [
        ["queue", "0", "0.5", "2315"],
        ["queue", "1", "0.25"],
    ]


def test_a_line_goes_through_its_points_from_left_to_right() -> None:
    first, second = parsed(lines()).iter(f"{SVG}path")
    places = [tuple(map(float, pair.split())) for pair in first.get("d", "").removeprefix("M").split("L")]
    assert [x for x, _ in places] == sorted(x for x, _ in places)
    assert places[0][1] > places[2][1] > places[1][1]
    assert second.get("stroke-dasharray")
    assert second.get("stroke") != first.get("stroke")
    assert [line.split() for line in repr(lines()).splitlines()[3:]] == [["0", "0"], ["0.5", "12"], ["1", "3", "6"]]


def test_marks_differ_in_shape_and_tell_their_values() -> None:
    assert tips(marks()) == ["a: 15 at 2", "a: 5 at 1", "b: 20 at 1"]
    assert len(list(parsed(marks()).iter(f"{SVG}circle"))) == 3
    assert len(list(parsed(marks()).iter(f"{SVG}polygon"))) == 2


def test_the_text_of_a_long_line_has_a_few_of_its_points_and_the_last() -> None:
    chart = show_lines("t", "x", "y", {"a": [(n, n * n) for n in range(1_000)]})
    rows = repr(chart).splitlines()[3:]
    assert len(rows) <= 25
    assert rows[-1].split() == ["999", "998,001"]


def test_words_from_outside_stay_words() -> None:
    chart = show_bars("a < b", "x & y", "n", ["<b>"], {"s": [1]})
    assert {"a < b", "x & y", "<b>"} <= set(texts(chart))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: show_bars("t", "x", "y", [], {}), "nothing to draw"),
        (lambda: show_histogram("t", "x", "y", {"s": []}), "nothing to draw"),
        (lambda: show_dots("t", "x", "y", {"r": {}}), "nothing to draw"),
        (lambda: show_bars("t", "x", "y", ["a", "b"], {"s": [1]}), "has 1 values, and there are 2 categories"),
        (lambda: show_bars("t", "x", "y", ["a"], {"s": [-1]}), "below 0"),
        (lambda: show_bars("t", "x", "y", ["a"], {"s": [float("nan")]}), "no number: nan"),
        (lambda: show_bars("t", "x", "y", ["a"], {str(n): [1] for n in range(7)}), "7 series"),
        (lambda: show_histogram("t", "x", "y", {"s": [(0, 2, 1), (1, 3, 1)]}), "do not stand side by side"),
        (lambda: show_histogram("t", "x", "y", {"s": [(2, 1, 1)]}), "do not stand side by side"),
        (lambda: show_histogram("t", "x", "y", {"s": [(1, 2, 1)]}, x_range=(1.5, 3)), "its axis from 1.5 to 3"),
        (lambda: show_dots("t", "x", "y", {"r": {"a": 0}}, log=True), "not above 0"),
        (lambda: show_lines("t", "x", "y", {"r": []}), "nothing to draw"),
        (lambda: show_lines("t", "x", "y", {"r": [(2, 1), (1, 1)]}), "go back on the x axis"),
        (lambda: show_lines("t", "x", "y", {"r": [(0, float("inf"))]}), "no number: inf"),
    ],
)
def test_what_cannot_be_drawn_is_said(make: Any, words: str) -> None:
    with pytest.raises(LearnerError, match=words):
        make()


def test_all_zeros_are_a_chart_too() -> None:
    assert "0" in texts(show_bars("t", "x", "y", ["a"], {"s": [0]}))
    assert texts(show_dots("t", "x", "y", {"r": {"a": 0}}))
    assert {"0", "1"} <= set(texts(show_lines("t", "x", "y", {"r": [(0, 0)]})))


WITH_HEIGHT: dict[str, Callable[[float], Chart]] = {
    "bars": lambda height: show_bars("t", "x", "rows", ["a"], {"s": [height]}),
    "histogram": lambda height: show_histogram("t", "x", "rows", {"s": [(0, 1, height)]}),
    "lines": lambda height: show_lines("t", "x", "rows", {"s": [(0, 1), (1, height)]}),
}


@pytest.mark.parametrize("height", [8_000, 10_000, 250_000, 30_000_000])
@pytest.mark.parametrize("kind", WITH_HEIGHT)
def test_the_name_of_the_y_axis_stands_clear_of_the_longest_number_at_it(kind: str, height: float) -> None:
    chart = WITH_HEIGHT[kind](height)
    end, labels = at_the_y_axis(chart)
    assert end - max(map(width_of, labels)) >= NAME_ENDS
    assert plot_begins(chart) == end + 8


def test_a_chart_with_short_numbers_has_the_usual_margin() -> None:
    assert [plot_begins(chart) for chart in (bars(), teeth(), lines(), marks())] == [70, 70, 70, 70]


NAME_ENDS = 18 + 4
"""px: the name of the y axis is written upwards on a line at 18, and its letters hang over that line by less than 4."""
DIGIT, SIGN = 7.7, 4.0
"""px: how wide a digit and a comma or a point of 12 px are in DejaVu Sans, the widest of the usual fonts."""


def at_the_y_axis(chart: Chart) -> tuple[float, list[str]]:
    """Where the numbers at the y axis end, and the numbers."""
    found = [node for node in parsed(chart).iter(f"{SVG}text") if node.get("text-anchor") == "end"]
    (end,) = {float(node.get("x", 0)) for node in found}
    return end, [node.text or "" for node in found]


def width_of(label: str) -> float:
    return sum(DIGIT if letter.isdigit() else SIGN for letter in label)


def plot_begins(chart: Chart) -> float:
    """Where the lines of the grid begin."""
    return min(float(node.get("x1", 0)) for node in parsed(chart).iter(f"{SVG}line") if node.get("x2") == "740")


# -- live ----------------------------------------------------------------------------------------------------------


@ALL
def test_the_live_chart_has_the_static_one_beside_it(chart: Chart) -> None:
    data, _ = chart.live()._repr_mimebundle_()
    assert data["image/svg+xml"] == chart.svg()
    assert data["text/plain"] == f"live: {chart}"
    assert "application/vnd.jupyter.widget-view+json" in data


class FrontEnd:
    """A front end's side of a live chart: what it asks, and what it was sent."""

    def __init__(self, chart: Chart) -> None:
        self.widget = LiveChart(chart)
        self.sent: list[Any] = []
        self.widget.send = lambda content, buffers=None: self.sent.append(content)

    def ask(self, what: str) -> Any:
        self.widget._handle_custom_msg({"ask": what}, [])
        return self.sent.pop() if self.sent else None


def test_a_front_end_is_sent_the_library_of_the_installed_bokeh() -> None:
    front_end = FrontEnd(bars())
    assert front_end.ask("library") == {"library": bokeh_js()}
    assert f'"{front_end.widget.bokeh_version}"' in bokeh_js()


@ALL
def test_a_front_end_is_sent_a_figure_with_the_charts_words(chart: Chart) -> None:
    item = FrontEnd(chart).ask("figure")["figure"]
    assert {chart.title, chart.x_label, chart.y_label} <= set(strings(item))


def test_what_nobody_understands_is_not_answered() -> None:
    assert FrontEnd(bars()).ask("the weather") is None


def strings(item: Any) -> list[str]:
    """Every text in a nested structure."""
    if isinstance(item, dict):
        return [text for value in item.values() for text in strings(value)]
    if isinstance(item, list):
        return [text for value in item for text in strings(value)]
    return [item] if isinstance(item, str) else []
