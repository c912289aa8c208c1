"""What a space-time diagram is drawn from: events read in order, each as a row of the picture or as none."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from mqlab.protocol.topics import is_retry_topic, is_system_topic
from mqlab.trace.record import Record

SENT = {"RequestSent", "ResponseSent"}
RECEIVED = {"RequestReceived", "ResponseReceived"}
WHO_AND_WHAT = ("ClientStarted", "BrokerStarted", "RequestSent")
"""What must be known of the time before a stretch: each node's role, and which requests are still to be answered."""
SHOWN_AS_DOTS = (
    *("MessageStored", "MessageDispatched", "CommitLogFlushed", "PullHeld", "PullWoken", "FlowControlled"),
    *("ConsumeStarted", "ConsumeFinished", "OffsetCommitted", "QueueAllocated", "QueueDropped"),
    *("BrokerRegistered", "BrokerUnregistered", "TopicCreated", "RequestTimedOut", "ConnectionBroken"),
    *("NodeStarted", "NodeCrashed", "PowerLost", "NodeFrozen", "NodeThawed", "LinkCut", "LinkHealed"),
)
"""The kinds that are drawn on their lanes unless other `kinds` are asked for."""

AS_HOPED = "CONSUME_SUCCESS"
"""A status that goes without saying."""
ORDER = ("namesrv", "producer", "broker", "consumer")
"""The lanes from left to right: a message goes from left to right, too."""

Asked = tuple[str, int, int]
"""(address of who asks, connection, opaque): one request."""


class Mark(NamedTuple):
    """One row: an event on a lane. Both ends of an arrow share a `frame` key."""

    record: Record
    lane: str
    frame: tuple[int, int, str] | None
    text: str
    detail: str = ""

    @property
    def sent(self) -> bool:
        """Whether an arrow begins here."""
        return self.record.kind in SENT


class Reading:
    """What is learned while history is read: who is who, and which request a response answers.

    `kinds` are drawn as dots, `requests` restricts the frames; `roles` (of nodes) and `names` (of requests, by who
    asks, connection and opaque) are what is known already.
    """

    def __init__(
        self,
        kinds: Collection[str] = SHOWN_AS_DOTS,
        requests: Collection[str] = (),
        *,
        roles: Mapping[str, str] | None = None,
        names: Mapping[Asked, str] | None = None,
    ) -> None:
        self.hosts: dict[str, str] = {}
        self._kinds = kinds
        self._requests = requests
        self._names: dict[Asked, str] = dict(names or {})
        self._roles: dict[str, str] = dict(roles or {})

    def mark(self, record: Record) -> Mark | None:
        """The row of this event, or None if it is not drawn."""
        kind = record.kind
        if kind in SENT or kind in RECEIVED:
            return self._end_of_arrow(record)
        if kind == "ClientStarted":
            if self._roles.get(record.node) != "consumer":
                self._roles[record.node] = record.role
        elif kind == "BrokerStarted":
            self._roles[record.node] = "broker"
        return Mark(record, record.node, None, kind) if kind in self._kinds else None

    def _end_of_arrow(self, record: Record) -> Mark | None:
        self.hosts[record.local.rpartition(":")[0]] = record.node
        sender = record.local if record.kind in SENT else record.remote
        key = asked_by(record)
        if record.kind.startswith("Request"):
            name = text = self._names[key] = record.request_name
        else:
            name = self._names.get(key, "")
            text = f"{name}: {record.response_name}" if name else record.response_name
        if self._requests and name not in self._requests:
            return None
        size = f", {record.body_bytes} B" if record.body_bytes else ""
        return Mark(record, record.node, (record.connection, record.frame, sender), text + size)

    def place(self, lane: str) -> int:
        """Where a lane stands from left to right."""
        role = self._roles.get(lane) or lane.partition("-")[0]
        return ORDER.index(role) if role in ORDER else len(ORDER)

    @staticmethod
    def detailed(marks: list[Mark]) -> list[Mark]:
        """The rows with their details; what is the same everywhere (one topic, one broker) is not repeated."""
        dots = [mark.record for mark in marks if mark.frame is None]
        topics = {record.get("topic") for record in dots} - {None}
        brokers = {record.get("broker_name") for record in dots} - {None}
        several_topics = len(topics) > 1
        return [
            mark._replace(detail=_detail(mark.record, with_topic=several_topics, with_broker=len(brokers) > 1))
            if mark.frame is None
            else mark
            for mark in marks
        ]


def asked_by(record: Record) -> Asked:
    """Of an end of a frame: which request it is, or answers."""
    asker = record.local if record.kind in ("RequestSent", "ResponseReceived") else record.remote
    return asker, record.connection, record.opaque


def _detail(record: Record, *, with_topic: bool, with_broker: bool) -> str:
    """What an event says, in the order in which one would say it."""
    said = record.fields
    parts = []
    topic = said.get("topic")
    if topic and (with_topic or is_system_topic(topic) or is_retry_topic(topic)):
        parts.append(topic)
    if with_broker or "topic" not in said:
        parts.append(said.get("broker_name", ""))
    numbers = (("queue_id", "queue"), ("queue_offset", "offset"))
    parts += [f"{word} {said[name]}" for name, word in numbers if name in said]
    parts += [str(said[name]) for name in ("reason", "status", "target") if name in said and said[name] != AS_HOPED]
    if "held_us" in said:
        parts.append(f"held {in_words(said['held_us'])}")
    return ", ".join(part for part in parts if part)


def in_words(us: int) -> str:
    """A length of time as one says it: 12.5 ms, 3.2 s."""
    return f"{us / 1_000_000:.3g} s" if us >= 1_000_000 else f"{us / 1_000:.3g} ms"
