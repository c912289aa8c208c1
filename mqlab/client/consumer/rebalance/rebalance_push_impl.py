"""The rebalance of a push consumer: it starts pull loops, and locks queues for an orderly listener."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mqlab.client.consumer.rebalance.rebalance_impl import RebalanceImpl
from mqlab.protocol.heartbeat import MessageModel

if TYPE_CHECKING:
    from mqlab.client.consumer.process_queue import ProcessQueue
    from mqlab.client.consumer.push.default_mq_push_consumer_impl import DefaultMQPushConsumerImpl
    from mqlab.client.consumer.push.pull_request import PullRequest
    from mqlab.protocol.message import MessageQueue


class RebalancePushImpl(RebalanceImpl):
    """The queues of one push consumer.

    Java: org.apache.rocketmq.client.impl.consumer.RebalancePushImpl.
    """

    def __init__(self, owner: DefaultMQPushConsumerImpl) -> None:
        super().__init__(owner)
        self._push = owner

    @property
    def needs_lock(self) -> bool:
        """An orderly listener in clustering consumes only queues that are locked for it."""
        return self._push.consume_orderly and self._push.message_model is MessageModel.CLUSTERING

    async def lock(self, queue: MessageQueue) -> bool:
        return await self._push.queue_locks.lock(queue)

    async def remove_unnecessary_message_queue(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Write the offset of a queue that is given up, forget it, and unlock it; False: not possible yet."""
        if self.needs_lock:
            return await self._push.queue_locks.give_up(queue, process_queue)
        return await super().remove_unnecessary_message_queue(queue, process_queue)

    def dispatch_pull_request(self, requests: Sequence[PullRequest], delay_ms: int) -> None:
        """Let the pull loops of new queues begin after a delay."""
        service = self._push.instance.pull_message_service
        for request in requests:
            service.execute_pull_request_later(request, delay_ms)
