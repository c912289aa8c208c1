"""The scene: what is to be seen of a world at one moment, for a page of one width.

`scene_of(board, look)` is the one description. `Scene.svg()` is all of it as text, for a page without a kernel,
papermill and tests; a live view is sent only the parts that have changed, and the moves between them (`acts.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from mqlab_widgets.boards.stage_state import DOWN, FROZEN, OUTSIDE
from mqlab_widgets.scene import cards, plan, signs, tokens
from mqlab_widgets.scene.brokers import SERVER_HEIGHT, SERVER_SHARE
from mqlab_widgets.scene.plan import Card, Sheet
from mqlab_widgets.scene.style import STYLE

if TYPE_CHECKING:
    from mqlab_widgets.boards.stage import StageBoard

MOST_CARDS = {"namesrv": 4, "proxy": 4, "producer": 6, "broker": 4, "consumer": 6}
MOST_OPENED = {"namesrv": 6, "proxy": 6, "producer": 12, "broker": 6, "consumer": 12}
"""How many machines of a kind have a card of their own; when that kind is opened, with little in each."""
HALO = 4
"""px between a machine and the frame of light around it."""
DOOR = 19
"""px before the end of its wire a frame waits to be let in."""
QUEUE_UP = 27
"""px between two frames that wait."""
_SLOT = re.compile('<g data-slot="" data-key="([^"]*)"[^>]*></g>')
GATES = ("namesrv", "proxy")
"""Machines of which the name says all that is shown."""
PLACES = {
    "slave": "broker", "server": "broker", "machine": "producer", "outside": "producer", "worker": "consumer",
}  # fmt: skip
"""Among whom machines of a kind stand that has no place of its own."""
KINDS = ("namesrv", "proxy", "producer", "broker", "consumer")


class Look(NamedTuple):
    """How a viewer looks at a world: the width of the stage in px, projector mode, how high the stage may be (in
    projector mode: is; 0: as it likes), the machines that are clicked (the one before last is the other end of a link),
    the message whose trail is lit, the kinds of machines of which all are drawn, the world's time, whether this is the
    past, and the machine that a caption points to.
    """

    width: float = 1000
    big: bool = False
    height: float = 0
    chosen: str = ""
    other: str = ""
    followed: str = ""
    opened: frozenset[str] = frozenset()
    now_us: int = 0
    past: bool = False
    pointed: str = ""


class Scene:
    """The parts of a picture by name, in drawing order, each one SVG element with its name as `data-key`.

    A card has slots, which are empty; what fills them are parts of their own, named "card:broker-a/3".
    """

    def __init__(
        self, look: Look, sheet: Sheet, width: float, height: float, machines: dict[str, Card], way: list[str]
    ) -> None:
        self.look = look
        self.sheet = sheet
        self.way = way
        """The machines on the way of the message that is followed; empty if none is."""
        self.width = width
        self.height = height
        self.cards = machines
        self.parts: dict[str, str] = {}

    def svg(self) -> str:
        """The whole picture as SVG, each part in its place."""
        pieces = {escape(piece, quote=True): piece for card in self.cards.values() for piece in card.pieces}
        shapes = (svg for name, svg in self.parts.items() if escape(name, quote=True) not in pieces)
        filled = _SLOT.sub(lambda slot: self.parts[pieces[slot[1]]], "".join(shapes))
        shown = self.look.width
        css = "mq-stage" + (" big" if self.look.big else "") + (" past" if self.look.past else "")
        return (
            f'<svg class="{css}" xmlns="http://www.w3.org/2000/svg" width="{shown:g}" '
            f'height="{self.height * shown / self.width:g}" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'role="group" aria-label="The world: machines, queues and frames in flight"><style>{STYLE}</style>'
            '<defs><pattern id="mq-hatch" width="5" height="5" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)"><line class="hatch" y2="5"/></pattern></defs>'
            f"{filled}</svg>"
        )

    def spot(self, machine: str, *names: object) -> plan.Point | None:
        """Where something is in a machine (the first of these names that it has), or the machine's middle."""
        card = self.cards.get(machine)
        if card is None:
            return None
        return next((found for name in names if (found := card.at(name)) is not None), card.middle)

    def lane(self, source: str, target: str) -> tuple[float, float, float, float] | None:
        """The way of a frame between two machines, if both are drawn."""
        if source not in self.cards or target not in self.cards or self.cards[source] is self.cards[target]:
            return None
        return plan.lane(self.cards[source], self.cards[target])


