"""Who waits where: for each send the time that its caller waits, and the time that its request is in the table."""

from __future__ import annotations

from mqlab.errors import LearnerError
from mqlab.trace.history import History
from mqlab.views.labelled_bytes import PALETTE
from mqlab.views.sends import ANSWER, Sent, read_sends, short
from mqlab.views.svg import FAINT, INK, Drawing, box, picture, text
from mqlab.views.time_axis import TimeAxis

CALLER, TABLE, WELL, BADLY = PALETTE[0], PALETTE[1], PALETTE[2], PALETTE[5]
_LEFT, _WIDTH, _TOP, _ROW, _BAR, _LETTER, _MOST = 190, 630, 78, 52, 14, 6.4, 16


class Waits(Drawing):
    """Two bars for each send: how long the caller waits, and how long the request is in the response table.

    A diamond is the moment at which a broker has stored the message, a triangle the moment at which the application
    hears how it went, a cross the moment at which a request is taken out of the table without an answer.
    `str(waits)` says the same as text.
    """

    def __init__(self, sends: list[Sent], axis: TimeAxis, title: str, names: list[str]) -> None:
        self.sends = sends
        self.title = title
        self._axis = axis
        self._names = names

    @classmethod
    def of(
        cls,
        history: History,
        start_ms: float,
        end_ms: float,
        *,
        names: list[str] | None = None,
        title: str = "Who waits where",
    ) -> Waits:
        """The sends that began from `start_ms` to `end_ms` of the world's time; `names` are their labels, in order."""
        sends = read_sends(history, start_ms, end_ms)[:_MOST]
        if names is not None and len(names) != len(sends):
            raise LearnerError(f"{len(names)} names for {len(sends)} sends", "give one for each send, in their order")
        axis = TimeAxis.between(start_ms, end_ms, _LEFT, _WIDTH)
        return cls(sends, axis, title, names or [sent.way for sent in sends])

    def __str__(self) -> str:
        lines = [self.title]
        for name, sent in zip(self._names, self.sends, strict=True):
            lines += [name, *(f"    {part}" for part in self._told(sent))]
        return "\n".join(lines if self.sends else [*lines, "(nothing was sent in this stretch)"])

    def _told(self, sent: Sent) -> list[str]:
        told, begin = self._axis.told, sent.begin_us
        until = sent.caller_until_us
        if until == begin:
            parts = [f"caller: goes on at {told(begin)}"]
        else:
            parts = [f"caller: waits from {told(begin)} {self._until(until)}"]
        for entry in sent.entries:
            by = f", removed by {entry.removed_by}" if entry.removed_by else ""
            parts.append(f"table:  from {told(entry.begin_us)} {self._until(entry.end_us)}{by}")
        parts += ["table:  never in it"] * (not sent.entries)
        parts += [f"stored: at {told(at_us)}" for at_us in sent.stored_us] or ["stored: not yet, or never"]
        return [*parts, f"told:   {self._outcome(sent)}"]

    def _until(self, at_us: int | None) -> str:
        return "and still there" if at_us is None else f"to {self._axis.told(at_us)}"

    def _outcome(self, sent: Sent) -> str:
        if sent.mode == "ONEWAY":
            return "nothing, ever"
        if sent.told_us is None:
            return "nothing yet"
        return f"at {self._axis.told(sent.told_us)}: {sent.outcome}"

    # -- drawing ----------------------------------------------------------------------------------------------------

    def svg(self) -> str:
        """The picture as SVG text."""
        bottom = _TOP + max(1, len(self.sends)) * _ROW
        body = [*_legend(), *self._axis.drawn(_TOP - 6, bottom)]
        for number, (name, sent) in enumerate(zip(self._names, self.sends, strict=True)):
            body += self._row(_TOP + number * _ROW, name, sent)
        return picture(self.title, _LEFT + _WIDTH + 24, bottom + 44, body)

    def _row(self, y: float, name: str, sent: Sent) -> list[str]:
        axis, lower = self._axis, y + _BAR + 4
        body = [
            text(12, y + 20, name, bold=True),
            text(_LEFT - 8, y + 11, "caller", colour=FAINT, anchor="end"),
            text(_LEFT - 8, lower + 11, "table", colour=FAINT, anchor="end"),
            self._bar(sent.begin_us, sent.caller_until_us, y, CALLER, "the caller waits"),
        ]
        for entry in sent.entries:
            tip = f"in the table; removed by {entry.removed_by}" if entry.removed_by else "in the table"
            body.append(self._bar(entry.begin_us, entry.end_us, lower, TABLE, tip))
            if entry.end_us is not None and entry.removed_by not in ("", ANSWER):
                body.append(_cross(axis.x(entry.end_us) - 8, lower + _BAR / 2))
        if not sent.entries:
            body.append(text(axis.x(sent.begin_us) + 10, lower + 11, "never in the table", colour=FAINT))
        body += [_diamond(axis.x(at_us), lower + _BAR / 2) for at_us in sent.stored_us]
        if sent.told_us is not None and sent.mode != "ONEWAY":
            body += self._told_mark(sent, y)
        return body

    def _bar(self, begin_us: int, end_us: int | None, y: float, fill: str, tip: str) -> str:
        x = self._axis.x(begin_us)
        until = self._axis.end_us if end_us is None else end_us
        return box(x, y, max(3.0, self._axis.x(until) - x), _BAR, fill, tip=tip)

    def _told_mark(self, sent: Sent, y: float) -> list[str]:
        assert sent.told_us is not None
        x, well = self._axis.x(sent.told_us), sent.attempts[-1].ok
        words = short(sent.outcome)
        room = x + 14 + len(words) * _LETTER < _LEFT + _WIDTH + 20
        body = [_triangle(x, y + _BAR / 2, WELL if well else BADLY)]
        colour = INK if well else BADLY
        if room:
            return [*body, text(x + 11, y + 11, words, colour=colour, bold=not well)]
        # Beside the end there is no room: inside the bar if the caller waited, else on the free paper before it.
        inside = "#ffffff" if sent.mode == "SYNC" else colour
        return [*body, text(x - 11, y + 11, words, colour=inside, anchor="end", bold=True)]


def _diamond(x: float, y: float) -> str:
    return _shape(f"M{x:g} {y - 6:g}l6 6l-6 6l-6 -6z", INK, "stored by a broker")


def _triangle(x: float, y: float, fill: str) -> str:
    return _shape(f"M{x:g} {y - 7:g}l8 7l-8 7z", fill, "the application hears how it went")


def _shape(path: str, fill: str, tip: str) -> str:
    return f'<path d="{path}" fill="{fill}" stroke="#ffffff"><title>{tip}</title></path>'


def _cross(x: float, y: float) -> str:
    return (
        f'<path d="M{x - 4:g} {y - 4:g}l8 8m0 -8l-8 8" fill="none" stroke="{INK}" stroke-width="2">'
        "<title>taken out of the table without an answer</title></path>"
    )


def _legend() -> list[str]:
    body: list[str] = []
    x = 12.0
    keys = (
        (box(0, 0, 14, 14, CALLER), "the caller waits"),
        (box(0, 0, 14, 14, TABLE), "in the response table"),
        (_cross(7, 7), "thrown out of it"),
        (_diamond(7, 7), "stored"),
        (_triangle(4, 7, WELL), "told: it went well"),
        (_triangle(4, 7, BADLY), "told: an error"),
    )
    for shape, words in keys:
        body += [f'<g transform="translate({x:g} 40)">{shape}</g>', text(x + 20, 52, words)]
        x += 40 + len(words) * _LETTER
    return body
