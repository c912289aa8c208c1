"""Offsets: how far each queue reaches, and how far a group is in the consumer's memory and on the broker."""

from __future__ import annotations

from typing import ClassVar

from mqlab.trace.record import Record
from mqlab.views import Table
from mqlab_widgets.boards.board import TableBoard

Place = tuple[str, str, int, str]
"""(broker, topic, queue id, group)"""


class OffsetsBoard(TableBoard):
    """Stored, in memory, committed: three numbers that differ for a while, and what is lost when somebody dies.

    What is not consumed lies behind the offset that the queue's consumer knows. When it dies the committed offset
    counts, and what was consumed and not committed comes again.
    """

    title: ClassVar[str] = "Offsets"

    def begin(self) -> None:
        """No queue, no group."""
        self.stored: dict[tuple[str, str, int], int] = {}
        self.memory: dict[Place, tuple[str, int]] = {}
        self.committed: dict[Place, int] = {}

    def on_message_dispatched(self, record: Record) -> None:
        """The queue has grown."""
        self.stored[record.node, record.topic, record.queue_id] = record.queue_offset + 1

    def on_offset_updated(self, record: Record) -> None:
        """A consumer has come further, as it knows itself."""
        place = (record.broker_name, record.topic, record.queue_id, record.group)
        self.memory[place] = (record.node, record.queue_offset)

    def on_offset_committed(self, record: Record) -> None:
        """The broker knows it, too."""
        self.committed[record.node, record.topic, record.queue_id, record.group] = record.queue_offset

    def on_queue_dropped(self, record: Record) -> None:
        """Who gives a queue up forgets how far it was."""
        place = (record.broker_name, record.topic, record.queue_id, record.group)
        if self.memory.get(place, ("", 0))[0] == record.node:
            del self.memory[place]

    def on_process_ended(self, record: Record) -> None:
        """What a process knew is gone."""
        self.memory = {place: known for place, known in self.memory.items() if known[0] != record.target}

    def table(self) -> Table:
        """One row for each queue and group."""
        rows = []
        for place in sorted({*self.memory, *self.committed}):
            broker, topic, queue, group = place
            consumer, memory = self.memory.get(place, ("", None))
            end = self.stored.get((broker, topic, queue), 0)
            committed = self.committed.get(place)
            noted = committed or 0
            consumed = noted if memory is None else memory
            waiting, unnoted = max(0, end - consumed), max(0, consumed - noted)
            rows.append((topic, broker, queue, group, end, memory, committed, waiting, unnoted, consumer))
        offsets = ("stored", "in memory", "committed", "not consumed", "consumed, not committed")
        header = ("topic", "broker", "queue", "group", *offsets, "consumer")
        return Table("", header, rows, most=16)
