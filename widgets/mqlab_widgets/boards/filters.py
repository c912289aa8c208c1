"""Who reads what: what each group wants of a topic, and what a broker and the consumers leave out for it."""

from __future__ import annotations

from typing import ClassVar

from mqlab.protocol.topics import is_retry_topic
from mqlab.trace.record import Record
from mqlab.views import Table
from mqlab_widgets.boards.board import TableBoard

Reader = tuple[str, str]
"""(group, topic)"""
SENT, HELD_BACK, SKIPPED, DROPPED = range(4)
NAMES = ("sent", "held back", "skipped", "dropped")


class FiltersBoard(TableBoard):
    """For each group and topic: the one wish that the broker keeps, and what became of the messages that lay there.

    What was "sent", and what a condition "held back", was read from the commit log; what bits said no to was "skipped"
    unread (`enable_calc_filter_bit_map`); what was sent for its tag's hash alone the client "dropped". Queue entries
    that a tag leaves out are not counted: nobody looks further at them. Retry topics are left out.
    """

    title: ClassVar[str] = "Filters"

    def begin(self) -> None:
        """Nobody reads."""
        self.wanted: dict[Reader, str] = {}
        self.counts: dict[Reader, list[int]] = {}

    def on_subscription_changed(self, record: Record) -> None:
        """A broker keeps another wish of a group; of several members with several wishes it is the newest."""
        if is_retry_topic(record.topic):
            return
        if record.expression:
            self.wanted[record.group, record.topic] = record.expression
        else:
            self.wanted.pop((record.group, record.topic), None)

    def on_pull_answered(self, record: Record) -> None:
        """Messages are sent to a group."""
        self._count(record, SENT, record.messages)

    def on_messages_filtered_by_broker(self, record: Record) -> None:
        """A condition was not fulfilled, or bits said no."""
        self.wanted.setdefault((record.group, record.topic), record.expression)
        self._count(record, HELD_BACK, record.by_expression)
        self._count(record, SKIPPED, record.by_bit_map)

    def on_messages_filtered(self, record: Record) -> None:
        """A client's exact look at the tags dropped what had been sent to it."""
        self._count(record, DROPPED, record.messages)

    def _count(self, record: Record, place: int, messages: int) -> None:
        if messages and not is_retry_topic(record.topic):
            self.counts.setdefault((record.group, record.topic), [0] * len(NAMES))[place] += messages

    def table(self) -> Table:
        """One row for each group and topic, in the order in which they came."""
        readers = dict.fromkeys([*self.wanted, *self.counts])
        rows = [
            (group, topic, self.wanted.get((group, topic), ""), *self.counts.get((group, topic), [0] * len(NAMES)))
            for group, topic in readers
        ]
        return Table("", ("group", "topic", "wants", *NAMES), rows, most=16)
