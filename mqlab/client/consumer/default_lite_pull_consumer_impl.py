"""What a lite pull consumer does: its life, its queues, its pull tasks, and handing out what they brought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from mqlab.client.mq_client_manager import MQClientManager
from mqlab.client.route_table import no_name_server
from mqlab.client.service_state import ServiceState, check_process_lives
from mqlab.errors import LearnerError, MQClientException, SimulationError
from mqlab.protocol.heartbeat import (
    ConsumeFromWhere,
    ConsumeType,
    MessageModel,
    SubscriptionData,
    build_subscription_data,
)
from mqlab.protocol.message import MessageExt, MessageQueue
from mqlab.sim import Lock
from mqlab.trace.events.client import (
    ClientStarted,
    ClientStopped,
    MessagesPolled,
    QueueListenerFailed,
    QueueSought,
)

from .assigned_message_queue import UNKNOWN, AssignedMessageQueue
from .consume_request_cache import ConsumeRequestCache, LiteConsumeRequest
from .hooks import ConsumeMessageContext, ConsumeMessageHook
from .listener import ConsumeConcurrentlyStatus, warn_that_listener_raised
from .lite_pull_consumer_config import LitePullConsumerConfig, check_lite_pull_config
from .lite_pull_task import LitePullTask
from .offset_store import UNREADABLE, LocalFileOffsetStore, OffsetStore, ReadOffsetType, RemoteBrokerOffsetStore
from .pull_api_wrapper import FilterMessageHook, PullAPIWrapper
from .rebalance_impl import OffsetUnreadableException
from .rebalance_lite_pull_impl import RebalanceLitePullImpl
from .scheduled_thread_pool import ScheduledThreadPool
from .topic_queue_watch import TopicQueueWatch

if TYPE_CHECKING:
    from mqlab.client.mq_client_instance import MQClientInstance
    from mqlab.sim import Life

    from .default_lite_pull_consumer import DefaultLitePullConsumer

ROLE = "consumer"

MessageQueueListener = Callable[[str, "list[MessageQueue]", "list[MessageQueue]"], object]
"""(topic, all queues, my queues): called when a rebalance changed something."""


class SubscriptionType(Enum):
    """How a lite pull consumer gets its queues: not decided yet, by rebalance, or by hand."""

    NONE = "NONE"
    SUBSCRIBE = "SUBSCRIBE"
    ASSIGN = "ASSIGN"


class DefaultLitePullConsumerImpl:
    """The consumer behind the public class.

    Java: org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl. Differs from RocketMQ: there
    `subscribe`, `unsubscribe` and `assign` wait, too, while another thread polls; here they take effect at once.
    """

    consume_type = ConsumeType.CONSUME_ACTIVELY
    consume_from_where = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    """What the heartbeats say, whatever is set."""

    def __init__(self, consumer: DefaultLitePullConsumer) -> None:
        self.consumer = consumer
        self.node = consumer.node
        self.service_state = ServiceState.CREATE_JUST
        self.consumer_start_ms = consumer.node.now_ms()
        self.subscription_type = SubscriptionType.NONE
        self.rebalance_impl = RebalanceLitePullImpl(self)
        self.assigned_message_queue = AssignedMessageQueue(self.node, self._process_queue_of_rebalance)
        self.consume_request_cache = ConsumeRequestCache(self.node)
        self.task_table: dict[MessageQueue, LitePullTask] = {}
        self.flow_control_times: Counter[str] = Counter()
        self.consume_message_hooks: list[ConsumeMessageHook] = []
        self.filter_message_hooks: list[FilterMessageHook] = []
        self.message_queue_listener: MessageQueueListener | None = None
        self.sub_expression_for_assign: dict[str, SubscriptionData] = {}
        self.topic_watch = TopicQueueWatch(self)
        self.next_auto_commit_deadline = -1
        self.instance_life: Life | None = None
        self.instance: MQClientInstance
        self.pull_api_wrapper: PullAPIWrapper
        self.offset_store: OffsetStore
        self.pull_pool: ScheduledThreadPool
        self._told: set[str] = set()
        self.monitor = Lock("the lite pull consumer, which another call holds")

    # -- what the instance asks -------------------------------------------------------------------------------------

    @property
    def group_name(self) -> str:
        """The consumer group."""
        return self.consumer.consumer_group

    @property
    def message_model(self) -> MessageModel:
        """Clustering or broadcasting."""
        return self.consumer.message_model

    @property
    def rebalance_settings(self) -> LitePullConsumerConfig:
        """The settings that the rebalance needs."""
        return self.consumer

    @property
    def unit_mode(self) -> bool:
        """The unit flag of the heartbeat."""
        return self.consumer.unit_mode

    def subscriptions(self) -> list[SubscriptionData]:
        """The subscriptions, by topic; none when the queues are assigned by hand."""
        inner = self.rebalance_impl.subscription_inner
        return [inner[topic] for topic in self.rebalance_impl.topics()]

    def is_subscribe_topic_need_update(self, topic: str) -> bool:
        """Whether the topic is subscribed and its queues are unknown."""
        rebalance = self.rebalance_impl
        return topic in rebalance.subscription_inner and topic not in rebalance.topic_subscribe_info_table

    def update_topic_subscribe_info(self, topic: str, queues: Sequence[MessageQueue]) -> None:
        """Take over the queues of a subscribed topic."""
        if topic in self.rebalance_impl.subscription_inner:
            self.rebalance_impl.topic_subscribe_info_table[topic] = list(queues)

    async def try_rebalance(self) -> bool:
        """Rebalance."""
        return await self.rebalance_impl.do_rebalance()

    def persist_consumer_offset(self) -> None:
        """Write the offsets of the queues that it has."""
        if self.service_state is not ServiceState.RUNNING:
            return
        if self.subscription_type is SubscriptionType.SUBSCRIBE:
            self.offset_store.persist_all(self.rebalance_impl.process_queue_table)
        elif self.subscription_type is SubscriptionType.ASSIGN:
            self.offset_store.persist_all(self.assigned_message_queue.queues())

    async def message_queue_changed(
        self, topic: str, mq_all: Sequence[MessageQueue], mq_divided: Sequence[MessageQueue]
    ) -> None:
        """The queues have changed: drop what is gone, pull what is new, tell the application."""
        mine = mq_all if self.message_model is MessageModel.BROADCASTING else mq_divided
        self.assigned_message_queue.update_of_topic(topic, mine)
        self._cancel_tasks(queue for queue in self.task_table if queue.topic == topic and queue not in mine)
        self._start_tasks(mine)
        if self.message_queue_listener is not None:
            await self.tell(self.message_queue_listener, topic, list(mq_all), list(mq_divided))

    def _process_queue_of_rebalance(self, queue: MessageQueue) -> Any:
        return self.rebalance_impl.process_queue_table.get(queue)

    async def tell(self, listener: Callable[..., object], topic: str, *queues: list[MessageQueue]) -> None:
        """Call a listener for queues, plain or `async`; what it raises is warned of."""
        try:
            answer = listener(topic, *queues)
            if isinstance(answer, Coroutine):
                await answer
        except SimulationError:
            raise
        except Exception as error:  # noqa: BLE001  # as in RocketMQ the consumer goes on whatever a listener raises
            if self.node.hooks.on:
                reason = f"{type(error).__name__}: {error}"
                self.node.hooks.emit(QueueListenerFailed(self.group_name, topic, reason))
            hint = "The consumer goes on; nobody calls this listener again for this change."
            warn_that_listener_raised(self.group_name, error, self._told, "the queue listener", hint)

    def take_over(self, before: DefaultLitePullConsumerImpl) -> None:
        """Subscribe, assign and watch what the consumer did in whose place this one is started."""
        self.subscription_type = before.subscription_type
        self.rebalance_impl.subscription_inner.update(before.rebalance_impl.subscription_inner)
        self.message_queue_listener = before.message_queue_listener
        self.sub_expression_for_assign.update(before.sub_expression_for_assign)
        self.topic_watch.listeners.update(before.topic_watch.listeners)
        if self.subscription_type is SubscriptionType.ASSIGN:
            self.assigned_message_queue.update(before.assigned_message_queue.queues())

    # -- which queues -----------------------------------------------------------------------------------------------

    def set_subscription_type(self, kind: SubscriptionType) -> None:
        """The first use decides; LearnerError for the other way."""
        if self.subscription_type not in (SubscriptionType.NONE, kind):
            raise LearnerError(
                "Subscribe and assign are mutually exclusive.",
                f"this consumer uses {self.subscription_type.value.lower()}; make another consumer for the other way",
            )
        self.subscription_type = kind

    def subscribe(
        self, topic: str, expression: str | None, expression_type: str, listener: MessageQueueListener | None
    ) -> None:
        """Subscribe to a topic; a running consumer tells the brokers and asks for routes at once.

        MQClientException for an expression that cannot be, and for a consumer with assigned queues.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl.subscribe.
        """
        try:
            if not topic:
                raise LearnerError("Topic can not be null or empty.", "give the name of a topic, such as 'TopicTest'")
            self.set_subscription_type(SubscriptionType.SUBSCRIBE)
            subscription = build_subscription_data(topic, expression, expression_type, self.node.now_ms())
        except LearnerError as error:
            raise MQClientException(f"subscribe exception: {error}") from error
        self.rebalance_impl.subscription_inner[topic] = subscription
        self.message_queue_listener = listener
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
        self.sub_expression_for_assign[topic] = subscription

    def subscription_of(self, topic: str) -> SubscriptionData | None:
        """What is wanted of a topic; None when it is not subscribed (any more)."""
        if self.subscription_type is SubscriptionType.SUBSCRIBE:
            return self.rebalance_impl.subscription_inner.get(topic)
        return self.sub_expression_for_assign.get(topic) or build_subscription_data(topic, None)

    def _start_tasks(self, queues: Iterable[MessageQueue]) -> None:
        for queue in queues:
            if queue not in self.task_table:
                task = self.task_table[queue] = LitePullTask(self, queue)
                self.pull_pool.schedule(task.run, 0)

    def _cancel_tasks(self, queues: Iterable[MessageQueue]) -> None:
        for queue in list(queues):
            self.task_table.pop(queue).cancelled = True

    # -- start and end ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Check the settings, build the parts, join the client instance, and begin with what is subscribed or assigned.

        MQClientException when a setting is wrong, the consumer was started before, or its group is taken. Brokers hear
        of the consumer when a connection to them is made, the rebalance comes after that.
        """
        check_process_lives(self.instance_life, self.node, ROLE)
        if self.service_state is not ServiceState.CREATE_JUST:
            raise MQClientException(
                f"The PullConsumer service state not OK, maybe started once, {self.service_state}. "
                "What to do: start a consumer once; make a new one after a shutdown."
            )
        self.service_state = ServiceState.START_FAILED
        consumer = self.consumer
        check_lite_pull_config(consumer, self.group_name)
        if not consumer.name_server_addresses() and consumer.namesrv_domain is None:
            raise no_name_server()
        if self.message_model is MessageModel.CLUSTERING:
            consumer.change_instance_name_to_pid(self.node)
        self.instance = MQClientManager.of(self.node).get_or_create_mq_client_instance(consumer)
        self.instance_life = self.node.life
        if not self.instance.register_consumer(self.group_name, self):
            self.service_state = ServiceState.CREATE_JUST
            raise MQClientException(
                f"The consumer group[{self.group_name}] has been created before, specify another name please. "
                "What to do: give this consumer another group or another instance_name."
            )
        self._build()
        self.instance.start()
        self.topic_watch.start()
        self.service_state = ServiceState.RUNNING
        if self.node.hooks.on:
            self.node.hooks.emit(ClientStarted(self.instance.client_id, self.group_name, ROLE))
        try:
            await self._operate_after_running()
        except MQClientException:
            await self.shutdown()
            raise

    def _build(self) -> None:
        consumer = self.consumer
        self.pull_pool = ScheduledThreadPool(self.node, f"PullMsgThread-{self.group_name}", consumer.pull_thread_nums)
        self.pull_api_wrapper = PullAPIWrapper(self.instance, self.group_name, self.unit_mode)
        self.pull_api_wrapper.filter_message_hooks = self.filter_message_hooks
        if consumer.offset_store is not None:
            self.offset_store = consumer.offset_store(self.instance, self.group_name)
        elif self.message_model is MessageModel.BROADCASTING:
            self.offset_store = LocalFileOffsetStore(self.instance, self.group_name)
        else:
            self.offset_store = RemoteBrokerOffsetStore(self.instance, self.group_name)
        self.offset_store.load()

    async def _operate_after_running(self) -> None:
        if self.subscription_type is SubscriptionType.SUBSCRIBE:
            await self._refresh_routes()
        elif self.subscription_type is SubscriptionType.ASSIGN:
            self._pull_assigned()
        await self.topic_watch.look_first()
        await self.instance.check_client_in_broker()

    async def shutdown(self) -> None:
        """Write the offsets, leave the brokers and the instance, end the pulls; without effect unless running.

        What was polled since the last commit is not committed by this, as in RocketMQ.
        """
        check_process_lives(self.instance_life, self.node, ROLE)
        async with self.monitor:
            if self.service_state is not ServiceState.RUNNING:
                return
            self.persist_consumer_offset()
            await self.instance.unregister_consumer(self.group_name)
            self._cancel_tasks(self.task_table)
            self.pull_pool.shutdown()
            self.topic_watch.shutdown()
            await self.instance.shutdown()
            self.service_state = ServiceState.SHUTDOWN_ALREADY
        if self.node.hooks.on:
            self.node.hooks.emit(ClientStopped(self.instance.client_id, self.group_name, ROLE))

    def check_running(self) -> None:
        """MQClientException unless the consumer runs, in the process that it was started in."""
        check_process_lives(self.instance_life, self.node, ROLE)
        if self.service_state is not ServiceState.RUNNING:
            ended = self.service_state is ServiceState.SHUTDOWN_ALREADY
            raise MQClientException(
                f"The consumer not running, please start it first. Its state is {self.service_state}. What to do: "
                + ("make a new one, this one was shut down." if ended else "await consumer.start() first.")
            )

    # -- polling ----------------------------------------------------------------------------------------------------

    async def poll(self, timeout_ms: int) -> list[MessageExt]:
        """The messages of the oldest pull that was not handed out yet; empty if none comes within the time-out.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl.poll.
        """
        async with self.monitor:
            self.check_running()
            if type(timeout_ms) is not int or timeout_ms < 0:
                raise LearnerError("Timeout must not be negative", f"give whole milliseconds, not {timeout_ms!r}")
            if self.consumer.auto_commit:
                self._maybe_auto_commit()
            request = await self._next_request(timeout_ms)
            return self._hand_out(request) if request is not None else []

    def _maybe_auto_commit(self) -> None:
        now_ms = self.node.now_ms()
        if now_ms >= self.next_auto_commit_deadline:
            self.commit_all()
            self.next_auto_commit_deadline = now_ms + self.consumer.auto_commit_interval_millis

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

    def _hand_out(self, request: LiteConsumeRequest) -> list[MessageExt]:
        messages, queue, process_queue = request
        offset = process_queue.remove_message(messages)
        self.assigned_message_queue.update_consume_offset(queue, offset)
        if self.node.hooks.on:
            first = messages[0]
            self.node.hooks.emit(
                MessagesPolled(self.group_name, *queue, first.queue_offset, first.msg_id, len(messages), offset)
            )
        if self.consume_message_hooks:
            context = ConsumeMessageContext(self.group_name, messages, queue)
            for hook in self.consume_message_hooks:
                hook.consume_message_before(context)
            context.status = ConsumeConcurrentlyStatus.CONSUME_SUCCESS.value
            context.success = True
            for hook in self.consume_message_hooks:
                hook.consume_message_after(context)
        return messages

    async def next_pull_offset(self, queue: MessageQueue) -> int:
        """Where the next pull begins: where the application wants to go on, else behind the last pull, else as stored.

        -1 when the stored offset cannot be read.
        """
        assigned = self.assigned_message_queue
        state = assigned.state(queue)
        if state is not None and state.seek_offset != UNKNOWN:
            offset = state.seek_offset
            state.consume_offset = offset
            state.seek_offset = UNKNOWN
            return offset
        if state is not None and state.pull_offset != UNKNOWN:
            return state.pull_offset
        self.check_running()
        try:
            return await self.rebalance_impl.compute_pull_from_where(queue)
        except OffsetUnreadableException:
            return UNKNOWN

    # -- moving about -----------------------------------------------------------------------------------------------

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on at another offset of an assigned queue; what is cached of the queue is thrown away.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl.seek.
        """
        async with self.monitor:
            if self.assigned_message_queue.state(queue) is None:
                rebalancing = ", may be rebalancing" if self.subscription_type is SubscriptionType.SUBSCRIBE else ""
                raise MQClientException(
                    f"The message queue is not in assigned list{rebalancing}, message queue: {queue}"
                )
            min_offset, max_offset = await self.min_offset(queue), await self.max_offset(queue)
            if type(offset) is not int or not min_offset <= offset <= max_offset:
                raise MQClientException(
                    f"Seek offset illegal, seek offset = {offset}, min offset = {min_offset}, max offset = {max_offset}"
                )
            self._seek(queue, offset)

    def _seek(self, queue: MessageQueue, offset: int) -> None:
        state = self.assigned_message_queue.state(queue)
        if state is None:
            # The queue went to another member while its offsets were asked for.
            return
        state.process_queue.clear()
        self.consume_request_cache.remove_queue(queue)
        task = self.task_table.pop(queue, None)
        if task is not None:
            task.interrupt()
        state.seek_offset = offset
        if self.node.hooks.on:
            self.node.hooks.emit(QueueSought(self.group_name, *queue, offset))
        self._start_tasks([queue])

    async def min_offset(self, queue: MessageQueue) -> int:
        """The offset of the oldest message of a queue."""
        self.check_running()
        return await self.instance.mq_admin_impl.min_offset(queue)

    async def max_offset(self, queue: MessageQueue) -> int:
        """One more than the offset of the last message of a queue."""
        self.check_running()
        return await self.instance.mq_admin_impl.max_offset(queue)

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the first message that was stored at a time or later."""
        self.check_running()
        return await self.instance.mq_admin_impl.search_offset(queue, timestamp_ms)

    # -- offsets ----------------------------------------------------------------------------------------------------

    async def commit(self, queues: Mapping[MessageQueue, int] | Collection[MessageQueue] | None, persist: bool) -> None:
        """Note offsets as consumed: those given, those behind the last poll of the queues given, or of all queues.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl.commit.
        """
        async with self.monitor:
            self.check_running()
            if queues is None:
                self.commit_all()
                return
            for queue in queues:
                polled = self.assigned_message_queue.consume_offset(queue)
                self._commit(queue, queues[queue] if isinstance(queues, Mapping) else polled)
            if persist and queues:
                self.offset_store.persist_all(queues)

    def commit_all(self) -> None:
        """Note what was polled of every assigned queue, in memory."""
        for queue in self.assigned_message_queue.queues():
            self._commit(queue, self.assigned_message_queue.consume_offset(queue))

    def _commit(self, queue: MessageQueue, offset: int) -> None:
        process_queue = self.assigned_message_queue.process_queue(queue)
        if offset != UNKNOWN and process_queue is not None and not process_queue.dropped:
            self.offset_store.update_offset(queue, offset, increase_only=False)

    async def committed(self, queue: MessageQueue) -> int:
        """The offset that was committed last, -1 without one."""
        self.check_running()
        offset = await self.offset_store.read_offset(queue, ReadOffsetType.MEMORY_FIRST_THEN_STORE)
        if offset == UNREADABLE:
            raise MQClientException("Fetch consume offset from broker exception")
        return offset

    # -- queues of a topic ------------------------------------------------------------------------------------------

    async def fetch_message_queues(self, topic: str) -> list[MessageQueue]:
        """All readable queues of a topic, as the name server tells them now."""
        self.check_running()
        return await self.instance.mq_admin_impl.fetch_subscribe_message_queues(topic)
