"""Rules of request and reply: every request comes to an end in its time, and gets the reply that is its own."""

from __future__ import annotations

from typing import ClassVar

from mqlab.explore.rule import Case, Rule
from mqlab.lab.processes import ClientProcess
from mqlab.protocol.topics import REPLY_TOPIC_POSTFIX
from mqlab.trace.bus import Row
from mqlab.trace.record import FIRST_FIELD, Record

SCAN_FIRST_MS, SCAN_MS = 3_000, 1_000
"""The scan for expired requests comes three seconds after its first producer, and each second from then on."""
LATE_MS = 200
"""A thread may lose the processor for a moment."""

ENDS_WHEN_SENT = "a request that ends when it is sent"
ENDS_WHEN_SENT_TEXT = (
    "Releases 5.3.1 to 5.3.3 (requestEndsWhenSent in mqlab) wait for a reply only until the broker has the request, "
    "and say that its time is over."
)

PUSHED = "a reply that was pushed and not stored"
PUSHED_TEXT = (
    "A broker that has pushed a reply to who asked answers SEND_OK, with the message id 0, also when its store then "
    "refuses the reply; nor does it mind that a slave does not have it in time."
)

Request = tuple[str, str]
"""(process, correlation id)"""


def is_reply(row: Row) -> bool:
    """Was it a reply whose sending succeeded?"""
    topic: str = row[FIRST_FIELD]
    return topic.endswith(f"_{REPLY_TOPIC_POSTFIX}")


def longest_ms(awaited: Record) -> int:
    """The most that a request may wait in a world in which nothing goes wrong."""
    most_ms: int = max(awaited.timeout_ms + SCAN_MS, SCAN_FIRST_MS) + LATE_MS
    return most_ms


class RequestsEnd(Rule):
    """A request ends once: with its own reply, or without one when its time is over or it could not be sent."""

    kinds = (
        "ReplyAwaited", "ReplyArrived", "ReplyPushed", "ReplyGivenUp", "ClientStarted", "ClientStopped", "NodeCrashed",
        "PowerLost",
    )  # fmt: skip
    EXCEPTIONS: ClassVar[dict[str, str]] = {ENDS_WHEN_SENT: ENDS_WHEN_SENT_TEXT}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._waiting: dict[Request, Record] = {}
        self._arrived: dict[str, None] = {}
        """The ids of all replies that their clients have got."""
        self._started_us: dict[str, int] = {}
        self._asked: dict[str, dict[str, None]] = {}
        """Process -> the topics to which it has sent a request. The first to each is preceded by a look for the route
        and by a heartbeat, which are part of the time that a caller gives.
        """
        self._prepared_ms: dict[Request, int] = {}
        """The most that these can have taken."""

    def on_event(self, record: Record) -> None:
        """Note who waits, and judge how it ends."""
        kind = record.kind
        if kind in ("NodeCrashed", "PowerLost"):
            self._forget(record.target)
        elif kind == "ClientStopped":
            # Who still waited with a callback is never told.
            self._forget(record.node)
        elif kind == "ClientStarted":
            self._started_us.setdefault(record.node, record.ts_us)
        elif kind == "ReplyAwaited":
            self._waiting[record.node, record.correlation_id] = record
            asked = self._asked.setdefault(record.node, {})
            if record.topic not in asked:
                asked[record.topic] = None
                prepared_us = record.ts_us - self._started_us.get(record.node, record.ts_us)
                self._prepared_ms[record.node, record.correlation_id] = -(-prepared_us // 1_000)
        elif kind == "ReplyArrived":
            self.judged += 1
            self._arrived[record.correlation_id] = None
            waited = self._waiting.get((record.node, record.correlation_id))
            if record.matched != (waited is not None):
                self.found(record.row, f"the reply {record.correlation_id} found nobody, or somebody who did not wait")
            self._end(record)
        elif kind == "ReplyGivenUp":
            waited = self._waiting.get((record.node, record.correlation_id))
            self.judged += waited is not None
            if waited is not None and "timeout" in record.reason:
                self._is_late_enough(record, waited)
            self._end(record)
        else:
            self.judged += 1
            if record.correlation_id not in self._arrived:
                self.found(record.row, f"the reply {record.correlation_id} was pushed, and never arrived")

    def _is_late_enough(self, record: Record, waited: Record) -> None:
        """Judge a request whose time is said to be over."""
        spent_ms = record.waited_ms + self._prepared_ms.get((record.node, record.correlation_id), 0)
        if spent_ms >= waited.timeout_ms:
            return
        if self._ends_when_sent(record.node):
            self.excuse(ENDS_WHEN_SENT)
        else:
            self.found(record.row, f"a request was given up {waited.timeout_ms - spent_ms} ms too early")

    def _ends_when_sent(self, process: str) -> bool:
        found = self.case.lab.processes[process]
        clients = found.clients if isinstance(found, ClientProcess) else []
        return any(settings.get("request_ends_when_sent", False) for _, _, settings in clients)

    def _forget(self, process: str) -> None:
        self._started_us.pop(process, None)
        self._asked.pop(process, None)
        self._waiting = {request: waiting for request, waiting in self._waiting.items() if request[0] != process}

    def _end(self, record: Record) -> None:
        waiting = self._waiting.pop((record.node, record.correlation_id), None)
        self.judged += waiting is not None
        is_late = waiting is not None and record.waited_ms > longest_ms(waiting)
        if waiting is not None and is_late and self.case.fault_times.none_between(waiting.ts_us, record.ts_us):
            self.found(record.row, f"a request with {waiting.timeout_ms} ms ended after {record.waited_ms} ms")

    def at_end(self) -> None:
        """Judge who still waits."""
        over_us = self.case.fault_times.over_since_us()
        if over_us is None:
            return
        for (_, correlation_id), waiting in self._waiting.items():
            self.judged += 1
            waited_ms = (self.case.lab.world.now_us - max(waiting.ts_us, over_us)) // 1_000
            if waited_ms > longest_ms(waiting):
                self.found(waiting.row, f"the request {correlation_id} still waits, after {waited_ms} ms")
