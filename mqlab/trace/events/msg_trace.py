"""Events of the message trace: what clients note of each message, and send to a topic of its own."""

from __future__ import annotations

from typing import NamedTuple


class TraceNoted(NamedTuple):
    """A client has noted what it did with messages, `trace_type` says what; so many notes wait to be sent now."""

    group: str
    trace_type: str
    msg_id: str
    waiting: int


class TraceSent(NamedTuple):
    """A client sends notes of its message trace, as one message of the topic of traces."""

    topic: str
    group: str
    body_bytes: int


class TraceLost(NamedTuple):
    """Notes of a client's message trace are lost; as in RocketMQ nobody is told in another way."""

    group: str
    reason: str
