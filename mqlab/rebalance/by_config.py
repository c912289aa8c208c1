"""A fixed allocation, written down beforehand."""

from __future__ import annotations

from collections.abc import Sequence

from mqlab.protocol.message import MessageQueue
from mqlab.rebalance.strategy import AllocateMessageQueueStrategy


class AllocateMessageQueueByConfig(AllocateMessageQueueStrategy):
    """Gives a member the queues that its configuration names, whoever else is there.

    Java: org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig.
    """

    name = "CONFIG"

    def __init__(self, message_queue_list: Sequence[MessageQueue] = ()) -> None:
        self.message_queue_list = list(message_queue_list)

    def allocate(
        self,
        consumer_group: str,  # the contract's arguments; this strategy needs none of them
        current_cid: str,
        mq_all: Sequence[MessageQueue],
        cid_all: Sequence[str],
    ) -> list[MessageQueue]:
        """The configured queues, as they are."""
        return list(self.message_queue_list)

    def divide(
        self,
        current_cid: str,
        mq_all: Sequence[MessageQueue],
        cid_all: Sequence[str],
    ) -> list[MessageQueue]:
        return list(self.message_queue_list)
