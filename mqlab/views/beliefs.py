"""Beliefs: who thinks that a broker serves a topic, and for how long they are wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mqlab.trace.record import Record
from mqlab.views.labelled_bytes import PALETTE
from mqlab.views.stretches import states_between
from mqlab.views.svg import INK, Drawing, box, legend, picture, text
from mqlab.views.time_axis import SecondsAxis

RIGHT, STALE, HANGS, AWAY = PALETTE[0], PALETTE[5], PALETTE[1], "#d9d9d9"
_LEFT, _WIDTH, _TOP, _ROW, _BAR, _LETTER = 120, 760, 80, 36, 22, 6.4
_PROCESS = {
    "NodeStarted": "runs",
    "NodeThawed": "runs",
    "NodeCrashed": "is down",
    "PowerLost": "is down",
    "NodeFrozen": "hangs",
}
IN_ROUTE, NOT_IN_ROUTE = "in the route", "not in the route"
_COLOURS = {"runs": RIGHT, IN_ROUTE: RIGHT, "hangs": HANGS, "is down": AWAY, NOT_IN_ROUTE: AWAY}


class Span(NamedTuple):
    """From `begin_us` to `end_us` a machine was in one state."""

    begin_us: int
    end_us: int
    state: str


class Beliefs(Drawing):
    """One row says what a broker did, the others what name servers and clients thought of it.

    A stretch in which somebody has the broker in a route although it does not run is stale, and drawn so.
    `str(beliefs)` says the same as text; times are seconds after `zero_ms`.
    """

    def __init__(self, broker: str, topic: str, rows: dict[str, list[Span]], zero_us: int) -> None:
        self.broker = broker
        self.topic = topic
        self.rows = rows
        self.zero_us = zero_us

    @classmethod
    def of(
        cls, history: Iterable[Record], topic: str, broker: str, *, zero_ms: float, start_ms: float, end_ms: float
    ) -> Beliefs:
        """What was thought of `broker` and `topic` from `start_ms` to `end_ms` of the world's time."""
        changes: dict[str, list[tuple[int, str]]] = {broker: []}
        for record in history:
            told = _told(record, topic, broker)
            if told is not None:
                changes.setdefault(told[0], []).append((record.ts_us, told[1]))
        begin_us, end_us = round(start_ms * 1_000), round(end_ms * 1_000)
        rows = {
            name: [Span(*found) for found in states_between(changed, begin_us, end_us)]
            for name, changed in changes.items()
        }
        return cls(broker, topic, rows, round(zero_ms * 1_000))

    def stale_ms(self, name: str) -> float:
        """For how long somebody had the broker in the route while it did not run."""
        return sum(span.end_us - span.begin_us for span in self._split(name) if span.state == "stale") / 1_000

    def _split(self, name: str) -> list[Span]:
        """The spans of a name server or client, those in the route cut where the broker's own state changes."""
        parts = []
        for span in self.rows[name]:
            for real in self.rows[self.broker]:
                begin, end = max(span.begin_us, real.begin_us), min(span.end_us, real.end_us)
                if begin < end:
                    wrong = span.state == IN_ROUTE and real.state != "runs"
                    parts.append(Span(begin, end, "stale" if wrong else span.state))
        return parts

    def seconds(self, at_us: int) -> str:
        """A time in words: "4.278"."""
        return f"{(at_us - self.zero_us) / 1_000_000:.3f}"

    @property
    def _title(self) -> str:
        return f"Who thinks that {self.broker} serves {self.topic}"

    def __str__(self) -> str:
        lines = [f"{self._title}; seconds"]
        for name, spans in self.rows.items():
            for span in spans:
                begin, end = self.seconds(span.begin_us), self.seconds(span.end_us)
                lines.append(f"  {name:<12} {begin:>9} to {end:>9}  {span.state}")
            if name != self.broker:
                lines.append(f"  {'':<12} of that stale: {self.stale_ms(name) / 1_000:.3f}")
        return "\n".join(lines)

    # -- drawing ----------------------------------------------------------------------------------------------------

    def svg(self) -> str:
        """The picture as SVG text."""
        truth = self.rows[self.broker]
        axis = SecondsAxis(truth[0].begin_us, truth[-1].end_us, self.zero_us, _LEFT, _WIDTH, "seconds")
        bottom = _TOP + len(self.rows) * _ROW
        body = _legend()
        for number, name in enumerate(self.rows):
            y = _TOP + number * _ROW
            body.append(text(12, y + 16, name, bold=True))
            for span in self.rows[name]:
                body.append(_bar(span, axis, y, _COLOURS[span.state]))
            if name != self.broker:
                stale = [span for span in self._split(name) if span.state == "stale"]
                body += [_bar(span, axis, y, STALE) for span in stale]
                body += [self._length(span, axis, y) for span in stale]
        body += axis.drawn(_TOP, bottom)
        return picture(self._title, _LEFT + _WIDTH + 24, bottom + 44, body)

    @staticmethod
    def _length(span: Span, axis: SecondsAxis, y: float) -> str:
        """How long the stale stretch lasts, beside its end (or inside, where there is no room behind it)."""
        ms = (span.end_us - span.begin_us) / 1_000
        words = f"wrong for {ms / 1_000:.1f} s" if ms >= 1_000 else f"wrong for {ms:.1f} ms"
        x = axis.x(span.end_us)
        if x + len(words) * _LETTER < _LEFT + _WIDTH:
            return text(x + 6, y + 16, words, colour=INK)
        return text(x - 6, y + 16, words, colour="#ffffff", anchor="end", bold=True)


def _told(record: Record, topic: str, broker: str) -> tuple[str, str] | None:
    """What an event says of the broker: whose opinion changes, and to what."""
    kind = record.kind
    if kind in _PROCESS and record.target == broker:
        return broker, _PROCESS[kind]
    if kind in ("TopicRouteChanged", "TopicRouteRemoved") and (record.topic, record.broker_name) == (topic, broker):
        return record.node, IN_ROUTE if kind == "TopicRouteChanged" else NOT_IN_ROUTE
    if kind == "RouteUpdated" and record.topic == topic:
        return record.node, IN_ROUTE if broker in record.broker_names.split(",") else NOT_IN_ROUTE
    return None


def _bar(span: Span, axis: SecondsAxis, y: float, fill: str) -> str:
    x = axis.x(span.begin_us)
    return box(x, y, axis.x(span.end_us) - x, _BAR, fill, tip=span.state)


def _legend() -> list[str]:
    keys = (
        (RIGHT, "runs, and is in the route"),
        (STALE, "in the route although it does not run: stale"),
        (HANGS, "hangs"),
        (AWAY, "down, or not in the route"),
    )
    return legend(keys, 42, _LETTER)[0]
