"""Rivals: ways of consuming, compared by how late messages come and by how many requests that takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from math import cos, dist, pi, sin
from typing import NamedTuple

from mqlab.errors import LearnerError
from mqlab.trace.bus import Row
from mqlab.trace.record import KIND, Record
from mqlab.views.labelled_bytes import PALETTE
from mqlab.views.scale import Scale, value_scale
from mqlab.views.svg import FAINT, INK, PAPER, Drawing, line, picture, text
from mqlab.views.table import Table

_LEFT, _TOP, _WIDTH, _HEIGHT, _RIGHT, _BELOW = 76, 76, 620, 330, 40, 56
_LETTER, _ROW = 6.8, 15
_GRID = "#e6e6e6"
_SIZE, _SMALL = 7.0, 3.5
_LEAST, _MOST_POWERS = 1e-3, 20
"""What is less stands where this would."""
_ROUND = tuple((cos(turn * pi / 12), sin(turn * pi / 12)) for turn in range(24))
_SQUARE = ((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85))
_DIAMOND = ((0.0, -1.15), (1.15, 0.0), (0.0, 1.15), (-1.15, 0.0))
_TRIANGLE = ((0.0, -1.1), (1.1, 0.9), (-1.1, 0.9))
_SHAPES = (_ROUND, _SQUARE, _DIAMOND, _TRIANGLE)
"""Corners of the marks, one shape for each family: shapes tell them apart where colours cannot."""
_COUNTED = {"MessageStored", "PullRequested", "PullFinished"}


class Rival(NamedTuple):
    """One way of consuming, measured: how many requests in how long, how many brought nothing, and all delays.

    A delay is the time from the moment a message is stored to the moment its answer is in the consumer's hands; the
    delays are sorted. `waiting` messages were stored and not delivered yet. Rivals of one `family` are the same way
    with other settings.
    """

    name: str
    span_ms: float
    requests: int
    empty_answers: int
    delays_ms: tuple[float, ...]
    waiting: int = 0
    family: str = ""

    @classmethod
    def of(cls, name: str, history: Iterable[Record], topic: str, begin_ms: float, end_ms: float) -> Rival:
        """Measure a stretch of a recorded world, for the pulls of one topic."""
        meter = RivalMeter(topic)
        for record in history:
            if begin_ms <= record.ts_ms <= end_ms:
                meter(record.row)
        return meter.rival(name, end_ms - begin_ms)

    @property
    def requests_per_minute(self) -> float:
        """How often it asks."""
        return self.requests * 60_000 / self.span_ms

    @property
    def empty_per_minute(self) -> float:
        """How often it asks and gets nothing."""
        return self.empty_answers * 60_000 / self.span_ms

    @property
    def median_ms(self) -> float:
        """The delay that half of the messages do not exceed."""
        return self.within_ms(0.5)

    @property
    def p95_ms(self) -> float:
        """The delay that 95 of 100 messages do not exceed."""
        return self.within_ms(0.95)

    def within_ms(self, share: float) -> float:
        """The smallest delay that this share of the messages does not exceed."""
        if not self.delays_ms:
            raise LearnerError(f"{self.name} delivered nothing, so it has no delay", "measure for a longer time")
        return self.delays_ms[max(0, -int(-share * len(self.delays_ms) // 1) - 1)]


class RivalMeter:
    """Counts while a world plays: attach it with `lab.world.hooks.attach(meter)`, and ask for `rival(...)` at the end.

    Read off are MessageStored, PullRequested and PullFinished of one topic. Which messages an answer brought is told by
    its number of messages and its next offset, so the consumer must want all tags.
    """

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.requests = 0
        self.empty_answers = 0
        self._stored: dict[tuple[str, int, int], int] = {}
        self._delays_us: list[int] = []

    def __call__(self, row: Row) -> None:
        """Take in one event of the world."""
        kind = row[KIND]
        if kind not in _COUNTED:
            return
        record = Record(row)
        if record.topic != self.topic:
            return
        if kind == "MessageStored":
            self._stored[record.node, record.queue_id, record.queue_offset] = record.ts_us
        elif kind == "PullRequested":
            self.requests += 1
        elif record.messages:
            self._delivered(record)
        else:
            self.empty_answers += 1

    def _delivered(self, record: Record) -> None:
        for offset in range(record.next_offset - record.messages, record.next_offset):
            stored_us = self._stored.pop((record.broker_name, record.queue_id, offset), None)
            if stored_us is not None:
                self._delays_us.append(record.ts_us - stored_us)

    def rival(self, name: str, span_ms: float, family: str = "") -> Rival:
        """What was counted, as one rival that was watched for `span_ms`."""
        delays_ms = tuple(us / 1_000 for us in sorted(self._delays_us))
        return Rival(name, span_ms, self.requests, self.empty_answers, delays_ms, len(self._stored), family)


class RivalsChart(Drawing):
    """Each rival as a mark: its requests per minute to the right, its median delay upwards, both in powers of ten.

    A thin stroke goes up to the delay that 95 of 100 messages do not exceed. Rivals of one family are joined by a line.
    `str(chart)` is a table of the same numbers.
    """

    def __init__(self, rivals: Sequence[Rival], title: str = "How late, and at which price") -> None:
        if not rivals:
            raise LearnerError("there is no rival to draw", "give at least one, as measured")
        self.rivals = list(rivals)
        self.title = title
        self._families = list(dict.fromkeys(rival.family or rival.name for rival in rivals))
        self._x = _powers([rival.requests_per_minute for rival in rivals], _LEFT, _LEFT + _WIDTH)
        delays = [delay for rival in rivals for delay in (rival.median_ms, rival.p95_ms)]
        self._y = _powers(delays, _TOP + _HEIGHT, _TOP)

    def table(self) -> Table:
        """The numbers of the picture."""
        header = ("rival", "requests per min", "empty answers per min", "median delay, ms", "95 of 100 within, ms")
        rows = [
            (
                rival.name,
                round(rival.requests_per_minute),
                round(rival.empty_per_minute),
                round(rival.median_ms, 1),
                round(rival.p95_ms, 1),
            )
            for rival in self.rivals
        ]
        return Table(self.title, header, rows)

    def __str__(self) -> str:
        return str(self.table())

    # -- drawing ----------------------------------------------------------------------------------------------------

    def svg(self) -> str:
        """The picture as SVG text; the same numbers give the same text."""
        body = [*self._axes(), *self._joins()]
        for rival, size in zip(self.rivals, self._sizes(), strict=True):
            body += self._mark(rival, size)
        body += self._labels()
        return picture(self.title, _LEFT + _WIDTH + _RIGHT, _TOP + _HEIGHT + _BELOW, body)

    def _colour(self, rival: Rival) -> str:
        return PALETTE[self._families.index(rival.family or rival.name) % len(PALETTE)]

    def _place(self, rival: Rival) -> tuple[float, float]:
        return _place(self._x, rival.requests_per_minute), _place(self._y, rival.median_ms)

    def _axes(self) -> list[str]:
        floor, right = _TOP + _HEIGHT, _LEFT + _WIDTH
        body = []
        for value in self._x.ticks(_MOST_POWERS):
            x = self._x.exact(value)
            body.append(line(x, _TOP, x, floor, _GRID, width=1))
            body.append(text(x, floor + 18, f"{value:,.12g}", colour=FAINT, anchor="middle"))
        for value in self._y.ticks(_MOST_POWERS):
            y = self._y.exact(value)
            body.append(line(_LEFT, y, right, y, _GRID, width=1))
            body.append(text(_LEFT - 8, y + 4, f"{value:,.12g}", colour=FAINT, anchor="end"))
        body += [line(_LEFT, floor, right, floor, FAINT, width=1), line(_LEFT, _TOP, _LEFT, floor, FAINT, width=1)]
        body.append(text(right, floor + 40, "requests per minute (each step: ten times as many)", anchor="end"))
        body.append(text(12, _TOP - 14, "delay, ms: median, and up to 95 of 100 messages (each step: ten times)"))
        return body

    def _joins(self) -> list[str]:
        body = []
        for family in self._families:
            places = sorted(self._place(rival) for rival in self.rivals if rival.family == family)
            for (x1, y1), (x2, y2) in pairwise(places):
                body.append(line(x1, y1, x2, y2, FAINT, width=1, dash="4 4"))
        return body

    def _mark(self, rival: Rival, size: float) -> list[str]:
        x, y = self._place(rival)
        top = _place(self._y, rival.p95_ms)
        colour = self._colour(rival)
        often = f"{rival.requests_per_minute:,.0f} requests per minute"
        tip = escape(f"{rival.name}: {often}, median {rival.median_ms:g} ms")
        shape = _SHAPES[self._families.index(rival.family or rival.name) % len(_SHAPES)]
        corners = " ".join(f"{x + size * dx:.1f},{y + size * dy:.1f}" for dx, dy in shape)
        return [
            line(x, y, x, top, colour),
            line(x - 4, top, x + 4, top, colour),
            f'<polygon points="{corners}" fill="{colour}" stroke="{PAPER}"><title>{tip}</title></polygon>',
        ]

    def _sizes(self) -> list[float]:
        """Half the width of each mark: small when it would hide one that is drawn before it."""
        places = [self._place(rival) for rival in self.rivals]
        return [
            _SMALL if any(dist(place, other) < _SIZE for other in places[:n]) else _SIZE
            for n, place in enumerate(places)
        ]

    def _labels(self) -> list[str]:
        """Each name beside its mark, on the first side where it covers nothing."""
        taken = [(x - 7, y - 7, x + 7, y + 7) for x, y in map(self._place, self.rivals)]
        taken += [(x - 4, _place(self._y, r.p95_ms), x + 4, y) for r in self.rivals for x, y in [self._place(r)]]
        body = []
        for rival in self.rivals:
            x, y = self._place(rival)
            width = len(rival.name) * _LETTER
            sides = [(x + 11, y + 4), (x - 11 - width, y + 4), (x + 11, y + 20), (x - 11 - width, y + 20)]
            boxes = [(at_x, at_y - _ROW + 3, at_x + width, at_y + 3) for at_x, at_y in sides]
            free = [n for n, box in enumerate(boxes) if _inside(box) and not any(_meet(box, other) for other in taken)]
            chosen = free[0] if free else 0
            taken.append(boxes[chosen])
            body.append(text(*sides[chosen], rival.name, colour=INK, bold=True))
        return body


Box = tuple[float, float, float, float]


def _inside(box: Box) -> bool:
    return box[0] >= _LEFT and box[2] <= _LEFT + _WIDTH + _RIGHT and box[3] <= _TOP + _HEIGHT


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _powers(values: Iterable[float], start: float, end: float) -> Scale:
    return value_scale([max(value, _LEAST) for value in values], start, end, log=True)


def _place(scale: Scale, value: float) -> float:
    return scale.exact(max(value, _LEAST))
