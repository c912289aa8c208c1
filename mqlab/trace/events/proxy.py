"""Events of proxies and of the 5.x clients that speak to them: settings, assignments, receives, receipt handles.

Where a 5.x client does what every client does (sending, caching, calling a listener), its events are those of clients.
"""

from __future__ import annotations

from typing import NamedTuple


class ProxyStarted(NamedTuple):
    """A proxy listens at this address now."""

    local: str


class ClientSettingsTaken(NamedTuple):
    """A proxy took a client's settings, and answers with what it decides; without a group it is a producer."""

    client_id: str
    group: str
    role: str


class ProxyClientLeft(NamedTuple):
    """A proxy forgets a client; `reason` is "it said so" or "no heartbeat" (for 120 s)."""

    client_id: str
    group: str
    reason: str


class RpcRefused(NamedTuple):
    """A proxy answers a call with an error; `status` is the name of its code."""

    client_id: str
    rpc: str
    status: str
    reason: str


class RpcCancelled(NamedTuple):
    """A client wants no answer to a call any more, as it has waited long enough: a proxy will write none."""

    connection: int
    remote: str
    opaque: int
    rpc: str


class ProxyRouteLoaded(NamedTuple):
    """A proxy asked for a route and keeps it for 20 s; no queues mean that there is no such topic."""

    topic: str
    queues: int


class PopResultFiltered(NamedTuple):
    """A popped message is not handed on: its tag does not match (it is acknowledged), or it was tried too often."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    msg_id: str
    filter_result: str
    reconsume_times: int


class DeadLetterForwarded(NamedTuple):
    """A broker has put a message to the dead letters of its group, as a proxy asked it to."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    msg_id: str


class HandleRenewed(NamedTuple):
    """A proxy made the invisible time of a message longer, for the `renew_times`-th time: the client still has it."""

    group: str
    topic: str
    msg_id: str
    invisible_ms: int
    renew_times: int


class HandleRenewFailed(NamedTuple):
    """A proxy could not make an invisible time longer; after three failures in a row it gives the handle up."""

    group: str
    topic: str
    msg_id: str
    reason: str


class HandleGivenUp(NamedTuple):
    """A proxy renews a message no longer and gives it `invisible_ms`, 0: as much as is left.

    `reason` is "client left", "too long" (3 h), "too many failures" or "cannot be renewed".
    """

    group: str
    topic: str
    msg_id: str
    reason: str
    invisible_ms: int


class AssignmentsScanned(NamedTuple):
    """A push consumer asked which queues of a topic are its own: of a group without order one a broker, with id -1."""

    client_id: str
    group: str
    topic: str
    assignments: int
    changed: bool


class ProcessQueueCreated(NamedTuple):
    """A push consumer begins to receive from an assigned queue; queue -1 stands for all of the broker."""

    client_id: str
    group: str
    topic: str
    broker_name: str
    queue_id: int


class ProcessQueueDropped(NamedTuple):
    """A push consumer receives no more from a queue; `reason` is "not assigned" or "idle"."""

    client_id: str
    group: str
    topic: str
    broker_name: str
    queue_id: int
    reason: str


class ReceiveRequested(NamedTuple):
    """A consumer asks for up to `batch_size` messages; the same attempt id again gets the same messages in order."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    batch_size: int
    attempt_id: str


class ReceiveFinished(NamedTuple):
    """The answer to a receive: the name of its code, and how many messages came."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    status: str
    messages: int


class ReceivePutOff(NamedTuple):
    """A push consumer does not receive now, but again in `delay_ms`."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    reason: str
    delay_ms: int


class FifoAttemptPutOff(NamedTuple):
    """A message in order could not be consumed: the same client tries it again in `delay_ms`."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    msg_id: str
    delivery_attempt: int
    delay_ms: int


class MessageSettled(NamedTuple):
    """A 5.x consumer is done with a delivery; `settled_as` is "ack", "nack", "dead letter" or "longer".

    After a nack, or with a longer time, the message is invisible for `invisible_ms` from now on.
    """

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    msg_id: str
    settled_as: str
    invisible_ms: int
    delivery_attempt: int


class SettlingFailed(NamedTuple):
    """A delivery could not be settled; `is_final`: it never will, as its handle has expired. Else again in 1 s."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    msg_id: str
    settled_as: str
    reason: str
    is_final: bool
