"""In hand: who held which order when, and what workers were told, with Pop and its cousins one above the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from mqlab.views.colours import BLUE, GREEN, ORANGE, VERMILION
from mqlab.views.svg import FAINT, INK, Drawing, box, circle, ink_on, legend, line, picture, text
from mqlab.views.time_axis import TimeAxis

if TYPE_CHECKING:
    from mqlab.trace.history import History
    from mqlab.trace.record import Record

_LEFT, _WIDTH, _TOP, _ROW, _BAR, _GAP, _LETTER, _BOLD = 96, 640, 90, 40, 17, 60, 6.4, 7.4
_WORKERS = (BLUE, ORANGE)
_FAULTS = {"NodeCrashed": "is killed", "NodeFrozen": "hangs"}


class Seen(Protocol):
    """The lab of a strip, as far as it is drawn."""

    @property
    def history(self) -> History:
        """Its events."""
        ...

    @property
    def now_ms(self) -> float:
        """How long it has played."""
        ...


class Held(NamedTuple):
    """An order in the hands of a worker: from when to when, and what count it was told."""

    worker: str
    order: str
    begin_us: int
    end_us: int
    told_count: int


class Told(NamedTuple):
    """What a worker was told when it said that an order is done."""

    worker: str
    order: str
    at_us: int
    answer: str


class Strip:
    """What happened in one world, from when its first order was taken: times are counted from there."""

    def __init__(self, name: str, lab: Seen, lock_s: float) -> None:
        self.name = name
        self.held: list[Held] = []
        self.told: list[Told] = []
        self.faults: list[tuple[int, str]] = []
        history = lab.history
        taken = list(history.find("WorkTaken"))
        self.begin_us = taken[0].ts_us if taken else 0
        self.end_us = round(lab.now_ms * 1_000) - self.begin_us
        self.told = [
            Told(record.worker, record.order_name, record.ts_us - self.begin_us, record.answer)
            for record in history.find("WorkAnswered")
        ]
        for record in taken:
            begin_us = record.ts_us - self.begin_us
            end_us = min(begin_us + round(lock_s * 1_000_000), self.end_us)
            self.held.append(Held(record.worker, record.order_name, begin_us, end_us, record.told_count))
        self._end_early(list(history.find(("RecordLetGo", "ShareStateRead"))))
        for record in history.find(tuple(_FAULTS)):
            at_us = record.ts_us - self.begin_us
            self.faults.append((at_us, f"{record.target} {_FAULTS[record.kind]}"))
        for record in history.find("NodeStarted"):
            if record.life > 1:
                self.faults.append((record.ts_us - self.begin_us, f"{record.target} is back"))
        self.faults.sort()

    def _end_early(self, taken_back: list[Record]) -> None:
        """An order is in hand until it is done, or taken back: alone, or with all others when a leader starts anew."""
        for place, held in enumerate(self.held):
            ends = [told.at_us for told in self.told if told[:2] == held[:2] and told.answer == "OK"]
            ends += [
                record.ts_us - self.begin_us
                for record in taken_back
                if record.kind == "ShareStateRead" or held.order == f"order {record.queue_offset}"
            ]
            ends = [at_us for at_us in ends if held.begin_us <= at_us < held.end_us]
            if ends:
                self.held[place] = held._replace(end_us=min(ends))

    @property
    def orders(self) -> list[str]:
        """The orders by name."""
        return sorted({held.order for held in self.held})


class InHand(Drawing):
    """A strip for each world, with a row for each order: bars are the times in which a worker had it, with the count
    that it was told; dots are answers to "it is done". `InHand({"Pop": lab, "SQS": other}, lock_s=20)`.
    """

    def __init__(self, worlds: Mapping[str, Seen], lock_s: float, title: str = "Who has which order") -> None:
        self.title = title
        self.strips = [Strip(name, lab, lock_s) for name, lab in worlds.items()]
        self._end_us = max(strip.end_us for strip in self.strips)

    def __str__(self) -> str:
        lines = [self.title]
        for strip in self.strips:
            lines.append(f"  {strip.name}")
            rows = [
                (begin_us, f"{worker} has {order} until {_seconds(end_us)}, count {told_count}")
                for worker, order, begin_us, end_us, told_count in strip.held
            ]
            rows += [(told.at_us, f"{told.worker}: {told.order} is done; answer: {told.answer}") for told in strip.told]
            lines += [f"    {_seconds(at_us):>9}  {words}" for at_us, words in sorted([*rows, *strip.faults])]
        return "\n".join(lines)

    def svg(self) -> str:
        """The picture as SVG text."""
        keys = zip((*_WORKERS, GREEN, VERMILION), ("worker-1", "worker-2", "told: OK", "told: an error"), strict=True)
        body, _ = legend(keys, 40, _LETTER)
        top = _TOP
        for strip in self.strips:
            bottom = top + len(strip.orders) * _ROW
            body.append(text(12, top - 12, strip.name, bold=True))
            faults = "; ".join(f"{words} at {_seconds(at_us)}" for at_us, words in strip.faults)
            body.append(text(24 + len(strip.name) * _BOLD, top - 12, faults))
            body += self._drawn(strip, top, bottom)
            top = bottom + _GAP + 16
        return picture(self.title, _LEFT + _WIDTH + 24, top - 20, body)

    def _drawn(self, strip: Strip, top: float, bottom: float) -> list[str]:
        axis = TimeAxis(0, self._end_us, 0, _LEFT, _WIDTH)
        body = axis.drawn(top, bottom)
        for place, order in enumerate(strip.orders):
            y = top + place * _ROW + 2
            body.append(text(_LEFT - 10, y + _BAR + 5, order, colour=FAINT, anchor="end"))
            for held in strip.held:
                if held.order == order:
                    body += _bar(axis, held, y + _lane(held.worker))
            for told in strip.told:
                if told.order == order:
                    colour = GREEN if told.answer == "OK" else VERMILION
                    middle = y + _lane(told.worker) + _BAR / 2
                    tip = f"{told.worker}: {told.answer}"
                    body.append(circle(axis.x(told.at_us), middle, 5, colour, stroke=INK, tip=tip))
        for at_us, _ in strip.faults:
            body.append(line(axis.x(at_us), top - 6, axis.x(at_us), bottom, INK, width=1.2, dash="3 3"))
        return body


def _lane(worker: str) -> float:
    """How far down in an order's row the bars of a worker lie."""
    return 0 if worker == "worker-1" else _BAR + 1


def _bar(axis: TimeAxis, held: Held, y: float) -> list[str]:
    colour = _WORKERS[held.worker != "worker-1"]
    x, until = axis.x(held.begin_us), axis.x(held.end_us)
    words = f"count {held.told_count}"
    tip = f"{held.worker}, {words}, until {_seconds(held.end_us)}"
    shown = [box(x, y, max(3.0, until - x), _BAR, colour, tip=tip)]
    if until - x > len(words) * _LETTER + 12:
        shown.append(text(x + 8, y + 13, words, colour=ink_on(colour)))
    return shown


def _seconds(us: int) -> str:
    return f"{us / 1_000_000:.1f} s"
