"""Masters and slaves: how far each log is, and what an accident now would lose."""

from __future__ import annotations

from typing import ClassVar

from mqlab.trace.record import Record
from mqlab.views import Table
from mqlab_widgets.boards.board import TableBoard


class ReplicationBoard(TableBoard):
    """What of a master's log is flushed, sent to a slave, and said to be there; all in bytes of the commit log.

    A master that loses power loses what is not flushed; one whose disk is lost, what no slave has. What a slave says
    that it has lies in its page cache at least.
    """

    title: ClassVar[str] = "Replication"

    def begin(self) -> None:
        """No log, no slave."""
        self.ends: dict[str, int] = {}
        """Broker -> where its log ends."""
        self.flushed: dict[str, int] = {}
        self.sent: dict[tuple[str, str], int] = {}
        """(master, slave's address) -> up to where it was sent the log."""
        self.acked: dict[tuple[str, str], int] = {}
        self.copies: dict[str, None] = {}
        """The brokers that have followed a master: what they lose can be had again."""
        self.waiting: dict[str, int] = {}
        """Master -> how many puts wait for copies."""

    def on_message_stored(self, record: Record) -> None:
        """A log has grown."""
        self.ends[record.node] = record.commit_log_offset + record.store_size

    def on_replica_data_appended(self, record: Record) -> None:
        """A slave's log has grown."""
        self.ends[record.node] = record.commit_log_offset + record.body_bytes
        self.copies[record.node] = None

    def on_commit_log_flushed(self, record: Record) -> None:
        """What lies there is safe from a loss of power."""
        self.flushed[record.node] = record.flushed_where

    def on_store_recovered(self, record: Record) -> None:
        """What was found again is there, and taken for flushed."""
        self.ends[record.node] = self.flushed[record.node] = record.commit_log_max_offset

    def on_replication_begun(self, record: Record) -> None:
        """A slave has said how far it is."""
        self.sent[record.node, record.remote] = record.commit_log_offset
        self.acked[record.node, record.remote] = record.asked_offset

    def on_replica_data_sent(self, record: Record) -> None:
        """A piece is under way."""
        self.sent[record.node, record.remote] = record.commit_log_offset + record.body_bytes

    def on_replica_acked(self, record: Record) -> None:
        """A slave has it."""
        self.acked[record.node, record.remote] = record.ack_offset

    def on_replica_disconnected(self, record: Record) -> None:
        """A slave is gone."""
        self.sent.pop((record.node, record.remote), None)
        self.acked.pop((record.node, record.remote), None)

    def on_replica_put_waiting(self, record: Record) -> None:
        """A producer waits."""
        self.waiting[record.node] = self.waiting.get(record.node, 0) + 1

    def on_replica_put_answered(self, record: Record) -> None:
        """It waits no longer."""
        self.waiting[record.node] = self.waiting.get(record.node, 0) - 1

    def on_process_ended(self, record: Record) -> None:
        """What a master knew of its slaves is gone."""
        self.sent = {key: end for key, end in self.sent.items() if key[0] != record.target}
        self.acked = {key: end for key, end in self.acked.items() if key[0] != record.target}
        self.waiting.pop(record.target, None)

    def table(self) -> Table:
        """One row for each master and slave, and for each broker without one."""
        rows = []
        for broker in sorted(self.ends):
            end, flushed = self.ends[broker], self.flushed.get(broker, 0)
            slaves = [remote for master, remote in self.sent if master == broker]
            copied = max((self.acked[broker, remote] for remote in slaves), default=0)
            for remote in slaves or [""]:
                slave = self.name_of(remote) if remote else None
                sent, acked = self.sent.get((broker, remote)), self.acked.get((broker, remote))
                losses = ("-", "-") if broker in self.copies else (max(0, end - flushed), max(0, end - copied))
                rows.append((broker, end, flushed, slave, sent, acked, self.waiting.get(broker, 0), *losses))
        header = (
            "broker", "log ends at", "flushed up to", "slave", "sent up to", "slave has", "puts that wait",
            "a loss of power loses", "a lost disk loses",
        )  # fmt: skip
        return Table("", header, rows, most=16)
