"""The lite pull consumer that applications use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mqlab.client.client_config import checked_group, checked_settings
from mqlab.client.consumer.lite.default_lite_pull_consumer_impl import DefaultLitePullConsumerImpl
from mqlab.client.consumer.lite.lite_pull_consumer_config import LitePullConsumerConfig
from mqlab.client.consumer.lite.what_to_pull import WhatToPull
from mqlab.client.consumer.message_selector import MessageSelector
from mqlab.client.service_state import ServiceState
from mqlab.errors import LearnerError
from mqlab.protocol.heartbeat import SUB_ALL, ExpressionType
from mqlab.protocol.message import MessageExt, MessageQueue
from mqlab.sim import public_call

if TYPE_CHECKING:
    from mqlab.client.consumer.consumer_impl import MessageQueueListener
    from mqlab.client.consumer.hooks import ConsumeMessageHook
    from mqlab.client.consumer.lite.what_to_pull import TopicMessageQueueChangeListener
    from mqlab.client.consumer.offset_store import OffsetStore
    from mqlab.client.consumer.process_queue import ProcessQueue
    from mqlab.client.consumer.pull_api_wrapper import FilterMessageHook
    from mqlab.client.mq_client_instance import MQClientInstance
    from mqlab.client.trace.async_trace_dispatcher import AsyncTraceDispatcher
    from mqlab.sim import Node


class DefaultLitePullConsumer(LitePullConsumerConfig):
    """Pulls ahead in the background and hands messages out when the application asks (DefaultLitePullConsumer).

        consumer = DefaultLitePullConsumer(node, "please_rename_group", namesrv_addr="10.0.0.1:9876")
        consumer.subscribe("TopicTest", "TagA || TagB")
        await consumer.start()
        while consumer.is_running():
            for message in await consumer.poll():
                ...

    Queues come by rebalance (`subscribe`) or by hand (`assign`), never both. All settings of `LitePullConsumerConfig`
    can be given as keywords and changed as attributes. As in RocketMQ one call at a time is inside: `seek`, `commit`
    and `shutdown` wait for the end of a `poll` of another task. Java:
    org.apache.rocketmq.client.consumer.DefaultLitePullConsumer.
    """

    call_name = "consumer"

    def __init__(self, node: Node, consumer_group: str, **settings: Any) -> None:
        super().__init__(**checked_settings(LitePullConsumerConfig, settings))
        self.node = node
        self.consumer_group = checked_group(consumer_group)
        self.offset_store: Callable[[MQClientInstance, str], OffsetStore] | None = None
        """A class of your own (or any function of instance and group) that makes the offset store."""
        self.consume_message_hooks: list[ConsumeMessageHook] = []
        self.filter_message_hooks: list[FilterMessageHook] = []
        self.trace_dispatcher: AsyncTraceDispatcher | None = None
        self._trace_hook: ConsumeMessageHook | None = None
        self.what_to_pull = WhatToPull()
        self.begin_life()

    def begin_life(self) -> None:
        """Make what dies with the process from what this consumer was given: at first, and at each restart."""
        self.forget_name_of_process()
        if self._trace_hook is not None:
            self.consume_message_hooks.remove(self._trace_hook)
            self._trace_hook = self.trace_dispatcher = None
        self.impl = DefaultLitePullConsumerImpl(self)

    # -- life -------------------------------------------------------------------------------------------------------

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
        """End the consumer: it writes its committed offsets and tells the brokers that it leaves.

        What was polled since the last commit comes again to whoever takes the queue; to prevent it commit first.
        """
        await self.impl.shutdown()
        if self.trace_dispatcher is not None:
            await self.trace_dispatcher.shutdown()

    def is_running(self) -> bool:
        """Whether it was started and not shut down yet."""
        return self.impl.service_state is ServiceState.RUNNING

    # -- which queues -----------------------------------------------------------------------------------------------

    def subscribe(
        self,
        topic: str,
        sub_expression: str | MessageSelector | None = SUB_ALL,
        message_queue_listener: MessageQueueListener | None = None,
    ) -> None:
        """Take part in the group's share of a topic: `"*"` for everything, tags like `"TagA || TagB"`, or a selector.

        The listener is called with (topic, all queues, my queues) after each change; the one of the last `subscribe`
        serves all topics, as in RocketMQ. Raises MQClientException when queues were assigned before.
        """
        if not isinstance(topic, str | None) or not isinstance(sub_expression, str | MessageSelector | None):
            raise LearnerError(
                f"a consumer subscribes to a text, with a text, not to {topic!r} with {sub_expression!r}",
                'write consumer.subscribe("TopicTest", "TagA || TagB"), or "*" for every tag',
            )
        if isinstance(sub_expression, MessageSelector):
            kind, expression = sub_expression
            self.impl.subscribe(topic, expression, kind, message_queue_listener)
        else:
            self.impl.subscribe(topic, sub_expression, ExpressionType.TAG, message_queue_listener)

    def unsubscribe(self, topic: str) -> None:
        """Give a topic up."""
        self.impl.unsubscribe(topic)

    def assign(self, message_queues: Collection[MessageQueue]) -> None:
        """Pull exactly these queues, whatever other members of the group do; a later call replaces the list."""
        queues = checked_queues(message_queues)
        if not queues:
            raise LearnerError(
                "Message queues can not be null or empty.", "take some of await consumer.fetch_message_queues(topic)"
            )
        self.impl.assign(queues)

    def set_sub_expression_for_assign(self, topic: str, sub_expression: str) -> None:
        """Take only messages with these tags out of the assigned queues of a topic; only before the start."""
        self.impl.set_sub_expression_for_assign(topic, sub_expression)

    def assignment(self) -> list[MessageQueue]:
        """The queues that this consumer has at present, sorted."""
        return self.impl.assigned_message_queue.queues()

    @public_call
    async def fetch_message_queues(self, topic: str) -> list[MessageQueue]:
        """All readable queues of a topic, sorted; MQClientException when there are none."""
        return await self.impl.fetch_message_queues(topic)

    @public_call
    async def register_topic_message_queue_change_listener(
        self, topic: str, listener: TopicMessageQueueChangeListener
    ) -> None:
        """Call `listener(topic, queues)` when the topic has got other queues: a look after 10 s, then every 30 s."""
        await self.impl.topic_watch.register(topic, listener)

    # -- messages ---------------------------------------------------------------------------------------------------

    @public_call
    async def poll(self, timeout_ms: int | None = None) -> list[MessageExt]:
        """The next messages: those of one pull of one queue, or none within the time-out (5 s unless told).

        With `auto_commit` what the polls before this one handed out counts as consumed, every 5 s.
        """
        return await self.impl.poll(self.poll_timeout_millis if timeout_ms is None else timeout_ms)

    def pause(self, message_queues: Collection[MessageQueue]) -> None:
        """Pull these queues no more until `resume`; what is cached is still handed out.

        Java: org.apache.rocketmq.client.consumer.DefaultLitePullConsumer.pause.
        """
        self.impl.assigned_message_queue.set_paused(checked_queues(message_queues), True)

    def resume(self, message_queues: Collection[MessageQueue]) -> None:
        """Pull these queues again, within a second."""
        self.impl.assigned_message_queue.set_paused(checked_queues(message_queues), False)

    # -- offsets ----------------------------------------------------------------------------------------------------

    @public_call
    async def seek(self, message_queue: MessageQueue, offset: int) -> None:
        """Go on at this offset of a queue that we have; MQClientException outside of what the queue holds."""
        (queue,) = checked_queues([message_queue])
        await self.impl.offsets.seek(queue, offset)

    @public_call
    async def seek_to_begin(self, message_queue: MessageQueue) -> None:
        """Go back to the oldest message of a queue."""
        (queue,) = checked_queues([message_queue])
        await self.impl.offsets.seek(queue, await self.impl.offsets.min_offset(queue))

    @public_call
    async def seek_to_end(self, message_queue: MessageQueue) -> None:
        """Pass over everything that a queue holds."""
        (queue,) = checked_queues([message_queue])
        await self.impl.offsets.seek(queue, await self.impl.offsets.max_offset(queue))

    @public_call
    async def offset_for_timestamp(self, message_queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the first message of a queue that was stored at a time (ms since 1970) or later."""
        (queue,) = checked_queues([message_queue])
        return await self.impl.offsets.search_offset(queue, timestamp_ms)

    @public_call
    async def commit(
        self,
        message_queues: Mapping[MessageQueue, int] | Collection[MessageQueue] | None = None,
        persist: bool = False,
    ) -> None:
        """Count as consumed what was polled of all queues, or of these, or up to these offsets.

        This is noted in memory, and every 5 s written to the brokers; with `persist` the queues given are written now,
        and what memory holds of other queues is forgotten, as in RocketMQ, until they are committed again.
        """
        if message_queues is not None:
            checked_queues(message_queues)
        await self.impl.offsets.commit(message_queues, persist)

    @public_call
    async def commit_sync(self, offset_map: Mapping[MessageQueue, int] | None = None, persist: bool = False) -> None:
        """The older name of `commit`; it waits for no broker either."""
        await DefaultLitePullConsumer.commit.inside(self, offset_map, persist)  # type: ignore[attr-defined]  # see public_call

    @public_call
    async def committed(self, message_queue: MessageQueue) -> int:
        """The offset committed last, from memory or else from the broker; -1 without one."""
        (queue,) = checked_queues([message_queue])
        return await self.impl.offsets.committed(queue)

    @property
    def is_auto_commit(self) -> bool:
        """Whether `poll` commits what the polls before it handed out."""
        return self.auto_commit

    # -- hooks and what else there is -------------------------------------------------------------------------------

    def register_consume_message_hook(self, hook: ConsumeMessageHook) -> None:
        """Let a hook see every batch that `poll` hands out."""
        self.consume_message_hooks.append(hook)

    def register_filter_message_hook(self, hook: FilterMessageHook) -> None:
        """Let a hook take messages out of what was pulled."""
        self.filter_message_hooks.append(hook)

    def update_name_server_address(self, addresses: str) -> None:
        """Use other name servers from now on: "ip:port;ip:port"."""
        self.impl.make_sure_state_ok()
        self.namesrv_addr = addresses
        self.impl.instance.api.remoting_client.update_name_server_address_list(self.name_server_addresses())

    @property
    def process_queues(self) -> dict[MessageQueue, ProcessQueue]:
        """The queues that this consumer has at present, with what is cached of each."""
        assigned = self.impl.assigned_message_queue
        return {queue: state.process_queue for queue in assigned.queues() if (state := assigned.state(queue))}

    def __repr__(self) -> str:
        return (
            f"<DefaultLitePullConsumer {self.consumer_group} on {self.node.name}: {self.impl.service_state}, "
            f"{len(self.assignment())} queues, {len(self.impl.consume_request_cache)} batches cached>"
        )


def checked_queues(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    """The queues, if they are a collection of MessageQueue; LearnerError says what to give instead."""
    if isinstance(queues, MessageQueue) or not isinstance(queues, Collection):
        raise LearnerError(f"{queues!r} is no list of queues", "give a list, even of one: [queue]")
    for queue in queues:
        if not isinstance(queue, MessageQueue):
            raise LearnerError(
                f"{queue!r} is no queue", "give MessageQueue(topic, broker_name, queue_id), or some of assignment()"
            )
    return list(queues)
