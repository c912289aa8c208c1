"""The JSON bodies of administrators' commands, and of those that mqlab's clients do not send: statistics.

Java: the classes of the same names in org.apache.rocketmq.remoting.protocol.body and ...protocol.admin.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mqlab.protocol.heartbeat import ConsumeFromWhere, ConsumeType, MessageModel, SubscriptionData
from mqlab.protocol.json_body import JsonBody, json_names
from mqlab.protocol.message import MessageQueue


@dataclass(slots=True)
class TopicOffset(JsonBody):
    """The bounds of one queue, and when it last got a message (ms)."""

    min_offset: int = 0
    max_offset: int = 0
    last_update_timestamp: int = 0


@dataclass(slots=True)
class TopicStatsTable(JsonBody):
    """The bounds of all queues of a topic; how many messages it got per second."""

    offset_table: dict[MessageQueue, TopicOffset] = field(default_factory=dict)
    topic_put_tps: float = 0.0


@dataclass(slots=True)
class BrokerStatsItem(JsonBody):
    """What was counted in a time: the sum, how much of it in a second, and how much at a time."""

    sum: int = 0
    tps: float = 0.0
    avgpt: float = 0.0


@dataclass(slots=True)
class BrokerStatsData(JsonBody):
    """One count of a broker over the last minute, hour and day."""

    stats_minute: BrokerStatsItem
    stats_hour: BrokerStatsItem
    stats_day: BrokerStatsItem


@dataclass(slots=True)
class OffsetWrapper(JsonBody):
    """How far a group is in one queue: end of the queue, progress, and what was pulled already."""

    broker_offset: int = 0
    consumer_offset: int = 0
    pull_offset: int = 0
    last_timestamp: int = 0


@dataclass(slots=True)
class ConsumeStats(JsonBody):
    """How far a group is in all its queues; how many messages it consumes per second."""

    offset_table: dict[MessageQueue, OffsetWrapper] = field(default_factory=dict)
    consume_tps: float = 0.0


@dataclass(slots=True)
class ConsumeStatsList(JsonBody):
    """How far the groups of a broker are: for each group a list with an entry for each of its topics."""

    consume_stats_list: list[dict[str, list[ConsumeStats]]] = field(default_factory=list)
    broker_addr: str | None = None
    total_diff: int = 0
    total_inflight_diff: int = 0


@dataclass(slots=True)
class GroupList(JsonBody):
    """Names of groups."""

    group_list: list[str] = field(default_factory=list)


@dataclass(slots=True)
class QuerySubscriptionResponseBody(JsonBody):
    """What a group wants of a topic; no data while nobody of it is there."""

    subscription_data: SubscriptionData | None = None
    group: str | None = None
    topic: str | None = None


@dataclass(slots=True)
class ConsumeQueueData(JsonBody):
    """An entry of a queue: where its message lies, and whether the group wants it, where an extended entry can tell."""

    physic_offset: int = 0
    physic_size: int = 0
    tags_code: int = 0
    extend_data_json: str | None = None
    bit_map: str | None = None
    eval: bool = False
    msg: str | None = None


@dataclass(slots=True)
class QueryConsumeQueueResponseBody(JsonBody):
    """The bounds of a queue and some of its entries; what the group that was named wants of the topic."""

    subscription_data: SubscriptionData | None = None
    filter_data: str | None = None
    queue_data: list[ConsumeQueueData] = field(default_factory=list)
    max_queue_index: int = 0
    min_queue_index: int = 0


@json_names(remote_ip="remoteIP")
@dataclass(slots=True)
class ProducerInfo(JsonBody):
    """One connected producer, and when it was heard of last (ms)."""

    client_id: str
    remote_ip: str
    language: str
    version: int
    last_update_timestamp: int


@dataclass(slots=True)
class ProducerTableInfo(JsonBody):
    """The connected producers of all groups."""

    data: dict[str, list[ProducerInfo]] = field(default_factory=dict)


@dataclass(slots=True)
class Connection(JsonBody):
    """One connected client: its id, its address, its language and its version."""

    client_id: str
    client_addr: str
    language: str
    version: int


@dataclass(slots=True)
class ConsumerConnection(JsonBody):
    """The connected clients of a consumer group, and what it subscribes to."""

    connection_set: list[Connection] = field(default_factory=list)
    subscription_table: dict[str, SubscriptionData] = field(default_factory=dict)
    consume_type: ConsumeType | None = None
    message_model: MessageModel | None = None
    consume_from_where: ConsumeFromWhere | None = None


@dataclass(slots=True)
class ProducerConnection(JsonBody):
    """The connected clients of a producer group."""

    connection_set: list[Connection] = field(default_factory=list)


@dataclass(slots=True)
class ResetOffsetBody(JsonBody):
    """Where each queue is set to."""

    offset_table: dict[MessageQueue, int] = field(default_factory=dict)


@dataclass(slots=True)
class GetConsumerStatusBody(JsonBody):
    """Where a consumer is in its queues, or all consumers of a group in theirs."""

    message_queue_table: dict[MessageQueue, int] = field(default_factory=dict)
    consumer_table: dict[str, dict[MessageQueue, int]] = field(default_factory=dict)


@json_names(cached_msg_size_in_mib="cachedMsgSizeInMiB")
@dataclass(slots=True)
class ProcessQueueInfo(JsonBody):
    """What a consumer holds of one queue: its progress, what is cached of it, what an orderly listener is at (here
    "transaction"), and when it was last locked, pulled and consumed (ms); `droped` is written as in RocketMQ.
    """

    commit_offset: int = 0
    cached_msg_min_offset: int = 0
    cached_msg_max_offset: int = 0
    cached_msg_count: int = 0
    cached_msg_size_in_mib: int = 0
    transaction_msg_min_offset: int = 0
    transaction_msg_max_offset: int = 0
    transaction_msg_count: int = 0
    locked: bool = False
    try_unlock_times: int = 0
    last_lock_timestamp: int = 0
    droped: bool = False
    last_pull_timestamp: int = 0
    last_consume_timestamp: int = 0


@dataclass(slots=True)
class PopProcessQueueInfo(JsonBody):
    """How many popped messages of an assignment are not acknowledged yet, and when it was last popped (ms)."""

    wait_ack_count: int = 0
    droped: bool = False
    last_pop_timestamp: int = 0


@json_names(
    pull_rt="pullRT", pull_tps="pullTPS", consume_rt="consumeRT", consume_ok_tps="consumeOKTPS",
    consume_failed_tps="consumeFailedTPS",
)  # fmt: skip
@dataclass(slots=True)
class ConsumeStatus(JsonBody):
    """How a consumer does with one topic: times of a call (ms), messages in a second, and failures."""

    pull_rt: float = 0.0
    pull_tps: float = 0.0
    consume_rt: float = 0.0
    consume_ok_tps: float = 0.0
    consume_failed_tps: float = 0.0
    consume_failed_msgs: int = 0


@dataclass(slots=True)
class ConsumerRunningInfo(JsonBody):
    """What a consumer is at: its settings, subscriptions, queues, and how it does with each topic."""

    properties: dict[str, str] = field(default_factory=dict)
    subscription_set: list[SubscriptionData] = field(default_factory=list)
    mq_table: dict[MessageQueue, ProcessQueueInfo] = field(default_factory=dict)
    mq_pop_table: dict[MessageQueue, PopProcessQueueInfo] = field(default_factory=dict)
    status_table: dict[str, ConsumeStatus] = field(default_factory=dict)
    user_consumer_info: dict[str, str] = field(default_factory=dict)
    jstack: str | None = None


@dataclass(slots=True)
class ConsumeMessageDirectlyResult(JsonBody):
    """How it went when a consumer was told to consume one message; times in ms."""

    order: bool = False
    auto_commit: bool = True
    consume_result: str | None = None
    remark: str | None = None
    spent_time_mills: int = 0


@dataclass(slots=True)
class HAConnectionRuntimeInfo(JsonBody):
    """How far one slave is, as its master knows it; offsets are bytes of the commit log."""

    addr: str = ""
    diff: int = 0
    in_sync: bool = False
    slave_ack_offset: int = 0
    transfer_from_where: int = 0
    transferred_byte_in_second: int = 0


@dataclass(slots=True)
class HAClientRuntimeInfo(JsonBody):
    """How a slave is connected to its master; times are ms."""

    last_read_timestamp: int = 0
    last_write_timestamp: int = 0
    master_addr: str | None = None
    master_flush_offset: int = 0
    max_offset: int = 0
    transferred_byte_in_second: int = 0


@dataclass(slots=True)
class HARuntimeInfo(JsonBody):
    """The answer to GET_BROKER_HA_STATUS: the slaves of a master, or the connection of a slave."""

    ha_client_runtime_info: HAClientRuntimeInfo = field(default_factory=HAClientRuntimeInfo)
    ha_connection_info: list[HAConnectionRuntimeInfo] = field(default_factory=list)
    in_sync_slave_nums: int = 0
    master: bool = False
    master_commit_log_max_offset: int = 0
