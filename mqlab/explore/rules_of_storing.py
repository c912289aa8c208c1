"""Rules of storing: what was acknowledged is kept, and nothing comes out that did not go in."""

from __future__ import annotations

from typing import ClassVar

from ..trace.monitors import AcknowledgedIsStored
from ..trace.record import Record
from .fault_plan import flushes_before_the_answer
from .rule import Case, Rule

UNFLUSHED = "acknowledged before the flush"
UNFLUSHED_TEXT = (
    "With ASYNC_FLUSH a broker answers SEND_OK when the page cache has the message; what was not flushed when the "
    "machine lost power may be gone."
)

TORN = "a torn record"
TORN_TEXT = (
    "The checksum of a record covers its body alone. When the machine loses power and the page with the end of a "
    "record is gone, recovery takes it for whole, and its properties (id, keys, tags) are zeros."
)


class AcknowledgedSurvives(Rule):
    """A message that a producer was told is stored survives every restart of its broker."""

    kinds = AcknowledgedIsStored.kinds
    EXCEPTIONS: ClassVar[dict[str, str]] = {UNFLUSHED: UNFLUSHED_TEXT}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._monitor = AcknowledgedIsStored()

    def on_event(self, record: Record) -> None:
        """Let the monitor of the ground rules look, and name the exception where it applies."""
        known = len(self._monitor.violations)
        self._monitor.on_event(record)
        for violation in self._monitor.violations[known:]:
            if record.kind == "StoreRecovered" and may_lose_the_unflushed(self.case, record.node):
                self.excuse(UNFLUSHED)
            else:
                self.violations.append(violation)


class AcknowledgedIsReadable(Rule):
    """In the end every message that a producer was told is stored can be read from a broker."""

    EXCEPTIONS: ClassVar[dict[str, str]] = {UNFLUSHED: UNFLUSHED_TEXT}

    def at_end(self) -> None:
        """Read the stores."""
        for place in self.case.contents.unreadable:
            self.found(None, f"the queue has an entry for {place}, but no message can be read there")
        ledger = self.case.ledger
        # A torn record has lost the key under which the ledger knows it.
        kept = {
            ledger.stored[place].unique_key if found.is_torn and place in ledger.stored else found.unique_key
            for place, found in self.case.contents.found.items()
        }
        for msg_id, row in ledger.acknowledged.items():
            if msg_id in kept:
                continue
            brokers = [broker.name for broker in self.case.lab.brokers]
            if msg_id in ledger.lost_keys and any(may_lose_the_unflushed(self.case, name) for name in brokers):
                self.excuse(UNFLUSHED)
            else:
                self.found(row, f"message {msg_id} was acknowledged, and no broker has it")


class NothingUnsentIsDelivered(Rule):
    """No listener is given a message that no producer sent and no broker stored, or one with another body."""

    kinds = ("ConsumeStarted", "MessageStored")
    EXCEPTIONS: ClassVar[dict[str, str]] = {TORN: TORN_TEXT}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._stored: dict[str, None] = {}

    def on_event(self, record: Record) -> None:
        """Look whether the message was sent and stored before."""
        if record.kind == "MessageStored":
            self._stored[record.unique_key] = None
        elif "\0" in record.msg_id and self.case.ledger.broker_of(record.broker_name) in self.case.ledger.power_lost_us:
            self.excuse(TORN)
        elif record.msg_id not in self.case.ledger.attempted:
            self.found(record.row, f"message {record.msg_id} was given to a listener, and nobody sent it")
        elif record.msg_id not in self._stored:
            self.found(record.row, f"message {record.msg_id} was given to a listener, and no broker had stored it")

    def at_end(self) -> None:
        """All copies of a message, in retry topics and elsewhere, must have one body."""
        bodies: dict[str, bytes] = {}
        for found in self.case.contents.found.values():
            if bodies.setdefault(found.unique_key, found.body) != found.body:
                self.found(None, f"message {found.unique_key} has another body at {found.place}")


def may_lose_the_unflushed(case: Case, broker: str) -> bool:
    """Has this broker lost power, with messages that were answered before they were flushed?"""
    return broker in case.ledger.power_lost_us and not flushes_before_the_answer(case.broker(broker))
