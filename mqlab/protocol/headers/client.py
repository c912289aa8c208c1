"""Headers of the life of clients: heartbeats, groups, messages sent back, and what the broker asks its clients.

Java: org.apache.rocketmq.remoting.protocol.header.HeartbeatRequestHeader, UnregisterClientRequestHeader and neighbours.
"""

from typing import NamedTuple

from mqlab.protocol.header_codec import Long, put_first, wire

IS_SUPPORT_HEART_BEAT_V2 = "IS_SUPPORT_HEART_BEAT_V2"
IS_SUB_CHANGE = "IS_SUB_CHANGE"


class HeartbeatRequestHeader(NamedTuple):
    """Empty: a heartbeat says everything in its body (HEART_BEAT)."""


@wire(client_id="clientID")
class UnregisterClientRequestHeader(NamedTuple):
    """A client leaves with one of its groups (UNREGISTER_CLIENT)."""

    client_id: str
    producer_group: str | None = None
    consumer_group: str | None = None


class UnregisterClientResponseHeader(NamedTuple):
    """Nothing but the receipt."""


class GetConsumerListByGroupRequestHeader(NamedTuple):
    """Who is in this consumer group? (GET_CONSUMER_LIST_BY_GROUP)"""

    consumer_group: str
    bname: str | None = None


class GetConsumerListByGroupResponseHeader(NamedTuple):
    """Empty: the client ids are in the body."""


class NotifyConsumerIdsChangedRequestHeader(NamedTuple):
    """The broker tells a consumer that its group has changed (NOTIFY_CONSUMER_IDS_CHANGED, one-way)."""

    consumer_group: str


@put_first("bname")
class ConsumerSendMsgBackRequestHeader(NamedTuple):
    """A consumer gives a message back to be delivered again later (CONSUMER_SEND_MSG_BACK).

    `offset` is the byte offset of the message in the commit log; a negative `delay_level` goes straight to the
    dead-letter queue, 0 lets the broker choose by the number of tries.
    """

    offset: Long
    group: str
    delay_level: int
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool | None = False
    max_reconsume_times: int | None = None
    bname: str | None = None


class GetConsumerConnectionListRequestHeader(NamedTuple):
    """Which clients of a consumer group are connected? (GET_CONSUMER_CONNECTION_LIST)"""

    consumer_group: str


class GetProducerConnectionListRequestHeader(NamedTuple):
    """Which clients of a producer group are connected? (GET_PRODUCER_CONNECTION_LIST)"""

    producer_group: str


class GetConsumerRunningInfoRequestHeader(NamedTuple):
    """Asks one consumer what it is doing (GET_CONSUMER_RUNNING_INFO); the broker passes the question on."""

    consumer_group: str
    client_id: str
    jstack_enable: bool | None = None


class ConsumeMessageDirectlyResultRequestHeader(NamedTuple):
    """Asks one consumer to consume one message at once (CONSUME_MESSAGE_DIRECTLY)."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: int | None = None
    group_sys_flag: int | None = None


class GetConsumerStatusRequestHeader(NamedTuple):
    """Asks consumers for their progress (GET_CONSUMER_STATUS_FROM_CLIENT, INVOKE_BROKER_TO_GET_CONSUMER_STATUS)."""

    topic: str
    group: str
    client_addr: str | None = None


class ResetOffsetRequestHeader(NamedTuple):
    """Moves the progress of a group to a time in ms or to an offset (INVOKE_BROKER_TO_RESET_OFFSET, RESET_...)."""

    group: str
    topic: str
    timestamp: Long
    is_force: bool
    queue_id: int = -1
    offset: Long | None = None


class GetConsumeStatsRequestHeader(NamedTuple):
    """How far is a group behind? (GET_CONSUME_STATS)"""

    consumer_group: str
    topic: str | None = None


class GetTopicStatsInfoRequestHeader(NamedTuple):
    """Which offsets do the queues of a topic hold? (GET_TOPIC_STATS_INFO)"""

    topic: str


class CloneGroupOffsetRequestHeader(NamedTuple):
    """Gives a group the progress of another one in a topic (CLONE_GROUP_OFFSET).

    With `offline` it does not matter whether the source subscribes to the topic.
    """

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool | None = False


class QueryTopicConsumeByWhoRequestHeader(NamedTuple):
    """Which groups consume a topic? (QUERY_TOPIC_CONSUME_BY_WHO)"""

    topic: str


class QueryTopicsByConsumerRequestHeader(NamedTuple):
    """In which topics has a group progress? (QUERY_TOPICS_BY_CONSUMER)"""

    group: str


class QuerySubscriptionByConsumerRequestHeader(NamedTuple):
    """What does a group want of a topic? (QUERY_SUBSCRIPTION_BY_CONSUMER)"""

    group: str
    topic: str


class GetConsumeStatsInBrokerHeader(NamedTuple):
    """How far are all groups behind, in all topics or in those that are in order? (GET_BROKER_CONSUME_STATS)"""

    is_order: bool


@wire(first="index", at_most="count")
class QueryConsumeQueueRequestHeader(NamedTuple):
    """Which entries has a queue, and which of them does a group want? (QUERY_CONSUME_QUEUE)"""

    topic: str
    queue_id: int
    first: Long
    at_most: int
    consumer_group: str | None = None


class ResetMasterFlushOffsetHeader(NamedTuple):
    """Tells a slave how much of its master's log is safe (RESET_MASTER_FLUSH_OFFSET)."""

    master_flush_offset: Long | None = None
