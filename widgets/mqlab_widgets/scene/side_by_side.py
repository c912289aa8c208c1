"""Push and Pop beside each other: two halves of one picture, of one world, at one time.

Each half has the queues with the orders that wait, the members with what they have in hand, and how much was packed in
each half second. An order is one token for each group, so it is seen to go from its queue to whoever gets it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from mqlab.scenarios.take_or_own import OWNERS, TAKERS
from mqlab_widgets.boards.own_and_take import INTERVAL_US, INTERVALS, OwnAndTakeBoard
from mqlab_widgets.boards.stage_state import DOWN, FROZEN
from mqlab_widgets.scene import plan, tokens
from mqlab_widgets.scene.acts import RESTS, Moves
from mqlab_widgets.scene.plan import EDGE, Sheet
from mqlab_widgets.scene.scene import Look, Scene
from mqlab_widgets.scene.style import CHARACTER, OWNER_COLOURS, fit, wrapped

if TYPE_CHECKING:
    from mqlab.trace.record import Record
    from mqlab_widgets.boards.stage import StageBoard

BIG = (1.5, 1.3)
"""How much larger all is in projector mode, with few members and with many."""
TITLES = {OWNERS: "push: each queue has an owner", TAKERS: "Pop: whoever is free takes"}
TOGETHER = 620
"""From this width on, px, the halves are beside each other; below, one under the other."""
GAP = 20
LEAST = 380
"""The height that a half needs."""
WORDS, LINE, MOST_LINES = 58, 16, 2
"""Where what is said begins, and its lines."""
QUEUES = 92
"""Where the queues begin."""
MOST_ROW, LEAST_ROW = 36, 9
LABEL, OWNER = 28, 58
"""Room for the name of a queue, left of it, and for its owner, right of it."""
BOX, BOX_GAP = 47, 5
PACKED = 76
"""Height of the bars with their words."""
HANDS = (25, 20)
"""Width of an order in somebody's hands, where there is much room and where there is little."""
MUCH = 100
"""A member as wide as this has much room, px."""
STORY_MS = {"MessageDispatched": 150, "ConsumeStarted": 200, "ConsumeFinished": 150, "MessagePopped": 100}
"""Event kind -> ms for which the story rests on it; the others rest as on the stage."""


@dataclass(frozen=True, slots=True)
class Half:
    """The room of one group, and how high the rows of its queues are."""

    group: str
    x: float
    y: float
    width: float
    height: float
    row: float
    boxes: int
    """How many members stand side by side."""
    box_rows: int

    @property
    def members_y(self) -> float:
        """Where the members begin."""
        return self.height - PACKED - self.box_rows * (BOX + BOX_GAP)

    @property
    def box_width(self) -> float:
        """The width of a member."""
        return (self.width - BOX_GAP * (self.boxes - 1)) / self.boxes


def moves_of(record: Record, board: StageBoard, scene: Scene) -> Moves:
    """How long the story rests on an event: what moves are the tokens of the picture, which slide by themselves."""
    rest = STORY_MS.get(record.kind) or RESTS.get(record.kind, 0)
    return Moves((), rest)


def scene_of(board: StageBoard, look: Look, before: Scene | None = None) -> Scene:
    """The scene of both worlds, one beside the other."""
    assert isinstance(board, OwnAndTakeBoard)
    scale = BIG[_box_rows(board) > 1] if look.big else 1
    width = look.width / scale
    beside = width >= TOGETHER or look.big
    height = float(max(LEAST, min(plan.HEIGHT, look.height or plan.HEIGHT)))
    height = look.height / scale if look.big and look.height else height
    across = (width - 2 * EDGE - GAP) / 2 if beside else width - 2 * EDGE
    scene = Scene(look, Sheet([]), width, height if beside else 2 * height + GAP, {}, [])
    scene.parts["paper"] = f'<g data-key="paper"><rect class="paper" width="{width:g}" height="{scene.height:g}"/></g>'
    most = max((bar for side in board.sides.values() for bar in side.bars.values()), default=1)
    for place, group in enumerate((OWNERS, TAKERS)):
        x, y = (EDGE + place * (across + GAP), 0.0) if beside else (EDGE, place * (height + GAP))
        half = _half(board, group, x, y, across, height)
        for name, shapes in (
            ("words", _words(board, half, look)),
            ("frame", _frame(board, half)),
            ("packed", _packed(board, half, look, most)),
            ("orders", _orders(board, half, look)),
        ):
            key = f"{group}:{name}"
            scene.parts[key] = f'<g data-key="{key}" transform="translate({x:g} {y:g})">{"".join(shapes)}</g>'
    if beside:
        middle = width / 2
        scene.parts["between"] = (
            f'<g data-key="between"><line class="next" x1="{middle:g}" x2="{middle:g}" y1="8" y2="{height - 8:g}"/></g>'
        )
    return scene


