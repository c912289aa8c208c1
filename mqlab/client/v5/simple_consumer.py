"""The consumer of 5.x applications that want to decide by themselves when to receive and when a message is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.arguments import check_whole
from mqlab.client.client_config import checked_group, checked_settings
from mqlab.client.v5.client_configuration import SimpleConsumerConfiguration
from mqlab.client.v5.client_impl import MASTER_BROKER_ID, Startable, is_readable
from mqlab.client.v5.consumer_impl import ConsumerImpl
from mqlab.client.v5.errors import ClientException
from mqlab.client.v5.filter_expression import SUB_ALL_EXPRESSION, FilterExpression, checked_filter
from mqlab.client.v5.message import MessageView
from mqlab.errors import LearnerError
from mqlab.protocol.v2.definition import ClientType, MessageQueue, Settings
from mqlab.protocol.v2.protobuf import Duration
from mqlab.sim import public_call

if TYPE_CHECKING:
    from mqlab.sim import Node

MILLISECONDS = "give ms, for example 30_000"


class SimpleConsumer(Startable, SimpleConsumerConfiguration):
    """Receives when asked (org.apache.rocketmq.client.apis.consumer.SimpleConsumer).

        consumer = lab.simple_consumer("orders")
        consumer.subscribe("Orders")
        await consumer.start()
        for message in await consumer.receive(16, invisible_duration=30_000):
            await consumer.ack(message)

    A message that is not acknowledged within its invisible time comes again.
    """

    call_name = "consumer"
    speaks_to_proxies = True
    impl: SimpleConsumerImpl

    def __init__(self, node: Node, consumer_group: str, **settings: Any) -> None:
        super().__init__(**checked_settings(SimpleConsumerConfiguration, settings))
        self.node = node
        self.consumer_group = checked_group(consumer_group)
        self.subscription_expressions: dict[str, FilterExpression] = {}
        self.begin_life()

    def begin_life(self) -> None:
        """Make what dies with the process from what this consumer was given: at first, and at each restart."""
        self.impl = SimpleConsumerImpl(self.node, self, self.consumer_group, self.subscription_expressions)

    def subscribe(self, topic: str, expression: FilterExpression | str = SUB_ALL_EXPRESSION) -> None:
        """Receive this topic, too: all of it, or tags like `"paid || shipped"`."""
        self.subscription_expressions[topic] = checked_filter(expression)

    def unsubscribe(self, topic: str) -> None:
        """Receive this topic no more."""
        self.subscription_expressions.pop(topic, None)

    @public_call
    async def shutdown(self) -> None:
        """Tell the proxy that the consumer ends, and close its connections."""
        await self.impl.shutdown()

    @public_call
    async def receive(self, max_message_num: int, invisible_duration: int) -> list[MessageView]:
        """Up to so many messages of one topic (at most 32), which nobody else gets for `invisible_duration` ms; waits
        up to `await_duration` ms for a first one. Topics, and the queues of each, have their turns.

        ClientException, for example ILLEGAL_INVISIBLE_TIME below 10 s and above 12 h.
        """
        check_whole("max_message_num", max_message_num, "give a number of messages, at most 32 count")
        check_whole("invisible_duration", invisible_duration, MILLISECONDS)
        return await self.impl.receive(max_message_num, invisible_duration)

    @public_call
    async def ack(self, message: MessageView) -> None:
        """Say that a message is done; ClientException with INVALID_RECEIPT_HANDLE when that comes too late."""
        self.impl.check_running()
        await self.impl.ack_message(_received(message))

    @public_call
    async def change_invisible_duration(self, message: MessageView, invisible_duration: int) -> None:
        """Let a message be invisible for `invisible_duration` ms from now on, longer or shorter; its handle changes."""
        self.impl.check_running()
        check_whole("invisible_duration", invisible_duration, MILLISECONDS)
        await self.impl.change_invisible_duration(_received(message), invisible_duration, "longer")

    def __repr__(self) -> str:
        return f"<SimpleConsumer {self.consumer_group} on {self.node.name}: {self.impl.service_state}>"


def _received(message: object) -> MessageView:
    if not isinstance(message, MessageView):
        raise LearnerError(f"{type(message).__name__} was not received", "give one of the messages of receive(...)")
    return message


class SimpleConsumerImpl(ConsumerImpl):
    """What a simple consumer does (org.apache.rocketmq.client.java.impl.consumer.SimpleConsumerImpl)."""

    role = "simple consumer"
    client_type = ClientType.SIMPLE_CONSUMER

    def __init__(
        self, node: Node, config: SimpleConsumerConfiguration, group: str, subscriptions: dict[str, FilterExpression]
    ) -> None:
        super().__init__(node, config, group, subscriptions)
        self._await_ms = config.await_duration
        self._topic_index = -1
        self._queue_index: dict[str, int] = {}

    def settings(self) -> Settings:
        """What proxies are told."""
        return self._subscription(Duration(self._await_ms))

    async def receive(self, max_message_num: int, invisible_ms: int) -> list[MessageView]:
        """Receive from the next queue of the next topic."""
        self.check_running()
        if max_message_num <= 0:
            raise ClientException("maxMessageNum must be greater than 0")
        topics = list(self.subscriptions)
        if not topics:
            raise ClientException("There is no topic to receive message. What to do: subscribe to one.")
        if self._topic_index < 0:
            self._topic_index = self.node.choose("first-topic", len(topics))
        topic = topics[self._topic_index % len(topics)]
        self._topic_index += 1
        queue = self._take_message_queue(topic, await self.route(topic))
        request = self.receive_request(
            queue, self.subscriptions[topic], max_message_num, self._await_ms, invisible_ms=invisible_ms
        )
        return await self.receive_message(request, self._await_ms)

    def _take_message_queue(self, topic: str, queues: tuple[MessageQueue, ...]) -> MessageQueue:
        """The next readable queue (SubscriptionLoadBalancer)."""
        readable = [queue for queue in queues if is_readable(queue) and queue.broker.id == MASTER_BROKER_ID]
        if not readable:
            raise ClientException(f"No readable message queue found, topic={topic}")
        index = self._queue_index.get(topic)
        if index is None:
            index = self.node.choose(f"first-queue/{topic}", len(readable))
        self._queue_index[topic] = index + 1
        return readable[index % len(readable)]
