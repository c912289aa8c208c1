"""Where everything stands: columns from producers over brokers to consumers; rows, where the page is narrow.

A card gathers what is drawn in it and notes the spots to which messages move.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from html import escape
from typing import NamedTuple

from mqlab_widgets.scene.style import BOLD, OWNER_COLOURS, first_that_fits, wrapped

NARROW = 760
"""Below this width the kinds of machines stand one under the other."""
EDGE, GAP, HEAD, LINE = 10, 12, 27, 17
WIRED = 46
"""Between brokers where some are slaves: the commit log is seen on its way."""
BELOW = 4
"""Room below the last row of a card."""
SERVERS = 42
"""Height of the row of name servers, and of that of proxies."""
SERVER = 30.0
"""Height of one of them."""
LEGEND_LINE = 20
HEIGHT, NARROW_HEIGHT = 440, 620
"""How high a stage is that may be as high as it likes."""
LEAST, NARROW_LEAST = 372, 450
"""In less height than this all is drawn smaller, and on a narrow page in columns."""
SMALLEST = 0.68
"""No smaller than so much of its size is anything drawn on a low page; of a lower one the foot is not seen."""
COLUMNS = 620
"""Columns need this width."""
BIG = 1.85
"""How much larger everything is in projector mode: text of 13 px becomes one of 24, if the window is large enough."""
LEAST_IN_HALL = 300
"""The height that a stage needs there, in its own units."""
SENDERS, CONSUMERS, BETWEEN = 80, 126, 28
"""On a narrow page: the heights of producers and of consumers, and the room between kinds, in which frames are seen."""
LANE = 6
"""The two directions of a wire run side by side, so far from its middle."""

Point = tuple[float, float]


class Column(NamedTuple):
    """The room for the cards of one kind."""

    x: float
    y: float
    width: float
    height: float
    down: bool
    """Whether its cards stand one under the other, or side by side."""


class Row(NamedTuple):
    """A row of a card: its shapes, drawn from (0, 0) at its left end downwards, its height, and spots in it by name."""

    shapes: str
    height: float
    spots: dict[Hashable, Point]


class Sheet:
    """What one scene is drawn on: it keeps its rows with what each was drawn from, so that the next scene draws only
    those that are different. `consumers` say who has which colour.
    """

    def __init__(self, consumers: list[str], before: Sheet | None = None) -> None:
        self._colours = {name: f"o{place % len(OWNER_COLOURS)}" for place, name in enumerate(consumers)}
        self._before = {} if before is None else before._rows
        self._rows: dict[Hashable, tuple[tuple[object, ...], Row]] = {}

    def row(self, name: Hashable, drawn_from: tuple[object, ...], draw: Callable[[], Row]) -> Row:
        """The row of this name, drawn anew if what it is drawn from is not what it was."""
        kept = self._before.get(name)
        if kept is None or kept[0] != drawn_from:
            kept = drawn_from, draw()
        self._rows[name] = kept
        return kept[1]

    def owner_css(self, consumer: str) -> str:
        """The style class of a consumer's colour."""
        return self._colours.get(consumer, "o0")


