"""What a lite pull consumer does: its life, its queues, its pull tasks, and handing out what they brought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.client.consumer.consumer_impl import ConsumerImpl, MessageQueueListener
from mqlab.client.consumer.hooks import show_what_was_handed_out
from mqlab.client.consumer.lite.assigned_message_queue import AssignedMessageQueue
from mqlab.client.consumer.lite.consume_request_cache import ConsumeRequestCache, LiteConsumeRequest
from mqlab.client.consumer.lite.lite_pull_consumer_config import LitePullConsumerConfig, check_lite_pull_config
from mqlab.client.consumer.lite.lite_pull_offsets import LitePullOffsets
from mqlab.client.consumer.lite.lite_pull_task import LitePullTask
from mqlab.client.consumer.lite.topic_queue_watch import TopicQueueWatch
from mqlab.client.consumer.lite.what_to_pull import SubscriptionType
from mqlab.client.consumer.rebalance.rebalance_lite_pull_impl import RebalanceLitePullImpl
from mqlab.client.consumer.scheduled_thread_pool import ScheduledThreadPool
from mqlab.client.service_state import ServiceState
from mqlab.errors import LearnerError, MQClientException
from mqlab.protocol.heartbeat import (
    ConsumeType,
    MessageModel,
    SubscriptionData,
    build_subscription_data,
)
from mqlab.protocol.message import MessageExt, MessageQueue
from mqlab.sim import Lock
from mqlab.trace.events.client import (
    MessagesPolled,
)

if TYPE_CHECKING:
    from mqlab.client.consumer.lite.default_lite_pull_consumer import DefaultLitePullConsumer
    from mqlab.protocol.bodies import ConsumerRunningInfo

class DefaultLitePullConsumerImpl(ConsumerImpl):
    """The consumer behind the public class.

    Java: org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl. Differs from RocketMQ: there
    `subscribe`, `unsubscribe` and `assign` wait, too, while another thread polls; here they take effect at once.
    """

    kind = "PullConsumer"
    not_running = "The consumer not running, please start it first. Its state is"
    consume_type = ConsumeType.CONSUME_ACTIVELY

    def __init__(self, consumer: DefaultLitePullConsumer) -> None:
        super().__init__(consumer, consumer)
        self.consumer = consumer
        self.wanted = consumer.what_to_pull
        self.rebalance_impl = RebalanceLitePullImpl(self)
        self.rebalance_impl.subscription_inner = self.wanted.subscriptions
        self.assigned_message_queue = AssignedMessageQueue(self.node, self._process_queue_of_rebalance)
        self.assigned_message_queue.update(self.wanted.assigned)
        self.consume_request_cache = ConsumeRequestCache(self.node)
        self.offsets = LitePullOffsets(self)
        self.task_table: dict[MessageQueue, LitePullTask] = {}
        self.flow_control_times: Counter[str] = Counter()
        self.topic_watch = TopicQueueWatch(self)
        self.pull_pool: ScheduledThreadPool
        self.monitor = Lock("the lite pull consumer, which another call holds")

    # -- what the instance asks -------------------------------------------------------------------------------------

    @property
    def rebalance_settings(self) -> LitePullConsumerConfig:
        return self.consumer

    async def try_rebalance(self) -> bool:
        return await self.rebalance_impl.do_rebalance()

    async def consumer_running_info(self) -> ConsumerRunningInfo:
        """What this consumer is at, with the queues that it has.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl.consumerRunningInfo.
        """
        from mqlab.client.consumer.running_info import running_info

        assigned = self.assigned_message_queue
        held = [(queue, assigned.process_queue(queue)) for queue in assigned.queues()]
        return await running_info(self, [(queue, process_queue) for queue, process_queue in held if process_queue])

    def consumer_status(self, topic: str) -> Mapping[MessageQueue, int]:
        """Nothing: as in RocketMQ a lite pull consumer does not tell."""
        return {}

    def persist_consumer_offset(self) -> None:
        """Write the offsets of the queues that it has."""
        if self.service_state is not ServiceState.RUNNING:
            return
        if self.wanted.subscription_type is SubscriptionType.SUBSCRIBE:
            self.offset_store.persist_all(self.rebalance_impl.process_queue_table)
        elif self.wanted.subscription_type is SubscriptionType.ASSIGN:
            self.offset_store.persist_all(self.assigned_message_queue.queues())

    async def message_queue_changed(
        self, topic: str, mq_all: Sequence[MessageQueue], mq_divided: Sequence[MessageQueue]
    ) -> None:
        """The queues have changed: drop what is gone, pull what is new, tell the application."""
        mine = mq_all if self.message_model is MessageModel.BROADCASTING else mq_divided
        self.assigned_message_queue.update_of_topic(topic, mine)
        self._cancel_tasks(queue for queue in self.task_table if queue.topic == topic and queue not in mine)
        self._start_tasks(mine)
        if self.wanted.message_queue_listener is not None:
            await self.tell(self.wanted.message_queue_listener, topic, list(mq_all), list(mq_divided))

    def _process_queue_of_rebalance(self, queue: MessageQueue) -> Any:
        return self.rebalance_impl.process_queue_table.get(queue)

    # -- which queues -----------------------------------------------------------------------------------------------

    def set_subscription_type(self, kind: SubscriptionType) -> None:
        """The first use decides; LearnerError for the other way."""
        present = self.wanted.subscription_type
        if present not in (SubscriptionType.NONE, kind):
            raise LearnerError(
                "Subscribe and assign are mutually exclusive.",
                f"this consumer uses {present.value.lower()}; make another consumer for the other way",
            )
        self.wanted.subscription_type = kind

    def subscribe(
        self, topic: str, expression: str | None, expression_type: str, listener: MessageQueueListener | None
    ) -> None:
        """Subscribe to a topic; a running consumer tells the brokers and asks for routes at once.

        MQClientException for an expression that cannot be, and for a consumer with assigned queues.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl.subscribe.
        """
        self.check_can_be_told()
        try:
            if not topic:
                raise LearnerError("Topic can not be null or empty.", "give the name of a topic, such as 'TopicTest'")
            self.set_subscription_type(SubscriptionType.SUBSCRIBE)
            subscription = build_subscription_data(topic, expression, expression_type, self.node.now_ms())
        except LearnerError as error:
            raise MQClientException(f"subscribe exception: {error}") from error
        self.rebalance_impl.subscription_inner[topic] = subscription
        self.wanted.message_queue_listener = listener
        if self.service_state is ServiceState.RUNNING:
            self.node.spawn(self._announce_subscription(), "announce a subscription")

    async def _announce_subscription(self) -> None:
        await self.instance.heartbeats.send_to_all_brokers()
        await self._refresh_routes()

    async def _refresh_routes(self) -> None:
        for topic in self.rebalance_impl.topics():
            await self.instance.routes.refresh(topic)

    def unsubscribe(self, topic: str) -> None:
        """Forget a topic: its pulls end now, what is cached of it is dropped at the next rebalance."""
        self.rebalance_impl.subscription_inner.pop(topic, None)
        self._cancel_tasks(queue for queue in self.task_table if queue.topic == topic)
        self.assigned_message_queue.remove_topic(topic)

    def assign(self, queues: Collection[MessageQueue]) -> None:
        """Let these be the queues.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl.assign.
        """
        self.set_subscription_type(SubscriptionType.ASSIGN)
        self.wanted.assigned = list(queues)
        self.assigned_message_queue.update(queues)
        if self.service_state is ServiceState.RUNNING:
            self._pull_assigned()

    def _pull_assigned(self) -> None:
        queues = self.assigned_message_queue.queues()
        self._cancel_tasks(queue for queue in self.task_table if queue not in queues)
        self._start_tasks(queues)

    def set_sub_expression_for_assign(self, topic: str, expression: str) -> None:
        """Filter an assigned topic by tags; only before the start."""
        if not isinstance(expression, str) or not expression.strip():
            raise LearnerError("subExpression can not be null or empty.", 'write tags, such as "TagA || TagB"')
        if self.service_state is not ServiceState.CREATE_JUST:
            raise LearnerError("setAssignTag only can be called before start.", "make a new consumer")
        subscription = build_subscription_data(topic, expression)
        self.set_subscription_type(SubscriptionType.ASSIGN)
        self.wanted.sub_expression_for_assign[topic] = subscription

    @property
    def is_rebalanced(self) -> bool:
        """Whether the queues come by rebalance."""
        return self.wanted.subscription_type is SubscriptionType.SUBSCRIBE

    def subscription_of(self, topic: str) -> SubscriptionData | None:
        """What is wanted of a topic; None when it is not subscribed (any more)."""
        if self.wanted.subscription_type is SubscriptionType.SUBSCRIBE:
            return self.rebalance_impl.subscription_inner.get(topic)
        return self.wanted.sub_expression_for_assign.get(topic) or build_subscription_data(topic, None)

    def _start_tasks(self, queues: Iterable[MessageQueue]) -> None:
        for queue in queues:
            if queue not in self.task_table:
                task = self.task_table[queue] = LitePullTask(self, queue)
                self.pull_pool.schedule(task.run, 0)

    def _cancel_tasks(self, queues: Iterable[MessageQueue]) -> None:
        for queue in list(queues):
            self.task_table.pop(queue).cancelled = True

    def restart_task(self, queue: MessageQueue) -> None:
        """Throw away what is cached of a queue, end its pull, and begin another one."""
        self.consume_request_cache.remove_queue(queue)
        task = self.task_table.pop(queue, None)
        if task is not None:
            task.interrupt()
        self._start_tasks([queue])

    # -- start and end ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Check the settings, build the parts, join the client instance, and begin with what is subscribed or assigned.

        MQClientException when a setting is wrong, the consumer was started before, or its group is taken. Brokers hear
        of the consumer when a connection to them is made, the rebalance comes after that.
        """
        self._check_not_started()
        consumer = self.consumer
        check_lite_pull_config(consumer, self.group_name)
        self._check_name_servers()
        self._find_instance()
        self._register()
        self.pull_pool = ScheduledThreadPool(self.node, f"PullMsgThread-{self.group_name}", consumer.pull_thread_nums)
        self._build_pulling()
        self.instance.start()
        self.topic_watch.start()
        self._runs()
        try:
            await self._operate_after_running()
        except MQClientException:
            await self.shutdown()
            raise

    async def _operate_after_running(self) -> None:
        if self.wanted.subscription_type is SubscriptionType.SUBSCRIBE:
            await self._refresh_routes()
        elif self.wanted.subscription_type is SubscriptionType.ASSIGN:
            self._pull_assigned()
        await self.topic_watch.look_first()
        await self.instance.check_client_in_broker()

    async def shutdown(self) -> None:
        """Write the offsets, leave the brokers and the instance, end the pulls; without effect unless running.

        What was polled since the last commit is not committed by this, as in RocketMQ.
        """
        self._is_up()
        async with self.monitor:
            if self.service_state is not ServiceState.RUNNING:
                return
            self.persist_consumer_offset()
            await self.instance.unregister_consumer(self.group_name)
            self._cancel_tasks(self.task_table)
            self.pull_pool.shutdown()
            self.topic_watch.shutdown()
            await self.instance.shutdown()
            self._has_ended()

    # -- polling ----------------------------------------------------------------------------------------------------

    async def poll(self, timeout_ms: int) -> list[MessageExt]:
        """The messages of the oldest pull that was not handed out yet; empty if none comes within the time-out.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl.poll.
        """
        async with self.monitor:
            self.make_sure_state_ok()
            if type(timeout_ms) is not int or timeout_ms < 0:
                raise LearnerError("Timeout must not be negative", f"give whole milliseconds, not {timeout_ms!r}")
            if self.consumer.auto_commit:
                self.offsets.maybe_auto_commit()
            request = await self._next_request(timeout_ms)
            return await self._hand_out(request) if request is not None else []

    async def _next_request(self, timeout_ms: int) -> LiteConsumeRequest | None:
        """The first batch of a queue that is still ours; without time left one batch at most is looked at."""
        end_us = self.node.now_us() + timeout_ms * 1_000
        request = await self.consume_request_cache.poll(timeout_ms)
        while request is not None and request.process_queue.dropped:
            left_ms = (end_us - self.node.now_us()) // 1_000
            if left_ms <= 0:
                return None
            request = await self.consume_request_cache.poll(left_ms)
        return request

    async def _hand_out(self, request: LiteConsumeRequest) -> list[MessageExt]:
        messages, queue, process_queue = request
        offset = process_queue.remove_message(messages)
        await self.node.preempt("lite-poll.messages-removed")
        self.assigned_message_queue.update_consume_offset(queue, offset)
        if self.node.hooks.on:
            first = messages[0]
            self.node.hooks.emit(
                MessagesPolled(self.group_name, *queue, first.queue_offset, first.msg_id, len(messages), offset)
            )
        show_what_was_handed_out(self.consume_message_hooks, self.group_name, messages, queue)
        return messages

    # -- queues of a topic ------------------------------------------------------------------------------------------

    async def fetch_message_queues(self, topic: str) -> list[MessageQueue]:
        """All readable queues of a topic, as the name server tells them now."""
        self.make_sure_state_ok()
        return await self.instance.mq_admin_impl.fetch_subscribe_message_queues(topic)
