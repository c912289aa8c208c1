"""Offsets: how far each queue reaches, and how far a group is in the consumer's memory and on the broker."""

from __future__ import annotations

from typing import ClassVar

from mqlab.trace.record import Record
from mqlab.views import Table
from mqlab_widgets.boards.board import Board

Place = tuple[str, str, int, str]
"""(broker, topic, queue id, group)"""


class OffsetsBoard(Board):
    """Stored, in memory, committed: three numbers that differ for a while, and what is lost when somebody dies.

    What is not consumed lies between the end and what a consumer has consumed; what is consumed and not committed comes
    again when that consumer dies.
    """

    title: ClassVar[str] = "Offsets"

    def begin(self) -> None:
        """No queue, no group."""
        self.stored: dict[tuple[str, str, int], int] = {}
        self.memory: dict[Place, tuple[str, int]] = {}
        self.consumed: dict[Place, int] = {}
        """Also when the consumer who knew it is gone."""
        self.committed: dict[Place, int] = {}

    def on_message_dispatched(self, record: Record) -> None:
        """The queue has grown."""
        self.stored[record.node, record.topic, record.queue_id] = record.queue_offset + 1

    def on_offset_updated(self, record: Record) -> None:
        """A consumer has come further, as it knows itself."""
        place = (record.broker_name, record.topic, record.queue_id, record.group)
        self.memory[place] = (record.node, record.queue_offset)
        self.consumed[place] = record.queue_offset

    def on_offset_committed(self, record: Record) -> None:
        """The broker knows it, too."""
        self.committed[record.node, record.topic, record.queue_id, record.group] = record.queue_offset

    def on_node_crashed(self, record: Record) -> None:
        """What a process knew is gone."""
        self.memory = {place: known for place, known in self.memory.items() if known[0] != record.target}

    on_power_lost = on_node_crashed

    def _table(self) -> Table:
        rows = []
        for place in sorted({*self.memory, *self.committed}):
            broker, topic, queue, group = place
            consumer, memory = self.memory.get(place, ("", None))
            end = self.stored.get((broker, topic, queue), 0)
            committed = self.committed.get(place)
            noted = committed or 0
            consumed = max(self.consumed.get(place, 0), noted)
            waiting, unnoted = max(0, end - consumed), consumed - noted
            rows.append((topic, broker, queue, group, end, memory, committed, waiting, unnoted, consumer))
        offsets = ("stored", "in memory", "committed", "not consumed", "consumed, not committed")
        header = ("topic", "broker", "queue", "group", *offsets, "consumer")
        return Table("", header, rows, most=16)

    def html(self) -> str:
        """A table, one row for each queue and group."""
        return self._table()._repr_html_()

    def text(self) -> list[str]:
        """The same table."""
        return str(self._table()).splitlines()
