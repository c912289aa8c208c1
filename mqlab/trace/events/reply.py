"""Events of request and reply: a producer asks, a consumer answers, and the broker pushes the answer to who asked.

`correlation_id` joins a request and its reply; `client_id` is the client that asked, and `replier` the address of the
one that answers.
"""

from __future__ import annotations

from typing import NamedTuple


class ReplyAwaited(NamedTuple):
    """A producer sends a message that asks for a reply, and waits for that at most `timeout_ms`."""

    topic: str
    correlation_id: str
    client_id: str
    timeout_ms: int


class ReplyPushed(NamedTuple):
    """A broker has pushed a reply to the client that asked, which has taken it."""

    topic: str
    correlation_id: str
    client_id: str
    replier: str
    remote: str


class ReplyNotPushed(NamedTuple):
    """A broker could not push a reply; `client_id` is "" for one that says nobody to whom it goes."""

    topic: str
    correlation_id: str
    client_id: str
    replier: str
    reason: str


class ReplyArrived(NamedTuple):
    """A reply has come to its client: to the request that waits for it or, without `matched`, to nobody any more.

    `waited_ms` is how long the request was out; -1 when nobody waited.
    """

    topic: str
    correlation_id: str
    replier: str
    matched: bool
    waited_ms: int


class ReplyGivenUp(NamedTuple):
    """A producer waits for a reply no longer: none came in time, or its message could not be sent."""

    topic: str
    correlation_id: str
    waited_ms: int
    reason: str


class RequestCallbackFailed(NamedTuple):
    """The callback of a request has raised an error; as in RocketMQ nobody is told in another way."""

    topic: str
    correlation_id: str
    reason: str
