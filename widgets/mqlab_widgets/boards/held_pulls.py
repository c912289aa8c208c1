"""The hold table: pulls that a broker keeps because there is nothing to give yet."""

from __future__ import annotations

from typing import ClassVar

from mqlab.trace.record import Record
from mqlab.views import Table
from mqlab_widgets.boards.board import TableBoard

Held = tuple[str, str, str, int, int, int, int]
"""(broker, group, topic, queue id, from offset, since us, at most ms)"""


class HeldPullsBoard(TableBoard):
    """Which pulls are held, for how long already, and for how long at most."""

    title: ClassVar[str] = "Held pulls"

    def begin(self) -> None:
        """Nothing is held."""
        self.held: dict[tuple[str, int, str], Held] = {}
        self.now_us = 0

    def on_pull_held(self, record: Record) -> None:
        """The broker keeps a request."""
        self.held[record.node, record.opaque, record.remote] = (
            record.node, record.group, record.topic, record.queue_id, record.queue_offset, record.ts_us, record.hold_ms
        )  # fmt: skip
        self.now_us = record.ts_us

    def on_pull_woken(self, record: Record) -> None:
        """It is looked at again."""
        self.held.pop((record.node, record.opaque, record.remote), None)
        self.now_us = record.ts_us

    def on_process_ended(self, record: Record) -> None:
        """A broker that dies forgets what it holds."""
        self.held = {key: held for key, held in self.held.items() if key[0] != record.target}

    def table(self) -> Table:
        """What is held, oldest first."""
        rows = [
            (broker, group, topic, queue, offset, f"{since_us / 1_000:,.3f}", most_ms)
            for broker, group, topic, queue, offset, since_us, most_ms in self.held.values()
        ]
        return Table("", ("broker", "group", "topic", "queue", "from offset", "since ms", "at most ms"), rows, most=12)
