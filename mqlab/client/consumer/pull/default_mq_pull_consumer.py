"""The pull consumer that applications use: it asks for messages itself, queue by queue and offset by offset."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqlab.arguments import check_takes
from mqlab.client.client_config import checked_group, checked_settings
from mqlab.client.consumer.message_selector import MessageSelector
from mqlab.client.consumer.offset_store import ReadOffsetType
from mqlab.client.consumer.pull.default_mq_pull_consumer_impl import MAX_SIZE_IN_BYTES, DefaultMQPullConsumerImpl
from mqlab.client.consumer.pull.pull_callback import checked_pull_callback
from mqlab.client.consumer.pull.pull_consumer_config import PullConsumerConfig
from mqlab.client.consumer.pull.pull_send_back import send_pulled_message_back
from mqlab.errors import LearnerError, MQClientException
from mqlab.protocol.message import MessageExt, MessageQueue
from mqlab.sim import public_call

if TYPE_CHECKING:
    from mqlab.client.consumer.consumer_impl import MessageQueueListener
    from mqlab.client.consumer.hooks import ConsumeMessageHook
    from mqlab.client.consumer.offset_store import OffsetStore
    from mqlab.client.consumer.pull.pull_callback import PullCallback, PullCallbackFunction
    from mqlab.client.consumer.pull_api_wrapper import FilterMessageHook, PullResult
    from mqlab.client.mq_client_instance import MQClientInstance
    from mqlab.protocol.heartbeat import SubscriptionData
    from mqlab.sim import Node


class DefaultMQPullConsumer(PullConsumerConfig):
    """Asks for messages itself: from which queue, from which offset and when is the application's business.

        consumer = DefaultMQPullConsumer(node, "please_rename_group", namesrv_addr="10.0.0.1:9876")
        await consumer.start()
        for queue in await consumer.fetch_subscribe_message_queues("TopicTest"):
            offset = max(0, await consumer.fetch_consume_offset(queue, False))
            result = await consumer.pull(queue, "*", offset, 32)
            await consumer.update_consume_offset(queue, result.next_begin_offset)

    All settings of `PullConsumerConfig` can be given as keywords and changed as attributes. Java:
    org.apache.rocketmq.client.consumer.DefaultMQPullConsumer. Differs from RocketMQ: looking messages up by id or key
    and creating topics is absent here.
    """

    call_name = "consumer"

    def __init__(self, node: Node, consumer_group: str, **settings: Any) -> None:
        super().__init__(**checked_settings(PullConsumerConfig, settings))
        self.node = node
        self.consumer_group = checked_group(consumer_group)
        self.register_topics: list[str] = []
        """The topics whose queues the members of the group share among them."""
        self.register_subscriptions: dict[str, SubscriptionData] = {}
        """What the heartbeat tells instead of "all of every registered topic", by topic."""
        self.offset_store: Callable[[MQClientInstance, str], OffsetStore] | None = None
        """A class of your own (or any function of instance and group) that makes the offset store."""
        self.message_queue_listener: MessageQueueListener | None = None
        self.consume_message_hooks: list[ConsumeMessageHook] = []
        self.filter_message_hooks: list[FilterMessageHook] = []
        self.begin_life()

    def begin_life(self) -> None:
        """Make what dies with the process from what this consumer was given: at first, and at each restart."""
        self.forget_name_of_process()
        self.impl = DefaultMQPullConsumerImpl(self)

    # -- start and end ----------------------------------------------------------------------------------------------

    @public_call
    async def start(self) -> None:
        """Start the consumer; MQClientException when its settings are wrong or it was started before."""
        await self.impl.start()

    @public_call
    async def shutdown(self) -> None:
        """End the consumer: it writes its offsets and tells the brokers that it leaves."""
        await self.impl.shutdown()

    def register_message_queue_listener(self, topic: str, listener: MessageQueueListener | None = None) -> None:
        """Take part in sharing out the queues of a topic; `listener(topic, all, mine)` is told when they change.

        There is one listener for all topics: the last one given. Register topics before the start.

        Java: org.apache.rocketmq.client.consumer.MessageQueueListener.
        """
        if not isinstance(topic, str):
            raise LearnerError(f"the name of a topic is a text, not {topic!r}", 'write "TopicTest"')
        if listener is not None and not callable(listener):
            raise LearnerError(f"{listener!r} is not a listener", "write a function listener(topic, all_queues, mine)")
        if topic not in self.register_topics:
            self.register_topics.append(topic)
        if listener is not None:
            what = f"the queue listener of group {self.consumer_group!r}"
            check_takes(what, listener, "topic", "all_queues", "mine")
            self.message_queue_listener = listener

    def add_register_subscriptions(self, topic: str, selector: MessageSelector | None = None) -> None:
        """Tell the brokers of this subscription in the heartbeats; MQClientException if it cannot be read."""
        queue = MessageQueue(topic, "", 0)
        self.register_subscriptions[topic] = self.impl.subscription_of(queue, selector or MessageSelector.by_tag())

    def clear_register_subscriptions(self) -> None:
        """Take all registered subscriptions back."""
        self.register_subscriptions.clear()

    def register_consume_message_hook(self, hook: ConsumeMessageHook) -> None:
        """Let a hook see the messages of every pull that was waited for."""
        self.consume_message_hooks.append(hook)

    def register_filter_message_hook(self, hook: FilterMessageHook) -> None:
        """Let a hook take messages out of what was pulled."""
        self.filter_message_hooks.append(hook)

    # -- pulling ----------------------------------------------------------------------------------------------------

    @public_call
    async def pull(
        self,
        queue: MessageQueue,
        sub_expression: str | MessageSelector,
        offset: int,
        max_nums: int,
        timeout: int | None = None,
    ) -> PullResult:
        """At most `max_nums` messages (a broker gives 32 at most) of a queue from `offset` on, as there are now.

        `sub_expression` is `"*"`, tags like `"TagA || TagB"`, or a MessageSelector. Raises MQClientException,
        MQBrokerException, or a RemotingException when no answer came within `timeout` ms (10 s).

        Java: org.apache.rocketmq.client.consumer.DefaultMQPullConsumer.pull.
        """
        subscription = self.impl.subscription_of(queue, sub_expression)
        return await self.impl.pull_sync_impl(queue, subscription, offset, max_nums, False, self._timeout(timeout))

    @public_call
    async def pull_async(
        self,
        queue: MessageQueue,
        sub_expression: str | MessageSelector,
        offset: int,
        max_nums: int,
        callback: PullCallback | PullCallbackFunction,
        timeout: int | None = None,
        *,
        max_size_in_bytes: int = MAX_SIZE_IN_BYTES,
    ) -> None:
        """Pull without waiting for the answer; `callback(result, error)` is called once with the outcome."""
        subscription = self.impl.subscription_of(queue, sub_expression)
        hearing = self._callback(callback)
        await self.impl.pull_async_impl(
            queue, subscription, offset, max_nums, max_size_in_bytes, hearing, False, self._timeout(timeout)
        )

    @public_call
    async def pull_block_if_not_found(
        self, queue: MessageQueue, sub_expression: str | MessageSelector, offset: int, max_nums: int
    ) -> PullResult:
        """Pull; when nothing is there, the broker holds the pull until a message comes, for 20 s at most.

        Java: org.apache.rocketmq.client.consumer.DefaultMQPullConsumer.pullBlockIfNotFound.
        """
        subscription = self.impl.subscription_of(queue, sub_expression)
        return await self.impl.pull_sync_impl(queue, subscription, offset, max_nums, True, self._timeout(None))

    @public_call
    async def pull_block_if_not_found_async(
        self,
        queue: MessageQueue,
        sub_expression: str | MessageSelector,
        offset: int,
        max_nums: int,
        callback: PullCallback | PullCallbackFunction,
    ) -> None:
        """The same without waiting for the answer; `callback(result, error)` is called once with the outcome."""
        subscription = self.impl.subscription_of(queue, sub_expression)
        hearing = self._callback(callback)
        await self.impl.pull_async_impl(
            queue, subscription, offset, max_nums, MAX_SIZE_IN_BYTES, hearing, True, self._timeout(None)
        )

    def _timeout(self, timeout: int | None) -> int:
        return self.consumer_pull_timeout_millis if timeout is None else timeout

    @staticmethod
    def _callback(callback: object) -> PullCallback | PullCallbackFunction:
        if callback is None:
            raise MQClientException("pullCallback is null")
        return checked_pull_callback(callback)

    # -- offsets ----------------------------------------------------------------------------------------------------

    @public_call
    async def fetch_consume_offset(self, queue: MessageQueue, from_store: bool) -> int:
        """How far the group has consumed a queue: -1 without a record, -2 when it could not be read.

        With `from_store` the store is asked (the broker, or the file), else the memory comes first.

        Java: org.apache.rocketmq.client.consumer.DefaultMQPullConsumer.fetchConsumeOffset.
        """
        self.impl.make_sure_state_ok()
        kind = ReadOffsetType.READ_FROM_STORE if from_store else ReadOffsetType.MEMORY_FIRST_THEN_STORE
        return await self.impl.offset_store.read_offset(queue, kind)

    @public_call
    async def update_consume_offset(self, queue: MessageQueue, offset: int) -> None:
        """Note in memory how far a queue is consumed; every 5 s the offsets of the queues held go to the store.

        Java: org.apache.rocketmq.client.consumer.DefaultMQPullConsumer.updateConsumeOffset.
        """
        self.impl.make_sure_state_ok()
        if type(offset) is not int:
            raise LearnerError(f"an offset is a whole number, not {offset!r}", "give result.next_begin_offset")
        self.impl.offset_store.update_offset(queue, offset, increase_only=False)

    @public_call
    async def persist(self, queue: MessageQueue) -> None:
        """Write the offset of one queue now."""
        self.impl.make_sure_state_ok()
        self.impl.offset_store.persist(queue)

    @public_call
    async def min_offset(self, queue: MessageQueue) -> int:
        """The offset of the oldest message of a queue."""
        self.impl.make_sure_state_ok()
        return await self.impl.instance.mq_admin_impl.min_offset(queue)

    @public_call
    async def max_offset(self, queue: MessageQueue) -> int:
        """The offset that the next message of a queue will get."""
        self.impl.make_sure_state_ok()
        return await self.impl.instance.mq_admin_impl.max_offset(queue)

    @public_call
    async def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """The offset of the first message of a queue that was stored at a time (ms since 1970) or later."""
        self.impl.make_sure_state_ok()
        return await self.impl.instance.mq_admin_impl.search_offset(queue, timestamp)

    @public_call
    async def earliest_msg_store_time(self, queue: MessageQueue) -> int:
        """When the oldest message of a queue was stored, in ms since 1970; -1 for an empty queue."""
        self.impl.make_sure_state_ok()
        return await self.impl.instance.mq_admin_impl.earliest_msg_store_time(queue)

    # -- queues and messages ----------------------------------------------------------------------------------------

    @public_call
    async def fetch_subscribe_message_queues(self, topic: str) -> list[MessageQueue]:
        """All readable queues of a topic, in order; MQClientException when there are none.

        Java: org.apache.rocketmq.client.consumer.DefaultMQPullConsumer.fetchSubscribeMessageQueues.
        """
        self.impl.make_sure_state_ok()
        known = self.impl.rebalance_impl.topic_subscribe_info_table.get(topic)
        if known is not None:
            return sorted(known)
        return await self.impl.instance.mq_admin_impl.fetch_subscribe_message_queues(topic)

    @public_call
    async def fetch_message_queues_in_balance(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that are this consumer's share at present, in order."""
        self.impl.make_sure_state_ok()
        return sorted(queue for queue in self.impl.rebalance_impl.process_queue_table if queue.topic == topic)

    @public_call
    async def send_message_back(
        self,
        message: MessageExt,
        delay_level: int,
        broker_name: str | None = None,
        consumer_group: str | None = None,
    ) -> None:
        """Give a message back, to get it again from the group's retry topic after the delay of that level.

        Level 0 leaves the delay to the broker, -1 sends the message to the dead letters. When its broker does not take
        it, a copy goes to the retry topic on any broker; an error says that this failed, too.

        Java: org.apache.rocketmq.client.consumer.DefaultMQPullConsumer.sendMessageBack.
        """
        self.impl.make_sure_state_ok()
        if not isinstance(message, MessageExt):
            raise LearnerError(f"{message!r} is not a message that was pulled", "give one of result.msg_found_list")
        broker = message.broker_name if broker_name is None else broker_name
        group = consumer_group or self.consumer_group
        await send_pulled_message_back(self.impl, message, delay_level, broker, group)

    def __repr__(self) -> str:
        return (
            f"<DefaultMQPullConsumer {self.consumer_group} on {self.node.name}: {self.impl.service_state}, "
            f"{len(self.impl.rebalance_impl.process_queue_table)} queues>"
        )
