"""Routes: what the name servers say of each topic, beside what each client believes."""

from __future__ import annotations

from typing import ClassVar

from mqlab.trace.record import Record
from mqlab.views import Table
from mqlab_widgets.boards.board import TableBoard


class RoutesBoard(TableBoard):
    """The truth and the beliefs: a client learns of a change when it asks again, up to 30 s later."""

    title: ClassVar[str] = "Routes"

    def begin(self) -> None:
        """Nobody knows anything."""
        self.truth: dict[tuple[str, str], dict[str, None]] = {}
        self.beliefs: dict[tuple[str, str], tuple[str, int]] = {}

    def on_topic_route_changed(self, record: Record) -> None:
        """A broker brought queues of a topic."""
        self.truth.setdefault((record.node, record.topic), {})[record.broker_name] = None

    def on_topic_route_removed(self, record: Record) -> None:
        """A broker is gone from the route."""
        self.truth.get((record.node, record.topic), {}).pop(record.broker_name, None)

    def on_route_updated(self, record: Record) -> None:
        """A client took over what a name server said."""
        self.beliefs[record.node, record.topic] = (record.broker_names, record.ts_us)

    def on_process_ended(self, record: Record) -> None:
        """What a process knew is gone."""
        for table in (self.truth, self.beliefs):
            for key in [key for key in table if key[0] == record.target]:
                del table[key]

    def table(self) -> Table:
        """The routes by topic."""
        asked = {topic for _, topic in self.beliefs}
        rows: list[tuple[str, ...]] = [
            (topic, server, ", ".join(sorted(brokers)) or "(none)", "the name server's truth")
            for (server, topic), brokers in sorted(self.truth.items())
            if topic in asked
        ]
        rows += [
            (topic, client, brokers.replace(",", ", ") or "(none)", f"learned at {at_us / 1_000:,.0f} ms")
            for (client, topic), (brokers, at_us) in sorted(self.beliefs.items())
        ]
        return Table("", ("topic", "who", "brokers", "since"), sorted(rows, key=lambda row: row[0]), most=16)
