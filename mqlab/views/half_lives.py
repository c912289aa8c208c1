"""The lives of half messages: for how long each is hidden, when it is asked about, and what ends it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mqlab.errors import LearnerError
from mqlab.trace.events.transaction import STORED
from mqlab.trace.record import Record
from mqlab.views.colours import BLUE, GREEN, ORANGE, VERMILION
from mqlab.views.svg import FAINT, INK, PAPER, Drawing, box, circle, line, picture, text
from mqlab.views.time_axis import TimeAxis

ASKED, NOBODY, UNKNOWN, COMMIT, ROLLBACK, REFUSED, ASIDE = (
    "asked", "nobody", "unknown", "commit", "rollback", "refused", "aside",
)  # fmt: skip
"""What happens to a half message: a question, one that finds nobody, the answer "not known", the two ends, an end that
the broker refuses, and the end of all questions.
"""
_WORDS = {
    ASKED: "the broker asks",
    NOBODY: "the broker wants to ask, and nobody is there",
    UNKNOWN: "told: not known yet",
    COMMIT: "let go (commit)",
    ROLLBACK: "forgotten (rollback)",
    REFUSED: "an end that is refused",
    ASIDE: "put aside",
}
_SAID = {"COMMIT_MESSAGE": COMMIT, "ROLLBACK_MESSAGE": ROLLBACK}
_ENDS = (COMMIT, ROLLBACK, ASIDE)
_FAULTS = {
    "NodeCrashed": "is killed", "PowerLost": "loses power", "NodeFrozen": "hangs", "NodeThawed": "goes on",
    "NodeStarted": "is back",
}  # fmt: skip
_LEFT, _WIDTH, _TOP, _ROW, _BAR, _LETTER, _MOST = 116, 700, 100, 34, 14, 6.6, 16
_MARK = 7
_HIDDEN = "#f3d08a"


class Mark(NamedTuple):
    """What happens to a half message: when, what, and by whose word (a machine, or nobody's)."""

    at_us: int
    what: str
    by: str


class HalfLife:
    """One half message: since when it is hidden, and what happens to it after that."""

    def __init__(self, key: str, begin_us: int) -> None:
        self.key = key
        self.begin_us = begin_us
        self.marks: list[Mark] = []

    @property
    def end_us(self) -> int | None:
        """When it ended for the first time, if it did."""
        return next((mark.at_us for mark in self.marks if mark.what in _ENDS), None)

    @property
    def asked_us(self) -> list[int]:
        """When the broker asked about it, or would have."""
        return [mark.at_us for mark in self.marks if mark.what in (ASKED, NOBODY)]

    @property
    def commits(self) -> int:
        """How often it was let go: each time consumers get another copy."""
        return sum(mark.what == COMMIT for mark in self.marks)


class HalfLives(Drawing):
    """A bar for each half message, as long as it is hidden; marks are questions, answers and ends.

    Triangles are rounds of a broker that had anything to look at. Dashed lines are machines that are killed, that hang,
    or that are there again. `str(lives)` says the same as text, and `lives.lives` has the numbers, in us since the
    world began.
    """

    def __init__(
        self,
        lives: list[HalfLife],
        names: list[str],
        rounds_us: list[int],
        faults: list[tuple[int, str]],
        axis: TimeAxis,
        title: str,
    ) -> None:
        self.lives = lives
        self.title = title
        self._names = names
        self._rounds_us = rounds_us
        self._faults = faults
        self._axis = axis

    @classmethod
    def of(
        cls,
        history: Iterable[Record],
        start_ms: float,
        end_ms: float,
        *,
        keys: list[str] | None = None,
        names: list[str] | None = None,
        title: str = "The lives of half messages",
    ) -> HalfLives:
        """The half messages that were hidden from `start_ms` to `end_ms` of the world's time (with `keys` those with
        these unique keys, else the first 16), and what happened to them until then; `names` are their labels, in order.
        """
        reading = _Reading(round(start_ms * 1_000))
        for record in history:
            if record.ts_us > end_ms * 1_000:
                break
            reading.note(record)
        lives = [life for key, life in reading.lives.items() if keys is None or key in keys][:_MOST]
        if names is not None and len(names) != len(lives):
            raise LearnerError(
                f"{len(names)} names for {len(lives)} half messages", "give one for each of them, in their order"
            )
        axis = TimeAxis.between(start_ms, end_ms, _LEFT, _WIDTH)
        names = names or [f"message {n}" for n in range(1, len(lives) + 1)]
        return cls(lives, names, reading.rounds_us, reading.faults, axis, title)

    def __str__(self) -> str:
        told = self._axis.told
        lines = [self.title]
        if self._rounds_us:
            lines.append(f"    rounds of the broker at {', '.join(map(told, self._rounds_us))}")
        lines += [f"    {words} at {told(at_us)}" for at_us, words in self._faults]
        for name, life in zip(self._names, self.lives, strict=True):
            lines += [name, f"    hidden at {told(life.begin_us)}"]
            for mark in life.marks:
                by = f", {mark.by}" if mark.by else ""
                lines.append(f"    {_WORDS[mark.what]} at {told(mark.at_us)}{by}")
        return "\n".join(lines if self.lives else [*lines, "(no half message in this stretch)"])

    # -- drawing ----------------------------------------------------------------------------------------------------

    def svg(self) -> str:
        """The picture as SVG text."""
        bottom = _TOP + max(1, len(self.lives)) * _ROW
        body = [*self._legend(), *self._axis.drawn(_TOP - 4, bottom)]
        body += [_triangle(self._axis.x(at_us), _TOP - 4) for at_us in self._rounds_us]
        body += self._drawn_faults(bottom)
        for number, (name, life) in enumerate(zip(self._names, self.lives, strict=True)):
            body += self._row(_TOP + (number + 0.5) * _ROW, name, life)
        return picture(self.title, _LEFT + _WIDTH + 24, bottom + 46, body)

    def _drawn_faults(self, bottom: float) -> list[str]:
        """A dashed line for each, with its words above it, or behind those before, or without them for want of room."""
        body: list[str] = []
        free_x, right = 4.0, _LEFT + _WIDTH + 20
        for at_us, words in self._faults:
            x, width = self._axis.x(at_us), len(words) * _LETTER
            body.append(line(x, _TOP - 14, x, bottom, INK, dash="4 3"))
            left = max(min(x - width / 2, right - width), free_x)
            if left <= x + width / 2 and left + width <= right:
                body.append(text(left, _TOP - 18, words))
                free_x = left + width + 10
        return body

    def _row(self, y: float, name: str, life: HalfLife) -> list[str]:
        axis = self._axis
        x = axis.x(life.begin_us)
        end_x = axis.x(axis.end_us if life.end_us is None else life.end_us)
        body = [
            text(12, y + 4, name, bold=True),
            box(x, y - _BAR / 2, max(3.0, end_x - x), _BAR, _HIDDEN, tip="hidden", stroke=ORANGE),
        ]
        last_x = -1.0
        for mark in life.marks:
            at_x = axis.x(mark.at_us)
            if mark.what == UNKNOWN:
                continue
            # An answer comes a fraction of a millisecond behind its question: beside it, not upon it.
            at_x = max(at_x, last_x + 2 * _MARK + 1) if at_x - last_x < _MARK else at_x
            body.append(_shape(mark, at_x, y, axis.told(mark.at_us)))
            last_x = at_x
        return body

    def _legend(self) -> list[str]:
        seen = {mark.what for life in self.lives for mark in life.marks}
        keys = [(box(0, 0, 14, 14, _HIDDEN, stroke=ORANGE), "hidden")]
        keys += [(_triangle(7, 12), "a round of the broker")] * bool(self._rounds_us)
        keys += [
            (_shape(Mark(0, what, ""), 7, 7, ""), _WORDS[what]) for what in _WORDS if what in seen and what != UNKNOWN
        ]
        body: list[str] = []
        x = 12.0
        for shape, words in keys:
            body += [f'<g transform="translate({x:g} 38)">{shape}</g>', text(x + 20, 50, words)]
            x += 42 + len(words) * _LETTER
        return body


def _triangle(x: float, y: float) -> str:
    return f'<path d="M{x - 5:g} {y - 8:g}h10l-5 8z" fill="{BLUE}"><title>a round of the broker</title></path>'


def _shape(mark: Mark, x: float, y: float, at: str) -> str:
    by = f" {mark.by}" if mark.by else ""
    tip = f"{_WORDS[mark.what]}{by}, {at}" if at else ""
    if mark.what in (ASKED, NOBODY):
        fill, ink = (PAPER, INK) if mark.what == ASKED else ("#d9d9d9", FAINT)
        return circle(x, y, _MARK, fill, stroke=ink, tip=tip) + text(
            x, y + 4, "?", colour=ink, anchor="middle", bold=True
        )
    path, fill = {
        COMMIT: (f"M{x - 7:g} {y:g}l5 6l9 -11", "none"),
        ROLLBACK: (f"M{x - 6:g} {y - 6:g}l12 12m0 -12l-12 12", "none"),
        REFUSED: (f"M{x - 6:g} {y + 6:g}l12 -12", "none"),
        ASIDE: (f"M{x - 6:g} {y - 6:g}h12v12h-12z", INK),
    }[mark.what]
    colour = {COMMIT: GREEN, ROLLBACK: VERMILION}.get(mark.what, INK)
    inside = f"<title>{tip}</title>" if tip else ""
    under = f'<path d="{path}" fill="{fill}" stroke="{PAPER}" stroke-width="7"/>' if fill == "none" else ""
    return f'{under}<path d="{path}" fill="{fill}" stroke="{colour}" stroke-width="3.5">{inside}</path>'


class _Reading:
    """What the events say of half messages."""

    def __init__(self, start_us: int) -> None:
        self.lives: dict[str, HalfLife] = {}
        self.rounds_us: list[int] = []
        """When rounds of a broker began."""
        self.faults: list[tuple[int, str]] = []
        self._start_us = start_us

    def note(self, record: Record) -> None:
        """Take one event in."""
        kind = record.kind
        if kind == "HalfMessageHidden":
            if record.status in STORED and record.ts_us >= self._start_us:
                self.lives.setdefault(record.unique_key, HalfLife(record.unique_key, record.ts_us))
        elif kind in ("TransactionChecked", "TransactionEnded", "HalfMessageGivenUp"):
            life = self.lives.get(record.unique_key)
            if life is not None:
                life.marks.append(Mark(record.ts_us, *_what(record)))
        elif kind == "TransactionRoundEnded":
            begun_us = record.ts_us - 1_000 * record.took_ms
            self.rounds_us += [begun_us] * (begun_us >= self._start_us)
        elif kind in _FAULTS and record.ts_us >= self._start_us and (kind != "NodeStarted" or record.life > 1):
            self.faults.append((record.ts_us, f"{record.target} {_FAULTS[kind]}"))


def _what(record: Record) -> tuple[str, str]:
    if record.kind == "HalfMessageGivenUp":
        return ASIDE, ""
    if record.kind == "TransactionChecked":
        return (ASKED, f"for the {_nth(record.check_times)} time") if record.remote else (NOBODY, "")
    by = "as an answer" if record.from_check else "its own machine says so"
    return (REFUSED if record.code else _SAID.get(record.local_state, UNKNOWN)), by


def _nth(number: int) -> str:
    return {1: "1st", 2: "2nd", 3: "3rd"}.get(number, f"{number}th")
