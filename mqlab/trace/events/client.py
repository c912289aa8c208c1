"""Events of the clients: routes, sending, rebalance, pulling, consuming, offsets."""

from __future__ import annotations

from typing import NamedTuple


class ClientStarted(NamedTuple):
    """A producer or consumer (`role`) runs now."""

    client_id: str
    group: str
    role: str


class ClientStopped(NamedTuple):
    """A producer or consumer (`role`) has been shut down."""

    client_id: str
    group: str
    role: str


class RouteUpdated(NamedTuple):
    """A client took over a new route: so many queues to write to and to read from, on these brokers."""

    client_id: str
    topic: str
    broker_names: str
    write_queues: int
    read_queues: int


class RouteMissing(NamedTuple):
    """A client asked for a route and did not get one."""

    client_id: str
    topic: str
    reason: str


class BrokerForgotten(NamedTuple):
    """A broker is in no route any more: a client sends it no more heartbeats."""

    client_id: str
    broker_name: str
    remote: str


class HeartbeatAnswered(NamedTuple):
    """A broker has taken a client's heartbeat."""

    client_id: str
    broker_name: str
    remote: str


class SubscriptionsLeftOut(NamedTuple):
    """A broker has taken a heartbeat that says nothing of subscriptions, as it was told them before.

    `changed` is its answer: another heartbeat of the group has said something else, so the next one says all again.
    """

    client_id: str
    broker_name: str
    remote: str
    changed: bool


class HeartbeatFailed(NamedTuple):
    """A heartbeat did not get through."""

    client_id: str
    broker_name: str
    remote: str
    reason: str


class QueueSelected(NamedTuple):
    """A producer chose a queue; `last_broker` is the one it avoided, empty at the first attempt."""

    topic: str
    broker_name: str
    queue_id: int
    attempt: int
    last_broker: str


class SendAttempted(NamedTuple):
    """A producer hands a message to remoting, with what is left of its time budget."""

    topic: str
    broker_name: str
    queue_id: int
    msg_id: str
    mode: str
    budget_ms: int
    body_bytes: int


class SendSucceeded(NamedTuple):
    """The broker has stored the message."""

    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    msg_id: str
    send_status: str


class SendAttemptFailed(NamedTuple):
    """One attempt to send has failed; `retriable` says whether this kind of failure is tried again."""

    topic: str
    broker_name: str
    queue_id: int
    msg_id: str
    attempt: int
    reason: str
    retriable: bool


class SendFailed(NamedTuple):
    """A producer gives up a message; where no route is known there was no attempt, and the message has no id yet."""

    topic: str
    msg_id: str
    attempts: int
    cost_us: int
    reason: str


class SendCallbackFailed(NamedTuple):
    """The application's callback raised an error, which changes nothing."""

    topic: str
    msg_id: str
    reason: str


class SendHookFailed(NamedTuple):
    """A hook around sending raised an error, which changes nothing."""

    topic: str
    msg_id: str
    hook: str
    reason: str


class FaultItemUpdated(NamedTuple):
    """A producer avoids a broker for some time after a slow or failed send."""

    broker_name: str
    latency_ms: int
    not_available_ms: int
    reachable: bool


class RebalanceDone(NamedTuple):
    """A consumer computed its share of a topic: `share` of `queues` queues among `members` members."""

    client_id: str
    group: str
    topic: str
    queues: int
    members: int
    share: int
    changed: bool
    balanced: bool


class RebalanceSkipped(NamedTuple):
    """A consumer could not compute its share of a topic this time."""

    client_id: str
    group: str
    topic: str
    reason: str


class AssignmentTaken(NamedTuple):
    """A consumer follows a broker's word: of a topic it pulls `pulled` queues and pops `popped` (one of those may stand
    for all queues of a broker).
    """

    client_id: str
    group: str
    topic: str
    pulled: int
    popped: int
    changed: bool
    balanced: bool


class QueueAllocated(NamedTuple):
    """A consumer took a queue and will pull from this offset."""

    client_id: str
    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int


class QueueDropped(NamedTuple):
    """A consumer gave a queue up."""

    client_id: str
    group: str
    topic: str
    broker_name: str
    queue_id: int
    reason: str


class QueueLockTaken(NamedTuple):
    """An orderly consumer got the broker's lock of a queue."""

    group: str
    topic: str
    broker_name: str
    queue_id: int


