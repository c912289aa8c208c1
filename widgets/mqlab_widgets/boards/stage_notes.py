"""What the stage notes while it folds the events, and what its parts have in common: names, queues, clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.trace.record import Record
from mqlab_widgets.boards.board import Board
from mqlab_widgets.boards.stage_state import Consumer, Flight, Hand, Held, Log, Producer, Queue, Strip
from mqlab_widgets.labels import label_of

if TYPE_CHECKING:
    from mqlab import Lab


WORKER = "worker"


def is_worker(node: str) -> bool:
    """Whether a machine is called a worker, who takes messages by hand: "worker", "worker-2", "sqs-worker-1"."""
    return WORKER in node.split("-")


class StageNotes(Board):
    """All that is noted. The parts of the stage fill it, each from the events of its subject."""

    def __init__(self, lab: Lab) -> None:
        self._keys: dict[tuple[str, str, int, int], str] = {}
        """Place of a message -> its unique key. Any state agrees with it, so it is not copied with the state."""
        self._senders: dict[str, str] = {}
        """What the keys of one process have in common -> the machine; it is not copied either."""
        super().__init__(lab)

    def begin(self) -> None:
        """Nobody is there yet."""
        self.states: dict[str, str] = {}
        self.roles: dict[str, str] = {}
        self.groups: dict[str, str] = {}
        self.masters: dict[str, str] = {}
        """Name of a broker in the routes -> the machine of its master."""
        self.slaves: dict[str, str] = {}
        """Machine of a slave -> the name of its broker."""
        self.wires: dict[tuple[str, str], None] = {}
        self.connections: dict[int, tuple[str, str]] = {}
        self.cut: dict[tuple[str, str], bool] = {}
        self.flights: dict[str, Flight] = {}
        self.lost: dict[str, Flight] = {}
        """Frames that died with the newest event that ended a process or a connection."""
        self.landed: dict[str, Flight] = {}
        """Machine -> the frame that it got last."""
        self.given: dict[str, Flight] = {}
        """The frame that a program outside was given last: nothing in the world says when it arrives."""
        self.strips: dict[Queue, Strip] = {}
        self.logs: dict[str, Log] = {}
        self.copied: dict[tuple[str, str], int] = {}
        """(master, slave) -> up to where the slave has its commit log, as the master was told."""
        self.following: dict[str, None] = {}
        """The slaves that are connected to their master."""
        self.unanswered: dict[str, int] = {}
        """Master -> how many puts wait for copies."""
        self.held: dict[str, dict[tuple[int, str], Held]] = {}
        self.woken: dict[str, dict[tuple[int, str], Held]] = {}
        """Broker -> the pulls that were held and are woken, until it looks at them again."""
        self.trouble: dict[str, tuple[str, ...]] = {}
        """Machine -> what is wrong with its disk: that it hangs, is slow, is full. It may be several things at once."""
        self.producers: dict[str, Producer] = {}
        self.consumers: dict[str, Consumer] = {}
        self.hands: dict[str, Hand] = {}
        """Worker -> what it has in hand."""
        self.orders: dict[tuple[str, str], str] = {}
        """(server, what a worker calls a message) -> its key."""
        self.numbers: dict[tuple[str, str], dict[str, int]] = {}
        """(server, queue of SQS) -> id of a message -> its number, from 0."""
        self.ended: dict[str, int] = {}
        """Service of SQS -> how many of its messages are deleted, or in the dead-letter queue."""
        self.windows: dict[str, tuple[int, int]] = {}
        """Broker of a share group -> where the window of its partition begins and ends (SPSO, SPEO)."""
        self.answers: dict[tuple[str, int, str], tuple[Queue, tuple[str, ...], int]] = {}
        """(broker, opaque, remote) -> (queue, first few unique keys, messages) of a pull that is being answered."""
        self.handed: dict[tuple[str, str], tuple[str, ...]] = {}
        """(broker, remote) -> unique keys of messages that are popped, and not in an answer yet."""
        self.pops: dict[tuple[str, str], None] = {}
        """(broker, topic) of which messages are popped from any queue."""
        self.sending: dict[str, tuple[tuple[int, int], str]] = {}
        """Producer -> event and key of its newest attempt, which tells what the next frame carries."""
        self.halves: dict[str, None] = {}
        """Unique keys of half messages whose local part has not ended."""
        self.saying: dict[str, tuple[str, str]] = {}
        """Machine -> unique key of the half message that its next frame about a transaction speaks of, and the kind of
        that frame.
        """
        self.asking: dict[str, tuple[tuple[int, int], Queue]] = {}
        """Consumer -> event and queue of its newest pull."""

    # -- names --------------------------------------------------------------------------------------------------------

    def key_at(self, queue: Queue, offset: int) -> str:
        """The unique key of the message at a place, which a slave has from its master; "" if it is not known."""
        broker, topic, queue_id = queue
        return self._keys.get((self.source_of(broker), topic, queue_id, offset), "")

    def source_of(self, broker: str) -> str:
        """The broker whose log this one has: a slave's master, and else itself."""
        return self.masters.get(self.slaves[broker], broker) if broker in self.slaves else broker

    def label(self, key: str) -> str:
        """What is written on a message."""
        return label_of(key, self.lab)

    def queue_of(self, record: Record) -> Queue:
        """The queue that a client's event is about."""
        return self.masters.get(record.broker_name, record.broker_name), record.topic, record.queue_id

    def _die(self, lost: dict[str, Flight]) -> None:
        self.lost = lost
        for name in lost:
            del self.flights[name]

    # -- queues and clients -------------------------------------------------------------------------------------------

    def _strip(self, queue: Queue) -> Strip:
        strip = self.strips.get(queue)
        if strip is None:
            strip = self.strips[queue] = Strip()
        return strip

    def _producer(self, node: str) -> Producer:
        return self.producers.setdefault(node, Producer())

    def _consumer(self, node: str) -> Consumer:
        return self.consumers.setdefault(node, Consumer())

    def hand_of(self, worker: str) -> Hand:
        """What a worker has in hand."""
        return self.hands.setdefault(worker, Hand())
