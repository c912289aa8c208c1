"""What the pull thread takes off its queue."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from mqlab.client.consumer.push.pull_request import MQPushConsumerInner


class MessageRequest(Protocol):
    """A request for messages that goes round and round (org.apache.rocketmq.client.impl.consumer.MessageRequest).

    Differs from RocketMQ: a request says itself what its consumer shall do, where the service asks for its mode.
    """

    consumer_group: str

    def take_turn(self, consumer: MQPushConsumerInner) -> Coroutine[Any, Any, None]:
        """Let the consumer, which is that of the group, do what this request asks for."""
        ...