def scene_of(board: StageBoard, look: Look, before: Scene | None = None) -> Scene:
    """What is to be seen of a world whose events the board has taken; what is as it was in the scene `before` is not
    drawn again.
    """
    width, height, _, narrow = plan.sizes(look.width, look.height, big=look.big)
    consumers = [name for name in board.states if board.kind_of(name) == "consumer"]
    sheet = Sheet(consumers, None if before is None else before.sheet)
    proxies = any(board.kind_of(name) == "proxy" for name in board.states)
    machines = _place(board, look, sheet, plan.columns(width, height, narrow=narrow, big=look.big, proxies=proxies))
    way = board.way_of(look.followed) if look.followed else []
    scene = Scene(look, sheet, width, height, machines, way)
    shown = {id(card): card for card in machines.values()}
    scene.parts["paper"] = f'<g data-key="paper"><rect class="paper" width="{width:g}" height="{height:g}"/></g>'
    if not machines:
        scene.parts["empty"] = (
            f'<g data-key="empty"><text x="{width / 2:g}" y="80" text-anchor="middle">'
            "No machine has started yet: lab.name_server()</text></g>"
        )
    drawn: set[frozenset[int]] = set()
    connected = {frozenset(pair) for pair in board.connections.values()}
    for source, target in dict.fromkeys((*board.cut, *board.wires)):
        if scene.lane(source, target) is not None:
            ends = frozenset((id(machines[source]), id(machines[target])))
            if ends not in drawn:
                drawn.add(ends)
                scene.parts[f"wire:{source}>{target}"] = _wire(board, scene, connected, source, target)
    talking = {node for flight in board.flights.values() for node in (flight.source, flight.target)}
    for card in shown.values():
        scene.parts |= _card(board, card, scene, talks=card.name in talking)
    scene.parts["flights"] = f'<g data-key="flights">{"".join(_flights(board, scene))}</g>'
    scene.parts["legend"] = signs.legend(scene.parts.values(), width, height, big=look.big)
    return scene


# -- machines -------------------------------------------------------------------------------------------------------


def _place(board: StageBoard, look: Look, sheet: Sheet, rooms: dict[str, plan.Column]) -> dict[str, Card]:
    """A card for each machine at its place; of a kind with many, one card stands for the rest."""
    kinds: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for node in board.states:
        kind = board.kind_of(node)
        kinds.setdefault(PLACES.get(kind, kind), []).append(node)
    machines: dict[str, Card] = {}
    for kind, nodes in kinds.items():
        for some, room in _rooms(board, kind, nodes, rooms[kind]):
            machines |= _stand(board, look, sheet, kind, some, room)
    return machines


def _rooms(
    board: StageBoard, kind: str, nodes: list[str], room: plan.Column
) -> Iterable[tuple[list[str], plan.Column]]:
    """The room for the machines of a kind. Where kinds stand side by side, which is on a narrow page, brokers stand
    under one another if cousins of Pop are among them, and workers in two columns.
    """
    kinds = {board.kind_of(node) for node in nodes}
    if not room.down and "server" in kinds:
        return [(nodes, room._replace(down=True))]
    if not room.down and kinds == {"worker"} and len(nodes) > 2:
        half = (room.width - plan.GAP) / 2
        columns = [room._replace(x=x, width=half, down=True) for x in (room.x, room.x + half + plan.GAP)]
        return [(nodes[place::2], column) for place, column in enumerate(columns)]
    return [(nodes, room)] if nodes else []


