"""What a client instance asks of the producers and consumers that live in it."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from mqlab.client.topic_publish_info import TopicPublishInfo
    from mqlab.protocol.bodies import ConsumeMessageDirectlyResult, ConsumerRunningInfo
    from mqlab.protocol.headers import CheckTransactionStateRequestHeader
    from mqlab.protocol.heartbeat import ConsumeFromWhere, ConsumeType, MessageModel, SubscriptionData
    from mqlab.protocol.message import MessageExt, MessageQueue


class MQProducerInner(Protocol):
    """A producer, seen from its instance (org.apache.rocketmq.client.impl.producer.MQProducerInner)."""

    def publish_topic_list(self) -> list[str]:
        """The topics that it has sent to."""
        ...

    def is_publish_topic_need_update(self, topic: str) -> bool:
        """Whether it still has no queues for the topic."""
        ...

    def update_topic_publish_info(self, topic: str, info: TopicPublishInfo) -> None:
        """Take over a new list of queues."""
        ...

    def check_transaction_state(
        self, address: str, message: MessageExt, header: CheckTransactionStateRequestHeader
    ) -> None:
        """A broker asks what became of a transaction."""
        ...


class MQConsumerInner(Protocol):
    """A consumer, seen from its instance (org.apache.rocketmq.client.impl.consumer.MQConsumerInner)."""

    @property
    def group_name(self) -> str:
        """The name of the group that this producer or consumer belongs to."""
        ...

    @property
    def message_model(self) -> MessageModel:
        """Whether the group shares the messages (CLUSTERING), or each member gets all (BROADCASTING)."""
        ...

    @property
    def consume_type(self) -> ConsumeType:
        """Pushed to, or pulling by itself."""
        ...

    @property
    def consume_from_where(self) -> ConsumeFromWhere:
        """Where it begins without a stored offset."""
        ...

    @property
    def unit_mode(self) -> bool:
        """The unit flag of its heartbeat."""
        ...

    def subscriptions(self) -> Sequence[SubscriptionData]:
        """What it subscribes to."""
        ...

    def is_subscribe_topic_need_update(self, topic: str) -> bool:
        """Whether it subscribes to the topic and still knows no queues of it."""
        ...

    def update_topic_subscribe_info(self, topic: str, queues: Sequence[MessageQueue]) -> None:
        """Take over a new list of queues."""
        ...

    def try_rebalance(self) -> Coroutine[Any, Any, bool]:
        """Rebalance; False when it wants to try again soon."""
        ...

    def persist_consumer_offset(self) -> None:
        """Write its offsets to where they belong."""
        ...

    def consumer_running_info(self) -> Coroutine[Any, Any, ConsumerRunningInfo]:
        """What it is at, for administrators."""
        ...

    def consumer_status(self, topic: str) -> Mapping[MessageQueue, int]:
        """How far it is in the queues of a topic, as it knows itself; nothing for those that do not tell."""
        ...

    def consume_message_directly(
        self, message: MessageExt, broker_name: str | None
    ) -> Coroutine[Any, Any, ConsumeMessageDirectlyResult] | None:
        """Consume one message at once; None if it has no listener."""
        ...

    def reset_offset(
        self, topic: str, offset_table: Mapping[MessageQueue, int]
    ) -> Coroutine[Any, Any, None] | None:
        """Go on at these offsets; None if it does not let a broker move it."""
        ...
