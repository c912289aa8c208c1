"""Whereabouts: which brokers have each acknowledged message afterwards, one strip for each world."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from mqlab.errors import LearnerError
from mqlab.views.colours import BLUE, ORANGE, SKY, VERMILION
from mqlab.views.svg import FAINT, INK, Drawing, box, legend, line, picture, text

PLACES = {
    "both": (SKY, "both brokers have it"),
    "master": (BLUE, "only the master"),
    "slave": (ORANGE, "only the slave"),
    "nobody": (VERMILION, "nobody"),
}
"""Where a message is -> its colour, and what that means."""
_SETTING, _ACCIDENT, _LEFT, _WIDTH, _RIGHT = 12, 136, 240, 340, 410
_TOP, _ROW, _BAR, _BETWEEN, _LETTER = 78, 22, 14, 12, 6.6


class Fate(NamedTuple):
    """One world: its setting, what happened in it, and where each acknowledged message is, in their order."""

    setting: str
    accident: str
    places: Sequence[str]

    def count(self, place: str) -> int:
        """How many of its messages are there."""
        return list(self.places).count(place)

    def told(self) -> str:
        """What is not in order, in words."""
        words = {"nobody": "lost", "slave": "on the slave only", "master": "on the master only"}
        return ", ".join(f"{self.count(place):,} {said}" for place, said in words.items() if self.count(place))


class Whereabouts(Drawing):
    """A strip for each world, with a piece of it for each acknowledged message, in the order of the answers.

    Worlds of one setting that follow each other stand together; its words, parted by ", ", one under the other.
    LearnerError where a place is none of "both", "master", "slave" and "nobody". `str(whereabouts)` says the same as
    text.
    """

    def __init__(self, fates: Iterable[tuple[str, str, Sequence[str]]]) -> None:
        self.fates = [Fate(*fate) for fate in fates]
        strange = {place for fate in self.fates for place in fate.places} - set(PLACES)
        if strange:
            raise LearnerError(f"{min(strange)!r} is no place", f"choose among {', '.join(PLACES)}")

    def __str__(self) -> str:
        lines = []
        for fate in self.fates:
            runs = ", ".join(f"{len(list(run))} {place}" for place, run in groupby(fate.places))
            lines.append(f"{fate.setting}, {fate.accident}: {len(fate.places)} acknowledged: {runs or 'none'}")
        return "\n".join(lines)

    def svg(self) -> str:
        """The picture as SVG text."""
        most = max((len(fate.places) for fate in self.fates), default=0) or 1
        scale = _WIDTH / most
        samples, _ = legend([(colour, words) for colour, words in PLACES.values()], 36, _LETTER)
        body = [*samples, text(_LEFT, _TOP - 8, "acknowledged messages, in the order of their answers", colour=FAINT)]
        y, before = float(_TOP), ""
        for fate in self.fates:
            if fate.setting != before:
                y += _BETWEEN if before else 0
                words = fate.setting.split(", ")
                body += [text(_SETTING, y + 12 + _ROW * row, word, bold=True) for row, word in enumerate(words)]
                before = fate.setting
            body += self._strip(fate, y, scale)
            y += _ROW
        title = "Which acknowledged messages are there afterwards, and where"
        return picture(title, _LEFT + _WIDTH + _RIGHT, y + 6, body)

    @staticmethod
    def _strip(fate: Fate, y: float, scale: float) -> list[str]:
        body = [text(_ACCIDENT, y + 12, fate.accident)]
        at = 0
        for place, run in groupby(fate.places):
            count = len(list(run))
            colour, words = PLACES[place]
            x, width = _LEFT + at * scale, count * scale
            body.append(box(x, y, width, _BAR, colour, stroke=colour, tip=f"{count} messages: {words}"))
            if place == "nobody":
                body.append(line(x, y + _BAR + 3, x + width, y + _BAR + 3, INK, width=3))
            at += count
        told = f"{len(fate.places):,}" + (f": {fate.told()}" if fate.told() else "")
        body.append(text(_LEFT + at * scale + 8, y + 12, told, bold=bool(fate.count("nobody"))))
        return body
