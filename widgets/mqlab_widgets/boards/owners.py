"""Who owns which queue: what rebalancing has come to, with the moments in which a queue has two owners or none."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import ClassVar

from mqlab.protocol.route import MASTER_ID
from mqlab.protocol.topics import is_retry_topic
from mqlab.trace.record import Record
from mqlab_widgets.boards.board import Board
from mqlab_widgets.boards.owners_picture import MOST_QUEUES, owners_svg

MOST_PICTURES = 6

Queue = tuple[str, int]
"""(broker name, queue id)"""
Read = tuple[str, str]
"""(group, topic)"""


class OwnersBoard(Board):
    """The members of each group and the queues that each pulls; of an orderly group also who has the broker's lock."""

    title: ClassVar[str] = "Who owns which queue"

    def begin(self) -> None:
        """Nobody owns anything."""
        self.owned: dict[Read, dict[str, dict[Queue, None]]] = {}
        """(group, topic) -> member -> its queues."""
        self.known: dict[Read, dict[Queue, None]] = {}
        """(group, topic) -> all queues that somebody has owned."""
        self.locks: dict[tuple[Read, Queue], str] = {}
        """Who has the lock of a queue, as its broker knows it."""
        self.names: dict[str, str] = {}
        """Client id -> process, and process of a master, which has the locks, -> the name it has in routes."""

    def on_queue_allocated(self, record: Record) -> None:
        self._queues(record)[_queue(record)] = None
        self.known.setdefault(_read(record), {})[_queue(record)] = None

    def on_queue_dropped(self, record: Record) -> None:
        self._queues(record).pop(_queue(record), None)

    def on_rebalance_done(self, record: Record) -> None:
        self._queues(record)

    def on_client_started(self, record: Record) -> None:
        self.names[record.client_id] = record.node

    def on_broker_started(self, record: Record) -> None:
        if record.broker_id == MASTER_ID:
            self.names[record.node] = record.broker_name

    def on_queue_locked(self, record: Record) -> None:
        self.locks[self._locked(record)] = self.names.get(record.client_id, record.client_id)

    def on_queue_unlocked(self, record: Record) -> None:
        self.locks.pop(self._locked(record), None)

    def on_client_stopped(self, record: Record) -> None:
        self._gone(record.node, record.group)

    def on_node_crashed(self, record: Record) -> None:
        self._gone(record.target)

    on_power_lost = on_node_crashed

    def _gone(self, node: str, group: str = "") -> None:
        for read, members in self.owned.items():
            if not group or group == read[0]:
                members.pop(node, None)
        if not group:
            lost = self.names.get(node)
            self.locks = {key: owner for key, owner in self.locks.items() if key[1][0] != lost}

    def _locked(self, record: Record) -> tuple[Read, Queue]:
        return _read(record), (self.names.get(record.node, record.node), record.queue_id)

    def _queues(self, record: Record) -> dict[Queue, None]:
        return self.owned.setdefault(_read(record), {}).setdefault(record.node, {})

    def ownership(self) -> dict[Read, dict[Queue, list[str]]]:
        """(group, topic) -> queue -> its owners; the retry topics are left out."""
        return {
            read: {queue: [name for name, has in self.owned[read].items() if queue in has] for queue in sorted(queues)}
            for read, queues in sorted(self.known.items())
            if not is_retry_topic(read[1])
        }

    def html(self) -> str:
        """A picture for each group and topic, of the first few."""
        ownership = self.ownership()
        drawn = []
        for read, owners in list(ownership.items())[:MOST_PICTURES]:
            locks = {queue: self.locks[read, queue] for queue in owners if (read, queue) in self.locks}
            words = f"group {read[0]} reads {read[1]}" + ("; a ring is the broker's lock" if locks else "")
            drawn.append(f"<div>{escape(words)}</div>{owners_svg(sorted(self.owned[read]), owners, locks)}")
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


def _read(record: Record) -> Read:
    return record.group, record.topic


def _queue(record: Record) -> Queue:
    return record.broker_name, record.queue_id
