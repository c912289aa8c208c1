"""Events of the broker: what it was asked, what it answered, and what its tables say."""

from __future__ import annotations

from typing import NamedTuple


class BrokerStarted(NamedTuple):
    """A broker's process is up: its store is recovered and its port is open."""

    broker_name: str
    broker_id: int
    broker_addr: str


class BrokerShutDown(NamedTuple):
    """A broker ended in good order."""

    broker_name: str
    broker_id: int


class MinBrokerChanged(NamedTuple):
    """A slave heard that another broker of its group has the smallest id now; `offline` is the address of who left."""

    min_broker_id: int
    min_broker_addr: str
    offline: str


class RegistrationSent(NamedTuple):
    """A broker reports itself to one name server; `topics` counts what it sends (few: only what changed)."""

    broker_name: str
    namesrv_addr: str
    topics: int


class RegistrationFailed(NamedTuple):
    """A name server did not take a broker's report."""

    broker_name: str
    namesrv_addr: str
    reason: str


class RequestRejected(NamedTuple):
    """A request was answered with an error before anything was done for it."""

    request_code: int
    opaque: int
    code: int
    remark: str
    remote: str


class MessageSendReceived(NamedTuple):
    """A producer's message reached the broker; `batch` marks a body that holds several."""

    topic: str
    queue_id: int
    producer_group: str
    unique_key: str
    body_size: int
    batch: bool
    opaque: int
    remote: str


class MessageSendAnswered(NamedTuple):
    """The producer gets its answer; `status` is the store's word for what happened."""

    topic: str
    queue_id: int
    queue_offset: int
    unique_key: str
    status: str
    code: int
    opaque: int
    remote: str


class SendBackStored(NamedTuple):
    """A message that a consumer gave back is stored again in `topic` (retry or dead letters) to be delivered anew, if
    the store takes it: it is told before, and a PutRefused may follow.
    """

    group: str
    topic: str
    queue_id: int
    origin_topic: str
    unique_key: str
    reconsume_times: int
    delay_level: int


class MessageParked(NamedTuple):
    """A message to be delivered `delay_ms` from now goes to the schedule topic, into the queue of its delay level, if
    the store takes it: it is told before, and a PutRefused may follow.

    `topic` and `queue_id` are where it will go then.
    """

    topic: str
    queue_id: int
    unique_key: str
    delay_level: int
    delay_ms: int


class ParkedMessageDelivered(NamedTuple):
    """A parked message was due: it is stored again, now in its own topic; `late_ms` after it could have been."""

    topic: str
    queue_id: int
    queue_offset: int
    unique_key: str
    delay_level: int
    reconsume_times: int
    late_ms: int


class ParkedMessageDropped(NamedTuple):
    """A parked message cannot be delivered and is passed over; `queue_offset` is its place in the level's queue."""

    delay_level: int
    queue_offset: int
    reason: str


class DelayOffsetCorrected(NamedTuple):
    """The progress of a delay level pointed outside of its queue and was moved to the nearest end."""

    delay_level: int
    from_offset: int
    to_offset: int


class TopicCreated(NamedTuple):
    """A topic is new on this broker; `origin` is "system", "admin", "template", "retry" or "dead letter"."""

    topic: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    origin: str


class TopicUpdated(NamedTuple):
    """The settings of a topic have changed."""

    topic: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int


class TopicDeleted(NamedTuple):
    """A topic is gone from this broker."""

    topic: str


class SubscriptionGroupCreated(NamedTuple):
    """A consumer group is known to this broker from now on; `origin` is "admin" or "auto"."""

    group: str
    retry_queue_nums: int
    retry_max_times: int
    origin: str


class SubscriptionGroupUpdated(NamedTuple):
    """The settings of a consumer group have changed."""

    group: str
    retry_queue_nums: int
    retry_max_times: int


class SubscriptionGroupDeleted(NamedTuple):
    """A consumer group is no longer known to this broker."""

    group: str


class HeartbeatReceived(NamedTuple):
    """A client said that it is alive, and in which groups."""

    client_id: str
    producer_groups: int
    consumer_groups: int


class ClientRegistered(NamedTuple):
    """A client is new in a group; `role` is "producer" or "consumer"."""

    client_id: str
    group: str
    role: str
    remote: str


class ClientUnregistered(NamedTuple):
    """A client left a group; `reason` is "asked" or "channel closed"."""

    client_id: str
    group: str
    role: str
    reason: str


class ClientExpired(NamedTuple):
    """A client was silent for too long and was dropped from a group."""

    client_id: str
    group: str
    role: str
    silent_ms: int


class SubscriptionChanged(NamedTuple):
    """What a consumer group wants of a topic is new or different; an empty expression means that it left the topic."""

    group: str
    topic: str
    expression: str
    sub_version: int


class ConsumerGroupChanged(NamedTuple):
    """The members or topics of a consumer group changed; `notified` members are told at once."""

    group: str
    members: int
    notified: int


class PullReceived(NamedTuple):
    """A consumer asks for messages of one queue from `queue_offset` on; `first_pass` is False for a woken request."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    opaque: int
    remote: str
    first_pass: bool


class PullAnswered(NamedTuple):
    """A pull is answered: so many `messages`, and where to go on."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    next_offset: int
    messages: int
    size: int
    status: str
    code: int
    opaque: int
    remote: str


class PullHeld(NamedTuple):
    """There is nothing new: the broker keeps the request instead of answering it."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    hold_ms: int
    opaque: int
    remote: str


class PullWoken(NamedTuple):
    """A held request is looked at again after `held_us`; `reason` is "arrived" or "timed out"."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    reason: str
    held_us: int
    opaque: int
    remote: str


class ColdDataPullHeld(NamedTuple):
    """A pull waits, since its group has read too many old messages from the disk (coldDataFlowControlEnable)."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    opaque: int
    remote: str


class HeldPullsChecked(NamedTuple):
    """The hold service went through all held requests."""

    held: int


class OffsetCommitted(NamedTuple):
    """A group's progress on a queue was stored; `origin` is "asked", "pull", "popped", "reset" or "broadcast"."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int
    origin: str


class OffsetReset(NamedTuple):
    """The broker itself moved a group's progress on a queue."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int


class MessageRequestModeSet(NamedTuple):
    """An administrator said how a group shall get a topic's messages: `mode` is PULL or POP.

    `share_queues` is the number of further members' queues that each member pops, too; 0 means all.
    """

    group: str
    topic: str
    mode: str
    share_queues: int


class AssignmentAnswered(NamedTuple):
    """A broker told a consumer its queues of a topic, and whether to PULL or to POP them.

    `queues` is their number; -1 means that it could not tell, so the consumer keeps what it has.
    """

    client_id: str
    group: str
    topic: str
    mode: str
    queues: int


class ConfigPersisted(NamedTuple):
    """A table was written to its file."""

    file: str
    size: int


class ConfigNotPersisted(NamedTuple):
    """A table could not be written to its file, which still holds what it held before."""

    file: str
    reason: str


class QueueLocked(NamedTuple):
    """A client holds a queue for itself, for ordered consumption."""

    group: str
    topic: str
    queue_id: int
    client_id: str


class QueueUnlocked(NamedTuple):
    """A client let a queue go."""

    group: str
    topic: str
    queue_id: int
    client_id: str


class RequestTimedOutInQueue(NamedTuple):
    """A request waited too long for a thread and is answered "busy" without being looked at."""

    pool: str
    waited_ms: int
    request_code: int
    opaque: int
    remote: str
