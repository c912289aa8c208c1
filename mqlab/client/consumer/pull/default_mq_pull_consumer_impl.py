"""What a pull consumer does: its life, its pulls, and what its client instance asks of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mqlab.client.consumer.consumer_impl import ConsumerImpl
from mqlab.client.consumer.hooks import show_what_was_handed_out
from mqlab.client.consumer.message_selector import MessageSelector
from mqlab.client.consumer.pull.pull_callback import PullAnswer, PullCallback, PullCallbackFunction
from mqlab.client.consumer.pull.pull_consumer_config import check_pull_config
from mqlab.client.consumer.pull_api_wrapper import PullResult
from mqlab.client.consumer.rebalance.rebalance_pull_impl import RebalancePullImpl
from mqlab.errors import LearnerError, MQClientException
from mqlab.protocol.heartbeat import (
    SUB_ALL,
    ConsumeType,
    ExpressionType,
    SubscriptionData,
    build_subscription_data,
)
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.sysflag import PullSysFlag
from mqlab.trace.events.client import (
    PullRequested,
)

if TYPE_CHECKING:
    from mqlab.client.consumer.pull.default_mq_pull_consumer import DefaultMQPullConsumer
    from mqlab.client.route_table import FindBrokerResult
    from mqlab.protocol.bodies import ConsumerRunningInfo
    from mqlab.protocol.headers import PullMessageRequestHeader

MAX_SIZE_IN_BYTES = 0x7FFF_FFFF


class DefaultMQPullConsumerImpl(ConsumerImpl):
    """The consumer behind the public class.

    Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPullConsumerImpl. Differs from RocketMQ: an error that a
    consume hook raises reaches the caller of `pull`, where RocketMQ swallows it.
    """

    kind = "PullConsumer"
    not_running = "The consumer is not in running status,"
    consume_type = ConsumeType.CONSUME_ACTIVELY

    def __init__(self, consumer: DefaultMQPullConsumer) -> None:
        super().__init__(consumer, consumer)
        self.consumer = consumer
        self.rebalance_impl = RebalancePullImpl(self)  # type: ignore[arg-type]  # see RebalancePullImpl

    # -- what the instance asks -------------------------------------------------------------------------------------

    @property
    def rebalance_settings(self) -> DefaultMQPullConsumer:
        return self.consumer

    def subscriptions(self) -> list[SubscriptionData]:
        """The registered subscriptions, or else all of every registered topic, always as version 0."""
        registered = self.consumer.register_subscriptions
        if registered:
            return [registered[topic] for topic in sorted(registered)]
        return [build_subscription_data(topic, SUB_ALL) for topic in sorted(self.consumer.register_topics)]

    async def consumer_running_info(self) -> ConsumerRunningInfo:
        """What this consumer is at; of its queues it says nothing.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPullConsumerImpl.consumerRunningInfo.
        """
        from mqlab.client.consumer.running_info import running_info

        return await running_info(self, ())

    async def try_rebalance(self) -> bool:
        """Rebalance, unless switched off."""
        if not self.consumer.enable_rebalance:
            return True
        return await self.rebalance_impl.do_rebalance()

    async def message_queue_changed(
        self, topic: str, mq_all: Sequence[MessageQueue], mq_divided: Sequence[MessageQueue]
    ) -> None:
        """Tell the application's listener; an error of it is only reported."""
        if self.consumer.message_queue_listener is not None:
            await self.tell(self.consumer.message_queue_listener, topic, list(mq_all), list(mq_divided))

    # -- start and end ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Check the settings, build the parts, and join the client instance; the brokers hear of it 1 s later.

        Raises MQClientException when a setting is wrong, the consumer was started before, or its group is taken.
        """
        self._check_not_started()
        check_pull_config(self.consumer, self.group_name)
        self._check_name_servers()
        for topic in self.consumer.register_topics:
            self.subscription_automatically(topic)
        self._find_instance()
        self._build_pulling()
        self._register()
        self.instance.start()
        self._runs()

    async def shutdown(self) -> None:
        """Write the offsets, leave the brokers and the instance; without effect unless running."""
        if not self._is_up():
            return
        self.persist_consumer_offset()
        await self.instance.unregister_consumer(self.group_name)
        await self.instance.shutdown()
        self.rebalance_impl.destroy()
        self._has_ended()

    # -- pulling ----------------------------------------------------------------------------------------------------

    def subscription_automatically(self, topic: str) -> None:
        """Subscribe to all of a topic, unless it is subscribed: whoever pulls a topic takes part in its rebalance."""
        inner = self.rebalance_impl.subscription_inner
        if topic not in inner:
            inner[topic] = build_subscription_data(topic, SUB_ALL, sub_version=self.node.now_ms())

    def subscription_of(self, queue: object, expression: str | MessageSelector | None) -> SubscriptionData:
        """What a pull asks for; MQClientException for an expression that cannot be read."""
        if queue is None:
            raise MQClientException("mq is null")
        if not isinstance(queue, MessageQueue):
            raise LearnerError(
                f"a consumer pulls from a queue, not from {queue!r}",
                'take one of await consumer.fetch_subscribe_message_queues("TopicTest")',
            )
        if not isinstance(expression, str | MessageSelector | None):
            raise LearnerError(
                f"a consumer pulls with a text, not with {expression!r}",
                'write "TagA || TagB", or "*" for every tag, or MessageSelector.by_sql("a > 5")',
            )
        language = ExpressionType.TAG
        if isinstance(expression, MessageSelector):
            language, expression = expression
        try:
            return build_subscription_data(queue.topic, expression, language, self.node.now_ms())
        except LearnerError as error:
            raise MQClientException(f"parse subscription error: {error}") from error

    async def pull_sync_impl(
        self,
        queue: MessageQueue,
        subscription: SubscriptionData,
        offset: int,
        max_nums: int,
        block: bool,
        timeout_ms: int,
    ) -> PullResult:
        """Pull and wait for the answer; with `block` the broker holds a pull that finds nothing."""
        self._check_pull(offset, max_nums, MAX_SIZE_IN_BYTES)
        self.subscription_automatically(queue.topic)
        found, header = await self._request(queue, subscription, offset, max_nums, MAX_SIZE_IN_BYTES, block)
        response = await self.instance.api.pull_message_sync(found.address, header, self._timeout(block, timeout_ms))
        result = self.pull_api_wrapper.process_pull_response(response, found.address)
        self.pull_api_wrapper.process_pull_result(queue, result, subscription)
        show_what_was_handed_out(self.consume_message_hooks, self.group_name, result.msg_found_list, queue)
        return result

    async def pull_async_impl(
        self,
        queue: MessageQueue,
        subscription: SubscriptionData,
        offset: int,
        max_nums: int,
        max_size_in_bytes: int,
        callback: PullCallback | PullCallbackFunction,
        block: bool,
        timeout_ms: int,
    ) -> None:
        """Send a pull; the callback hears the answer."""
        self._check_pull(offset, max_nums, max_size_in_bytes)
        self.subscription_automatically(queue.topic)
        found, header = await self._request(queue, subscription, offset, max_nums, max_size_in_bytes, block)
        answer = PullAnswer(self, queue, subscription, found.address, callback)
        self.pull_api_wrapper.pull_async(found, header, self._timeout(block, timeout_ms), answer)

    def _check_pull(self, offset: int, max_nums: int, max_size_in_bytes: int) -> None:
        self.make_sure_state_ok()
        for name, value in (("offset", offset), ("maxNums", max_nums), ("maxSizeInBytes", max_size_in_bytes)):
            if type(value) is not int:
                raise LearnerError(f"{name} is a whole number, not {value!r}", 'write consumer.pull(queue, "*", 0, 32)')
        if offset < 0:
            raise MQClientException("offset < 0")
        if max_nums <= 0:
            raise MQClientException("maxNums <= 0")
        if max_size_in_bytes <= 0:
            raise MQClientException("maxSizeInBytes <= 0")

    def _timeout(self, block: bool, timeout_ms: int) -> int:
        return self.consumer.consumer_timeout_millis_when_suspend if block else timeout_ms

    async def _request(
        self,
        queue: MessageQueue,
        subscription: SubscriptionData,
        offset: int,
        max_nums: int,
        max_size_in_bytes: int,
        block: bool,
    ) -> tuple[FindBrokerResult, PullMessageRequestHeader]:
        """Whom to ask, and what."""
        wrapper = self.pull_api_wrapper
        found = await wrapper.find_broker_surely(queue)
        by_tag = ExpressionType.is_tag_type(subscription.expression_type)
        header = wrapper.pull_header(
            found,
            queue,
            subscription.sub_string,
            subscription.expression_type,
            0 if by_tag else subscription.sub_version,
            offset,
            max_nums,
            max_size_in_bytes,
            PullSysFlag.build(False, block, True, False),
            0,
            self.consumer.broker_suspend_max_time_millis,
        )
        if self.node.hooks.on:
            self.node.hooks.emit(PullRequested(self.group_name, *queue, offset, 0, header.sys_flag))
        return found, header
