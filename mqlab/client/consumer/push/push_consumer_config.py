"""The settings of a push consumer, and which values are legal."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from mqlab.client.client_config import ClientConfig
from mqlab.errors import MQClientException
from mqlab.protocol.header_codec import camel_case
from mqlab.protocol.heartbeat import ConsumeFromWhere, MessageModel
from mqlab.protocol.topics import DEFAULT_CONSUMER_GROUP, check_group
from mqlab.rebalance import AllocateMessageQueueAveragely, AllocateMessageQueueStrategy

TIMESTAMP_FORMAT = "%Y%m%d%H%M%S"

RANGES = {
    "consume_thread_min": (1, 1_000),
    "consume_thread_max": (1, 1_000),
    "consume_concurrently_max_span": (1, 65_535),
    "pull_threshold_for_queue": (1, 65_535),
    "pull_threshold_size_for_queue": (1, 1_024),
    "pull_interval": (0, 65_535),
    "consume_message_batch_max_size": (1, 1_024),
    "pull_batch_size": (1, 1_024),
    "pop_invisible_time": (5_000, 300_000),
    "pop_batch_nums": (1, 32),
}
OPTIONAL_RANGES = {
    "pull_threshold_for_topic": (1, 6_553_500),
    "pull_threshold_size_for_topic": (1, 102_400),
}
"""Settings of which -1 means: off."""


@dataclass(eq=False, repr=False)
class PushConsumerConfig(ClientConfig):
    """What a push consumer may set; times in ms, thresholds in messages or MiB.

    Java: org.apache.rocketmq.client.consumer.DefaultMQPushConsumer.
    """

    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    consume_timestamp: str | None = None
    """`yyyyMMddHHmmss` in UTC, for CONSUME_FROM_TIMESTAMP; None means half an hour before the start."""
    allocate_message_queue_strategy: AllocateMessageQueueStrategy = field(default_factory=AllocateMessageQueueAveragely)
    consume_thread_min: int = 20
    consume_thread_max: int = 20
    consume_concurrently_max_span: int = 2_000
    pull_threshold_for_queue: int = 1_000
    pull_threshold_size_for_queue: int = 100
    pull_threshold_for_topic: int = -1
    pull_threshold_size_for_topic: int = -1
    pull_interval: int = 0
    consume_message_batch_max_size: int = 1
    pull_batch_size: int = 32
    pull_batch_size_in_bytes: int = 256 * 1024
    post_subscription_when_pull: bool = False
    max_reconsume_times: int = -1
    consume_timeout: int = 15
    """Minutes after which a message that is still being consumed is given back."""
    suspend_current_queue_time_millis: int = 1_000
    client_rebalance: bool = True
    """False: the broker shares the queues out, and says whether to pull or to pop them; not with an orderly listener,
    and not in broadcasting.
    """
    pop_invisible_time: int = 60_000
    """How long a popped message is hidden from the rest of the group."""
    pop_batch_nums: int = 32
    pop_threshold_for_queue: int = 96
    """Popped messages that may wait for their acknowledgement before no more are popped."""

    def timestamp_ms(self, started_ms: int) -> int:
        """The time of CONSUME_FROM_TIMESTAMP in ms since 1970."""
        return start_timestamp_ms(self.consume_timestamp, started_ms)


def start_timestamp_ms(consume_timestamp: str | None, started_ms: int) -> int:
    """The time to begin at in ms since 1970: the one that was given, else half an hour before the start."""
    if consume_timestamp is None:
        return started_ms - 30 * 60_000
    return int(datetime.strptime(consume_timestamp, TIMESTAMP_FORMAT).replace(tzinfo=UTC).timestamp()) * 1_000


def check_push_config(config: PushConsumerConfig, group: str) -> None:
    """Raise MQClientException, with RocketMQ's text, for the first setting that is not legal.

    Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl.checkConfig.
    """
    check_group(group)
    if group == DEFAULT_CONSUMER_GROUP:
        raise MQClientException(
            f"consumerGroup can not equal {group}, please specify another one. What to do: give this consumer a group "
            "of its own."
        )
    for name in ("message_model", "consume_from_where", "allocate_message_queue_strategy"):
        if getattr(config, name) is None:
            raise MQClientException(f"{camel_case(name)} is null")
    if config.consume_timestamp is not None:
        check_timestamp(config.consume_timestamp)
    for name, (lowest, highest) in RANGES.items():
        _check_range(config, name, lowest, highest)
    for name, (lowest, highest) in OPTIONAL_RANGES.items():
        if getattr(config, name) != -1:
            _check_range(config, name, lowest, highest)
    if config.consume_thread_min > config.consume_thread_max:
        raise MQClientException(
            f"consumeThreadMin ({config.consume_thread_min}) "
            f"is larger than consumeThreadMax ({config.consume_thread_max})"
        )


def _check_range(config: PushConsumerConfig, name: str, lowest: int, highest: int) -> None:
    value = getattr(config, name)
    if not isinstance(value, int) or not lowest <= value <= highest:
        raise MQClientException(f"{camel_case(name)} Out of range [{lowest}, {highest}]: it is {value!r}")


def check_timestamp(text: str) -> None:
    """Raise MQClientException for a time that is not written as `yyyyMMddHHmmss`."""
    try:
        datetime.strptime(text, TIMESTAMP_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        raise MQClientException(
            f"consumeTimestamp is invalid, the valid format is yyyyMMddHHmmss,but received {text}"
        ) from None
