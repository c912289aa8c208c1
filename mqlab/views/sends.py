"""Sends as a history tells them: attempts, entries of the response table, and when the application heard of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mqlab.trace.history import History
from mqlab.trace.record import Record
from mqlab.trace.state import State

WAY = {"SYNC": "sync", "ASYNC": "async", "ONEWAY": "one-way"}
ANSWER = "its answer"
"""What removes a request from the table when all goes well."""
_ADDRESS = re.compile(r" (to|on the channel) <?[\d.]+:\d+>?")


@dataclass
class Entry:
    """A request in the response table: since when, until when (None: it is still there), and what removed it."""

    begin_us: int
    end_us: int | None = None
    removed_by: str = ""


@dataclass
class Attempt:
    """One attempt to send: how long it might take, and how it ended (`outcome` is empty while it goes on)."""

    begin_us: int
    budget_ms: int
    broker_name: str
    end_us: int | None = None
    outcome: str = ""
    ok: bool = False


@dataclass
class Sent:
    """One message on its way from one producer, by one of the three ways."""

    msg_id: str
    node: str
    mode: str
    begin_us: int
    attempts: list[Attempt]
    entries: list[Entry] = field(default_factory=list)
    stored_us: list[int] = field(default_factory=list)
    told_us: int | None = None
    """When the application heard how it ended: the call returned, or the callback was called; None if it did not."""
    gave_up_us: int | None = None
    """When a caller that waited was told of a time-out, if no later event told it more."""
    outcome: str = ""
    topic: str = ""

    @property
    def way(self) -> str:
        """sync, async or one-way."""
        return WAY[self.mode]

    @property
    def caller_until_us(self) -> int | None:
        """Until when the caller waited: only a synchronous one does. None while it waits still."""
        if self.mode != "SYNC":
            return self.begin_us
        return self.told_us if self.told_us is not None else self.gave_up_us


def short(reason: str) -> str:
    """A reason without the addresses in it, which a picture has no room for."""
    return _ADDRESS.sub("", reason)


def read_sends(history: History, start_ms: float, end_ms: float) -> list[Sent]:
    """The sends that began from `start_ms` to `end_ms` of the world's time, both included, in the order of their first
    attempts.
    """
    reading = Sends(history)
    for _ in reading.follow(history.between(start_ms, end_ms)):
        pass
    return list(reading.sends.values())


class Sends(State):
    """What is known of each send; of the entries of the response table only with a history, which knows causes."""

    def __init__(self, history: History | None = None) -> None:
        super().__init__()
        self._history = history

    def begin(self) -> None:
        """Nobody has sent anything."""
        self.sends: dict[str, Sent] = {}
        self._entries: dict[tuple[str, int, int], tuple[Sent, Entry]] = {}
        self._newest: dict[tuple[str, str], str] = {}
        """(machine, task) -> the id of what it sends: the end of a batch names its messages, and not the batch."""

    def on_send_attempted(self, record: Record) -> None:
        attempt = Attempt(record.ts_us, record.budget_ms, record.broker_name)
        self._newest[record.node, record.task] = record.msg_id
        known = self.sends.get(record.msg_id)
        if known is None:
            who = (record.msg_id, record.node, record.mode, record.ts_us)
            self.sends[record.msg_id] = Sent(*who, [attempt], topic=record.topic)
        else:
            known.attempts.append(attempt)

    def _of(self, record: Record) -> Sent | None:
        """The send that an event is about."""
        return self.sends.get(record.msg_id) or self.sends.get(self._newest.get((record.node, record.task), ""))

    def on_send_attempt_failed(self, record: Record) -> None:
        sent = self._of(record)
        if sent is None:
            return
        last = sent.attempts[-1]
        last.end_us, last.outcome, last.broker_name = record.ts_us, record.reason, record.broker_name
        if sent.mode == "ASYNC" and record.retriable:
            spent_ms = (record.ts_us - last.begin_us) // 1_000
            sent.attempts.append(Attempt(record.ts_us, last.budget_ms - spent_ms, record.broker_name))

    def on_send_succeeded(self, record: Record) -> None:
        sent = self._of(record)
        if sent is not None:
            last = sent.attempts[-1]
            last.end_us, last.outcome, last.ok = record.ts_us, record.send_status, True
            last.broker_name = record.broker_name
            sent.told_us, sent.outcome = record.ts_us, record.send_status

    def on_send_failed(self, record: Record) -> None:
        sent = self._of(record)
        if sent is not None:
            sent.told_us, sent.outcome = record.ts_us, record.reason

    def on_message_stored(self, record: Record) -> None:
        sent = self.sends.get(record.unique_key)
        if sent is not None:
            sent.stored_us.append(record.ts_us)

    def on_request_sent(self, record: Record) -> None:
        if not record.request_name.startswith("SEND_") or record.oneway:
            return
        sent = None if self._history is None else self._sender(record, self._history)
        if sent is not None:
            entry = Entry(record.ts_us)
            sent.entries.append(entry)
            self._entries[_key(record)] = (sent, entry)

    def _sender(self, record: Record, history: History) -> Sent | None:
        """The send that a request belongs to: the nearest one among what led to it."""
        cause = history.cause_of(record)
        while cause is not None:
            if cause.kind in ("SendAttempted", "SendAttemptFailed"):
                return self.sends.get(cause.msg_id)
            cause = history.cause_of(cause)
        return None

    def on_response_received(self, record: Record) -> None:
        self._remove(record, ANSWER)

    def on_request_failed(self, record: Record) -> None:
        self._remove(record, "the end of its connection")

    def on_request_timed_out(self, record: Record) -> None:
        if record.expired_by_scan:
            self._remove(record, "the scan")
        elif _key(record) in self._entries:
            self._entries[_key(record)][0].gave_up_us = record.ts_us

    def _remove(self, record: Record, by: str) -> None:
        found = self._entries.pop(_key(record), None)
        if found is not None:
            found[1].end_us, found[1].removed_by = record.ts_us, by


def _key(record: Record) -> tuple[str, int, int]:
    return record.node, record.connection, record.opaque
