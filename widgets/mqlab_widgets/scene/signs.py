"""The signs of the stage: what each means, and the legend, which has those that are on the stage and no others.

What is drawn names its sign in `data-sign`; one shape is one sign, and one sign means one thing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from mqlab_widgets.scene import tokens
from mqlab_widgets.scene.plan import EDGE, LEGEND_LINE, legend_room
from mqlab_widgets.scene.style import CHARACTER

_NAMES = re.compile(r' data-sign="([^"]*)"')
SPACE = 14
"""px between two signs of the legend."""
TALLEST = 17


class Sign(NamedTuple):
    """What a legend shows of a sign: a picture around (0, 0), its width, and what it means, in long and in short."""

    picture: str
    width: float
    words: str
    short: str


def _tile(css: str = "", width: float = 20, height: float = TALLEST) -> str:
    return tokens.message("7", width, height, css=css)


def _chip() -> str:
    return '<g class="chip o0"><rect x="-11" y="-8" width="22" height="16" rx="5"/><text>c1</text></g>'


def _ends() -> str:
    return "".join(
        f'<g transform="translate({x} 0)">{tokens.mark(name)}</g>' for name, x in (("commit", -8), ("rollback", 8))
    )


SIGNS: Mapping[str, Sign] = {
    "message": Sign(_tile(), 20, "a message", "message"),
    "own": Sign(tokens.message("", 12, 14), 12, "no number: RocketMQ’s own", "no number"),
    "done": Sign(_tile("done"), 20, "done", "done"),
    "unnoted": Sign(_tile("unnoted"), 20, "done, but not noted by the broker", "not noted"),
    "half": Sign(_tile("half"), 20, "a half message: hidden", "hidden"),
    "question": Sign(tokens.mark("question"), 14, "how did it end?", "asked"),
    "end": Sign(_ends(), 30, "let go, forgotten", "ended"),
    "out": Sign(_tile("out"), 20, "popped, not acknowledged", "popped"),
    "time": Sign('<rect class="clock" x="-8" y="-1.5" width="16" height="3"/>', 16, "time until others get it",
                 "time left"),
    "revived": Sign(_tile("done revived"), 20, "not acknowledged in time: comes again", "comes again"),
    "unflushed": Sign(tokens.message("7", 10, 16, css="fresh"), 10, "not on the disk yet", "not on disk"),
    "copied": Sign(tokens.message("7", 10, 13, css="copied"), 10, "in the log of a slave, too", "a slave has it"),
    "followed": Sign(_tile("lit"), 20, "the one you follow", "followed"),
    "pull": Sign(tokens.pull_ring(7), 18, "a pull: “anything new?”", "pull"),
    "next": Sign('<rect class="next" x="-9" y="-8" width="18" height="16" rx="4"/>', 18, "the next place", "next"),
    "read": Sign('<path class="read" d="M0 -5L5 4L-5 4Z"/>', 10, "consumed up to here", "consumed to"),
    "handed": Sign('<path class="handed" d="M0 -6L4 0L0 6L-4 0Z"/>', 8, "popped up to here", "popped to"),
    "noted": Sign('<path class="noted" d="M0 -5L6 5L-6 5Z"/>', 12, "noted up to here", "noted to"),
    "owner": Sign(_chip(), 22, "whose queue it is", "owner"),
    "tries": Sign('<text class="limit" x="-7" y="4">2.</text>', 14, "second try", "2nd try"),
    "level": Sign('<rect class="lane" x="-10" y="-4" width="20" height="8" rx="3"/><rect class="level" x="-10" y="-4" '
                  'width="12" height="8" rx="3"/><line class="mark" x1="6" x2="6" y1="-6" y2="6"/>', 20,
                  "how full, and the limit", "limit"),
    "cut": Sign('<text class="cutmark" x="-7" y="5">✂</text>', 14, "a link that is cut", "cut"),
    "idle": Sign('<line class="wire idle" x1="-10" x2="10"/>', 20, "no connection", "no connection"),
    "down": Sign('<path class="cross" d="M-6 -6L6 6M-6 6L6 -6"/>', 12, "not running", "not running"),
    "frozen": Sign('<text class="flake" x="-7" y="5">❄</text>', 14, "hangs", "hangs"),
    # What comes and goes stands at the end, where it moves nothing else.
    "sending": Sign(_tile("asked"), 20, "sent, not answered yet", "unanswered"),
    "woken": Sign(tokens.woken_ring(7), 18, "a pull that is woken", "woken pull"),
    "failed": Sign(tokens.cross(5), 10, "refused or failed", "failed"),
    "answer": Sign(tokens.answer(), 11, "an answer: all is well", "answer"),
    "ack": Sign(tokens.ack(), 16, "an acknowledgement", "ack"),
    "other": Sign(tokens.other(), 7, "another request", "other"),
}  # fmt: skip
"""Name -> what it means, in the order of the legend."""
FLEETING = ("sending", "woken", "failed", "answer", "ack", "other")
"""Those that come and go within a moment: the wording of the others leaves room for them."""


def drawn_in(shapes: Iterable[str]) -> set[str]:
    """The names of the signs that these shapes have."""
    return {name for svg in shapes for names in _NAMES.findall(svg) for name in names.split()}


def legend(shapes: Iterable[str], width: float, height: float, *, big: bool) -> str:
    """The legend of these shapes, at the foot of a stage of this size."""
    drawn = drawn_in(shapes)
    shown = [name for name in SIGNS if name in drawn]
    lines, scale = legend_room(width, big=big)
    top = height - LEGEND_LINE * scale * lines + 9 * scale
    room = width - 2 * EDGE
    long = _long({*shown, *FLEETING}, room / scale, lines)
    while (placed := _lines(shown, room / scale, lines, long)) is None:
        scale -= 0.05
    entries = "".join(
        f'<g data-legend="{name}" transform="translate({x:g} {LEGEND_LINE * line:g})"><g '
        f'transform="translate({SIGNS[name].width / 2:g} 0)">{_unsigned(SIGNS[name].picture)}</g><text class="faint" '
        f'x="{SIGNS[name].width + 5:g}" y="4">{_words(name, long)}</text></g>'
        for name, x, line in placed
    )
    small = f" scale({scale:.2f})" if scale < 1 else ""
    return f'<g data-key="legend" transform="translate({EDGE} {top:g}){small}">{entries}</g>'


def _unsigned(picture: str) -> str:
    """A sample is not what it shows, which is said by the key of its entry."""
    return _NAMES.sub("", picture)


def _words(name: str, long: Collection[str]) -> str:
    return SIGNS[name].words if name in long else SIGNS[name].short


def _long(wanted: Collection[str], room: float, most: int) -> set[str]:
    """Those of the wanted signs, from the first on, for whose long words there is room."""
    long: set[str] = set()
    for name in SIGNS:
        if name in wanted and _lines(wanted, room, most, long | {name}) is not None:
            long.add(name)
    return long


def _lines(
    wanted: Collection[str], room: float, most: int, long: Collection[str]
) -> list[tuple[str, float, int]] | None:
    """Name, x and line of each sign, with long words for these; None if they need more lines."""
    x, line, placed = 0.0, 0, []
    for name in (name for name in SIGNS if name in wanted):
        across = SIGNS[name].width + 5 + len(_words(name, long)) * CHARACTER
        if x and x + across > room:
            x, line = 0.0, line + 1
        if line >= most:
            return None
        placed.append((name, x, line))
        x += across + SPACE
    return placed
