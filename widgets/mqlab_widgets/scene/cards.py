"""What is drawn of each machine: its head, and what it holds (`brokers.py`, `queues.py`, `clients.py`)."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from mqlab_widgets.boards.stage_notes import WORKER
from mqlab_widgets.scene.brokers import fill_broker, fill_server
from mqlab_widgets.scene.clients import fill_consumer, fill_producer, fill_worker
from mqlab_widgets.scene.plan import Card
from mqlab_widgets.scene.style import BOLD, CHARACTER, first_that_fits

if TYPE_CHECKING:
    from mqlab_widgets.boards.stage import StageBoard
    from mqlab_widgets.scene.scene import Look


def fill(board: StageBoard, card: Card, look: Look, room: float) -> None:
    """Draw what a machine holds; `room` is the height that it may take."""
    if card.kind in ("broker", "slave"):
        fill_broker(board, card, look, room)
    elif card.kind == "producer":
        fill_producer(board, card, look, room)
    elif card.kind == "consumer":
        fill_consumer(board, card, look, room)
    elif card.kind == "server":
        fill_server(board, card, look, room)
    elif card.kind == "worker":
        fill_worker(board, card, look, room)
    elif card.kind == "outside":
        count = board.connected_outside
        card.line(f"{count:,} connection{'s' * (count != 1)}", f"{count:,}")


def short_of(name: str) -> str:
    """The name of a machine where there is little room: "sqs-1" for "sqs-worker-1"."""
    parts = name.split("-")
    return "-".join(part for part in parts if part != WORKER) if len(parts) > 2 else name


def title(card: Card, words: str) -> str:
    """The head of a card."""
    room = card.width - 20 - card.beside
    left = room - len(words) * CHARACTER * BOLD - 12
    note = tip = ""
    if card.note and left >= min(40, len(card.note[-1]) * CHARACTER):
        note = first_that_fits(card.note, left)
    if card.note and note != card.note[0]:
        tip = f"<title>{escape(card.note[0])}</title>"
    return (
        f'<text class="head" x="10" y="18">{escape(first_that_fits((words, short_of(words)), room / BOLD))}</text>'
        f'<text class="faint" x="{card.width - 10:g}" y="18" text-anchor="end">{escape(note)}{tip}</text>'
    )
