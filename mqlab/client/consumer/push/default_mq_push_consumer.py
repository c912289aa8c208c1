"""The push consumer that applications use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.arguments import check_takes
from mqlab.client.client_config import checked_group, checked_settings
from mqlab.client.consumer.listener import listener_function
from mqlab.client.consumer.message_selector import MessageSelector
from mqlab.client.consumer.push.default_mq_push_consumer_impl import DefaultMQPushConsumerImpl
from mqlab.client.consumer.push.orderly_listener import MessageListenerOrderly
from mqlab.client.consumer.push.push_consumer_config import PushConsumerConfig
from mqlab.client.service_state import ServiceState
from mqlab.errors import LearnerError
from mqlab.protocol.heartbeat import SUB_ALL, ExpressionType
from mqlab.sim import public_call

if TYPE_CHECKING:
    from mqlab.client.consumer.consumer_impl import MessageQueueListener
    from mqlab.client.consumer.hooks import ConsumeMessageHook
    from mqlab.client.consumer.listener import MessageListenerConcurrently, MessageListenerFunction
    from mqlab.client.consumer.offset_store import OffsetStore
    from mqlab.client.consumer.pop.pop_request import PopProcessQueue
    from mqlab.client.consumer.process_queue import ProcessQueue
    from mqlab.client.consumer.pull_api_wrapper import FilterMessageHook
    from mqlab.client.mq_client_instance import MQClientInstance
    from mqlab.client.trace.async_trace_dispatcher import AsyncTraceDispatcher
    from mqlab.protocol.message import MessageExt, MessageQueue
    from mqlab.sim import Node


class DefaultMQPushConsumer(PushConsumerConfig):
    """Gets messages pushed to a listener - in truth it pulls them (DefaultMQPushConsumer).

        consumer = DefaultMQPushConsumer(node, "please_rename_group", namesrv_addr="10.0.0.1:9876")
        consumer.subscribe("TopicTest", "TagA || TagB")
        consumer.register_message_listener(lambda messages, context: CONSUME_SUCCESS)
        await consumer.start()

    All settings of `PushConsumerConfig` can be given as keywords and changed as attributes. Java:
    org.apache.rocketmq.client.consumer.DefaultMQPushConsumer.
    """

    call_name = "consumer"

    def __init__(self, node: Node, consumer_group: str, **settings: Any) -> None:
        super().__init__(**checked_settings(PushConsumerConfig, settings))
        self.node = node
        self.consumer_group = checked_group(consumer_group)
        self.subscription: dict[str, str] = {}
        """Topics and tag expressions to subscribe to at the start, beside those of `subscribe`."""
        self.offset_store: Callable[[MQClientInstance, str], OffsetStore] | None = None
        """A class of your own (or any function of instance and group) that makes the offset store."""
        self.message_queue_listener: MessageQueueListener | None = None
        self.message_listener: MessageListenerFunction | MessageListenerOrderly | None = None
        self.consume_message_hooks: list[ConsumeMessageHook] = []
        self.filter_message_hooks: list[FilterMessageHook] = []
        self.trace_dispatcher: AsyncTraceDispatcher | None = None
        self._trace_hook: ConsumeMessageHook | None = None
        self._subscribed: dict[str, tuple[str | None, str]] = {}
        self._shares: dict[str, tuple[int, int]] = {}
        """Of the settings that a rebalance has overwritten: what the application gave, and what stands there now."""
        self.begin_life()

    def begin_life(self) -> None:
        """Make what dies with the process from what this consumer was given: at first, and at each restart."""
        self.forget_name_of_process()
        if self._trace_hook is not None:
            self.consume_message_hooks.remove(self._trace_hook)
            self._trace_hook = self.trace_dispatcher = None
        self._take_shares_back()
        self.impl = DefaultMQPushConsumerImpl(self)
        for topic, (expression, expression_type) in self._subscribed.items():
            self.impl.subscribe(topic, expression, expression_type)

    @public_call
    async def start(self) -> None:
        """Start the consumer; MQClientException when its settings are wrong or it was started before."""
        await self.impl.start()
        if self.enable_trace:
            from mqlab.client.producer.default_mq_producer import DefaultMQProducer
            from mqlab.client.trace.tracing import trace_consumption

            dispatcher, hook = trace_consumption(self.node, self, self.consumer_group, DefaultMQProducer)
            self.trace_dispatcher, self._trace_hook = dispatcher, hook
            self.consume_message_hooks.append(hook)
            await dispatcher.start()

    @public_call
    async def shutdown(self) -> None:
        """End the consumer: it writes its offsets and tells the brokers that it leaves."""
        await self.impl.shutdown()
        if self.trace_dispatcher is not None:
            await self.trace_dispatcher.shutdown()

    def subscribe(self, topic: str, sub_expression: str | MessageSelector | None = SUB_ALL) -> None:
        """Subscribe to a topic: `"*"` for everything, tags like `"TagA || TagB"`, or a MessageSelector."""
        if isinstance(sub_expression, MessageSelector):
            self._subscribe(topic, sub_expression.expression, sub_expression.expression_type)
        else:
            self._subscribe(topic, sub_expression, ExpressionType.TAG)

    def subscribe_sql(self, topic: str, expression: str) -> None:
        """Subscribe to the messages of a topic whose properties fulfil an SQL92 condition."""
        self._subscribe(topic, expression, ExpressionType.SQL92)

    def _subscribe(self, topic: str, expression: str | None, expression_type: str) -> None:
        self.impl.subscribe(topic, expression, expression_type)
        self._subscribed[topic] = (expression, expression_type)

    def set_share(self, name: str, share: int) -> None:
        """Overwrite a setting, as a rebalance does in RocketMQ; the next process begins with what was given."""
        given, written = self._shares.get(name, (0, None))
        present = getattr(self, name)
        self._shares[name] = (given if present == written else present, share)
        setattr(self, name, share)

    def _take_shares_back(self) -> None:
        for name, (given, written) in self._shares.items():
            # What the application has set since is its own again.
            if getattr(self, name) == written:
                setattr(self, name, given)
        self._shares.clear()

    def unsubscribe(self, topic: str) -> None:
        """Give a topic up."""
        self._subscribed.pop(topic, None)
        self.impl.unsubscribe(topic)

    def register_message_listener(
        self, listener: MessageListenerFunction | MessageListenerConcurrently | MessageListenerOrderly
    ) -> None:
        """Let this listener consume: a function of (messages, context), plain or `async`, or an object of a class.

        A MessageListenerOrderly gets the messages of each queue one after the other, all else gets them concurrently.
        """
        if self.impl.service_state is ServiceState.RUNNING:
            raise LearnerError(
                "the consumer runs already, and keeps the listener with which it was started",
                "make a new consumer: await consumer.shutdown(), then lab.consumer(...)",
            )
        if isinstance(listener, MessageListenerOrderly):
            what = f"the listener of group {self.consumer_group!r}"
            check_takes(what, listener.consume_message, "messages", "context")
        else:
            listener = listener_function(self.consumer_group, listener)
        self.message_listener = listener

    def register_consume_message_hook(self, hook: ConsumeMessageHook) -> None:
        """Let a hook see every call of the listener."""
        self.consume_message_hooks.append(hook)

    def register_filter_message_hook(self, hook: FilterMessageHook) -> None:
        """Let a hook take messages out of what was pulled."""
        self.filter_message_hooks.append(hook)

    def suspend(self) -> None:
        """Pull no more until `resume`; what is cached is still consumed.

        Java: org.apache.rocketmq.client.consumer.DefaultMQPushConsumer.suspend.
        """
        self.impl.pause = True

    def resume(self) -> None:
        self.impl.pause = False
        if hasattr(self.impl, "instance"):
            self.impl.instance.rebalance_immediately()

    @public_call
    async def send_message_back(self, message: MessageExt, delay_level: int = 0) -> bool:
        """Give one message back by hand, to get it again after the delay of that level."""
        self.impl.make_sure_state_ok()
        return await self.impl.send_message_back(message, delay_level)

    @public_call
    async def fetch_subscribe_message_queues(self, topic: str) -> Sequence[MessageQueue]:
        """All queues of a subscribed topic; MQClientException when none are known."""
        self.impl.make_sure_state_ok()
        table = self.impl.rebalance_impl.topic_subscribe_info_table
        if not table.get(topic):
            await self.impl.instance.routes.refresh(topic)
        queues = table.get(topic)
        if not queues:
            raise self.impl.instance.routes.no_route(topic)
        return sorted(queues)

    @property
    def process_queues(self) -> dict[MessageQueue, ProcessQueue]:
        """The queues that this consumer holds at present, with what is cached of each."""
        return dict(self.impl.rebalance_impl.process_queue_table)

    @property
    def pop_process_queues(self) -> dict[MessageQueue, PopProcessQueue]:
        """What this consumer may pop at present, and how many messages of it wait for their acknowledgement."""
        return dict(self.impl.pop_process_queue_table)

    def __repr__(self) -> str:
        return (
            f"<DefaultMQPushConsumer {self.consumer_group} on {self.node.name}: {self.impl.service_state}, "
            f"{len(self.impl.rebalance_impl.process_queue_table)} queues>"
        )
