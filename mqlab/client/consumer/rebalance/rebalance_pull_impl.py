"""The rebalance of a pull consumer: it takes queues, and leaves pulling to the application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.consumer.rebalance.rebalance_impl import RebalanceImpl

if TYPE_CHECKING:
    from mqlab.protocol.message import MessageQueue


class RebalancePullImpl(RebalanceImpl):
    """The queues of one pull consumer.

    Java: org.apache.rocketmq.client.impl.consumer.RebalancePullImpl.
    """

    async def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """0, whatever is stored: the application reads its offsets itself, with `fetch_consume_offset`."""
        return 0