def _stand(
    board: StageBoard, look: Look, sheet: Sheet, kind: str, nodes: list[str], room: plan.Column
) -> dict[str, Card]:
    """The cards of some machines of a kind at their places."""
    machines: dict[str, Card] = {}
    most = (MOST_OPENED if kind in look.opened else MOST_CARDS)[kind]
    if not room.down and kind not in GATES:
        most = min(most, max(1, int(room.width // 150)))
    shown = nodes if len(nodes) <= most else nodes[: most - 1]
    places = len(shown) + (len(shown) < len(nodes))
    servers = sum(board.kind_of(node) == "server" for node in shown)
    for node in shown:
        machines[node] = _one(board, look, sheet, node, board.kind_of(node), room, places, servers)
    if places > len(shown):
        rest = _rest(board, kind, nodes[len(shown) :], room, look, sheet)
        machines |= dict.fromkeys(nodes[len(shown) :], rest)
    mine = {id(machines[node]): machines[node] for node in nodes}
    _spread(mine.values(), room, _gap(board, kind))
    return machines


def _one(
    board: StageBoard, look: Look, sheet: Sheet, node: str, kind: str, room: plan.Column, places: int, servers: int
) -> Card:
    if kind in GATES:
        return Card(node, kind, min(150.0, (room.width - 12 * (places - 1)) / places), sheet)
    gap = _gap(board, kind)
    across = room.width if room.down else (room.width - gap * (places - 1)) / places
    high = (room.height - gap * (places - 1) - plan.GAP) / places if room.down else room.height
    if room.down and 0 < servers < places:
        low = min(SERVER_SHARE * high, SERVER_HEIGHT)
        high = low if kind == "server" else high + (high - low) * servers / (places - servers)
    card = Card(node, kind, across, sheet)
    state = board.states[node]
    note = {DOWN: "down", FROZEN: "frozen"}.get(state, board.groups.get(node, "") if kind == "consumer" else "")
    card.note = (note,) if note else ()
    cards.fill(board, card, look, high)
    card.height += plan.BELOW
    return card


def _rest(board: StageBoard, kind: str, nodes: list[str], room: plan.Column, look: Look, sheet: Sheet) -> Card:
    """One card for many machines."""
    plural = {"namesrv": "name servers", "proxy": "proxies"}.get(kind, f"{kind}s")
    opened = kind in look.opened
    name = f"{len(nodes):,} more {'(show fewer)' if opened else plural}"
    card = Card(name, kind, room.width if room.down else min(room.width, 150.0), sheet)
    down = sum(1 for node in nodes if board.states[node] == DOWN)
    card.note = (f"{down:,} down",) if down else ()
    if kind == "consumer" and not opened:
        consumers = [board.consumers[node] for node in nodes if node in board.consumers]
        cached, busy = sum(one.cached for one in consumers), sum(one.busy for one in consumers)
        words = f"{cached:,} cached"
        card.line(f"{words}, {busy:,} in listeners", f"{words}, {busy:,} busy", words)
    return card


def _gap(board: StageBoard, kind: str) -> float:
    """The least room between two machines of a kind."""
    return plan.WIRED if board.slaves and kind in ("broker", "slave") else plan.GAP


def _spread(shown: Iterable[Card], room: plan.Column, least: float) -> None:
    """Give the cards of one kind their places."""
    mine = list(shown)
    if not mine:
        return
    if room.down:
        free = room.height - sum(card.height for card in mine)
        gap = max(least, min(26.0, free / (len(mine) + 1)))
        y = room.y + max(0.0, (free - gap * (len(mine) - 1)) / 2)
        for card in mine:
            card.x, card.y = room.x, y
            y += card.height + gap
    else:
        across = sum(card.width for card in mine) + least * (len(mine) - 1)
        x = room.x + (room.width - across) / 2
        for card in mine:
            card.x, card.y = x, room.y
            x += card.width + least


def _slot(piece: str, place: str) -> str:
    """Where a piece of a card belongs."""
    return f'<g data-slot="" data-key="{escape(piece, quote=True)}" {place}></g>'


def _card(board: StageBoard, card: Card, scene: Scene, *, talks: bool) -> dict[str, str]:
    """A card with slots, and what fills them."""
    look = scene.look
    state = board.states.get(card.name, "running")
    lives = card.name in board.states
    card.pieces[f"card:{card.name}/head"] = "", cards.title(card, card.name)
    css = " ".join(
        [
            "mq-card",
            *(card.kind, state),
            *(["chosen"] if card.name == look.chosen else []),
            *(["other"] if card.name == look.other else []),
            *(["pointed"] if card.name == look.pointed else []),
            *(["talks"] if talks and card.kind == "namesrv" else []),
            *(["aside"] if scene.way and card.name not in scene.way else []),
        ]
    )
    does = f'data-do="choose" data-node="{escape(card.name, quote=True)}"'
    if not lives:
        does = f'data-do="open_kind" data-kind="{card.kind}"'
    role = ", other end of the link" if card.name == look.other else ""
    pressed = "true" if card.name == look.chosen else "false"
    button = f'{does} tabindex="0" role="button" aria-pressed="{pressed}"' if card.name != OUTSIDE else 'role="img"'
    label = escape(f"{card.name}, {card.kind}, {state}{role}", quote=True)
    box = f'width="{card.width:g}" height="{card.height:g}" rx="8"'
    wide, high = card.width + 2 * HALO, card.height + 2 * HALO
    halo = f'<rect data-key="halo" class="halo" x="{-HALO}" y="{-HALO}" width="{wide:g}" height="{high:g}" rx="12"/>'
    halo = halo if card.name == look.pointed else ""
    *rows, head = (_slot(piece, place) for piece, (place, _) in card.pieces.items())
    whole = (
        f'<g class="{css}" data-key="card:{escape(card.name, quote=True)}" '
        f'transform="translate({card.x:g} {card.y:g})" '
        f'{button} aria-label="{label}">'
        f'{halo}<rect data-key="box" class="box" {box}/>{_under(card, state, box)}{head}'
        f'<g data-key="inner" class="inner">{"".join(rows)}</g>{_flakes(card) if state == FROZEN else ""}</g>'
    )
    pieces = {
        piece: f'<g data-key="{escape(piece, quote=True)}" {place}>{shapes}</g>'
        for piece, (place, shapes) in card.pieces.items()
    }
    return {f"card:{card.name}": whole, **pieces}


def _under(card: Card, state: str, box: str) -> str:
    """What lies in a machine that is frozen or down, below what it holds: no number is hidden by it."""
    if state == FROZEN:
        return f'<rect class="frost" {box}/>'
    if state == DOWN:
        wide, high = card.width - 5, card.height - 5
        return f'<path class="cross"{tokens.sign("down")} d="M5 5L{wide:g} {high:g}M5 {high:g}L{wide:g} 5"/>'
    return ""


def _flakes(card: Card) -> str:
    """Ice on the edge of a machine, where it hides nothing."""
    wide, high = card.width, card.height
    above = ((0.3, 4), (0.6, 4), (0.12, high + 6), (0.5, high + 6), (0.86, high + 6))
    places = [*((wide * share, y) for share, y in above), (0, high / 2 + 5), (wide, high / 2 + 5)]
    flakes = "".join(f'<text class="flake" x="{x - 7:g}" y="{y:g}">❄</text>' for x, y in places)
    return f"<g{tokens.sign('frozen')}>{flakes}</g>"


# -- wires ----------------------------------------------------------------------------------------------------------


def _wire(board: StageBoard, scene: Scene, connected: set[frozenset[str]], source: str, target: str) -> str:
    x1, y1, x2, y2 = plan.wire(scene.cards[source], scene.cards[target])
    cut = (source, target) in board.cut or (target, source) in board.cut
    ends = {source, target}
    open_ = ends in connected
    names = "namesrv" in (scene.cards[source].kind, scene.cards[target].kind)
    css = "wire" + (" cut" if cut else "" if open_ else " idle") + (" names" if names else "")
    if scene.way:
        css += " way" if ends <= set(scene.way) else " aside"
    line = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
    unused = tokens.sign("idle") if not cut and not open_ else ""
    mark = (
        f'<text class="cutmark"{tokens.sign("cut")} x="{(x1 + x2) / 2:g}" y="{(y1 + y2) / 2 + 5:g}" '
        'text-anchor="middle">✂</text>'
        if cut
        else ""
    )
    a, b = escape(source, quote=True), escape(target, quote=True)
    told = f"the link between {a} and {b}{', cut' if cut else ''}"
    button = f'data-do="choose_link" data-source="{a}" data-target="{b}" role="button"'
    if OUTSIDE in ends:
        button = 'role="img"'
    return (
        f'<g data-key="wire:{a}&gt;{b}" {button} '
        f'aria-label="{told}"><line class="{css}"{unused} {line}/>{mark}'
        f'<line class="hit" {line}><title>{told}</title></line></g>'
    )


def _flights(board: StageBoard, scene: Scene) -> list[str]:
    """The frames on their way, each at rest before the door of its target, the first of a wire in front."""
    shapes = []
    before: dict[tuple[str, str], int] = {}
    for name, flight in board.flights.items():
        path = scene.lane(flight.source, flight.target)
        if path is None:
            continue
        place = before.setdefault((flight.source, flight.target), 0)
        before[flight.source, flight.target] += 1
        if place >= 8:
            continue
        x, y = rest_of(path, place)
        css = "mq-flight" + (
            "" if not scene.look.followed else " lit" if scene.look.followed in flight.keys else " unlit"
        )
        shapes.append(
            f'<g class="{css}" data-key="{escape(name, quote=True)}" transform="translate({x:.1f} {y:.1f})">'
            f"<title>{escape(flight.name)} from {escape(flight.source)} to {escape(flight.target)}</title>"
            f"{tokens.frame(board, flight)}</g>"
        )
    return shapes


def rest_of(path: tuple[float, float, float, float], place: int = 0) -> plan.Point:
    """Where the `place`-th frame on a way waits."""
    x1, y1, x2, y2 = path
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5 or 1.0
    share = max(0.12, 1 - (DOOR + place * QUEUE_UP) / length)
    return x1 + (x2 - x1) * share, y1 + (y2 - y1) * share
