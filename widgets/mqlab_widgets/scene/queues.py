"""A broker's queues: entries and pointers, who pulls from them, held pulls, and the time of popped messages."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from mqlab.protocol.topics import RMQ_SYS_SCHEDULE_TOPIC
from mqlab_widgets.boards.stage_state import ASKED, BACK, COMMIT, ENDED, HIDDEN, ROLLBACK
from mqlab_widgets.scene import tokens
from mqlab_widgets.scene.plan import Card, Point, Row
from mqlab_widgets.scene.tokens import sign, sliding, token

if TYPE_CHECKING:
    from mqlab_widgets.boards.stage import StageBoard
    from mqlab_widgets.boards.stage_state import Cell, Held, Strip
    from mqlab_widgets.scene.scene import Look

LABEL = 38
"""Room for the name of a queue, left of it."""
CHIP, RINGS, RING = 27, 46, 22
"""Room for an owner and for held pulls, right of a queue; so far from the card's right end stands the first pull."""
MOST_OWNERS = 2
LEAST_MARKED = 16
"""px: so high a half message must be to be marked with what is said of it."""
_SAID = {ASKED: "question", COMMIT: "commit", ROLLBACK: "rollback"}
POINTERS = {"noted": "M0 -3L9 11L-9 11Z", "read": "M0 1L5 9L-5 9Z", "handed": "M0 -2L5 5L0 12L-5 5Z"}


class Size(NamedTuple):
    """How large the queues of a broker are drawn."""

    cell: float
    height: float
    row: float
    pointer: float
    """How large its pointers are drawn."""


SIZES = (
    Size(36, 38, 74, 1.3),
    Size(36, 34, 64, 1.2),
    Size(33, 28, 52, 1),
    Size(30, 24, 43, 1),
    Size(26, 20, 34, 0.8),
    Size(26, 16, 27, 0.7),
    Size(26, 16, 20, 0.5),
    Size(12, 9, 12, 0),
)


def put_queue(
    board: StageBoard, card: Card, queue: tuple[str, int], strip: Strip, look: Look, size: Size, chips: int, over: str
) -> None:
    """A row for a queue; `over` is what changes with time, and is drawn above it."""
    owners = {name: card.sheet.owner_css(name) for name in sorted(strip.owners)}
    drawn_from = (
        *(card.width, size, chips, look.followed, owners, strip.end, tuple(strip.cells), tuple(strip.popped.items())),
        *((group, strip.read_by(group), strip.committed.get(group, 0)) for group in strip.groups()),
        *strip.halves.items(),
        *((offset, strip.is_out(offset, look.now_us)) for offset in strip.popped if strip.lapses),
    )

    def draw() -> Row:
        return _queue_row(board, card.width, queue, strip, owners, look, size, chips)

    card.put(card.sheet.row((card.name, *queue), drawn_from, draw), over)


def _queue_row(
    board: StageBoard, width: float, queue: tuple[str, int], strip: Strip, owners: dict[str, str], look: Look,
    size: Size, chips: int,
) -> Row:  # fmt: skip
    topic, queue_id = queue
    most, low = _view(width, strip, size, chips)
    middle = size.height / 2 + 2
    shapes = [_label(f"{strip.letter}{queue_id}" if strip.letter else "", topic, queue_id, size)]
    css = f'class="owned {next(iter(owners.values()))}"' if owners else ""
    shapes.append(
        f'<g {css}><rect class="lane" x="{LABEL}" y="1" width="{most * size.cell + 2:g}" '
        f'height="{size.height + 2:g}" rx="4"/></g>'
    )

    def across(offset: int) -> float:
        return LABEL + 1 + (min(max(offset, low), low + most) - low) * size.cell

    read = min((strip.read_by(group) for group in strip.groups()), default=0)
    noted = min((strip.committed.get(group, 0) for group in strip.groups()), default=0)
    for cell in strip.cells:
        if cell.offset >= low:
            css = _state_of(strip, cell.offset, read, noted, look.now_us)
            shapes.append(_cell(board, cell, across(cell.offset), middle, look, size, css))
            said = _SAID.get(strip.halves.get(cell.offset, ""))
            if said is not None and size.height >= LEAST_MARKED:
                x, y = across(cell.offset) + size.cell - 5, middle - size.height / 2 + 4
                shapes.append(f'<g class="slide"{sliding(f"e{cell.offset}", x, y)}>{tokens.mark(said)}</g>')
    if strip.end - low < most:
        x = across(strip.end)
        shapes.append(
            f'<rect class="next"{sign("next")} x="{x + 2:g}" y="4" width="{size.cell - 4:g}" '
            f'height="{size.height - 4:g}" rx="4"/>'
        )
    if size.pointer and strip.groups():
        shapes += _pointers(strip, low, across, size)
    if read < low and strip.groups():
        shapes.append(
            f'<text class="limit" x="{LABEL + 4}" y="{size.height + 14:g}">‹ {low - read:,} more wait</text>'
            if size.row > size.height + 12
            else ""
        )
    shapes += _chips(owners, width - RINGS - 4, middle, size)
    newest = across(strip.end - 1) + size.cell / 2 if strip.end else LABEL + size.cell / 2
    spots: dict[Hashable, Point] = {
        ("next", topic, queue_id): (across(strip.end) + size.cell / 2, middle),
        ("queue", topic, queue_id): (newest, middle),
        ("ring", topic, queue_id): (width - RING, middle),
    }
    for cell in strip.cells:
        if cell.offset >= low:
            spots["cell", cell.key] = across(cell.offset) + size.cell / 2, middle
    return Row("".join(shapes), size.row, spots)


