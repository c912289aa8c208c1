"""What a broker keeps of its topics and groups, writes to its configuration files, and reports to name servers.

Java: org.apache.rocketmq.common.TopicConfig, org.apache.rocketmq.remoting.protocol.DataVersion,
org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig and the wrappers around them in
org.apache.rocketmq.remoting.protocol.body.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mqlab.errors import LearnerError
from mqlab.protocol.json_body import JsonBody
from mqlab.protocol.sysflag import PermName

SINGLE_TAG = "SINGLE_TAG"
MULTI_TAG = "MULTI_TAG"
MAX_QUEUE_NUMS = 10_000
"""The most queues that a topic has on one broker. RocketMQ sets no bound, and goes down with its clients when somebody
asks for a thousand million.
"""


def check_queue_nums(name: str, queue_nums: int) -> None:
    """LearnerError when a topic, or a group's retry topic, would have more queues than anybody can handle."""
    if queue_nums > MAX_QUEUE_NUMS:
        raise LearnerError(
            f"{name!r} with {queue_nums} queues: {MAX_QUEUE_NUMS} are the most",
            "four to sixteen are usual; each queue is consumed by one member of a group at a time",
        )


@dataclass(slots=True)
class DataVersion(JsonBody):
    """Which state of a table this is: a time stamp in ms, a counter of changes, and the term of the master."""

    timestamp: int = 0
    counter: int = 0
    state_version: int = 0

    def next_version(self, now_ms: int, state_version: int = 0) -> None:
        """The table has changed."""
        self.timestamp = now_ms
        self.state_version = state_version
        self.counter += 1

    def assign(self, other: DataVersion) -> None:
        """Take over another version."""
        self.timestamp = other.timestamp
        self.counter = other.counter
        self.state_version = other.state_version

    def copy(self) -> DataVersion:
        """A version of its own with the same numbers."""
        return DataVersion(self.timestamp, self.counter, self.state_version)


@dataclass(slots=True)
class TopicConfig(JsonBody):
    """The settings of one topic on one broker."""

    topic_name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = PermName.READ_WRITE
    topic_filter_type: str = SINGLE_TAG
    topic_sys_flag: int = 0
    order: bool = False
    attributes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_queue_nums(self.topic_name, max(self.read_queue_nums, self.write_queue_nums))


@dataclass(slots=True)
class TopicConfigSerializeWrapper(JsonBody):
    """All topics of a broker: the content of topics.json."""

    topic_config_table: dict[str, TopicConfig] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)


@dataclass(slots=True)
class TopicConfigAndMappingSerializeWrapper(JsonBody):
    """The same as brokers send it, with the tables of static topics, which stay empty here."""

    topic_config_table: dict[str, TopicConfig] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)
    mapping_data_version: DataVersion = field(default_factory=DataVersion)
    topic_queue_mapping_info_map: dict[str, Any] = field(default_factory=dict)
    topic_queue_mapping_detail_map: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class RegisterBrokerBody(JsonBody):
    """What a broker reports to a name server."""

    topic_config_serialize_wrapper: TopicConfigAndMappingSerializeWrapper
    filter_server_list: list[str] = field(default_factory=list)


@dataclass(slots=True)
class KVTable(JsonBody):
    """A table of texts by name, as a name server keeps and sends it."""

    table: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class TopicList(JsonBody):
    """Names of topics, and the broker's address where it is asked for."""

    topic_list: list[str] = field(default_factory=list)
    broker_addr: str | None = None


@dataclass(slots=True)
class GroupRetryPolicy(JsonBody):
    """After which time a message is delivered again; only the type is kept here."""

    type: str = "CUSTOMIZED"
    customized_retry_policy: dict[str, Any] | None = None
    exponential_retry_policy: dict[str, Any] | None = None


@dataclass(slots=True)
class SubscriptionGroupConfig(JsonBody):
    """The settings of one consumer group on one broker."""

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    group_retry_policy: GroupRetryPolicy = field(default_factory=GroupRetryPolicy)
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True
    group_sys_flag: int = 0
    consume_timeout_minute: int = 15
    subscription_data_set: list[dict[str, Any]] | None = None
    attributes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_queue_nums(self.group_name, self.retry_queue_nums)


@dataclass(slots=True)
class SubscriptionGroupWrapper(JsonBody):
    """All groups of a broker: the content of subscriptionGroup.json."""

    subscription_group_table: dict[str, SubscriptionGroupConfig] = field(default_factory=dict)
    forbidden_table: dict[str, dict[str, int]] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)


@dataclass(slots=True)
class ConsumerOffsetSerializeWrapper(JsonBody):
    """Progress of all groups, by `topic@group` and queue id: the content of consumerOffset.json."""

    offset_table: dict[str, dict[int, int]] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)
    group_topic_map: dict[str, tuple[str, ...]] | None = None


@dataclass(slots=True)
class DelayOffsetSerializeWrapper(JsonBody):
    """Progress of delayed delivery, by delay level: the content of delayOffset.json."""

    offset_table: dict[int, int] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)
