"""The rebalance of a push consumer: it starts pull loops, and locks queues for an orderly listener."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mqlab.client.consumer.rebalance.rebalance_impl import DISPATCH_DELAY_MS, RebalanceImpl
from mqlab.protocol.heartbeat import MessageModel

if TYPE_CHECKING:
    from mqlab.client.consumer.pop.rebalance_by_broker import RebalanceByBroker
    from mqlab.client.consumer.process_queue import ProcessQueue
    from mqlab.client.consumer.push.default_mq_push_consumer_impl import DefaultMQPushConsumerImpl
    from mqlab.client.consumer.push.message_request import MessageRequest
    from mqlab.client.consumer.push.pull_request import PullRequest
    from mqlab.protocol.message import MessageQueue


class RebalancePushImpl(RebalanceImpl):
    """The queues of one push consumer.

    Java: org.apache.rocketmq.client.impl.consumer.RebalancePushImpl.
    """

    def __init__(self, owner: DefaultMQPushConsumerImpl) -> None:
        super().__init__(owner)
        self._push = owner
        self.by_broker: RebalanceByBroker | None = None
        """What follows the broker's word; None as long as clients share the queues out themselves."""

    async def rebalance_by_topic(self, topic: str) -> bool:
        """Share a topic's queues out, or, with client_rebalance=False, ask a broker; never for an orderly listener.

        Java: org.apache.rocketmq.client.impl.consumer.RebalancePushImpl.clientRebalance.
        """
        push = self._push
        if (
            push.consumer.client_rebalance
            or push.consume_orderly
            or push.message_model is MessageModel.BROADCASTING
        ):
            return await super().rebalance_by_topic(topic)
        if self.by_broker is None:
            from mqlab.client.consumer.pop.rebalance_by_broker import RebalanceByBroker

            self.by_broker = RebalanceByBroker(self, push)
        return await self.by_broker.rebalance_by_broker(topic)

    def drop_unsubscribed(self) -> None:
        """Give up the queues of topics that are no longer subscribed to."""
        super().drop_unsubscribed()
        if self.by_broker is not None:
            self.by_broker.drop_unsubscribed()

    def destroy(self) -> None:
        """Give up everything, at the end of the consumer."""
        super().destroy()
        if self.by_broker is not None:
            self.by_broker.destroy()

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
        self.dispatch(requests, delay_ms)

    def dispatch(self, requests: Iterable[MessageRequest], delay_ms: int = DISPATCH_DELAY_MS) -> None:
        """Let loops, of pulling or of popping, begin after a delay."""
        service = self._push.instance.pull_message_service
        for request in requests:
            service.execute_pull_request_later(request, delay_ms)
