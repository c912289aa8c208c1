"""The send strip: each call of `send` over time, by producer and broker, beside what was true and what was known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

from mqlab.errors import LearnerError
from mqlab.trace.record import Record
from mqlab.views.beliefs import IN_ROUTE, Beliefs, Span
from mqlab.views.labelled_bytes import PALETTE
from mqlab.views.sends import Sends
from mqlab.views.svg import FAINT, INK, Drawing, box, line, picture, text
from mqlab.views.table import Table
from mqlab.views.time_axis import SecondsAxis

STORED, SAVED, FAILED, RESTS = PALETTE[0], PALETTE[1], PALETTE[5], PALETTE[3]
KNOWN, UNKNOWN, FAULT = "#d6e9f5", "#ececec", "#fbe6dc"
_LEFT, _WIDTH, _RIGHT, _TOP, _BAR, _LANE = 128, 620, 134, 86, 16, 18
_TICK, _SHORT = 2.5, 8
SLOW_MS = 900
"""A call that took longer counts as slow; the recordings of a real broker count so."""


class Attempt(NamedTuple):
    """One attempt of a call: when, at which broker, and why it failed (empty: the broker stored the message)."""

    begin_us: int
    end_us: int
    broker: str
    reason: str


class SendCall(NamedTuple):
    """One call of `send`, as the application sees it; `reason` is empty when it returned a result."""

    begin_us: int
    end_us: int
    attempts: tuple[Attempt, ...]
    reason: str

    @property
    def ms(self) -> float:
        """How long the application waited."""
        return (self.end_us - self.begin_us) / 1_000

    @property
    def failed(self) -> bool:
        """Whether the application saw an error."""
        return bool(self.reason)

    @property
    def slow(self) -> bool:
        """Whether it ended well, but late."""
        return not self.failed and self.ms > SLOW_MS


class SendStrip(Drawing):
    """Calls of `send` over time: a lane for each broker and producer, a box for each attempt.

    It reads synchronous sends from a history; a call belongs to the stretch in which it begins. Behind the boxes
    stands what the producer knew: whether the watched broker was in its route, and whether its fault table let it rest.
    `str(strip)` says the same as text, and `summary()` is a table; times are seconds after `zero_ms`.
    """

    def __init__(
        self, beliefs: Beliefs, calls: dict[str, list[SendCall]], rests: dict[str, list[Span]], brokers: list[str]
    ) -> None:
        self.beliefs = beliefs
        self.calls = calls
        self.rests = rests
        self.brokers = brokers
        truth = beliefs.rows[beliefs.broker]
        self._begin_us, self._end_us = truth[0].begin_us, truth[-1].end_us
        times = (self._begin_us, self._end_us, beliefs.zero_us)
        self._axis = SecondsAxis(*times, _LEFT, _WIDTH, "time in seconds")

    @classmethod
    def of(
        cls,
        history: Iterable[Record],
        topic: str,
        broker: str,
        *,
        zero_ms: float,
        start_ms: float,
        end_ms: float,
        producers: Sequence[str] | None = None,
    ) -> SendStrip:
        """The sends to `topic` from `start_ms` to `end_ms`, by the machines `producers` (all of them unless told)."""
        records = list(history)
        begin_us, end_us = round(start_ms * 1_000), round(end_ms * 1_000)
        found = sends(records, topic)
        wanted = list(found) if producers is None else list(producers)
        missing = [name for name in wanted if name not in found]
        if missing or not wanted:
            known = ", ".join(found) or "nobody"
            raise LearnerError(f"no send to {topic!r} of {' and '.join(missing) or 'anybody'}", f"{known} sent to it")
        calls = {name: [c for c in found[name] if begin_us <= c.begin_us < end_us] for name in wanted}
        brokers = sorted({a.broker for name in wanted for c in found[name] for a in c.attempts} | {broker})
        beliefs = Beliefs.of(records, topic, broker, zero_ms=zero_ms, start_ms=start_ms, end_ms=end_ms)
        return cls(beliefs, calls, _rests(records, broker, begin_us, end_us), brokers)

    def summary(self) -> Table:
        """What the applications saw: calls, errors, slow calls, and how long a call took."""
        rows = []
        for name, calls in self.calls.items():
            times = [call.ms for call in calls] or [0.0]
            failed, slow = sum(call.failed for call in calls), sum(call.slow for call in calls)
            rows.append((name, len(calls), failed, slow, round(median(times), 2), round(max(times), 1)))
        header = ("producer", "calls", "failed", f"slow (over {SLOW_MS} ms)", "median ms", "longest ms")
        return Table("what the applications saw", header, rows)

    @property
    def _title(self) -> str:
        return f"Sends to {self.beliefs.topic}, while {self.beliefs.broker} is watched"

    def __str__(self) -> str:
        lines = [f"{self._title}; seconds"]
        for name in [self.beliefs.broker, *self._servers()]:
            spans = self.beliefs.rows[name]
            lines += [f"  {name:<12} {self._stretch(span)}  {span.state}" for span in spans]
        for name, calls in self.calls.items():
            failed, slow = sum(call.failed for call in calls), sum(call.slow for call in calls)
            lines.append(f"  {name:<12} {len(calls)} calls, {failed} failed, {slow} slow")
            lines += [f"  {'':<12} {self._stretch(span)}  {span.state}" for span in self.beliefs.rows.get(name, [])]
            lines += [f"  {'':<12} {self._stretch(span)}  {span.state}" for span in self.rests.get(name, [])]
            lines += [f"  {'':<12} {self._told(call)}" for call in calls if call.failed or len(call.attempts) > 1]
        return "\n".join(lines)

    def _stretch(self, span: Span | SendCall) -> str:
        return f"{self.beliefs.seconds(span.begin_us):>9} to {self.beliefs.seconds(span.end_us):>9}"

    def _told(self, call: SendCall) -> str:
        way = ", ".join(f"{a.broker} {'fails' if a.reason else 'stores it'}" for a in call.attempts)
        return f"{self._stretch(call)}  call: {way}{'; the application sees an error' if call.failed else ''}"

    # -- drawing ----------------------------------------------------------------------------------------------------

    def svg(self) -> str:
        """The picture as SVG text."""
        body: list[str] = []
        y = float(_TOP)
        for name in [self.beliefs.broker, *self._servers()]:
            body += [text(12, y + 13, name, bold=True), *self._state_bars(name, y)]
            y += _BAR + 10
        for name in self.calls:
            body += self._producer(name, y + 6)
            y += self._height + 22
        bands = [self._band(span, y) for span in self.beliefs.rows[self.beliefs.broker] if span.state != "runs"]
        body = [*_legend(self.beliefs.broker), *bands, *body, *self._axis.drawn(_TOP, y)]
        return picture(self._title, _LEFT + _WIDTH + _RIGHT, y + 46, body)

    @property
    def _height(self) -> int:
        return _LANE * len(self.brokers) + 4

    def _servers(self) -> list[str]:
        """Those of whom only the opinion is shown: the name servers."""
        return [name for name in self.beliefs.rows if name.startswith("namesrv")]

    def _bar(self, begin_us: int, end_us: int, y: float, height: float, fill: str, tip: str) -> str:
        begin = self._axis.x(begin_us)
        width = max(self._axis.x(end_us) - begin, _TICK)
        x = min(begin, _LEFT + _WIDTH - width)
        return box(x, y, width, height, fill, tip=tip, stroke="none")

    def _state_bars(self, name: str, y: float) -> list[str]:
        body = []
        for span in self.beliefs.rows[name]:
            good = span.state in ("runs", IN_ROUTE)
            body.append(self._bar(span.begin_us, span.end_us, y, _BAR, STORED if good else "#bdbdbd", span.state))
            x = self._axis.x(span.begin_us)
            if self._axis.x(span.end_us) - x > len(span.state) * 7:
                colour = "#ffffff" if good else INK
                body.append(text(x + 6, y + 12, span.state, colour=colour))
        return body

    def _band(self, span: Span, bottom: float) -> str:
        return self._bar(span.begin_us, span.end_us, _TOP - 6, bottom - _TOP + 6, FAULT, span.state)

    def _producer(self, name: str, y: float) -> list[str]:
        calls = self.calls[name]
        failed, slow = sum(call.failed for call in calls), sum(call.slow for call in calls)
        body = [text(12, y + 13, name, bold=True)]
        for number, words in enumerate((f"{len(calls)} calls, {failed} failed", f"{slow} slow")):
            body.append(text(_LEFT + _WIDTH + 8, y + 13 + number * 16, words))
        lanes = {broker: y + number * _LANE for number, broker in enumerate(self.brokers)}
        for broker, top in lanes.items():
            body.append(text(_LEFT - 6, top + 12, broker, colour=FAINT, anchor="end"))
            if broker != self.beliefs.broker:
                body.append(self._bar(self._begin_us, self._end_us, top, _LANE - 4, KNOWN, "in the route"))
        watched = lanes[self.beliefs.broker]
        for span in self.beliefs.rows.get(name, []):
            fill = KNOWN if span.state == IN_ROUTE else UNKNOWN
            body.append(self._bar(span.begin_us, span.end_us, watched, _LANE - 4, fill, span.state))
        body += [self._bar(s.begin_us, s.end_us, watched + 9, 5, RESTS, s.state) for s in self.rests.get(name, [])]
        for call in calls:
            body += self._call(call, lanes)
        return body

    def _call(self, call: SendCall, lanes: dict[str, float]) -> list[str]:
        body = []
        for attempt in call.attempts:
            fill = STORED if not attempt.reason else FAILED if call.failed else SAVED
            tip = f"{self.beliefs.seconds(attempt.begin_us)} s, {(attempt.end_us - attempt.begin_us) / 1_000:.1f} ms"
            tip += f": {attempt.reason or 'stored'}"
            height = _SHORT if fill == SAVED else _LANE - 4
            body.append(self._bar(attempt.begin_us, attempt.end_us, lanes[attempt.broker], height, fill, tip))
        if call.failed:
            middle, top = self._axis.x((call.begin_us + call.end_us) // 2), lanes[call.attempts[-1].broker]
            body += [
                line(middle - 4, top + 3, middle + 4, top + 11, "#ffffff"),
                line(middle - 4, top + 11, middle + 4, top + 3, "#ffffff"),
            ]
        return body


# -- reading a history -----------------------------------------------------------------------------------------------


def sends(history: Iterable[Record], topic: str) -> dict[str, list[SendCall]]:
    """The synchronous sends to a topic that have ended, by machine, in the order in which they ended.

    A 5.x client is left out: it does not know to which broker it sends.
    """
    reading = Sends()
    for _ in reading.follow(history):
        pass
    found: dict[str, list[SendCall]] = {}
    for sent in sorted(reading.sends.values(), key=lambda sent: sent.told_us or 0):
        chosen = sent.mode == "SYNC" and sent.attempts[-1].broker_name
        if chosen and sent.topic == topic and sent.told_us is not None:
            attempts = tuple(
                Attempt(a.begin_us, a.end_us, a.broker_name, "" if a.ok else a.outcome)
                for a in sent.attempts
                if a.end_us is not None
            )
            reason = "" if sent.attempts[-1].ok else sent.outcome
            found.setdefault(sent.node, []).append(SendCall(sent.begin_us, sent.told_us, attempts, reason))
    return found


def _rests(history: Iterable[Record], broker: str, begin_us: int, end_us: int) -> dict[str, list[Span]]:
    """When the fault tables let the broker rest, by machine; a rest never becomes shorter."""
    rests: dict[str, list[Span]] = {}
    for record in history:
        if record.kind != "FaultItemUpdated" or record.broker_name != broker or not record.not_available_ms:
            continue
        spans = rests.setdefault(record.node, [])
        until_us = record.ts_us + record.not_available_ms * 1_000
        if spans and spans[-1].end_us >= record.ts_us:
            last = spans.pop()
            spans.append(Span(last.begin_us, max(last.end_us, until_us), "rests"))
        else:
            spans.append(Span(record.ts_us, until_us, "rests"))
    cut = {
        name: [Span(max(s.begin_us, begin_us), min(s.end_us, end_us), s.state) for s in rests[name]] for name in rests
    }
    return {name: [span for span in spans if span.begin_us < span.end_us] for name, spans in cut.items()}


def _legend(broker: str) -> list[str]:
    body: list[str] = []
    x, y = 12.0, 34.0
    for colour, words in (
        (STORED, "an attempt: stored"),
        (SAVED, "short: fails, another one stores it"),
        (FAILED, "fails, and so does the call (x)"),
        (KNOWN, "in the producer's route"),
        (UNKNOWN, "not in it"),
        (RESTS, "rests in the fault table"),
        (FAULT, f"{broker} is down or hangs"),
    ):
        width = 34 + len(words) * 6.3
        if x + width > _LEFT + _WIDTH + _RIGHT:
            x, y = 12.0, y + 20
        body += [box(x, y, 14, 14, colour, stroke="none"), text(x + 20, y + 12, words)]
        x += width
    return body
