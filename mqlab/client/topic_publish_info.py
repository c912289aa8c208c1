"""What a client makes of a topic's route: the queues to send to, and the queues to consume from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mqlab.errors import RemotingCommandException
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.route import MASTER_ID
from mqlab.protocol.sysflag import PermName

if TYPE_CHECKING:
    from mqlab.protocol.route import TopicRouteData
    from mqlab.sim import Node

QueueFilter = Callable[[MessageQueue], bool]


APPLICATION, CALLBACK, FIRST_SENDER = 0, 1, 2
"""The threads whose turns a producer counts apart: the application's, those of callbacks, and each of its senders."""


class TopicPublishInfo:
    """The queues of a topic that a producer may send to, and whose turn it is.

    Each thread has its own turn, which starts anywhere, and anew with every new route.

    Java: org.apache.rocketmq.client.impl.producer.TopicPublishInfo with ThreadLocalIndex. Differs from RocketMQ: the
    application counts as one thread, whatever tasks it has: a task is made for every call from a cell, so that one turn
    for each task would never come to its second queue. So do all threads of callbacks, which choose for retries.
    """

    __slots__ = ("_indices", "_node", "have_topic_router_info", "message_queue_list", "order_topic", "route", "topic")

    def __init__(
        self,
        node: Node,
        topic: str,
        message_queue_list: Sequence[MessageQueue] = (),
        *,
        order_topic: bool = False,
        route: TopicRouteData | None = None,
    ) -> None:
        self._node = node
        self._indices: dict[int, int] = {}
        self.topic = topic
        self.message_queue_list = list(message_queue_list)
        self.order_topic = order_topic
        self.have_topic_router_info = False
        self.route = route

    @property
    def ok(self) -> bool:
        """Whether there is a queue at all."""
        return bool(self.message_queue_list)

    def reset_index(self, thread: int = APPLICATION) -> None:
        """Let a thread go on from a queue anywhere in the list."""
        self._indices[thread] = self._node.choose(f"first-queue/{self.topic}", len(self.message_queue_list)) - 1

    def _next(self, thread: int) -> MessageQueue:
        indices = self._indices
        if thread not in indices:
            self.reset_index(thread)
        index = indices[thread] = indices[thread] + 1
        queues = self.message_queue_list
        return queues[index % len(queues)]

    def select_one(self, *filters: QueueFilter, thread: int = APPLICATION) -> MessageQueue | None:
        """The next queue in a thread's turn that passes all filters, or None."""
        if not self.message_queue_list:
            return None
        if not filters:
            return self._next(thread)
        for _ in self.message_queue_list:
            queue = self._next(thread)
            if all(passes(queue) for passes in filters):
                return queue
        return None

    def select_avoiding(self, last_broker: str | None, thread: int = APPLICATION) -> MessageQueue | None:
        """The next queue on another broker than `last_broker`; any next queue if there is no other broker.

        Java: org.apache.rocketmq.client.latency.MQFaultStrategy.selectOneMessageQueue.
        """
        if not self.message_queue_list:
            return None
        if last_broker is None:
            return self._next(thread)
        return self.select_one(lambda queue: queue.broker_name != last_broker, thread=thread) or self._next(thread)

    def __repr__(self) -> str:
        return f"<TopicPublishInfo {self.topic}: {len(self.message_queue_list)} queues>"


def queues_to_publish(topic: str, route: TopicRouteData) -> tuple[list[MessageQueue], bool]:
    """The queues to send to, and whether they come from an order configuration ("broker-a:4;broker-b:4").

    Only writable queues of brokers whose master is there count, in the order of broker names and queue ids.
    RemotingCommandException for an order configuration that cannot be read.

    Java: org.apache.rocketmq.client.impl.factory.MQClientInstance.topicRouteData2TopicPublishInfo.
    """
    if route.order_topic_conf:
        queues = []
        # As Java splits a text: what is empty at its end is no part.
        for part in route.order_topic_conf.rstrip(";").split(";"):
            broker_name, _, number = part.partition(":")
            if not number.isdecimal():
                raise RemotingCommandException("name server", f"the order configuration {route.order_topic_conf!r}")
            queues += [MessageQueue(topic, broker_name, queue_id) for queue_id in range(int(number))]
        return queues, True
    masters = {broker.broker_name for broker in route.broker_datas if MASTER_ID in broker.broker_addrs}
    return [
        MessageQueue(topic, data.broker_name, queue_id)
        for data in sorted(route.queue_datas, key=lambda data: data.broker_name)
        if PermName.is_writeable(data.perm) and data.broker_name in masters
        for queue_id in range(data.write_queue_nums)
    ], False
