"""The two averaging strategies: blocks of neighbouring queues, or one queue at a time in turn."""

from __future__ import annotations

from collections.abc import Sequence

from mqlab.protocol.message import MessageQueue
from mqlab.rebalance.strategy import AllocateMessageQueueStrategy


class AllocateMessageQueueAveragely(AllocateMessageQueueStrategy):
    """Gives each member a block of neighbouring queues; what does not divide evenly goes to the first members.

    Java: org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely. The default of every consumer.
    """

    name = "AVG"

    def divide(self, current_cid: str, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]) -> list[MessageQueue]:
        share, rest = divmod(len(mq_all), len(cid_all))
        index = cid_all.index(current_cid)
        start = index * share + min(index, rest)
        return list(mq_all[start : start + share + (index < rest)])


class AllocateMessageQueueAveragelyByCircle(AllocateMessageQueueStrategy):
    """Deals the queues out one by one, like cards.

    Java: org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle.
    """

    name = "AVG_BY_CIRCLE"

    def divide(self, current_cid: str, mq_all: Sequence[MessageQueue], cid_all: Sequence[str]) -> list[MessageQueue]:
        return list(mq_all[cid_all.index(current_cid) :: len(cid_all)])
