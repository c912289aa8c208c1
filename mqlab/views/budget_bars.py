"""Budgets: what each attempt of a send might have taken, what it took, and how it ended."""

from __future__ import annotations

from mqlab.trace.history import History
from mqlab.views.labelled_bytes import PALETTE
from mqlab.views.sends import Attempt, Sent, read_sends, short
from mqlab.views.svg import FAINT, INK, PAPER, Drawing, box, legend, line, picture, text
from mqlab.views.time_axis import TimeAxis

WELL, BADLY, ALLOWED = PALETTE[0], PALETTE[5], "#e9e9e9"
_LEFT, _WIDTH, _TOP, _ROW, _BAR, _LETTER = 210, 610, 78, 30, 20, 6.4


class BudgetBars(Drawing):
    """A row for each attempt of the sends of a stretch: its share of the budget, and what it used of it.

    Time is counted from the beginning of each send, so that several can be compared. `str(bars)` says it as text.
    """

    def __init__(self, groups: list[tuple[str, Sent]], budget_ms: int, title: str) -> None:
        self.groups = groups
        self.budget_ms = budget_ms
        self.title = title

    @classmethod
    def of(
        cls, history: History, stretches: dict[str, tuple[float, float]], *, budget_ms: int = 3_000, title: str = ""
    ) -> BudgetBars:
        """The first send of each stretch `{name: (start_ms, end_ms)}` of the world's time."""
        groups = []
        for name, (start_ms, end_ms) in stretches.items():
            groups += [(name, sent) for sent in read_sends(history, start_ms, end_ms)[:1]]
        return cls(groups, budget_ms, title or "What the attempts of a send make of its budget")

    def _rows(self) -> list[tuple[str, Sent, int, Attempt]]:
        return [
            (name, sent, number, attempt)
            for name, sent in self.groups
            for number, attempt in enumerate(sent.attempts, start=1)
        ]

    def __str__(self) -> str:
        lines = [f"{self.title}; budget {self.budget_ms} ms, times in ms from the beginning of the send"]
        for name, sent, number, attempt in self._rows():
            begin = (attempt.begin_us - sent.begin_us) / 1_000
            lines.append(
                f"  {name:<24} attempt {number} at {attempt.broker_name:<9} begins {begin:>7.1f}, "
                f"may take {attempt.budget_ms:>5}, {_took(attempt)}"
            )
        return "\n".join(lines)

    # -- drawing ----------------------------------------------------------------------------------------------------

    def svg(self) -> str:
        """The picture as SVG text."""
        rows = self._rows()
        ends = [(attempt.end_us or sent.begin_us) - sent.begin_us for _, sent, _, attempt in rows]
        axis = TimeAxis(0, max([self.budget_ms * 1_100, *(end + 100_000 for end in ends)]), 0, _LEFT, _WIDTH)
        bottom = _TOP + max(1, len(rows)) * _ROW
        body = [*_legend(), *axis.drawn(_TOP - 6, bottom)]
        x = axis.x(self.budget_ms * 1_000)
        lanes: list[str] = []
        before = ""
        for place, (name, sent, number, attempt) in enumerate(rows):
            y = _TOP + place * _ROW
            body += [text(12, y + 14, name, bold=True)] if name != before else []
            lanes += _row(y, axis, sent, number, attempt, x)
            before = name
        body += [line(x, _TOP - 8, x, bottom, INK, dash="5 4"), *lanes]
        body.append(text(x - 5, bottom + 36, f"the budget: {self.budget_ms} ms", anchor="end"))
        return picture(self.title, _LEFT + _WIDTH + 24, bottom + 44, body)


def _row(y: float, axis: TimeAxis, sent: Sent, number: int, attempt: Attempt, budget_x: float) -> list[str]:
    begin_us = attempt.begin_us - sent.begin_us
    end_us = begin_us if attempt.end_us is None else attempt.end_us - sent.begin_us
    x, until = axis.x(begin_us), axis.x(end_us)
    allowed = axis.x(begin_us + attempt.budget_ms * 1_000)
    words = f"{attempt.broker_name}: {_took(attempt)}"
    used = WELL if attempt.ok else BADLY
    shown = [
        text(_LEFT - 8, y + 14, f"attempt {number}", colour=FAINT, anchor="end"),
        box(x, y, max(allowed - x, 1), _BAR, ALLOWED, stroke=FAINT, tip=f"may take {attempt.budget_ms} ms"),
        box(x, y + 3, max(until - x, 4), _BAR - 6, used, tip=attempt.outcome),
    ]
    if until + 10 + len(words) * _LETTER < _LEFT + _WIDTH + 20:
        at = max(until, x + 4) + 6
        # Where the words cross the edge of the box, or the line of the budget, they must stay readable.
        crossed = any(at < edge < at + len(words) * _LETTER for edge in (allowed, budget_x))
        return [*shown, text(at, y + 14, words, halo=PAPER if crossed else "")]
    return [*shown, text(until - 6, y + 14, words, colour="#ffffff", anchor="end", bold=True)]


def _took(attempt: Attempt) -> str:
    if attempt.end_us is None:
        return "goes on"
    return f"{short(attempt.outcome)} after {(attempt.end_us - attempt.begin_us) / 1_000:.1f} ms"


def _legend() -> list[str]:
    keys = ((ALLOWED, "what the attempt may take"), (BADLY, "what it took, and failed"), (WELL, "and went well"))
    return legend(keys, 40, _LETTER, stroke=FAINT)[0]