class QueueLockLost(NamedTuple):
    """An orderly consumer no longer holds the broker's lock of a queue."""

    group: str
    topic: str
    broker_name: str
    queue_id: int


class PullRequested(NamedTuple):
    """A consumer asks a broker for messages; `commit_offset` counts when the first bit of `sys_flag` is set."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    commit_offset: int
    sys_flag: int


class PullFinished(NamedTuple):
    """The answer to a pull: its status, how many messages came, and where to go on."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    pull_status: str
    messages: int
    next_offset: int


class PullPutOff(NamedTuple):
    """A consumer does not pull now, but again in `delay_ms`."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    reason: str
    delay_ms: int


class PullCallbackFailed(NamedTuple):
    """The application's callback of an asynchronous pull raised an error, which changes nothing."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    reason: str


class QueueListenerFailed(NamedTuple):
    """The application's listener for changes of the queues raised an error; the consumer goes on."""

    group: str
    topic: str
    reason: str


class PullTaskScheduled(NamedTuple):
    """A pull task of the schedule service will run in `delay_ms`."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    delay_ms: int


class PullTaskStarted(NamedTuple):
    """A thread of the schedule service begins with the pull task of a queue."""

    group: str
    topic: str
    broker_name: str
    queue_id: int


class PullTaskFinished(NamedTuple):
    """The pull task of a queue came to its end, after `cost_us`."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    cost_us: int


class PullTaskFailed(NamedTuple):
    """The pull task of a queue raised an error, after `cost_us`; unless it has ended, it comes again in 1 s."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    reason: str
    cost_us: int


class PullTaskEnded(NamedTuple):
    """The pull task of a queue will not run again; `reason` says why."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    reason: str


class FlowControlled(NamedTuple):
    """A consumer holds too much already: `cached` is over `limit` (messages, MiB or offsets: `reason` says which).

    "all" is what a lite pull consumer holds of all its queues together, in messages.
    """

    group: str
    topic: str
    broker_name: str
    queue_id: int
    reason: str
    cached: int
    limit: int


class MessagesFiltered(NamedTuple):
    """The exact comparison of tags dropped messages that the broker's hash codes had let through."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    messages: int


class MessagesCached(NamedTuple):
    """Messages came into a process queue, which now holds `cached` of them."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    messages: int
    cached: int
    cached_bytes: int


class MessagesPolled(NamedTuple):
    """A lite pull consumer handed out the messages of one pull; the fields are those of the first of them.

    `next_offset` is what a commit would now note: the first offset still cached, or the one behind the last.
    """

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    msg_id: str
    messages: int
    next_offset: int


class QueueSought(NamedTuple):
    """An application wants to go on at this offset of a queue: what was cached of the queue is thrown away."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int


class TopicQueuesChanged(NamedTuple):
    """A consumer that watches a topic found other queues than before."""

    group: str
    topic: str
    queues: int


class ConsumeStarted(NamedTuple):
    """A listener is called; the fields are those of the first of `messages` messages."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    msg_id: str
    messages: int
    reconsume_times: int


class ConsumeFinished(NamedTuple):
    """A listener has ended; the fields are those of the first message, `status` is what it returned."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    msg_id: str
    status: str
    cost_us: int


class ConsumeResultIgnored(NamedTuple):
    """A listener ended after its queue was given up: its result counts for nothing, the messages come again."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int


class MessageGivenBack(NamedTuple):
    """A consumer gave a message back, to get it again later."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    msg_id: str
    delay_level: int
    reconsume_times: int


class SendBackFailed(NamedTuple):
    """A message could not be given back: it is consumed again here, after a while."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int
    msg_id: str
    reason: str


class OffsetUpdated(NamedTuple):
    """A consumer's progress in a queue, in its memory."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int


class OffsetPersisted(NamedTuple):
    """A consumer's progress was written: to the broker, or to its own file."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    queue_offset: int


class MessageConsumedDirectly(NamedTuple):
    """A listener was given one message because an administrator wanted it; `result` is RocketMQ's CMResult."""

    group: str
    topic: str
    broker_name: str
    queue_id: int
    msg_id: str
    result: str
    cost_us: int


class ConsumerOffsetsReset(NamedTuple):
    """A consumer has taken the offsets that its broker told it for so many queues of a topic, and begins there."""

    group: str
    topic: str
    queues: int
