"""What travels and what lies in queues: messages as coloured tokens with their number, pulls as rings, answers as dots.

Each function gives SVG centred on (0, 0). A request is hollow, its payload is filled, an acknowledgement is small.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from mqlab_widgets.boards.stage_state import COPY, REPORT
from mqlab_widgets.labels import KEY_LETTERS
from mqlab_widgets.scene.style import TOKEN_COLOURS

if TYPE_CHECKING:
    from mqlab_widgets.boards.stage import StageBoard
    from mqlab_widgets.boards.stage_state import Flight
    from mqlab_widgets.scene.scene import Look

RING = 15
SIZE = 24
DIGITS = ((30, 10.5, ' class="large"'), (16, 8.4, ""), (13, 7.7, ' class="tight"'))
"""Least height of a message, width of a digit in the widest of usual fonts, and how it is marked: the first for which
there is room is taken.
"""
LEAST_DIGIT = 4.8
"""px: where that is too wide digits are made so narrow, in any font."""
SIGNS = {
    "revived": "revived", "asked": "sending", "half": "half",
    "out": "out", "unnoted": "unnoted", "done": "done", "fresh": "unflushed",
}  # fmt: skip
"""Style class of a message -> the sign that it makes of it (`signs.py`), what matters more first; without one of them
it is just a message.
"""


def colour_of(label: str) -> str:
    """The style class of a message's colour: the same number has the same colour everywhere."""
    digits = "".join(character for character in label if character.isdigit())
    return f"t{int(digits) % len(TOKEN_COLOURS)}" if digits else "plain"


def sign(*names: str) -> str:
    """The attribute that says which signs an element is."""
    return f' data-sign="{" ".join(names)}"'


def message(
    label: str, width: float = SIZE, height: float = SIZE, *, css: str = "", bare: bool = False, more: str = "",
    tip: str = "",
) -> str:  # fmt: skip
    """A message; `css` says its state ("fresh" hatches it). Without room for the number, or `bare`, only the colour is
    left. `more` are further attributes of its element, `tip` is what stands beside the pointer.
    """
    states = css.split()
    text = "" if bare else _number(label, width, height)
    place = f'x="{-width / 2:g}" y="{-height / 2:g}" width="{width:g}" height="{height:g}" rx="{min(5, height / 4):g}"'
    over = f'<rect class="veil" {place}/>' if "fresh" in states else ""
    if "lit" in states:
        wide, high = width + 6, height + 6
        over += f'<rect class="follow" x="{-wide / 2:g}" y="{-high / 2:g}" width="{wide:g}" height="{high:g}" rx="6"/>'
    if "copied" in states:
        over += f'<path class="below" d="M{-width / 2:g} {height / 2 + 3:g}h{width:g}"/>'
    if "half" in states:
        over += f'<path class="halved" d="M{-width / 2:g} {-height / 2:g}V{height / 2:g}H{width / 2:g}Z"/>'
    if "revived" in states:
        over += f'<path class="again" d="M{2 - width / 2:g} {-height / 2:g}h{width - 4:g}"/>'
    about = f"<title>{escape(tip)}</title>" if tip else ""
    colour = colour_of(label)
    state = next((SIGNS[one] for one in SIGNS if one in states), "message" if colour != "plain" else "")
    also = {"own": colour == "plain", "copied": "copied" in states, "followed": "lit" in states}
    signs = sign(*filter(None, [state, *(name for name, drawn in also.items() if drawn)]))
    return f'<g class="{" ".join(["mq-token", colour, *states])}"{signs}{more}>{about}<rect {place}/>{over}{text}</g>'


def _number(label: str, width: float, height: float) -> str:
    """What is written on a message of this size; "" if there is no room for it."""
    marks = (mark for least, digit, mark in DIGITS if height >= least and width >= max(12, digit * len(label) + 3))
    mark = next(marks, None)
    if mark is None and height >= 13 and width >= LEAST_DIGIT * len(label) + 6:
        mark = f' class="tight" textLength="{width - 6:g}" lengthAdjust="spacingAndGlyphs"'
    return "" if mark is None else f"<text{mark}>{escape(label)}</text>"


def css_of(board: StageBoard, key: str, look: Look) -> str:
    """The style classes of a message: lit when its trail is shown, faint when that of another is."""
    return "" if not look.followed else "lit" if key == look.followed else "unlit"


