"""What a push consumer does: its life, its subscriptions, and what its client instance asks of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.client.consumer.consumer_impl import ConsumerImpl
from mqlab.client.consumer.listener import MessageListenerFunction
from mqlab.client.consumer.push.consume_message_concurrently_service import ConsumeMessageConcurrentlyService
from mqlab.client.consumer.push.consume_message_orderly_service import ConsumeMessageOrderlyService
from mqlab.client.consumer.push.consumer_statistics import ConsumerStatistics
from mqlab.client.consumer.push.orderly_listener import MessageListenerOrderly
from mqlab.client.consumer.push.pull_loop import PullLoop
from mqlab.client.consumer.push.push_consumer_config import PushConsumerConfig, check_push_config
from mqlab.client.consumer.push.send_back import DEFAULT_MAX_RECONSUME_TIMES, send_message_back
from mqlab.client.consumer.rebalance.queue_locks import QueueLocks
from mqlab.client.consumer.rebalance.rebalance_push_impl import RebalancePushImpl
from mqlab.client.service_state import ServiceState
from mqlab.errors import LearnerError, MQClientException
from mqlab.protocol.heartbeat import (
    SUB_ALL,
    ConsumeFromWhere,
    ConsumeType,
    ExpressionType,
    MessageModel,
    build_subscription_data,
)
from mqlab.protocol.message import MessageConst, MessageExt, MessageQueue
from mqlab.protocol.topics import retry_topic

if TYPE_CHECKING:
    from mqlab.client.consumer.pop.pop_loop import PopLoop
    from mqlab.client.consumer.pop.pop_request import PopProcessQueue
    from mqlab.client.consumer.push.default_mq_push_consumer import DefaultMQPushConsumer
    from mqlab.client.consumer.push.pull_request import PullRequest
    from mqlab.protocol.bodies import ConsumeMessageDirectlyResult, ConsumerRunningInfo


class DefaultMQPushConsumerImpl(ConsumerImpl):
    """The consumer behind the public class (org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl)."""

    kind = "PushConsumer"
    not_running = "The consumer service state not OK,"
    consume_type = ConsumeType.CONSUME_PASSIVELY

    def __init__(self, consumer: DefaultMQPushConsumer) -> None:
        super().__init__(consumer, consumer)
        self.consumer = consumer
        self.pause = False
        self.rebalance_impl = self._rebalance = RebalancePushImpl(self)
        self.pull_loop = PullLoop(self)
        self.statistics = ConsumerStatistics()
        self.flow_control_times: Counter[str] = Counter()
        self.retry_topic = retry_topic(consumer.consumer_group)
        self.pop_retry_topics: dict[str, str] = {self.retry_topic: ""}
        """The retry topics that may be pulled: the group's own, and with their topics those of popped messages."""
        self._popping: PopLoop | None = None
        self.queue_locks = QueueLocks(self)
        self.consume_message_service: ConsumeMessageConcurrentlyService | ConsumeMessageOrderlyService

    # -- what the instance asks -------------------------------------------------------------------------------------

    @property
    def consume_from_where(self) -> ConsumeFromWhere:
        """Where to begin without a stored offset."""
        return self.consumer.consume_from_where

    @property
    def rebalance_settings(self) -> PushConsumerConfig:
        return self.consumer

    @property
    def max_reconsume_times(self) -> int:
        """How often a message is delivered again before it goes to the dead letters."""
        times = self.consumer.max_reconsume_times
        return DEFAULT_MAX_RECONSUME_TIMES if times == -1 else times

    @property
    def max_reconsume_times_orderly(self) -> int:
        """The same in orderly consumption, where there is no limit unless one is set."""
        times = self.consumer.max_reconsume_times
        return 0x7FFF_FFFF if times == -1 else times

    @property
    def consume_orderly(self) -> bool:
        """Whether the listener wants the messages of each queue in order."""
        return isinstance(self.consumer.message_listener, MessageListenerOrderly)

    def reset_retry_topic(self, messages: Sequence[MessageExt]) -> None:
        """Give messages of the retry topic, and of those for popped messages, their own topic again.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl.resetRetryAndNamespace and
        tryResetPopRetryTopic.
        """
        for message in messages:
            if message.topic in self.pop_retry_topics:
                own = self.pop_retry_topics[message.topic] or message.properties.get(MessageConst.RETRY_TOPIC)
                message.topic = own or message.topic

    async def try_rebalance(self) -> bool:
        """Rebalance, unless the consumer is suspended."""
        if self.pause:
            return False
        return await self.rebalance_impl.do_rebalance()

    @property
    def pop_process_queue_table(self) -> dict[MessageQueue, PopProcessQueue]:
        """What this consumer may pop, with what it has not acknowledged yet; empty unless a broker said so."""
        by_broker = self._rebalance.by_broker
        return by_broker.pop_process_queue_table if by_broker is not None else {}

    def popping(self) -> PopLoop:
        """The part that pops, which is made when a broker first says that this consumer shall."""
        if self._popping is None:
            from mqlab.client.consumer.pop.pop_loop import PopLoop

            listener = self.consumer.message_listener
            # Who has none, or an orderly one, is never told to pop.
            assert listener is not None
            assert not isinstance(listener, MessageListenerOrderly)
            self._popping = PopLoop(self, listener)
        return self._popping

    async def consumer_running_info(self) -> ConsumerRunningInfo:
        """What this consumer is at.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl.consumerRunningInfo.
        """
        from mqlab.client.consumer.running_info import add_work_of_push, running_info

        info = await running_info(self, list(self.rebalance_impl.process_queue_table.items()))
        info.properties["PROP_CONSUMEORDERLY"] = str(self.consume_orderly).lower()
        info.properties["PROP_THREADPOOL_CORE_SIZE"] = str(self.consumer.consume_thread_min)
        add_work_of_push(info, self, self.statistics, self.pop_process_queue_table)
        return info

    def consume_message_directly(
        self, message: MessageExt, broker_name: str | None
    ) -> Coroutine[Any, Any, ConsumeMessageDirectlyResult]:
        """Consume one message, beside all queues and offsets."""
        from mqlab.client.consumer.push.consume_directly import consume_message_directly

        message.broker_name = broker_name
        self.reset_retry_topic([message])
        listener = self.consume_message_service.listener
        return consume_message_directly(
            self.node, self.group_name, listener, message, orderly=self.consume_orderly
        )

    def reset_offset(self, topic: str, offset_table: Mapping[MessageQueue, int]) -> Coroutine[Any, Any, None]:
        """Go on at these offsets, which takes ten seconds."""
        from mqlab.client.consumer.push.reset_offset import reset_offset

        return reset_offset(self, topic, offset_table, self.consumer.suspend, self.consumer.resume)

    def pull_message(self, pull_request: PullRequest) -> Coroutine[Any, Any, None]:
        return self.pull_loop.pull_message(pull_request)

    async def message_queue_changed(
        self, topic: str, mq_all: Sequence[MessageQueue], mq_divided: Sequence[MessageQueue]
    ) -> None:
        """The queues have changed: share the thresholds out anew, tell the brokers, tell the application.

        Java: org.apache.rocketmq.client.impl.consumer.RebalancePushImpl.messageQueueChanged.
        """
        subscription = self.rebalance_impl.subscription_inner.get(topic)
        if subscription is not None:
            subscription.sub_version = self.node.now_ms()
        count = len(self.rebalance_impl.process_queue_table)
        consumer = self.consumer
        if count:
            if consumer.pull_threshold_for_topic != -1:
                share = max(1, consumer.pull_threshold_for_topic // count)
                consumer.set_share("pull_threshold_for_queue", share)
            if consumer.pull_threshold_size_for_topic != -1:
                share = max(1, consumer.pull_threshold_size_for_topic // count)
                consumer.set_share("pull_threshold_size_for_queue", share)
        await self.instance.heartbeats.send_to_all_brokers(rebalanced=True)
        if consumer.message_queue_listener is not None:
            await self.tell(consumer.message_queue_listener, topic, list(mq_all), list(mq_divided))

    async def send_message_back(self, message: MessageExt, delay_level: int) -> bool:
        """Give a message back, to get it again later; False if that was not possible."""
        return await send_message_back(self, message, delay_level, self.max_reconsume_times)

    # -- subscriptions ----------------------------------------------------------------------------------------------

    def subscribe(self, topic: str, expression: str | None, expression_type: str = ExpressionType.TAG) -> None:
        """Subscribe to a topic; a running consumer tells the brokers at once.

        One whose process has ended while it ran cannot be told, and stays as it was.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl.subscribe.
        """
        if not isinstance(topic, str) or not isinstance(expression, str | None):
            raise LearnerError(
                f"a consumer subscribes to a text, with a text, not to {topic!r} with {expression!r}",
                'write consumer.subscribe("TopicTest", "TagA || TagB"), or "*" for every tag',
            )
        self.check_can_be_told()
        try:
            subscription = build_subscription_data(topic, expression, expression_type, self.node.now_ms())
        except LearnerError as error:
            raise MQClientException(f"subscription exception: {error}") from error
        self.rebalance_impl.subscription_inner[topic] = subscription
        if self.service_state is ServiceState.RUNNING:
            self.node.spawn(self.instance.heartbeats.send_to_all_brokers(), "heartbeat after subscribe")

    def unsubscribe(self, topic: str) -> None:
        """Forget a topic; its queues are given up at the next rebalance."""
        self.rebalance_impl.subscription_inner.pop(topic, None)

    # -- start and end ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Check the settings, build the parts, join the client instance, and tell the brokers.

        Raises MQClientException when a setting is wrong, the consumer was started before, its group is taken, or a
        broker refuses its subscription.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl.start. Differs from RocketMQ: the
        twin for Pop of the consume service is made when it is first needed; without any name server the start is
        refused before anything is made, where RocketMQ finds out when it asks for routes.
        """
        self._check_not_started()
        listener = self._check_config()
        self._copy_subscription()
        self._find_instance()
        self._build_pulling()
        self._build_consuming(listener)
        try:
            self._register()
        except MQClientException:
            await self.consume_message_service.shutdown()
            raise
        self.instance.start()
        self._runs()
        try:
            await self._after_start()
        except MQClientException:
            await self.shutdown()
            raise

    def _check_config(self) -> MessageListenerFunction | MessageListenerOrderly:
        check_push_config(self.consumer, self.group_name)
        self._check_name_servers()
        if self.consumer.message_listener is None:
            raise MQClientException(
                "messageListener is null. What to do: consumer.register_message_listener(listener) before the start."
            )
        return self.consumer.message_listener

    def _copy_subscription(self) -> None:
        """Take over the subscriptions given as a setting, and in clustering that of the group's retry topic.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl.copySubscription.
        """
        try:
            for topic, expression in self.consumer.subscription.items():
                self.rebalance_impl.subscription_inner[topic] = build_subscription_data(
                    topic, expression, sub_version=self.node.now_ms()
                )
        except LearnerError as error:
            raise MQClientException(f"subscription exception: {error}") from error
        if self.message_model is MessageModel.CLUSTERING:
            self.rebalance_impl.subscription_inner[self.retry_topic] = build_subscription_data(
                self.retry_topic, SUB_ALL, sub_version=self.node.now_ms()
            )

    def _build_consuming(self, listener: MessageListenerFunction | MessageListenerOrderly) -> None:
        if isinstance(listener, MessageListenerOrderly):
            self.consume_message_service = ConsumeMessageOrderlyService(self, listener.consume_message)
        else:
            self.consume_message_service = ConsumeMessageConcurrentlyService(self, listener)
        self.consume_message_service.start()

    async def _after_start(self) -> None:
        instance = self.instance
        for topic in self.rebalance_impl.topics():
            await instance.routes.refresh(topic)
        await instance.check_client_in_broker()
        if await instance.heartbeats.send_to_all_brokers():
            instance.rebalance_immediately()

    async def shutdown(self) -> None:
        """Stop consuming, write the offsets, leave the brokers and the instance; without effect unless running.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPushConsumerImpl.shutdown.

        Differs from RocketMQ: awaitTerminationMillisWhenShutdown, 0 by default, is absent.
        """
        if not self._is_up():
            return
        await self.consume_message_service.shutdown()
        self.persist_consumer_offset()
        await self.instance.unregister_consumer(self.group_name)
        await self.instance.shutdown()
        self.rebalance_impl.destroy()
        self._has_ended()
