"""The lives of half messages: hidden, asked about, committed, rolled back or put aside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mqlab.trace.events.transaction import STORED
from mqlab.trace.record import Record
from mqlab.views import Table
from mqlab_widgets.boards.board import TableBoard

STATES = {"COMMIT_MESSAGE": "committed", "ROLLBACK_MESSAGE": "rolled back", "UNKNOW": "hidden, nobody knows yet"}


@dataclass
class Transaction:
    """What has become of one half message; times in us since the world began."""

    topic: str
    half_offset: int
    log_offset: int
    since_us: int
    state: str = "hidden"
    asked: int = 0
    ended_us: int | None = None


class TransactionsBoard(TableBoard):
    """Each half message of each broker, what its producer said, how often it was asked about, and how it ended.

    One that is ended before its broker has written that down is asked about again after a crash.
    """

    title: ClassVar[str] = "Transactions"

    def begin(self) -> None:
        """No transaction."""
        self.transactions: dict[tuple[str, str], Transaction] = {}
        """(broker, unique key) -> its transaction, in the order in which they began."""
        self.said: dict[str, str] = {}
        """Unique key -> what the listener of its producers said last."""

    def on_half_message_hidden(self, record: Record) -> None:
        """A broker hides a message."""
        if record.status in STORED:
            self.transactions[record.node, record.unique_key] = Transaction(
                record.topic, record.half_offset, record.log_offset, record.ts_us
            )

    def on_local_transaction_executed(self, record: Record) -> None:
        """Its producer has done the local part."""
        self.said[record.msg_id] = record.local_state

    def on_transaction_resolved(self, record: Record) -> None:
        """A producer that speaks to proxies has said so by itself."""
        self.said[record.msg_id] = record.local_state

    def on_local_transaction_remembered(self, record: Record) -> None:
        """Somebody of the group has looked it up."""
        self.said[record.msg_id] = record.local_state

    def on_transaction_ended(self, record: Record) -> None:
        """The broker has heard what became of it."""
        transaction = self.transactions.get((record.node, record.unique_key))
        if transaction is None or record.code or (transaction.ended_us is not None and record.local_state == "UNKNOW"):
            return
        transaction.state = STATES.get(record.local_state, record.local_state)
        if record.local_state != "UNKNOW":
            transaction.ended_us = record.ts_us

    def on_half_message_stored_again(self, record: Record) -> None:
        """It has another place."""
        transaction = self.transactions.get((record.node, record.unique_key))
        if transaction is not None:
            transaction.half_offset, transaction.log_offset = record.new_half_offset, -1

    def on_transaction_checked(self, record: Record) -> None:
        """The broker asks, or finds nobody to ask."""
        transaction = self.transactions.get((record.node, record.unique_key))
        if transaction is not None:
            transaction.asked = record.check_times
            if transaction.ended_us is None:
                transaction.state = "asked about" if record.remote else "nobody is there to be asked"

    def on_half_message_given_up(self, record: Record) -> None:
        """The broker asks no more."""
        transaction = self.transactions.get((record.node, record.unique_key))
        if transaction is not None:
            transaction.state, transaction.ended_us = "put aside", record.ts_us

    def on_store_recovered(self, record: Record) -> None:
        """What lay behind the end of the log that was found is lost."""
        for (broker, _), transaction in self.transactions.items():
            if broker == record.node and transaction.log_offset >= record.commit_log_max_offset:
                transaction.state = "lost"

    def table(self) -> Table:
        """One row for each half message, the newest last."""
        rows = [
            (
                broker, transaction.topic, key[-8:], transaction.state, self.said.get(key, ""), transaction.asked,
                transaction.half_offset, f"{transaction.since_us / 1_000:,.3f}",
                None if transaction.ended_us is None else f"{transaction.ended_us / 1_000:,.3f}",
            )
            for (broker, key), transaction in self.transactions.items()
        ]  # fmt: skip
        header = (
            "broker", "topic", "message", "state", "its producer says", "asked", "half offset", "hidden at ms",
            "ended at ms",
        )  # fmt: skip
        return Table("", header, rows[-16:], most=16)
