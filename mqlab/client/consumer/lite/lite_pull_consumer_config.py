"""The settings of a lite pull consumer, and which values are legal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mqlab.client.client_config import ClientConfig
from mqlab.client.consumer.pull.pull_consumer_config import check_pull_config
from mqlab.client.consumer.push.push_consumer_config import check_timestamp, start_timestamp_ms
from mqlab.errors import LearnerError, MQClientException
from mqlab.protocol.heartbeat import ConsumeFromWhere, MessageModel
from mqlab.rebalance import AllocateMessageQueueAveragely, AllocateMessageQueueStrategy

MIN_AUTOCOMMIT_INTERVAL_MS = 1_000

FROM_WHERE = (
    ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
    ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    ConsumeFromWhere.CONSUME_FROM_TIMESTAMP,
)
LOWEST = {
    "pull_thread_nums": 1,
    "pull_batch_size": 1,
    "pull_threshold_for_all": 0,
    "pull_threshold_for_queue": 0,
    "pull_threshold_size_for_queue": 0,
    "consume_max_span": 0,
    "poll_timeout_millis": 0,
    "topic_metadata_check_interval_millis": 1,
    "broker_suspend_max_time_millis": 0,
    "consumer_pull_timeout_millis": 1,
}


@dataclass(eq=False, repr=False)
class LitePullConsumerConfig(ClientConfig):
    """What a lite pull consumer may set; times in ms, thresholds in messages or MiB.

    Java: org.apache.rocketmq.client.consumer.DefaultLitePullConsumer. Differs from RocketMQ: an interval of automatic
    commits below 1 s is refused, where Java ignores it in silence; numbers that cannot work are refused at the start.
    """

    enable_stream_request_type: bool = True
    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    consume_timestamp: str | None = None
    """`yyyyMMddHHmmss` in UTC, for CONSUME_FROM_TIMESTAMP; None means half an hour before the start."""
    allocate_message_queue_strategy: AllocateMessageQueueStrategy = field(default_factory=AllocateMessageQueueAveragely)
    auto_commit: bool = True
    auto_commit_interval_millis: int = 5_000
    poll_timeout_millis: int = 5_000
    pull_thread_nums: int = 20
    pull_batch_size: int = 10
    pull_threshold_for_all: int = 10_000
    """Messages in batches that were pulled and not polled: a batch counts as `pull_batch_size`, however small it is."""
    pull_threshold_for_queue: int = 1_000
    pull_threshold_size_for_queue: int = 100
    consume_max_span: int = 2_000
    broker_suspend_max_time_millis: int = 20_000
    """How long a broker may hold a pull on an empty queue."""
    consumer_timeout_millis_when_suspend: int = 30_000
    consumer_pull_timeout_millis: int = 10_000
    """The time-out of a pull that may not be held; lite pulls may always be held, so nothing uses it."""
    topic_metadata_check_interval_millis: int = 30_000

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "auto_commit_interval_millis" and not _is_number(value, MIN_AUTOCOMMIT_INTERVAL_MS):
            raise LearnerError(
                f"auto_commit_interval_millis={value!r} is not possible",
                f"give {MIN_AUTOCOMMIT_INTERVAL_MS} or more; to commit sooner: await consumer.commit()",
            )
        object.__setattr__(self, name, value)

    def timestamp_ms(self, started_ms: int) -> int:
        """The time of CONSUME_FROM_TIMESTAMP in ms since 1970."""
        return start_timestamp_ms(self.consume_timestamp, started_ms)


def check_lite_pull_config(config: LitePullConsumerConfig, group: str) -> None:
    """Raise MQClientException, with RocketMQ's text, for the first setting that is not legal."""
    check_pull_config(config, group)
    if config.consume_from_where not in FROM_WHERE:
        raise MQClientException(f"Invalid ConsumeFromWhere Value. What to do: use one of {', '.join(FROM_WHERE)}.")
    if config.consume_timestamp is not None:
        check_timestamp(config.consume_timestamp)
    for name, lowest in LOWEST.items():
        value = getattr(config, name)
        if not _is_number(value, lowest):
            raise MQClientException(f"{name}={value!r} is not possible. What to do: give a whole number from {lowest}.")


def _is_number(value: object, lowest: int) -> bool:
    return type(value) is int and value >= lowest
