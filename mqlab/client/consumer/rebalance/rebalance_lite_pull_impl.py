"""The rebalance of a lite pull consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.consumer.offset_store import ReadOffsetType
from mqlab.client.consumer.rebalance.rebalance_impl import RebalanceImpl
from mqlab.protocol.heartbeat import ConsumeFromWhere

if TYPE_CHECKING:
    from mqlab.client.consumer.lite.default_lite_pull_consumer_impl import DefaultLitePullConsumerImpl


class RebalanceLitePullImpl(RebalanceImpl):
    """The queues of one lite pull consumer: it looks for offsets in its memory first, and starts its pulls itself.

    Java: org.apache.rocketmq.client.impl.consumer.RebalanceLitePullImpl.
    """

    read_offset_type = ReadOffsetType.MEMORY_FIRST_THEN_STORE

    def __init__(self, owner: DefaultLitePullConsumerImpl) -> None:
        super().__init__(owner)
        self._lite = owner

    @property
    def consume_from_where(self) -> ConsumeFromWhere:
        """What the application has set; heartbeats say CONSUME_FROM_LAST_OFFSET whatever it is, as in RocketMQ."""
        return self._lite.consumer.consume_from_where
