"""Holds: for how long a broker kept each pull, with the passes of its hold service between which it could not look."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mqlab.trace.record import Record
from mqlab.views.labelled_bytes import PALETTE
from mqlab.views.svg import FAINT, INK, PAPER, Drawing, box, legend, line, picture, text
from mqlab.views.time_axis import TimeAxis

IN_TIME, OVERDUE, ARRIVED = PALETTE[0], PALETTE[1], PALETTE[2]
_LEFT, _WIDTH, _TOP, _ROW, _BAR, _LETTER, _MOST = 96, 640, 78, 30, 18, 6.4, 12
_UPRIGHT = "#555555"


class Hold(NamedTuple):
    """One pull that was put aside: when, when its time is up, and when and why it was woken (None: still held)."""

    begin_us: int
    due_us: int
    end_us: int | None
    reason: str


class Holds(Drawing):
    """A bar for each hold of a stretch: blue while its time runs, yellow when it is overdue; upright lines are passes.

    `str(holds)` says the same as text.
    """

    def __init__(self, holds: list[Hold], passes_us: list[int], begin_us: int, end_us: int, title: str) -> None:
        self.holds = holds
        self.passes_us = passes_us
        self.title = title
        self._begin_us = begin_us
        self._end_us = end_us

    @classmethod
    def of(
        cls,
        history: Iterable[Record],
        topic: str,
        start_ms: float,
        end_ms: float,
        title: str = "How long pulls are held",
    ) -> Holds:
        """The pulls of a topic that were put aside from `start_ms` to `end_ms` of the world's time, 12 at most."""
        begin_us, end_us = round(start_ms * 1_000), round(end_ms * 1_000)
        holds: list[Hold] = []
        waiting: dict[tuple[str, str, int], int] = {}
        passes_us: list[int] = []
        for record in history:
            if not begin_us <= record.ts_us <= end_us:
                continue
            if record.kind == "HeldPullsChecked":
                passes_us.append(record.ts_us)
            elif record.kind == "PullHeld" and record.topic == topic and len(holds) < _MOST:
                waiting[record.node, record.remote, record.opaque] = len(holds)
                holds.append(Hold(record.ts_us, record.ts_us + record.hold_ms * 1_000, None, "still held"))
            elif record.kind == "PullWoken":
                place = waiting.pop((record.node, record.remote, record.opaque), None)
                if place is not None:
                    holds[place] = holds[place]._replace(end_us=record.ts_us, reason=record.reason)
        return cls(holds, passes_us, begin_us, end_us, title)

    def _told(self, hold: Hold) -> str:
        until_us = self._end_us if hold.end_us is None else hold.end_us
        return f"{(until_us - hold.begin_us) / 1_000_000:.1f} s, {hold.reason}"

    def __str__(self) -> str:
        lines = [self.title]
        for hold in self.holds:
            looks = [us for us in self.passes_us if hold.begin_us < us <= (hold.end_us or self._end_us)]
            ages = ", ".join(f"{(us - hold.begin_us) / 1_000_000:.3f}" for us in looks)
            lines.append(
                f"  held from {hold.begin_us / 1_000_000:.3f} s on: {self._told(hold)}; its age at the passes: {ages}"
            )
        return "\n".join(lines if self.holds else [*lines, "  (nothing was held)"])

    # -- drawing ----------------------------------------------------------------------------------------------------

    def svg(self) -> str:
        """The picture as SVG text."""
        axis = TimeAxis(self._begin_us, self._end_us, 0, _LEFT, _WIDTH)
        bottom = _TOP + max(1, len(self.holds)) * _ROW
        body = [*_legend(), *axis.drawn(_TOP - 6, bottom)]
        for us in self.passes_us:
            x = axis.x(us)
            body.append(line(x, _TOP - 8, x, bottom, _UPRIGHT, width=1.2, dash="2 3"))
        for place, hold in enumerate(self.holds):
            body += self._bar(axis, hold, _TOP + place * _ROW, f"pull {place + 1}")
        return picture(self.title, _LEFT + _WIDTH + 24, bottom + 44, body)

    def _bar(self, axis: TimeAxis, hold: Hold, y: float, name: str) -> list[str]:
        end_us = self._end_us if hold.end_us is None else hold.end_us
        x, until = axis.x(hold.begin_us), axis.x(end_us)
        due = axis.x(min(hold.due_us, end_us))
        words = self._told(hold)
        shown = [
            text(_LEFT - 10, y + 14, name, colour=FAINT, anchor="end"),
            box(x, y, due - x, _BAR, ARRIVED if hold.reason == "arrived" else IN_TIME, tip=words),
        ]
        if until > due:
            shown.append(box(due, y, until - due, _BAR, OVERDUE, tip="its time is up, and nobody looks"))
        if due - x > len(words) * _LETTER + 12:
            return [*shown, text(x + 8, y + 13, words, colour="#ffffff", bold=True)]
        wide = len(words) * _LETTER
        left = until + 4 if until + 12 + wide < _LEFT + _WIDTH + 20 else x - 8 - wide
        return [*shown, box(left, y + 1, wide + 4, _BAR - 2, PAPER), text(left + 2, y + 13, words, colour=INK)]


def _legend() -> list[str]:
    keys = ((IN_TIME, "held"), (OVERDUE, "overdue, not yet noticed"), (ARRIVED, "ended by a message"))
    body, x = legend(keys, 40, _LETTER)
    upright = line(x + 6, 38, x + 6, 56, _UPRIGHT, width=1.2, dash="2 3")
    return [*body, upright, text(x + 16, 52, "a pass of the hold service")]
