"""How the stage is drawn: name servers on top, producers left, brokers in the middle, consumers right.

A message goes from left to right. Colours come from CSS variables with fallbacks, so that the same SVG follows the
light or dark theme of JupyterLab and still shows on a page of its own.
"""

from __future__ import annotations

from collections.abc import Collection
from html import escape
from math import hypot
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlab_widgets.boards.stage import InFlight, StageBoard

WIDTH = 1040
COLUMNS = {"producer": (14, 216), "broker": (350, 340), "consumer": (810, 216), "machine": (14, 216)}
"""Left edge and width of the cards of each kind; name servers stand above the brokers."""
GAP, HEAD, LINE, CELL = 14, 30, 18, 12
MOST_CARDS = 12
MOST_TOPICS = 4
MOST_CELLS = 16
MOST_HELD = 12
MOST_DOTS = 8
SIDE = 7
SIGNS = {"running": "●", "frozen": "❄", "down": "✕"}

STYLE = """
.mq-stage text{fill:var(--mq-ink,#1a1a1a);font:12px system-ui,sans-serif}
.mq-stage .faint{fill:var(--mq-faint,#5f5f5f)}
.mq-stage .head{font-weight:600;font-size:13px}
.mq-stage .card{fill:var(--mq-card,#fff);stroke:var(--mq-line,#8c8c8c)}
.mq-stage .paper{fill:var(--mq-paper,#f6f6f6)}
.mq-stage .namesrv .card{stroke:#CC79A7}.mq-stage .producer .card{stroke:#0072B2}
.mq-stage .broker .card{stroke:#D55E00}.mq-stage .consumer .card{stroke:#009E73}
.mq-stage .down .card,.mq-stage .frozen .card{stroke-dasharray:6 4;opacity:.6}
.mq-stage .cell{fill:var(--mq-cell,#d9d9d9)}.mq-stage .behind{fill:#E69F00}
.mq-stage .held{fill:var(--mq-held,#F3D08A);stroke:#8a6d1a}.mq-stage .busy{fill:#009E73}.mq-stage .limit{fill:#D55E00}
.mq-stage .wire{stroke:var(--mq-line,#8c8c8c)}.mq-stage .wire.cut{stroke:#D55E00;stroke-dasharray:8 6;stroke-width:2.5}
.mq-stage .request{fill:#0072B2}.mq-stage .response{fill:#009E73}
.mq-stage .other .card{stroke-width:3;stroke-dasharray:2 3}
.mq-stage .chosen .card{stroke-width:3}.mq-stage [data-do]{cursor:pointer}
.mq-stage [data-do]:focus{outline:3px solid #56B4E9}.mq-stage .touched .card{fill:var(--mq-touched,#fff3d6)}
"""


class Card:
    """One machine (or a sum of many): its place, and what is written in it."""

    def __init__(self, name: str, kind: str, x: float, width: float) -> None:
        self.name = name
        self.kind = kind
        self.x = x
        self.y = 0.0
        self.width = width
        self.body: list[str] = []
        self.height = float(HEAD)

    def line(self, words: str, css: str = "faint") -> None:
        """One more line of text."""
        y = self.height + 10
        self.body.append(f'<text class="{css}" x="10" y="{y:g}">{escape(words)}</text>')
        self.height += LINE

    def row(self, shapes: str, height: float) -> None:
        """One more row of shapes, drawn from (10, 0) downwards."""
        self.body.append(f'<g transform="translate(10 {self.height:g})">{shapes}</g>')
        self.height += height

    @property
    def middle(self) -> float:
        """Where lines to it end, from top to bottom."""
        return self.y + min(self.height, 60) / 2


def stage_svg(
    board: StageBoard, chosen: str = "", touched: str = "", opened: Collection[str] = (), *, other: str = ""
) -> str:
    """The whole picture; `chosen` is the machine that the controls act on, `other` the one at the other end of a link,
    `touched` that of the newest event.
    """
    cards = _cards(board, opened)
    bottom = _place(cards)
    by_name = {card.name: card for card in cards}
    body = [*_wires(board, by_name), *(_card(board, card, chosen, touched, other) for card in cards)]
    if not cards:
        body.append('<text x="520" y="60" text-anchor="middle">No machine has started yet: lab.name_server()</text>')
    height = max(bottom, 100)
    return (
        f'<svg class="mq-stage" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
        f'style="width:100%;height:auto" role="group" aria-label="The world: machines, queues and frames in flight">'
        f'<style>{STYLE}</style><rect class="paper" width="{WIDTH}" height="{height:g}"/>{"".join(body)}</svg>'
    )


# -- cards ----------------------------------------------------------------------------------------------------------


