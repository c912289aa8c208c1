"""The queues of a topic as a proxy sees them, with the addresses of their brokers, and whose turn it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mqlab.client.topic_publish_info import queues_to_publish
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.route import MASTER_ID
from mqlab.protocol.sysflag import PermName

if TYPE_CHECKING:
    from mqlab.protocol.route import BrokerData, TopicRouteData
    from mqlab.sim import Node

ANY_QUEUE = -1
"""The id of a queue that stands for all of its broker."""


class AddressableMessageQueue(NamedTuple):
    """A queue, and where its broker is (org.apache.rocketmq.proxy.service.route.AddressableMessageQueue)."""

    message_queue: MessageQueue
    broker_addr: str


class MessageQueueSelector:
    """The queues to read from, or those to write to, in turn; each turn starts anywhere.

    Java: org.apache.rocketmq.proxy.service.route.MessageQueueSelector. Differs from RocketMQ: no avoidance of slow
    brokers, which is off there unless set.
    """

    def __init__(self, node: Node, topic: str, queues: list[AddressableMessageQueue], use: str) -> None:
        self.queues = sorted(queues)
        brokers = {
            queue.message_queue.broker_name: AddressableMessageQueue(
                MessageQueue(topic, queue.message_queue.broker_name, ANY_QUEUE), queue.broker_addr
            )
            for queue in self.queues
        }
        self.broker_acting_queues = [brokers[name] for name in sorted(brokers)]
        self._by_broker = brokers
        self._queue_index = node.choose(f"{use}-queue/{topic}", max(1, len(self.queues)))
        self._broker_index = node.choose(f"{use}-broker/{topic}", max(1, len(brokers)))

    def queue_of_broker(self, broker_name: str) -> AddressableMessageQueue | None:
        """The queue that stands for all of a broker (getQueueByBrokerName)."""
        return self._by_broker.get(broker_name)

    def select_one(self, *, only_broker: bool) -> AddressableMessageQueue | None:
        """The next queue, or the next broker; None when there is none."""
        queues = self.broker_acting_queues if only_broker else self.queues
        if not queues:
            return None
        if only_broker:
            index, self._broker_index = self._broker_index, self._broker_index + 1
        else:
            index, self._queue_index = self._queue_index, self._queue_index + 1
        return queues[index % len(queues)]


class MessageQueueView:
    """A topic's route, and its queues (org.apache.rocketmq.proxy.service.route.MessageQueueView)."""

    def __init__(self, node: Node, topic: str, route: TopicRouteData) -> None:
        self.topic = topic
        self.route = route
        self._brokers = {data.broker_name: data for data in route.broker_datas}
        self.read_selector = MessageQueueSelector(node, topic, self._readable(), "read")
        self.write_selector = MessageQueueSelector(node, topic, self._writable(), "write")

    def _readable(self) -> list[AddressableMessageQueue]:
        found = []
        for data in self.route.queue_datas:
            address = _master_prefer(self._brokers.get(data.broker_name))
            if PermName.is_readable(data.perm) and address is not None:
                found += [
                    AddressableMessageQueue(MessageQueue(self.topic, data.broker_name, queue_id), address)
                    for queue_id in range(data.read_queue_nums)
                ]
        return found

    def _writable(self) -> list[AddressableMessageQueue]:
        queues, _ = queues_to_publish(self.topic, self.route)
        found = []
        for queue in queues:
            address = self.master_addr(queue.broker_name)
            if address is not None:
                found.append(AddressableMessageQueue(queue, address))
        return found

    def master_addr(self, broker_name: str) -> str | None:
        """The address of a broker's master."""
        broker = self._brokers.get(broker_name)
        return broker.master_addr if broker is not None else None


def _master_prefer(broker: BrokerData | None) -> str | None:
    """The address of the master, or of the slave with the smallest id."""
    if broker is None or not broker.broker_addrs:
        return None
    addresses = broker.broker_addrs
    return addresses.get(MASTER_ID) or addresses[min(addresses)]
