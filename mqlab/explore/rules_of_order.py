"""Rules of ordered consumption: one after the other, and one consumer at a time."""

from __future__ import annotations

from typing import ClassVar

from ..trace.record import Record
from .rule import Case, Rule

FORGOTTEN_LOCK = "a broker forgets its locks"
HUNG_OWNER = "an owner that hangs outlives its lock"
LEAVING_OWNER = "an owner that leaves does not wait for its listener"

TRUSTED_US = 60_000_000
"""30 s in which an owner trusts its lock, and as much for calls of listeners that began in them."""

QueueKey = tuple[str, str, str, int]


class InOrder(Rule):
    """An orderly listener never gets a message before the one in front of it in the queue was consumed.

    A message may come again, and the queue may go back to an offset that was committed earlier.
    """

    kinds = ("ConsumeStarted", "ConsumeFinished")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._consumed: dict[QueueKey, int] = {}

    def on_event(self, record: Record) -> None:
        """Compare the offset with how far the queue was consumed."""
        reader = self.case.readers.get(record.group)
        if reader is None or not reader.in_order or not reader.from_first_offset:
            return
        key = (record.group, record.topic, record.broker_name, record.queue_id)
        consumed = self._consumed.get(key, -1)
        if record.kind == "ConsumeFinished":
            if record.status in ("SUCCESS", "COMMIT"):
                self._consumed[key] = max(consumed, record.queue_offset)
        elif record.queue_offset > consumed + 1:
            at = f"{record.broker_name} {record.topic} queue {record.queue_id}"
            self.found(record.row, f"offset {record.queue_offset} of {at} was consumed before offset {consumed + 1}")


class OneOwner(Rule):
    """Two orderly listeners never consume from one queue at the same time."""

    kinds = ("ConsumeStarted", "ConsumeFinished", "NodeCrashed", "ClientStopped")
    EXCEPTIONS: ClassVar[dict[str, str]] = {
        FORGOTTEN_LOCK: (
            "The locks are in a broker's memory. After its restart another member may lock a queue whose owner trusts "
            "its own lock for up to 30 s, until it asks for a renewal."
        ),
        HUNG_OWNER: (
            "A lock that was not renewed for 60 s is given to the next member. A listener whose process hung meanwhile "
            "goes on where it stood."
        ),
        LEAVING_OWNER: (
            "A consumer that is shut down gives its locks back at once (awaitTerminationMillisWhenShutdown is 0), also "
            "while its listener is still at work."
        ),
    }

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._at_it: dict[QueueKey, dict[str, int]] = {}
        """Queue -> process -> when its listener was called."""
        self._stopped_us: dict[tuple[str, str], int] = {}

    def on_event(self, record: Record) -> None:
        """Note who is at which queue."""
        if record.kind == "NodeCrashed":
            for owners in self._at_it.values():
                owners.pop(record.target, None)
            return
        if record.kind == "ClientStopped":
            self._stopped_us[record.node, record.group] = record.ts_us
            return
        reader = self.case.readers.get(record.group)
        if reader is None or not reader.in_order:
            return
        owners = self._at_it.setdefault((record.group, record.topic, record.broker_name, record.queue_id), {})
        if record.kind == "ConsumeFinished":
            owners.pop(record.node, None)
            return
        for other, since_us in owners.items():
            self._judge(record, other, since_us)
        owners[record.node] = record.ts_us

    def _judge(self, record: Record, other: str, since_us: int) -> None:
        ledger = self.case.ledger
        broker_started_us = ledger.started_us.get(ledger.broker_of(record.broker_name), 0)
        if other == record.node:
            self.found(record.row, f"{other} calls its listener twice for one queue")
        elif ledger.frozen_us.get(other, -1) >= since_us:
            self.excuse(HUNG_OWNER)
        elif self._stopped_us.get((other, record.group), -1) >= since_us:
            self.excuse(LEAVING_OWNER)
        elif broker_started_us > 0 and broker_started_us + TRUSTED_US >= since_us:
            self.excuse(FORGOTTEN_LOCK)
        else:
            at = f"{record.broker_name} {record.topic} queue {record.queue_id}"
            self.found(record.row, f"{record.node} and {other} consume {at} at the same time")
