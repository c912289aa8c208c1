"""How the boards of Pop draw: one style, squares for the messages of a batch, and a legend.

What a square says it says by colour and by shape: open, noted in memory (hatched), noted in the store (a tick), put
into the retry topic (an arrow back), lost (a cross). Colours are those of Okabe and Ito.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from mqlab.protocol.topics import is_retry_topic, parse_normal_topic
from mqlab.views.svg import head
from mqlab_widgets.boards.pop_state import MEMORY, Point
from mqlab_widgets.scene.style import TOKEN_COLOURS
from mqlab_widgets.scene.tokens import colour_of

OPEN, IN_MEMORY, IN_STORE, BACK, LOST = "open", "memory", "store", "back", "lost"
WIDE, HIGH = 27, 36
"""px of the square of a message, which has its number above and a mark below."""
LETTER, BOLD = 6.6, 7.3
"""About how wide a letter of 12 px is."""
LINE = 17
MARKS = {
    IN_STORE: "M-5 0L-1.5 4L5 -4.5",
    BACK: "M5 3A5.5 5.5 0 1 0 1.5 5.2M5.4 -2V3.2H0.4",
    LOST: "M-5 -5L5 5M-5 5L5 -5",
}
"""Drawn on a square instead of words, from its middle."""
NOTED, READ = "M0 -6L8 7L-8 7Z", "M0 -5L6 6L-6 6Z"
"""Points to what is noted, and to how far somebody has come."""
MEANINGS = {
    OPEN: "not acknowledged",
    IN_MEMORY: "acknowledged, noted in memory alone",
    IN_STORE: "acknowledged, and stored",
    BACK: "put into the retry topic",
    LOST: "the note is lost",
}
STYLE = (
    ".mq-handed text{fill:var(--mq-ink,#1a1a1a);font:12px system-ui,sans-serif}"
    ".mq-handed .faint{fill:var(--mq-faint,#5f5f5f)}.mq-handed .strong{font-weight:600}"
    ".mq-handed .warn{fill:#B23C00;font-weight:600}"
    "[data-jp-theme-light=\"false\"] .mq-handed .warn{fill:#F0A060}"
    ".mq-handed .mid{text-anchor:middle;dominant-baseline:central;font-weight:600}"
    ".mq-handed .box{fill:var(--mq-card,#fff);stroke:var(--mq-line,#8c8c8c)}"
    ".mq-handed .lane{fill:var(--mq-paper,#f1f1f1);stroke:var(--mq-line,#b0b0b0)}"
    ".mq-handed .open{fill:var(--mq-card,#fff);stroke:var(--mq-ink,#1a1a1a);stroke-width:1.4}"
    ".mq-handed .memory{fill:url(#mq-handed-hatch);stroke:#009E73;stroke-width:1.6}"
    ".mq-handed .store{fill:#009E73;stroke:#00785A}"
    ".mq-handed .back{fill:#E69F00;stroke:#B07800}"
    ".mq-handed .lost{fill:var(--mq-cell,#d9d9d9);stroke:#B23C00}"
    ".mq-handed .mark{fill:none;stroke-width:2.4;stroke-linecap:round;stroke-linejoin:round}"
    ".mq-handed .mark.store{fill:none;stroke:#fff}.mq-handed .mark.back{fill:none;stroke:#1a1a1a;stroke-width:2}"
    ".mq-handed .mark.lost{fill:none;stroke:#C22B00}"
    ".mq-handed .now{stroke:#C22B00;stroke-width:1.5}.mq-handed .tick{stroke:var(--mq-line,#8c8c8c)}"
    ".mq-handed .hatch{stroke:#009E73;stroke-width:2.2}.mq-handed .under{fill:var(--mq-card,#fff)}"
    ".mq-handed .wait{fill:#56B4E9}.mq-handed .rest{fill:none;stroke:var(--mq-line,#8c8c8c);stroke-dasharray:2 3}"
    ".mq-handed .danger{fill:none;stroke:#C22B00;stroke-width:2;stroke-dasharray:5 3}"
    ".mq-handed .plain{fill:var(--mq-cell,#d9d9d9)}.mq-handed text.plain{fill:var(--mq-ink,#1a1a1a)}"
    ".mq-handed [data-do]{cursor:pointer}.mq-handed .late{stroke:var(--mq-line,#8c8c8c);stroke-width:2.5}"
    ".mq-handed .noted{fill:var(--mq-card,#fff);stroke:var(--mq-ink,#1a1a1a);stroke-width:1.3}"
    ".mq-handed .read{fill:var(--mq-ink,#1a1a1a)}"
    + "".join(
        f".mq-handed .t{place}{{fill:{fill}}}.mq-handed text.t{place}{{fill:{ink}}}"
        for place, (fill, ink) in enumerate(TOKEN_COLOURS)
    )
)
_HATCH = (
    '<defs><pattern id="mq-handed-hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect class="under" width="6" height="6"/><line class="hatch" y2="6"/>'
    "</pattern></defs>"
)


def picture(words: str, width: float, height: float, body: Iterable[str]) -> str:
    """A whole picture; `words` say what it is."""
    return f"{head(words, width, height, css='mq-handed')}<style>{STYLE}</style>{_HATCH}{''.join(body)}</svg>"


def text(x: float, y: float, words: str, css: str = "", *, end: bool = False) -> str:
    """A line of text, from its left end or to its right one."""
    anchor = ' text-anchor="end"' if end else ""
    return f'<text class="{css}" x="{x:g}" y="{y:g}"{anchor}>{escape(words)}</text>'


def square(x: float, y: float, label: str, state: str, tip: str = "") -> str:
    """One message of a batch, with its upper left corner at (x, y): its number on its colour, and what became of it."""
    middle, half = x + WIDE / 2, y + HIGH / 2
    mark = f'<path class="mark {state}" transform="translate({middle:g} {half + 8:g})" d="{MARKS.get(state, "")}"/>'
    told = f"{tip}: {MEANINGS[state]}" if tip else MEANINGS[state]
    colour = colour_of(label)
    return (
        f'<g><title>{escape(told)}</title><rect class="{state}" x="{x:g}" y="{y:g}" width="{WIDE}" height="{HIGH}" '
        f'rx="4"/><path class="{colour}" d="M{x:g} {half - 1:g}v-13q0 -4 4 -4h{WIDE - 8}q4 0 4 4v13z"/>'
        f'<text class="mid {colour}" x="{middle:g}" y="{half - 9:g}">{escape(label)}</text>{mark}</g>'
    )


def state_of(point: Point, offset: int) -> str:
    """How the square of one message of a check point is drawn."""
    if offset in point.revived:
        return BACK
    if offset in point.acked:
        return IN_MEMORY if point.acked[offset] == MEMORY else IN_STORE
    return LOST if point.done.startswith("lost") else OPEN


def pointer(x: float, y: float, css: str, tip: str = "") -> str:
    """Points up at (x, y); `css` is "noted" for what is noted, "read" for how far somebody has come."""
    told = f"<title>{escape(tip)}</title>" if tip else ""
    shape = NOTED if css == "noted" else READ
    return f'<path class="{css}" transform="translate({x:g} {y:g})" d="{shape}">{told}</path>'


def sample(x: float, y: float, state: str) -> str:
    """A small square without a message, for a legend."""
    place = f'transform="translate({x + 8:g} {y + 7:g}) scale(.8)"'
    mark = f'<path class="mark {state}" {place} d="{MARKS.get(state, "")}"/>'
    return f'<rect class="{state}" x="{x:g}" y="{y:g}" width="16" height="15" rx="3"/>{mark}'


def fit(words: str, width: float, letter: float = LETTER) -> str:
    """The words, cut to what a line has room for."""
    most = max(1, int(width / letter))
    return words if len(words) <= most else words[: most - 1] + "…"


def place_words(topic: str, group: str, queue_id: int) -> str:
    """A queue by its purpose: "queue 1 of Orders", "retry queue of Orders"."""
    if is_retry_topic(topic):
        return f"retry queue of {parse_normal_topic(topic, group)}"
    return f"queue {queue_id} of {topic}"


def number(x: float, y: float, label: str, width: float = 30) -> str:
    """A message as the stage shows it: its number on its colour, with its upper left corner at (x, y)."""
    colour = colour_of(label)
    return (
        f'<rect class="{colour}" x="{x:g}" y="{y:g}" width="{width:g}" height="20" rx="5"/>'
        f'<text class="mid {colour}" x="{x + width / 2:g}" y="{y + 10:g}">{escape(label)}</text>'
    )


Meaning = tuple[str, float, str]
"""A shape, drawn between (0, 0) and (its width, 16), that width, and what it means."""


def squares(*states: str) -> list[Meaning]:
    """The legend: what the colours and signs of the squares mean."""
    return [(sample(0, 0, state), 16, MEANINGS[state]) for state in states]


def legend(meanings: Iterable[Meaning], y: float, width: float) -> tuple[list[str], float]:
    """What shapes mean, in as many lines as the width needs; with the height that they take."""
    shapes, x, line = [], 6.0, y
    for shape, wide, words in meanings:
        # With room for fonts whose letters are wider: else the next shape touches the words.
        across = wide + 6 + len(words) * BOLD + 10
        if x > 6 and x + across > width:
            x, line = 6.0, line + LINE + 4
        told = text(wide + 6, 12, words, "faint")
        shapes.append(f'<g transform="translate({x:g} {line:g})">{shape}{told}</g>')
        x += across
    return shapes, line + LINE + 4 - y


def seconds(us: float) -> str:
    """A length of time for a picture: "12.3 s", "0.25 s"."""
    return f"{us / 1_000_000:.2f} s" if abs(us) < 1_000_000 else f"{us / 1_000_000:,.1f} s"