class Card:
    """One machine (or a sum of many): its place, what is drawn in it, and spots in it by name.

    What is drawn in it are pieces, each a part of the scene: the card itself has an empty slot for each of them.
    """

    def __init__(self, name: str, kind: str, width: float, sheet: Sheet) -> None:
        self.name = name
        self.sheet = sheet
        self.kind = kind
        self.x = self.y = 0.0
        self.width = width
        self.height = float(HEAD)
        self.pieces: dict[str, tuple[str, str]] = {}
        """Name of a part of the scene -> where it is, and its shapes."""
        self.spots: dict[Hashable, Point] = {}
        self.note: Sequence[str] = ()
        """What stands at the right of its head: wordings of it, from long to short."""
        self.beside = 0.0
        """Room at the right of its head for what is drawn there."""

    def line(self, *wordings: str, css: str = "faint") -> None:
        """One more line of text: of these wordings, from long to short, the first that there is room for."""
        shown = first_that_fits(wordings, self._across(css))
        tip = f"<title>{escape(wordings[0])}</title>" if shown != wordings[0] else ""
        self.row(f'<text class="{css}" x="10" y="12">{escape(shown)}{tip}</text>', LINE)

    def lines(self, words: str, room: float, css: str = "faint") -> None:
        """As many more lines of text as the words take and the card has room for, and none where it has no room."""
        most = int((room - self.height - BELOW) // LINE)
        for line in wrapped(words, self._across(css), most) if most > 0 else []:
            self.line(line, css=css)

    def _across(self, css: str) -> float:
        """How long a line of this style may be."""
        return (self.width - 20) / (1 if css == "faint" else BOLD)

    def row(self, shapes: str, height: float) -> None:
        """One more row of shapes, drawn from (0, 0) at its left end downwards."""
        self._piece(shapes)
        self.height += height

    def _piece(self, shapes: str) -> None:
        name = f"card:{self.name}/{len(self.pieces)}"
        self.pieces[name] = f'transform="translate(0 {self.height:g})"', shapes

    def put(self, row: Row, over: str = "") -> None:
        """One more row, which may have been drawn before, with a piece `over` it that changes more often."""
        for name, (x, y) in row.spots.items():
            self.spot(name, x, y)
        self._piece(row.shapes)
        self._piece(over)
        self.height += row.height

    def spot(self, name: Hashable, x: float, y: float) -> None:
        """Note a spot, counted from the left end of the row that comes next."""
        self.spots[name] = (x, self.height + y)

    def at(self, name: Hashable) -> Point | None:
        """Where a spot is on the stage."""
        found = self.spots.get(name)
        return None if found is None else (self.x + found[0], self.y + found[1])

    @property
    def middle(self) -> Point:
        """Its middle, but not below its head and first row: there the wires end."""
        return self.x + self.width / 2, self.y + min(self.height, 70) / 2


class Sizes(NamedTuple):
    """The size of a stage in its own units, how many px one of them is, and whether its kinds stand in rows."""

    width: float
    height: float
    scale: float
    narrow: bool


def sizes(width: float, height: float, *, big: bool) -> Sizes:
    """How a stage is laid out that is so wide and at most so high on its page, px (0: as high as it likes)."""
    if big:
        scale = min(BIG, width / COLUMNS, height / LEAST_IN_HALL if height else BIG)
        return Sizes(width / scale, height / scale or HEIGHT, scale, False)
    if width < NARROW and (not height or height >= NARROW_LEAST or width < COLUMNS * SMALLEST):
        return Sizes(width, max(NARROW_LEAST, min(NARROW_HEIGHT, height or NARROW_HEIGHT)), 1.0, True)
    scale = max(SMALLEST, min(1.0, (height or HEIGHT) / LEAST, width / COLUMNS))
    return Sizes(width / scale, max(LEAST, min(HEIGHT, (height or HEIGHT) / scale)), scale, False)


def legend_room(width: float, *, big: bool) -> tuple[int, float]:
    """How many lines the legend has at the foot of a stage, and how large they are (in a hall smaller than the rest).
    """
    return (2, 0.8) if big else (2 if width >= 900 else 3 if width >= 560 else 4, 1.0)


def columns(width: float, height: float, *, narrow: bool, big: bool, proxies: bool = False) -> dict[str, Column]:
    """The room for each kind of machine on a stage of this size; proxies stand below the brokers, if there are any."""
    lines, scale = legend_room(width, big=big)
    bottom = height - LEGEND_LINE * scale * lines
    if narrow:
        return _rows(width, bottom, proxies=proxies)
    left = 100.0 if width < NARROW else 124.0 if width < 900 else 150.0 if width < 1500 else 200.0
    right = 140.0 if width < NARROW else 168.0 if width < 900 else 200.0 if width < 1500 else 270.0
    wires = 52.0 if width < NARROW else 70.0 if width < 900 else 90.0
    middle = min(620.0 if width >= 1500 else 500.0, width - 2 * EDGE - left - right - 2 * wires)
    gap = (width - 2 * EDGE - left - right - middle) / 2
    x = EDGE + left + gap
    top = float(SERVERS)
    low = bottom - SERVERS if proxies else bottom
    return {
        "namesrv": Column(x, 6, middle, SERVER, False),
        "producer": Column(EDGE, top, left, bottom - top, True),
        "broker": Column(x, top, middle, low - top, True),
        "proxy": Column(x, low + 6, middle, SERVER, False),
        "consumer": Column(width - EDGE - right, top, right, bottom - top, True),
    }


def _rows(width: float, bottom: float, *, proxies: bool) -> dict[str, Column]:
    """Producers beside name servers, then brokers, proxies and consumers, each kind under the one before."""
    full = width - 2 * EDGE
    senders = full * 0.6
    consumers = bottom - CONSUMERS
    brokers = 6 + SENDERS + BETWEEN
    last = consumers - BETWEEN - (SERVER + 10 if proxies else 0)
    return {
        "producer": Column(EDGE, 6, senders, SENDERS, False),
        "namesrv": Column(EDGE + senders + BETWEEN, 6, full - senders - BETWEEN, SERVER, False),
        "broker": Column(EDGE, brokers, full, last - brokers, False),
        "proxy": Column(EDGE, last + 10, full, SERVER, False),
        "consumer": Column(EDGE, consumers, full, CONSUMERS, False),
    }


def wire(source: Card, target: Card) -> tuple[float, float, float, float]:
    """Where a wire leaves one card and meets the other, in the middle of its two lanes."""
    (ax, ay), (bx, by) = source.middle, target.middle
    if abs(ax - bx) > (source.width + target.width) / 2 - 4:
        right = ax < bx
        # Level where that is possible: the larger card is met at the height of the smaller one.
        if source.height < target.height:
            by = min(max(ay, target.y + 16), target.y + target.height - 16)
        else:
            ay = min(max(by, source.y + 16), source.y + source.height - 16)
        return source.x + source.width * right, ay, target.x + target.width * (not right), by
    below = source.y < target.y
    return ax, source.y + source.height * below, bx, target.y + target.height * (not below)


def lane(source: Card, target: Card) -> tuple[float, float, float, float]:
    """The way of a frame from one card to the other: the wire, a little to its right."""
    x1, y1, x2, y2 = wire(source, target)
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5 or 1.0
    aside_x, aside_y = -LANE * (y2 - y1) / length, LANE * (x2 - x1) / length
    return x1 + aside_x, y1 + aside_y, x2 + aside_x, y2 + aside_y
