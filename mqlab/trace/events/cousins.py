"""Events of Pop's cousins, Kafka's share groups and Amazon SQS, and of workers who do the same with each of them."""

from __future__ import annotations

from typing import NamedTuple


class RecordProduced(NamedTuple):
    """A record is in the log of a partition; its body is `order_name`."""

    topic: str
    queue_offset: int
    order_name: str


class RecordAcquired(NamedTuple):
    """A member of a share group gets a record, for the `delivery_count`-th time, and holds it for `lock_ms`."""

    group: str
    topic: str
    queue_offset: int
    member: str
    delivery_count: int
    lock_ms: int


class RecordAcknowledged(NamedTuple):
    """A member says of a record that it holds: ACCEPT, RELEASE, REJECT or RENEW; `state` is what it is then."""

    group: str
    topic: str
    queue_offset: int
    member: str
    acknowledge_type: str
    state: str


class AcknowledgementRefused(NamedTuple):
    """A member acknowledges a record that it does not hold: INVALID_RECORD_STATE."""

    group: str
    topic: str
    queue_offset: int
    member: str
    reason: str


class RecordLetGo(NamedTuple):
    """A record is taken back from its member; `reason` is "time-out" or "session ended"."""

    group: str
    topic: str
    queue_offset: int
    state: str
    reason: str


class StartOffsetMoved(NamedTuple):
    """The window of a share partition (its SPSO) begins further on: all records before have come to an end."""

    group: str
    topic: str
    from_offset: int
    to_offset: int


class ShareStateWritten(NamedTuple):
    """What has changed of a share partition is safe now: offsets, states and delivery counts, as text."""

    group: str
    topic: str
    start_offset: int
    states: str
    snapshot: bool


class ShareStateRead(NamedTuple):
    """A broker begins to lead a share partition, and reads what is known of it."""

    group: str
    topic: str
    start_offset: int
    states: str
    leader_epoch: int


class SqsMessageSent(NamedTuple):
    """A queue of SQS has a message more; its body is `order_name`."""

    queue: str
    message_id: str
    order_name: str


class SqsMessageReceived(NamedTuple):
    """A queue of SQS gives a message out for the `receive_count`-th time, and hides it for `invisible_ms`."""

    queue: str
    message_id: str
    receive_count: int
    invisible_ms: int
    receipt_handle: str


class SqsMessageDeleted(NamedTuple):
    """A message shall be deleted; `deleted` is False for an old receipt handle, which is answered with success, too."""

    queue: str
    message_id: str
    receipt_handle: str
    deleted: bool


class SqsVisibilityChanged(NamedTuple):
    """A message in flight stays hidden for `invisible_ms` from now on."""

    queue: str
    message_id: str
    invisible_ms: int


class SqsMessageRedriven(NamedTuple):
    """A message was received too often: it goes to the dead-letter queue."""

    queue: str
    message_id: str
    receive_count: int
    dead_letter_queue: str


class WorkTaken(NamedTuple):
    """A worker has got an order; `told_count` is what it is told of how often it was delivered, as this queue counts.

    `system` is "pop", "share-group" or "sqs".
    """

    system: str
    worker: str
    order_name: str
    told_count: int


class WorkAnswered(NamedTuple):
    """A worker has said of an order that it is done; `answer` is what it was told."""

    system: str
    worker: str
    order_name: str
    answer: str
