"""The settings of a pull consumer, and which values are legal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from mqlab.client.client_config import ClientConfig
from mqlab.errors import MQClientException
from mqlab.protocol.heartbeat import MessageModel
from mqlab.protocol.topics import DEFAULT_CONSUMER_GROUP, check_group
from mqlab.rebalance import AllocateMessageQueueAveragely, AllocateMessageQueueStrategy


@dataclass(eq=False, repr=False)
class PullConsumerConfig(ClientConfig):
    """What a pull consumer may set; times in ms.

    Java: org.apache.rocketmq.client.consumer.DefaultMQPullConsumer.
    """

    enable_stream_request_type: bool = True
    """Puts `@STREAM` at the end of the client id, so that a pull consumer never shares an instance with a push one."""
    message_model: MessageModel = MessageModel.CLUSTERING
    allocate_message_queue_strategy: AllocateMessageQueueStrategy = field(default_factory=AllocateMessageQueueAveragely)
    broker_suspend_max_time_millis: int = 20_000
    """How long a broker may hold a pull of `pull_block_if_not_found`."""
    consumer_timeout_millis_when_suspend: int = 30_000
    """How long the consumer waits for the answer to such a pull."""
    consumer_pull_timeout_millis: int = 10_000
    """How long it waits for the answer to any other pull."""
    max_reconsume_times: int = 16
    enable_rebalance: bool = True
    """False: the consumer takes no queues of its own; `pull` works with any queue all the same."""


class PullSettings(Protocol):
    """What all consumers that pull by themselves may set."""

    message_model: MessageModel
    allocate_message_queue_strategy: AllocateMessageQueueStrategy
    broker_suspend_max_time_millis: int
    consumer_timeout_millis_when_suspend: int


def check_pull_config(config: PullSettings, group: str) -> None:
    """Raise MQClientException, with RocketMQ's text, for the first setting of any pull consumer that is not legal."""
    check_group(group)
    if group == DEFAULT_CONSUMER_GROUP:
        raise MQClientException(
            f"consumerGroup can not equal {group}, please specify another one. What to do: give this consumer a group "
            "of its own."
        )
    if config.message_model is None:
        raise MQClientException("messageModel is null")
    if config.allocate_message_queue_strategy is None:
        raise MQClientException("allocateMessageQueueStrategy is null")
    if config.consumer_timeout_millis_when_suspend < config.broker_suspend_max_time_millis:
        raise MQClientException(
            "Long polling mode, the consumer consumerTimeoutMillisWhenSuspend must greater than "
            "brokerSuspendMaxTimeMillis. What to do: give consumer_timeout_millis_when_suspend at least the "
            f"{config.broker_suspend_max_time_millis} ms that the broker may hold a pull."
        )
