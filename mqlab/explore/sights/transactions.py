"""Goals of transactions: how half messages end, who is asked, and what is lost on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from mqlab.explore.rule import Case
from mqlab.explore.sights.sights import Sights, seen
from mqlab.protocol.codes import ResponseCode
from mqlab.trace.record import Record

COMMIT, ROLLBACK, UNKNOW = "COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "UNKNOW"


def _ends(state: str, from_check: bool) -> Callable[[Record], bool]:
    """Is this a transaction that ends so, at the first telling or when the broker has asked?"""
    return lambda r: (r.local_state, r.from_check, r.code) == (state, from_check, ResponseCode.SUCCESS)


class SightsOfTransactions(Sights):
    """Transactions: ends, questions, and half messages that nobody ends."""

    SUBJECT = "transactions"
    SEEN = (
        seen("transaction-commits-at-once", "TransactionEnded", "A transaction commits before anybody asks.",
             _ends(COMMIT, from_check=False)),
        seen("transaction-rolls-back-at-once", "TransactionEnded", "A transaction rolls back before anybody asks.",
             _ends(ROLLBACK, from_check=False)),
        seen("transaction-commits-when-asked", "TransactionEnded", "A transaction commits when the broker has asked.",
             _ends(COMMIT, from_check=True)),
        seen("transaction-rolls-back-when-asked", "TransactionEnded",
             "A transaction rolls back when the broker has asked.", _ends(ROLLBACK, from_check=True)),
        seen("producer-does-not-know-yet", "TransactionEnded", "A producer that is asked does not know the end yet.",
             _ends(UNKNOW, from_check=True)),
        seen("end-is-refused", "TransactionEnded", "A broker cannot carry the end of a transaction out.",
             lambda r: r.code != ResponseCode.SUCCESS),
        seen("half-message-is-asked-about-twice", "HalfMessageStoredAgain",
             "A half message is asked about more than once.", lambda r: r.reason == "asked" and r.check_times > 1),
        seen("half-message-is-immune", "HalfMessageStoredAgain",
             "A half message is not asked about yet, since it has a time of immunity of its own.", reason="immune"),
        seen("half-message-is-given-up", "HalfMessageGivenUp",
             "A half message was asked about 15 times, or is too old, and is rolled back."),
        seen("nobody-can-be-asked", "TransactionChecked",
             "A broker wants to ask, and no producer of the group is there.", remote=""),
        seen("several-ends-are-written-in-one", "TransactionOpWritten", "One op message tells the ends of several.",
             lambda r: r.messages > 1),
        seen("ends-cannot-be-written", "TransactionOpWritten", "The store refuses an op message.", op_offset=-1),
        seen("proxy-relays-an-end", "EndTransactionRelayed", "A proxy passes the end of a transaction on."),
        seen("proxy-relays-a-question", "OrphanedTransactionRelayed", "A proxy passes a question of a broker on.",
             lambda r: r.client_id != ""),
        seen("proxy-has-nobody-to-ask", "OrphanedTransactionRelayed",
             "A broker asks a proxy to which no producer of the group is connected.", client_id=""),
    )  # fmt: skip
    GOALS: ClassVar[dict[str, str]] = {
        "another-member-is-asked": "Another member of the group than the one that began a transaction says its end.",
        "transaction-is-ended-twice": "A broker is told the end of a transaction that has ended already.",
        "half-message-outlives-its-broker": (
            "A transaction ends at a broker that was started again since its half message was stored."
        ),
    }
    FOLLOWS = ("HalfMessageHidden", "LocalTransactionExecuted", "LocalTransactionRemembered", "TransactionEnded")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._begun_by: dict[str, str] = {}
        self._hidden: dict[str, Record] = {}
        self._ended: dict[tuple[str, str], None] = {}

    def follow(self, record: Record) -> None:
        """Follow each transaction from its half message to its ends."""
        if record.kind == "HalfMessageHidden":
            self._hidden[record.unique_key] = record
        elif record.kind == "LocalTransactionExecuted":
            self._begun_by[record.msg_id] = record.node
        elif record.kind == "LocalTransactionRemembered":
            if self._begun_by.get(record.msg_id, record.node) != record.node:
                self.reach("another-member-is-asked", record)
        elif record.local_state != UNKNOW and record.code == ResponseCode.SUCCESS:
            key = (record.node, record.unique_key)
            if key in self._ended:
                self.reach("transaction-is-ended-twice", record)
            self._ended[key] = None
            hidden = self._hidden.get(record.unique_key)
            started_us = self.case.ledger.processes.started_us.get(record.node, -1)
            if hidden is not None and hidden.node == record.node and started_us > hidden.ts_us:
                self.reach("half-message-outlives-its-broker", record)