def _members(board: OwnAndTakeBoard) -> int:
    return max(1, *(len(side.members) for side in board.sides.values()))


def _box_rows(board: OwnAndTakeBoard) -> int:
    """In how many rows the members stand."""
    return 1 if _members(board) <= 4 else 2 if _members(board) <= 10 else 3


def _half(board: OwnAndTakeBoard, group: str, x: float, y: float, width: float, height: float) -> Half:
    rows = _box_rows(board)
    boxes = -(-_members(board) // rows)
    room = height - QUEUES - PACKED - rows * (BOX + BOX_GAP) - 8
    row = max(LEAST_ROW, min(MOST_ROW, room / max(1, len(board.queue_ids))))
    return Half(group, x, y, width, height, row, boxes, rows)


# -- words ----------------------------------------------------------------------------------------------------------


def _words(board: OwnAndTakeBoard, half: Half, look: Look) -> Iterator[str]:
    yield f'<text class="head" x="0" y="19">{TITLES[half.group]}</text>'
    facts = board.facts(half.group, max(look.now_us, board.seen_us))
    yield f'<text class="facts" x="0" y="39">{escape(fit(facts, half.width))}</text>'
    for number, line in enumerate(wrapped(board.why(half.group), half.width, MOST_LINES)):
        css = "limit" if _is_bad(board, half.group) else "faint"
        yield f'<text class="{css}" x="0" y="{WORDS + number * LINE}">{escape(fit(line, half.width))}</text>'


def _is_bad(board: OwnAndTakeBoard, group: str) -> bool:
    """Whether a group stands still somewhere."""
    return group == OWNERS and bool(board.why(group))


# -- queues and members ---------------------------------------------------------------------------------------------


def _lane(half: Half) -> float:
    """How wide a queue is."""
    return half.width - LABEL - (OWNER if half.group == OWNERS else 0)


def _box_of(board: OwnAndTakeBoard, half: Half, name: str) -> tuple[float, float]:
    """Where a member stands."""
    place = list(board.sides[half.group].members).index(name)
    across, down = place % half.boxes, place // half.boxes
    return across * (half.box_width + BOX_GAP), half.members_y + down * (BOX + BOX_GAP)


def _owner_css(board: OwnAndTakeBoard, name: str) -> str:
    return f"o{list(board.sides[OWNERS].members).index(name) % len(OWNER_COLOURS)}"


def _frame(board: OwnAndTakeBoard, half: Half) -> Iterator[str]:
    lane, high = _lane(half), half.row - 3
    for place, queue_id in enumerate(sorted(board.queue_ids)):
        y = QUEUES + place * half.row
        middle = y + high / 2
        owner = board.owner_of(queue_id) if half.group == OWNERS else ""
        css = f'class="owned {_owner_css(board, owner)}"' if owner else ""
        yield f'<text class="faint" x="0" y="{middle + 4:g}">q{queue_id}</text>'
        yield f'<g {css}><rect class="lane" x="{LABEL}" y="{y:g}" width="{lane:g}" height="{high:g}" rx="4"/></g>'
        if half.group == OWNERS:
            yield _owner(board, owner, half.width - OWNER + 4, middle, min(high, 17))
    for name, member in board.sides[half.group].members.items():
        x, y = _box_of(board, half, name)
        state = board.states.get(name, "running")
        owned = board.owned_by(name) if half.group == OWNERS else []
        idle = half.group == OWNERS and not owned
        css = f"owned {_owner_css(board, name)}" if half.group == OWNERS else ""
        size = f'width="{half.box_width:g}" height="{BOX}" rx="6"'
        note = {FROZEN: "hangs", DOWN: "down"}.get(state, "" if idle else f"{member.packed:,}")
        room = half.box_width - 12
        if CHARACTER * (len(note) + 1 + len(name)) > room and not note.isdigit():
            note = ""
        shown = escape(fit(name, room - CHARACTER * (len(note) + 1) if note else room))
        yield (
            f'<g data-key="{half.group}:{escape(name, quote=True)}" class="mq-card {state}" data-do="choose" '
            f'data-node="{escape(name, quote=True)}" role="button" tabindex="0" '
            f'aria-label="{escape(name, quote=True)}, {state}, {member.packed:,} packed" '
            f'transform="translate({x:g} {y:g})"><g class="{css}"><rect class="lane" {size}/></g>'
            f'<text x="6" y="14">{shown}</text>'
            f'<text class="{"limit" if note == "hangs" else "faint"}" x="{half.box_width - 6:g}" y="14" '
            f'text-anchor="end">{note}</text>'
            + ('<text class="limit" x="6" y="34">no queue</text>' if idle and state not in (FROZEN, DOWN) else "")
            + (f'<rect class="frost" {size}/>' if state == FROZEN else "")
            + "</g>"
        )


def _owner(board: OwnAndTakeBoard, owner: str, x: float, middle: float, high: float) -> str:
    place = f'x="{x:g}" y="{middle - high / 2:g}" width="{OWNER - 4}" height="{high:g}" rx="4"'
    if not owner:
        words = f'<text class="limit" x="{x + OWNER / 2 - 2:g}" y="{middle + 4:g}" text-anchor="middle">nobody</text>'
        return f'<rect class="next" {place}/>{words if high > 11 else ""}'
    words = f'<text x="{x + OWNER / 2 - 2:g}" y="{middle:g}">{escape(fit(owner, OWNER))}</text>'
    return f'<g class="chip {_owner_css(board, owner)}"><rect {place}/>{words if high > 11 else ""}</g>'


# -- orders ---------------------------------------------------------------------------------------------------------


def _orders(board: OwnAndTakeBoard, half: Half, look: Look) -> Iterator[str]:
    side = board.sides[half.group]
    rows = {queue_id: place for place, queue_id in enumerate(sorted(board.queue_ids))}
    lying: dict[int, list[str]] = {queue_id: [] for queue_id in rows}
    held: dict[str, list[str]] = {name: [] for name in side.members}
    for key, order in side.waiting.items():
        holder = board.holder_of(half.group, key)
        if holder and board.states.get(holder) == FROZEN:
            held[holder].append(key)
        elif order.queue_id in lying:
            lying[order.queue_id].append(key)
    lane, high = _lane(half), half.row - 6
    wide = min(26.0, max(14.0, lane / 12))
    for queue_id, keys in lying.items():
        middle = QUEUES + rows[queue_id] * half.row + (half.row - 3) / 2
        most = max(1, int((lane - 34) / wide))
        for place, key in enumerate(keys[:most]):
            x = LABEL + lane - 3 - (place + 0.5) * wide
            css = "revived" if side.waiting[key].again else ""
            yield _order(board, half, key, x, middle, (wide - 2, high), css)
        if len(keys) > most:
            yield f'<text class="faint" x="{LABEL + 4}" y="{middle + 4:g}">+{len(keys) - most:,}</text>'
    for name, member in side.members.items():
        yield from _hands(board, half, name, [*member.packs, *held[name]], len(member.packs), look)


def _hands(
    board: OwnAndTakeBoard, half: Half, name: str, keys: list[str], begun: int, look: Look
) -> Iterator[str]:
    """What a member has: in its listener, and behind that what a member that hangs was given and has not begun; of
    what hangs with a taker, what is left of the time for which it is hidden.
    """
    left, top = _box_of(board, half, name)
    wide = HANDS[half.box_width < MUCH]
    most = max(1, int((half.box_width - 8) / (wide + 2)))
    fits = len(keys) <= most
    shown = keys if fits else keys[: max(1, most - 1)]
    side, hangs = board.sides[half.group], board.states.get(name) == FROZEN
    for place, key in enumerate(shown):
        x, y = left + 5 + place * (wide + 2) + wide / 2, top + 30
        yield _order(board, half, key, x, y, (wide, 20), "" if place < begun else "out")
        order = side.members[name].packs.get(key) or side.waiting.get(key)
        if hangs and half.group == TAKERS and order is not None:
            yield _clock(*board.hidden(order), look.now_us, x - wide / 2, y + 11, wide)
    if not fits:
        x = left + 7 + len(shown) * (wide + 2)
        yield f'<text class="faint" x="{x:g}" y="{top + 34:g}">+{len(keys) - len(shown):,}</text>'


def _clock(since_us: int, until_us: int, now_us: int, x: float, y: float, wide: float) -> str:
    """What is left of the time for which an order is hidden."""
    left = min(1.0, max(0.0, (until_us - now_us) / max(1, until_us - since_us)))
    tip = f"<title>hidden from the others for {max(0, until_us - now_us) / 1_000_000:.1f} s more</title>"
    return f'<rect class="clock" x="{x:g}" y="{y:g}" width="{wide * left:.1f}" height="4">{tip}</rect>'


def _order(
    board: OwnAndTakeBoard, half: Half, key: str, x: float, y: float, size: tuple[float, float], css: str
) -> str:
    token = tokens.message(board.label(key), *size, css=css)
    return f'<g data-key="{half.group}:{escape(key, quote=True)}" transform="translate({x:.1f} {y:.1f})">{token}</g>'


# -- how much was packed --------------------------------------------------------------------------------------------


def _packed(board: OwnAndTakeBoard, half: Half, look: Look, most: int) -> Iterator[str]:
    """A bar for each half second up to now."""
    side = board.sides[half.group]
    now = max(look.now_us, board.seen_us) // INTERVAL_US
    top, base = half.height - PACKED + 28, half.height - 15.0
    wide = half.width / INTERVALS
    yield f'<text class="faint" x="0" y="{top - 15:g}">packed in each half second (at the most {most:,})</text>'
    yield f'<line class="axis" x1="0" x2="{half.width:g}" y1="{base:g}" y2="{base:g}"/>'
    for interval, packed in side.bars.items():
        x, high = half.width - (now - interval + 1) * wide, (base - top) * packed / most
        if x >= 0:
            yield (
                f'<rect class="bar" x="{x + 0.5:.1f}" y="{base - high:.1f}" width="{wide - 1:.1f}" '
                f'height="{high:.1f}"><title>{packed:,} at {interval * INTERVAL_US / 1_000_000:.1f} s</title></rect>'
            )
    for mark in side.marks:
        x = half.width - (now - mark.us / INTERVAL_US + 1) * wide
        if x >= 0:
            anchor = "end" if x > half.width * 0.6 else "start"
            yield f'<line class="moment" x1="{x:.1f}" x2="{x:.1f}" y1="{top - 10:g}" y2="{base:g}"/>'
            yield (
                f'<text class="moment" x="{x + (4 if anchor == "start" else -4):.1f}" y="{top - 3:g}" '
                f'text-anchor="{anchor}">{escape(mark.words)}</text>'
            )
    yield f'<text class="faint" x="0" y="{base + 13:g}">{INTERVALS * INTERVAL_US // 1_000_000} s ago</text>'
    yield f'<text class="faint" x="{half.width:g}" y="{base + 13:g}" text-anchor="end">now</text>'
