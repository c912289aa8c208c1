"""The response tables: requests that wait for their answers, by the process that waits."""

from __future__ import annotations

from typing import ClassVar

from mqlab.trace.record import Record
from mqlab.views import Table
from mqlab_widgets.boards.board import TableBoard


class ResponsesBoard(TableBoard):
    """Which requests are open, on which connection, and since when; the opaque ties an answer to its request."""

    title: ClassVar[str] = "Response tables"

    def begin(self) -> None:
        """Nobody waits."""
        self.open: dict[tuple[str, int, int], tuple[str, str, int]] = {}

    def on_request_sent(self, record: Record) -> None:
        """A request that will be answered gets a place in the table; a one-way request gets none."""
        if not record.oneway:
            waiting = (record.request_name, record.remote, record.ts_us)
            self.open[record.node, record.connection, record.opaque] = waiting

    def _answered(self, record: Record) -> None:
        self.open.pop((record.node, record.connection, record.opaque), None)

    on_response_received = on_request_timed_out = on_request_failed = _answered

    def on_process_ended(self, record: Record) -> None:
        """Who waited is gone."""
        self.open = {key: waiting for key, waiting in self.open.items() if key[0] != record.target}

    def table(self) -> Table:
        """What is open, oldest first."""
        rows = [
            (node, opaque, name, remote, f"{since_us / 1_000:,.3f}")
            for (node, _, opaque), (name, remote, since_us) in self.open.items()
        ]
        return Table("", ("process", "opaque", "request", "to", "since ms"), rows, most=16)