def token(
    board: StageBoard,
    key: str,
    look: Look,
    width: float = SIZE,
    height: float = SIZE,
    *,
    css: str = "",
    more: str = "",
    tip: str = "",
) -> str:
    """A message that can be clicked."""
    label = board.label(key)
    if len(key) in KEY_LETTERS:
        does = f'data-do="follow" data-message="{escape(key, quote=True)}" role="button"'
        more += f' {does} aria-label="message {label}"'
    css = f"{css} {css_of(board, key, look)}"
    return message(label, width, height, css=css, more=more, tip=tip)


def sliding(name: str, x: float, y: float) -> str:
    """The attributes of what slides to a new place when that changes; `name` is its own among its neighbours."""
    return f' data-key="{name}" style="transform:translate({x:g}px,{y:g}px)"'


def pull_ring(radius: float = RING, left: float = 1.0) -> str:
    """A pull: a ring; `left` is what remains of the time for which it is held."""
    around = 6.2832 * radius
    arc = f'stroke-dasharray="{around * left:.1f} {around:.1f}" transform="rotate(-90)"'
    return (
        f'<g{sign("pull")}><circle class="ring" r="{radius:g}" stroke-opacity="0"/>'
        f'<circle class="ringpath" r="{radius:g}"/><circle class="left" r="{radius:g}" {arc}/></g>'
    )


def woken_ring(radius: float = RING) -> str:
    """A pull that was held, and is looked at again."""
    return f'<g{sign("woken")}><circle class="woken" r="{radius:g}"/><circle class="spark" r="{radius / 2.6:g}"/></g>'


def cross(size: float = 6) -> str:
    """What is lost or refused."""
    way = f"M{-size:g} {-size:g}L{size:g} {size:g}M{-size:g} {size:g}L{size:g} {-size:g}"
    return f'<path class="refusal"{sign("failed")} d="{way}"/>'


def answer() -> str:
    """An answer that all is well, without a message in it."""
    return f'<circle class="answer"{sign("answer")} r="5.5"/>'


def ack() -> str:
    """A consumer's word that it is done with a popped message (or that it wants it again)."""
    return f'<g{sign("ack")}><circle class="answer" r="8"/><path class="tick" d="M-4 0L-1 3L4 -3"/></g>'


def mark(name: str) -> str:
    """What is said of a half message: "commit", "rollback" or "question" (what became of it?)."""
    inside = {
        "commit": '<path class="tick" d="M-3.5 0.3L-1 3L3.5 -3"/>',
        "rollback": '<path class="tick" d="M-3 -3L3 3M-3 3L3 -3"/>',
        "question": "<text>?</text>",
    }[name]
    meaning = "question" if name == "question" else "end"
    return f'<g class="end {name}"{sign(meaning)}><rect x="-7" y="-7" width="14" height="14" rx="4"/>{inside}</g>'


def other() -> str:
    """A frame that is about none of these."""
    return f'<circle class="small"{sign("other")} r="3.5"/>'


def times(count: int, x: float, y: float) -> str:
    """So many messages together."""
    return f'<text class="faint" x="{x:g}" y="{y:g}">×{count:,}</text>'


def frame(board: StageBoard, flight: Flight) -> str:
    """A frame on its way."""
    labels = [board.label(key) for key in flight.keys]
    if flight.kind == "pull" and flight.response:
        return pull_ring() + (_several(labels, flight.messages) if flight.messages else "")
    if flight.kind == "pull":
        return pull_ring()
    if flight.kind in ("send", "back"):
        return _several(labels or [""], max(1, flight.messages)) + (beside(cross(4)) if flight.kind == "back" else "")
    if flight.kind == COPY and flight.messages:
        return _several(labels, flight.messages)
    if flight.kind in ("ack", REPORT):
        return ack()
    if flight.kind in ("commit", "rollback", "question"):
        return message(labels[0], css="half") + beside(mark(flight.kind))
    if flight.kind == "answer" and not flight.messages:
        return answer()
    return cross(5) if flight.kind == "refusal" else other()


def beside(mark: str) -> str:
    """A mark at the corner of a message, where it hides no number."""
    return f'<g transform="translate(16 -14)">{mark}</g>'


def _several(labels: list[str], count: int) -> str:
    """Some messages, one upon the other, the first on top; with their count if there are more than can be seen."""
    behind = "".join(
        f'<g transform="translate({4 * place} {-4 * place})">{message(label, bare=True)}</g>'
        for place, label in reversed(list(enumerate(labels[1:3], 1)))
    )
    more = times(count, 16, -17) if count > 1 else ""
    return f"{behind}{message(labels[0] if labels else '')}{more}"
