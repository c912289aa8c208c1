"""What travels and what lies in queues: messages as coloured tokens with their number, pulls as rings, answers as dots.

Each function gives SVG centred on (0, 0). A request is hollow, its payload is filled, an acknowledgement is small.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from mqlab_widgets.scene.style import TOKEN_COLOURS

if TYPE_CHECKING:
    from mqlab_widgets.boards.stage import StageBoard
    from mqlab_widgets.boards.stage_state import Flight
    from mqlab_widgets.scene.scene import Look

RING = 15
SIZE = 24


def colour_of(label: str) -> str:
    """The style class of a message's colour: the same number has the same colour everywhere."""
    digits = "".join(character for character in label if character.isdigit())
    return f"t{int(digits) % len(TOKEN_COLOURS)}" if digits else "plain"


def message(
    label: str, width: float = SIZE, height: float = SIZE, *, css: str = "", veil: bool = False, bare: bool = False,
    more: str = "", tip: str = "",
) -> str:  # fmt: skip
    """A message; `veil` hatches it. Without room for the number, or `bare`, only the colour is left. `more` are further
    attributes of its element, `tip` is what stands beside the pointer.
    """
    text = f"<text>{escape(label)}</text>" if not bare and width >= max(12, 7 * len(label) + 3) and height >= 13 else ""
    place = f'x="{-width / 2:g}" y="{-height / 2:g}" width="{width:g}" height="{height:g}" rx="{min(5, height / 4):g}"'
    hatched = f'<rect class="veil" {place}/>' if veil else ""
    about = f"<title>{escape(tip)}</title>" if tip else ""
    classes = " ".join(["mq-token", colour_of(label), *css.split()])
    return f'<g class="{classes}"{more}>{about}<rect {place}/>{hatched}{text}</g>'


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
    veil: bool = False,
    more: str = "",
    tip: str = "",
) -> str:
    """A message that can be clicked."""
    label = board.label(key)
    if key:
        does = f'data-do="follow" data-message="{escape(key, quote=True)}" role="button"'
        more += f' {does} aria-label="message {label}"'
    css = f"{css} {css_of(board, key, look)}"
    return message(label, width, height, css=css, veil=veil, more=more, tip=tip)


def sliding(name: str, x: float, y: float) -> str:
    """The attributes of what slides to a new place when that changes; `name` is its own among its neighbours."""
    return f' data-key="{name}" style="transform:translate({x:g}px,{y:g}px)"'


def pull_ring(radius: float = RING, left: float = 1.0) -> str:
    """A pull: a ring; `left` is what remains of the time for which it is held."""
    around = 6.2832 * radius
    arc = f'stroke-dasharray="{around * left:.1f} {around:.1f}" transform="rotate(-90)"'
    return (
        f'<circle class="ring" r="{radius:g}" stroke-opacity="0"/><circle class="ringpath" r="{radius:g}"/>'
        f'<circle class="left" r="{radius:g}" {arc}/>'
    )


def cross(size: float = 6) -> str:
    """What is lost or refused."""
    return f'<path class="refusal" d="M{-size:g} {-size:g}L{size:g} {size:g}M{-size:g} {size:g}L{size:g} {-size:g}"/>'


def frame(board: StageBoard, flight: Flight) -> str:
    """A frame on its way."""
    labels = [board.label(key) for key in flight.keys]
    if flight.kind == "pull" and flight.response:
        return pull_ring() + (_several(labels, flight.messages) if flight.messages else "")
    if flight.kind == "pull":
        return pull_ring()
    if flight.kind in ("send", "back"):
        return _several(labels or [""], max(1, flight.messages)) + (cross(4) if flight.kind == "back" else "")
    if flight.kind == "ack" or (flight.kind == "answer" and not flight.messages):
        return '<circle class="ack" r="5.5"/>'
    if flight.kind == "refusal":
        return cross(5)
    return '<circle class="small" r="3.5"/>'


def _several(labels: list[str], count: int) -> str:
    """Some messages, one upon the other, the first on top; with their count if there are more than can be seen."""
    behind = "".join(
        f'<g transform="translate({4 * place} {-4 * place})">{message(label, bare=True)}</g>'
        for place, label in reversed(list(enumerate(labels[1:3], 1)))
    )
    more = f'<text class="faint" x="16" y="-17">×{count}</text>' if count > 1 else ""
    return f"{behind}{message(labels[0] if labels else '')}{more}"
