"""Steps of orders: when each was at work, one order below the other, and which were begun too early."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

from mqlab.errors import LearnerError
from mqlab.views.colours import BLUE, GREEN, ORANGE, PINK, SKY
from mqlab.views.svg import INK, Drawing, box, legend, line, picture, text
from mqlab.views.time_axis import TimeAxis

_COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY)
_LEFT, _WIDTH, _TOP, _BAR, _GAP, _LETTER = 92, 690, 84, 8, 10, 6.6


class Work(NamedTuple):
    """Somebody was at one step (from 1 on) of an order, in ms of the world; who has not ended yet ends at infinity."""

    begin_ms: float
    end_ms: float
    who: str
    step: int


class StepBars(Drawing):
    """Each order has a lane for each of its steps, the first on top: done in turn they are stairs that lead down.

    A step that was begun before the one in front of it was done once has a black frame. Times are told from the first
    begin on. `str(bars)` says the same as text.
    """

    def __init__(self, orders: Mapping[str, Sequence[Work]], names: Sequence[str], title: str) -> None:
        """`orders`: what was done of each order; `names`: what the steps are called, the first one first."""
        if not any(orders.values()):
            raise LearnerError("none of these orders was begun yet", "let the world run on first")
        self.orders = {order: list(work) for order, work in orders.items()}
        self.names = list(names)
        self.title = title
        every = [work for works in self.orders.values() for work in works]
        begin_ms = min(work.begin_ms for work in every)
        ends_ms = [work.end_ms if work.end_ms < inf else work.begin_ms for work in every]
        self._axis = TimeAxis.between(begin_ms, max(ends_ms), _LEFT, _WIDTH)

    def too_early(self, order: str) -> list[Work]:
        """What was begun of an order before the step in front of it was done once."""
        works = self.orders[order]
        done = {n: min((w.end_ms for w in works if w.step == n), default=inf) for n in range(len(self.names) + 1)}
        return [work for work in works if work.step > 1 and work.begin_ms < done[work.step - 1]]

    def __str__(self) -> str:
        lines = [f"{self.title}; ! is begun too early"]
        for order, works in self.orders.items():
            early = self.too_early(order)
            told = [f"{self._told(work)}{' !' if work in early else ''}" for work in works]
            lines += [f"  {order}", *(f"    {words}" for words in told)]
        return "\n".join(lines)

    def _told(self, work: Work) -> str:
        end = self._axis.told(round(work.end_ms * 1_000)) if work.end_ms < inf else "never"
        return f"{self.names[work.step - 1]} by {work.who}, {self._axis.told(round(work.begin_ms * 1_000))} to {end}"

    # -- drawing ----------------------------------------------------------------------------------------------------

    def svg(self) -> str:
        """The picture as SVG text."""
        height = len(self.names) * _BAR + _GAP
        bottom = _TOP + len(self.orders) * height
        keys, x = legend(zip(_COLOURS, self.names, strict=False), 40, _LETTER)
        body = [
            *keys,
            box(x, 41, 14, 12, "none", stroke=INK),
            text(x + 20, 52, "begun too early"),
            *self._axis.drawn(_TOP - 8, bottom),
        ]
        for place, (order, works) in enumerate(self.orders.items()):
            y = _TOP + place * height
            body += [text(12, y + height / 2, order, bold=True), line(_LEFT, y - 5, _LEFT + _WIDTH, y - 5, "#e6e6e6")]
            early = self.too_early(order)
            body += [self._bar(work, y, early=work in early) for work in works]
        return picture(self.title, _LEFT + _WIDTH + 24, bottom + 44, body)

    def _bar(self, work: Work, y: float, *, early: bool) -> str:
        x = self._axis.x(round(work.begin_ms * 1_000))
        end_x = self._axis.x(round(work.end_ms * 1_000) if work.end_ms < inf else self._axis.end_us)
        place, width = y + (work.step - 1) * _BAR, max(end_x - x, 3)
        fill = _COLOURS[(work.step - 1) % len(_COLOURS)]
        bar = box(x, place, width, _BAR - 1, fill, tip=self._told(work))
        return bar + box(x - 2, place - 2, width + 4, _BAR + 3, "none", stroke=INK, edge=2) if early else bar