def _label(name: str, topic: str, queue_id: int, size: Size) -> str:
    if size.height < 13:
        return ""
    words = name if topic != RMQ_SYS_SCHEDULE_TOPIC else f"lvl {queue_id + 1}"
    return f'<text class="faint" x="10" y="{size.height / 2 + 6:g}">{words}</text>'


def _view(width: float, strip: Strip, size: Size, chips: int) -> tuple[int, int]:
    """How many entries of a queue there is room for, and which is the first of them."""
    room = width - LABEL - chips * CHIP - RINGS - 6
    most = max(1, int(room // size.cell))
    return most, max(0, strip.end - most + 1)


def _state_of(strip: Strip, offset: int, read: int, noted: int, now_us: int) -> str:
    """The style class of an entry: done with, done with and not noted, out with a consumer, brought back."""
    half = strip.halves.get(offset)
    if half is not None:
        return "half" if half in (HIDDEN, ASKED) else "done"
    out = strip.popped.get(offset)
    if out is not None:
        done = "done" if offset < noted else "unnoted"
        state = BACK if out.state == "out" and not strip.is_out(offset, now_us) else out.state
        return {"out": "out", "revived": "done revived", BACK: "revived", ENDED: "done"}.get(state, done)
    return "done" if offset < noted else "unnoted" if offset < read else ""


def clocks(card: Card, strip: Strip, look: Look, size: Size, chips: int) -> str:
    """What is left of the time for which each popped message is hidden."""
    most, low = _view(card.width, strip, size, chips)
    shapes = []
    for offset, out in strip.popped.items():
        if strip.is_out(offset, look.now_us) and low <= offset < low + most and offset < strip.end:
            left = min(1.0, max(0.0, (out.until_us - look.now_us) / max(1, out.until_us - out.since_us)))
            x, wide = LABEL + 1 + (offset - low) * size.cell + 3, (size.cell - 6) * left
            tip = f"<title>hidden from others for {max(0, out.until_us - look.now_us) / 1_000_000:.1f} s more</title>"
            # On the lower edge of the message, below its number.
            place = f'x="{x:g}" y="{size.height - 0.4:g}" width="{wide:.1f}" height="2.6"'
            shapes.append(f'<rect class="clock"{sign("time")} {place}>{tip}</rect>')
    return "".join(shapes)


def _cell(board: StageBoard, cell: Cell, x: float, middle: float, look: Look, size: Size, css: str) -> str:
    return token(
        *(board, cell.key, look, size.cell - 3, size.height - 2),
        css=f"slide {css}",
        more=sliding(f"c{cell.offset}", x + size.cell / 2, middle),
        tip=f"offset {cell.offset:,}",
    )


def _pointers(strip: Strip, low: int, across: Callable[[int], float], size: Size) -> list[str]:
    y = size.height + 4
    shapes = []
    for group in strip.groups()[:3]:
        read, noted = strip.read_by(group), strip.committed.get(group, 0)
        far = ("handed", read, "popped") if group in strip.handed else ("read", read, "consumed")
        for css, offset, words in (("noted", noted, "noted by the broker"), far):
            if offset >= low:
                tip = f"<title>{escape(group)}: {words} up to offset {offset:,}</title>"
                shapes.append(
                    f'<g class="slide"{sign(css)}{sliding(f"{css}:{escape(group)}", across(offset), y)}>'
                    f'<path class="{css}" d="{POINTERS[css]}" transform="scale({size.pointer:g})">{tip}</path></g>'
                )
    return shapes


def rings(held: list[Held], woken: list[Held], x: float, size: Size, look: Look, y: float = 0) -> str:
    """The pulls that are held for a queue, each emptying as its time passes, and those that are looked at again."""
    shapes = []
    y, radius = y or size.height / 2 + 2, min(12, size.height / 2)
    for place, pull in enumerate([*woken, *held][:3]):
        left = 1 - (look.now_us - pull.since_us) / 1_000 / max(1, pull.hold_ms)
        what = "is looked at again" if pull in woken else f"held since {pull.since_us / 1_000:,.1f} ms"
        tip = f"<title>a pull of {escape(pull.consumer)}, {what}</title>"
        picture = tokens.pull_ring(radius, min(1.0, max(0.0, left)))
        picture = tokens.woken_ring(radius) if pull in woken else picture
        shapes.append(f'<g class="held" transform="translate({x - 7 * place:g} {y:g})">{tip}{picture}</g>')
    return "".join(shapes)


def _chips(owners: dict[str, str], x: float, y: float, size: Size) -> list[str]:
    if size.height < 13:
        return []
    return [
        f'<g class="chip {css}{" long" if len(short(name)) > 2 else ""}"{sign("owner")} '
        f'transform="translate({x - 12 - CHIP * place:g} {y:g})">'
        f'<title>{escape(name)} pulls from this queue</title><rect x="-11" y="-8" width="22" height="16" rx="5"/>'
        f"<text>{escape(short(name))}</text></g>"
        for place, (name, css) in enumerate(list(owners.items())[:MOST_OWNERS])
    ]


def short(name: str) -> str:
    """A name for a chip: "c1" of "consumer-1"."""
    head, _, number = name.rpartition("-")
    return f"{head[:1]}{number}" if head and number.isdigit() and len(number) < 3 else name[:3]
