"""What is drawn of Pop's cousins and of workers: a queue without a commit log, and what somebody has in hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab_widgets.boards.stage_state import DOWN, Hand
from mqlab_widgets.scene.plan import BELOW, HEAD, Card
from mqlab_widgets.scene.queues import SIZES, clocks, put_queue
from mqlab_widgets.scene.tokens import sign, token

if TYPE_CHECKING:
    from mqlab_widgets.boards.stage import StageBoard
    from mqlab_widgets.scene.scene import Look

HELD, BELOW_HEAD, TIGHT = 26, 40, 17
"""Room for a message in a hand, and for the row of them, also where it is tight."""
MOST_BESIDE, HELD_BESIDE = 3, 19
"""So many are drawn beside the worker's name, and the room for each."""
LEFT = 10
COUSIN_HEIGHT = HEAD + 52 + BELOW
COUSIN_SHARE = 0.75
"""How high a cousin is drawn beside brokers, and at most so much of an even share: they need more room, since it has no
commit log.
"""


def fill_cousin(board: StageBoard, card: Card, look: Look, room: float) -> None:
    """Draw the queue of a share partition's broker, or of SQS."""
    queues = [
        (topic, queue_id, strip)
        for topic, strips in board.queues_of(card.name).items()
        for queue_id, strip in strips.items()
    ]
    if not queues:
        card.line("no message yet")
        return
    card.note = (f"{', '.join(topic for topic, _, _ in queues)}: {board.cousin_words(card.name)}", queues[0][0])
    fits = (size for size in SIZES if len(queues) * size.row <= room - HEAD)
    size = next(fits, SIZES[-1])
    for topic, queue_id, strip in queues:
        put_queue(board, card, (topic, queue_id), strip, look, size, 1, clocks(card, strip, look, size, 1))


def fill_worker(board: StageBoard, card: Card, look: Look, room: float) -> None:
    """Draw what a worker has in hand, each with the how manieth delivery it is where there is room for that; beside its
    name where there is no room for a row.
    """
    hand = board.hands.get(card.name, Hand())
    if board.states.get(card.name) == DOWN:
        return
    tight, beside = room < HEAD + BELOW_HEAD, room < HEAD + TIGHT + BELOW
    middle = -14.0 if beside else 8.0 if tight else 24.0
    step = HELD_BESIDE if beside else HELD
    most = MOST_BESIDE if beside else int((card.width - 2 * LEFT) // step)
    keys = list(hand.held)[:most]
    card.beside = float(step * len(keys)) if beside else 0.0
    left = card.width - LEFT - card.beside if beside else LEFT
    shapes = []
    for place, key in enumerate(keys):
        x = left + step * (place + 0.5)
        again = hand.held[key]
        words = f'<text class="limit"{sign("tries")} x="-13" y="-13">{again}.</text>' if again > 1 else ""
        picture = token(board, key, look, step - 2 if beside else step - 4, 18 if tight else 22)
        shapes.append(f'<g transform="translate({x:g} {middle:g})">{picture}{words if not tight else ""}</g>')
    if not keys and not beside:
        shapes.append(f'<text class="faint" x="{LEFT}" y="{middle + 4:g}">nothing in hand</text>')
    if len(hand.held) > len(keys):
        more, x = len(hand.held) - len(keys), card.width - 8
        shapes.append(f'<text class="faint" x="{x:g}" y="{middle + 4:g}" text-anchor="end">+{more:,}</text>')
    card.spot("hand", left + step * (min(len(keys), most - 1) + 0.5 - beside), middle)
    for place, key in enumerate(keys):
        card.spot(("held", key), left + step * (place + 0.5), middle)
    card.note = (f"{hand.done:,} done",) if not (beside and keys) else ()
    card.row("".join(shapes), 0 if beside else TIGHT if tight else BELOW_HEAD)
    if hand.answer:
        card.lines(hand.answer, room, "limit")