def _cards(board: StageBoard, opened: Collection[str]) -> list[Card]:
    """A card for each machine; of a kind with many, the rest is one card until it is opened."""
    by_kind: dict[str, list[str]] = {}
    for node in board.states:
        by_kind.setdefault(board.kind_of(node), []).append(node)
    cards = []
    for kind, nodes in by_kind.items():
        x, width = COLUMNS.get(kind, (500, 200))
        shown = len(nodes) if kind in opened or len(nodes) <= MOST_CARDS else MOST_CARDS - 1
        for node in nodes[:shown]:
            card = Card(node, kind, x, width)
            _fill(board, card)
            cards.append(card)
        if len(nodes) > MOST_CARDS:
            cards.append(_sum(board, kind, nodes[shown:], x, width))
    return cards


def _sum(board: StageBoard, kind: str, nodes: list[str], x: float, width: float) -> Card:
    if not nodes:
        return Card("show fewer", kind, x, width)
    card = Card(f"and {len(nodes)} more", kind, x, width)
    running = sum(board.states[node] == "running" for node in nodes)
    card.line(f"{running} running, {len(nodes) - running} not")
    if kind == "consumer":
        card.line(f"{sum(board.cached_by(node) for node in nodes):,} messages cached")
    return card


def _fill(board: StageBoard, card: Card) -> None:
    if board.states[card.name] == "down":
        card.line("the process is down")
        return
    if card.kind == "broker":
        _fill_broker(board, card)
    elif card.kind in ("consumer", "producer"):
        if card.name in board.groups:
            card.line(f"group {board.groups[card.name]}")
        if card.kind == "consumer":
            _fill_consumer(board, card)


def _fill_broker(board: StageBoard, card: Card) -> None:
    topics = board.topics_of(card.name)
    busiest = sorted(topics, key=lambda topic: -sum(queue[1] for queue in topics[topic]))
    for topic in busiest[:MOST_TOPICS]:
        queues = topics[topic]
        stored, behind = sum(queue[1] for queue in queues), sum(queue[2] for queue in queues)
        card.line(f"{topic}: {stored:,} stored, {behind:,} not consumed", "")
        card.row(_cells(queues, card.width - 20), 26)
    if len(busiest) > MOST_TOPICS:
        rest = sum(queue[1] for topic in busiest[MOST_TOPICS:] for queue in topics[topic])
        card.line(f"and {len(busiest) - MOST_TOPICS} more topics with {rest:,} messages")
    held = board.held.get(card.name, {})
    if held:
        card.row(_held(board, held), 24)
    elif not topics:
        card.line("no message yet")


