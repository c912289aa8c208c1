"""Who owns which queue: what rebalancing has come to, with the moments in which a queue has two owners or none."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import ClassVar

from mqlab.protocol.route import MASTER_ID
from mqlab.protocol.topics import is_retry_topic
from mqlab.trace.record import Record
from mqlab.views.owners import Owners, Queue, Read, read_of
from mqlab_widgets.boards.board import Board
from mqlab_widgets.boards.owners_picture import MOST_QUEUES, owners_svg

MOST_PICTURES = 6


class OwnersBoard(Owners, Board):
    """The members of each group and the queues that each pulls; of an orderly group also who has the broker's lock."""

    title: ClassVar[str] = "Who owns which queue"

    def begin(self) -> None:
        """Nobody owns anything."""
        super().begin()
        self.locks: dict[tuple[Read, Queue], str] = {}
        """Who has the lock of a queue, as its broker knows it."""
        self.names: dict[str, str] = {}
        """Client id -> process, and process of a master, which has the locks, -> the name it has in routes."""

    def on_client_started(self, record: Record) -> None:
        self.names[record.client_id] = record.node

    def on_broker_started(self, record: Record) -> None:
        if record.broker_id == MASTER_ID:
            self.names[record.node] = record.broker_name

    def on_queue_locked(self, record: Record) -> None:
        self.locks[self._locked(record)] = self.names.get(record.client_id, record.client_id)

    def on_queue_unlocked(self, record: Record) -> None:
        self.locks.pop(self._locked(record), None)

    def on_process_ended(self, record: Record) -> None:
        super().on_process_ended(record)
        lost = self.names.get(record.target)
        self.locks = {key: owner for key, owner in self.locks.items() if key[1][0] != lost}

    def _locked(self, record: Record) -> tuple[Read, Queue]:
        return read_of(record), (self.names.get(record.node, record.node), record.queue_id)

    def ownership(self) -> dict[Read, dict[Queue, list[str]]]:
        """(group, topic) -> queue -> its owners; the retry topics are left out."""
        return {read: self.of(read) for read in sorted(self.known) if not is_retry_topic(read[1])}

    def html(self) -> str:
        """A picture for each group and topic, of the first few."""
        ownership = self.ownership()
        drawn = []
        for read, owners in list(ownership.items())[:MOST_PICTURES]:
            locks = {queue: self.locks[read, queue] for queue in owners if (read, queue) in self.locks}
            words = f"group {read[0]} reads {read[1]}" + ("; a ring is the broker's lock" if locks else "")
            # A dead owner has no queue any more, and still the locks.
            members = sorted({*self.owned[read], *locks.values()})
            drawn.append(f"<div>{escape(words)}</div>{owners_svg(members, owners, locks)}")
        if len(ownership) > MOST_PICTURES:
            drawn.append(f'<div class="mq-faint">and {len(ownership) - MOST_PICTURES} more groups and topics</div>')
        return "".join(drawn) or '<div class="mq-faint">No consumer has a queue.</div>'

    def text(self) -> list[str]:
        """One line for each queue; where there are very many, one for each owner."""
        lines = [
            line
            for read, owners in self.ownership().items()
            for line in (self._each(read, owners) if len(owners) <= MOST_QUEUES else _summed_up(read, owners))
        ]
        return lines or ["no consumer has a queue"]

    def _each(self, read: Read, owners: dict[Queue, list[str]]) -> list[str]:
        return [
            f"{read[0]}, {read[1]} queue {queue[1]} on {queue[0]}: {' and '.join(names) or 'nobody'}"
            + (f", locked for {self.locks[read, queue]}" if (read, queue) in self.locks else "")
            for queue, names in owners.items()
        ]


def _summed_up(read: Read, owners: dict[Queue, list[str]]) -> list[str]:
    counted = Counter(" and ".join(names) or "nobody" for names in owners.values())
    return [f"{read[0]}, {read[1]}: {names} has {count:,} queues" for names, count in sorted(counted.items())]