def _cells(queues: list[tuple[int, int, int]], width: float) -> str:
    """One cell per queue, filled by how much of it is not consumed yet; many queues are summed up in groups."""
    per_cell = -(-len(queues) // MOST_CELLS)
    groups = [queues[at : at + per_cell] for at in range(0, len(queues), per_cell)]
    step = min(width / len(groups), 60)
    shapes = []
    for place, group in enumerate(groups):
        end, behind = sum(queue[1] for queue in group), sum(queue[2] for queue in group)
        names = f"queue {group[0][0]}" if len(group) == 1 else f"queues {group[0][0]} to {group[-1][0]}"
        full = (step - 4) * (behind / end if end else 0)
        shapes.append(
            f'<g transform="translate({place * step:g} 0)"><title>{names}: {end:,} stored, {behind:,} not consumed'
            f'</title><rect class="cell" width="{step - 4:g}" height="{CELL}" rx="2"/>'
            f'<rect class="behind" width="{full:.1f}" height="{CELL}" rx="2"/></g>'
        )
    return "".join(shapes)


def _held(board: StageBoard, held: dict[tuple[int, str], tuple[str, int, int]]) -> str:
    shapes = []
    now_us = board.lab.world.now_us
    for place, (topic, queue_id, since_us) in enumerate(list(held.values())[:MOST_HELD]):
        tip = f"held since {since_us / 1_000:,.1f} ms: {topic} queue {queue_id}" if now_us else topic
        shapes.append(f'<circle class="held" cx="{8 + place * 20}" cy="8" r="7"><title>{escape(tip)}</title></circle>')
    words = "pull held" if len(held) == 1 else "pulls held"
    x = 8 + min(len(held), MOST_HELD) * 20
    shapes.append(f'<text class="faint" x="{x}" y="12">{len(held):,} {words}</text>')
    return "".join(shapes)


def _fill_consumer(board: StageBoard, card: Card) -> None:
    cached, busy = board.cached_by(card.name), sum(board.listening.get(card.name, {}).values())
    width = card.width - 20
    scale = max(100, 10 ** len(str(cached)))
    card.line(f"{cached:,} cached, {busy:,} in the listener")
    card.row(
        f'<rect class="cell" width="{width:g}" height="8" rx="2"/>'
        f'<rect class="behind" width="{width * cached / scale:.1f}" height="8" rx="2"/>'
        f'<rect class="busy" width="{width * min(busy, cached) / scale:.1f}" height="8" rx="2"/>',
        16,
    )
    if card.name in board.limited:
        card.line(f"flow control: {board.limited[card.name]}", "limit")


def _place(cards: list[Card]) -> float:
    """Stack the cards of each column; name servers in a row above. Returns the bottom edge."""
    servers = [card for card in cards if card.kind == "namesrv"]
    top = GAP + 4
    for place, card in enumerate(servers):
        card.x = WIDTH / 2 - len(servers) * 107 + place * 214
        card.y = top
    bottoms: dict[float, float] = {}
    first = top + max((card.height for card in servers), default=0) + (4 * GAP if servers else 0)
    for card in cards:
        if card.kind != "namesrv":
            card.y = bottoms.get(card.x, first)
            bottoms[card.x] = card.y + card.height + 6 + GAP
    return max(bottoms.values(), default=first) + GAP


def _card(board: StageBoard, card: Card, chosen: str, touched: str, other: str) -> str:
    state = board.states.get(card.name, "running")
    css = f"{card.kind} {state}" + (" chosen" if card.name == chosen else "")
    css += " other" if card.name == other else ""
    css += " touched" if card.name == touched else ""
    lives = card.name in board.states
    does = f'data-do="choose" data-node="{escape(card.name)}"'
    if not lives:
        does = f'data-do="open_kind" data-kind="{card.kind}"'
    act = f' {does} tabindex="0" role="button"'
    role = ", other end of the link" if card.name == other else ""
    label = escape(f"{card.name}, {card.kind}, {state}{role}", quote=True)
    pressed = "true" if card.name == chosen else "false"
    return (
        f'<g class="{css}" data-key="{escape(card.name)}" transform="translate({card.x:g} {card.y:g})"{act} '
        f'aria-label="{label}" aria-pressed="{pressed}">'
        f'<rect class="card" width="{card.width:g}" height="{card.height + 6:g}" rx="6"/>'
        f'<text class="head" x="10" y="20">{SIGNS[state]} {escape(card.name)}</text>'
        f'<text class="faint" x="{card.width - 10:g}" y="20" text-anchor="end">{state if lives else ""}</text>'
        f"{''.join(card.body)}</g>"
    )


# -- wires ----------------------------------------------------------------------------------------------------------


def _wires(board: StageBoard, cards: dict[str, Card]) -> list[str]:
    by_pair: dict[tuple[str, str], list[InFlight]] = {}
    for frame in board.frames.values():
        source, target, _, _ = frame
        if source in cards and target in cards:
            by_pair.setdefault((source, target), []).append(frame)
    for pair in board.cut:
        if pair[0] in cards and pair[1] in cards:
            by_pair.setdefault(pair, [])
    return [_wire(pair, frames, cards, pair in board.cut) for pair, frames in by_pair.items()]


def _wire(pair: tuple[str, str], frames: list[InFlight], cards: dict[str, Card], cut: bool) -> str:
    source, target = cards[pair[0]], cards[pair[1]]
    x1, y1, x2, y2 = _ends(source, target)
    shapes = [f'<line class="wire{" cut" if cut else ""}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>']
    shown = frames[:MOST_DOTS]
    for place, (_, _, name, response) in enumerate(shown):
        along = (len(shown) - place) / (len(shown) + 1)
        x, y = x1 + (x2 - x1) * along, y1 + (y2 - y1) * along
        tip = f"<title>{escape(name)}</title>"
        if response:
            shapes.append(f'<rect class="response" x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10">{tip}</rect>')
        else:
            shapes.append(f'<circle class="request" cx="{x:.1f}" cy="{y:.1f}" r="6">{tip}</circle>')
    if frames:
        names = frames[0][2] if len(frames) == 1 else f"{len(frames):,} frames"
        x, y = (x1 + x2) / 2, (y1 + y2) / 2 - 10
        shapes.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(names)}</text>')
    return f"<g>{''.join(shapes)}</g>"


def _ends(source: Card, target: Card) -> tuple[float, float, float, float]:
    """Where a wire leaves its source and meets its target; the two directions run side by side, each on its right."""
    if "namesrv" in (source.kind, target.kind):
        x1, x2 = source.x + source.width / 2, target.x + target.width / 2
        above = source.y < target.y
        y1 = source.y + (source.height + 6 if above else 0)
        y2 = target.y + (0 if above else target.height + 6)
    else:
        left_to_right = source.x < target.x
        x1 = source.x + (source.width if left_to_right else 0)
        x2 = target.x + (0 if left_to_right else target.width)
        y1, y2 = source.middle, target.middle
    length = hypot(x2 - x1, y2 - y1) or 1.0
    along_x, along_y = SIDE * (x2 - x1) / length, SIDE * (y2 - y1) / length
    # A little longer at both ends, where the cards cover it: so it meets their edges also when it runs aslant.
    return x1 - along_y - along_x, y1 + along_x - along_y, x2 - along_y + along_x, y2 + along_x + along_y
