"""What a pull consumer does: its life, its pulls, and what its client instance asks of it."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING

from mqlab.client.mq_client_manager import MQClientManager
from mqlab.client.route_table import no_name_server
from mqlab.client.service_state import ServiceState, check_process_lives
from mqlab.errors import LearnerError, MQClientException, SimulationError
from mqlab.protocol.heartbeat import (
    SUB_ALL,
    ConsumeFromWhere,
    ConsumeType,
    ExpressionType,
    MessageModel,
    SubscriptionData,
    build_subscription_data,
)
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.sysflag import PullSysFlag
from mqlab.trace.events.client import (
    ClientStarted,
    ClientStopped,
    PullFinished,
    PullRequested,
    QueueListenerFailed,
)

from .hooks import ConsumeMessageContext, ConsumeMessageHook
from .listener import warn_that_listener_raised
from .message_selector import MessageSelector
from .offset_store import LocalFileOffsetStore, OffsetStore, RemoteBrokerOffsetStore
from .pull_api_wrapper import FilterMessageHook, PullAPIWrapper, PullResult
from .pull_callback import PullAnswer, PullCallback, PullCallbackFunction
from .pull_consumer_config import check_pull_config
from .rebalance_pull_impl import RebalancePullImpl

if TYPE_CHECKING:
    from mqlab.client.mq_client_instance import MQClientInstance
    from mqlab.client.route_table import FindBrokerResult
    from mqlab.protocol.headers import PullMessageRequestHeader
    from mqlab.sim import Life

    from .default_mq_pull_consumer import DefaultMQPullConsumer

MAX_SIZE_IN_BYTES = 0x7FFF_FFFF


class DefaultMQPullConsumerImpl:
    """The consumer behind the public class.

    Java: org.apache.rocketmq.client.impl.consumer.DefaultMQPullConsumerImpl. Differs from RocketMQ: an error that a
    consume hook raises reaches the caller of `pull`, where RocketMQ swallows it.
    """

    consume_type = ConsumeType.CONSUME_ACTIVELY
    consume_from_where = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    """Only for the heartbeat: the application says at which offset it pulls."""

    def __init__(self, consumer: DefaultMQPullConsumer) -> None:
        self.consumer = consumer
        self.node = consumer.node
        self.service_state = ServiceState.CREATE_JUST
        self.consumer_start_ms = consumer.node.now_ms()
        self.rebalance_impl = RebalancePullImpl(self)  # type: ignore[arg-type]  # see RebalancePullImpl
        self.consume_message_hooks: list[ConsumeMessageHook] = []
        self.filter_message_hooks: list[FilterMessageHook] = []
        self.instance_life: Life | None = None
        self.instance: MQClientInstance
        self.pull_api_wrapper: PullAPIWrapper
        self.offset_store: OffsetStore
        self._told: set[str] = set()

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
    def rebalance_settings(self) -> DefaultMQPullConsumer:
        """The settings that the rebalance needs."""
        return self.consumer

    @property
    def unit_mode(self) -> bool:
        """The unit flag of the heartbeat."""
        return self.consumer.unit_mode

    def subscriptions(self) -> list[SubscriptionData]:
        """The registered subscriptions, or else all of every registered topic, always as version 0."""
        registered = self.consumer.register_subscriptions
        if registered:
            return [registered[topic] for topic in sorted(registered)]
        return [build_subscription_data(topic, SUB_ALL) for topic in sorted(self.consumer.register_topics)]

    def is_subscribe_topic_need_update(self, topic: str) -> bool:
        """Whether the topic is subscribed and its queues are unknown."""
        rebalance = self.rebalance_impl
        return topic in rebalance.subscription_inner and topic not in rebalance.topic_subscribe_info_table

    def update_topic_subscribe_info(self, topic: str, queues: Sequence[MessageQueue]) -> None:
        """Take over the queues of a subscribed topic."""
        if topic in self.rebalance_impl.subscription_inner:
            self.rebalance_impl.topic_subscribe_info_table[topic] = list(queues)

    async def try_rebalance(self) -> bool:
        """Rebalance, unless switched off."""
        if not self.consumer.enable_rebalance:
            return True
        return await self.rebalance_impl.do_rebalance()

    def persist_consumer_offset(self) -> None:
        """Write the offsets of all queues held."""
        if self.service_state is ServiceState.RUNNING:
            self.offset_store.persist_all(self.rebalance_impl.process_queue_table)

    async def message_queue_changed(
        self, topic: str, mq_all: Sequence[MessageQueue], mq_divided: Sequence[MessageQueue]
    ) -> None:
        """Tell the application's listener; an error of it is only reported."""
        listener = self.consumer.message_queue_listener
        if listener is None:
            return
        try:
            work = listener(topic, list(mq_all), list(mq_divided))
            if isinstance(work, Coroutine):
                await work
        except SimulationError:
            raise
        except Exception as error:  # noqa: BLE001  # the consumer goes on, as in RocketMQ; an event and a warning tell
            if self.node.hooks.on:
                self.node.hooks.emit(QueueListenerFailed(self.group_name, topic, f"{type(error).__name__}: {error}"))
            hint = "The consumer goes on with its queues."
            warn_that_listener_raised(self.group_name, error, self._told, "the queue listener", hint)

    # -- start and end ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Check the settings, build the parts, and join the client instance; the brokers hear of it 1 s later.

        Raises MQClientException when a setting is wrong, the consumer was started before, or its group is taken.
        """
        check_process_lives(self.instance_life, self.node, "consumer")
        if self.service_state is not ServiceState.CREATE_JUST:
            raise MQClientException(
                f"The PullConsumer service state not OK, maybe started once, {self.service_state}. "
                "What to do: start a consumer once; make a new one after a shutdown."
            )
        self.service_state = ServiceState.START_FAILED
        check_pull_config(self.consumer, self.group_name)
        if not self.consumer.name_server_addresses() and self.consumer.namesrv_domain is None:
            raise no_name_server()
        for topic in self.consumer.register_topics:
            self.subscription_automatically(topic)
        if self.message_model is MessageModel.CLUSTERING:
            self.consumer.change_instance_name_to_pid(self.node)
        self.instance = MQClientManager.of(self.node).get_or_create_mq_client_instance(self.consumer)
        self.instance_life = self.node.life
        self._build()
        if not self.instance.register_consumer(self.group_name, self):
            self.service_state = ServiceState.CREATE_JUST
            raise MQClientException(
                f"The consumer group[{self.group_name}] has been created before, specify another name please. "
                "What to do: give this consumer another group or another instance_name."
            )
        self.instance.start()
        self.service_state = ServiceState.RUNNING
        if self.node.hooks.on:
            self.node.hooks.emit(ClientStarted(self.instance.client_id, self.group_name, "consumer"))

    def _build(self) -> None:
        consumer = self.consumer
        self.pull_api_wrapper = PullAPIWrapper(self.instance, self.group_name, self.unit_mode)
        self.pull_api_wrapper.filter_message_hooks = self.filter_message_hooks
        if consumer.offset_store is not None:
            self.offset_store = consumer.offset_store(self.instance, self.group_name)
        elif self.message_model is MessageModel.BROADCASTING:
            self.offset_store = LocalFileOffsetStore(self.instance, self.group_name)
        else:
            self.offset_store = RemoteBrokerOffsetStore(self.instance, self.group_name)
        self.offset_store.load()

    async def shutdown(self) -> None:
        """Write the offsets, leave the brokers and the instance; without effect unless running."""
        check_process_lives(self.instance_life, self.node, "consumer")
        if self.service_state is not ServiceState.RUNNING:
            return
        self.persist_consumer_offset()
        await self.instance.unregister_consumer(self.group_name)
        await self.instance.shutdown()
        self.rebalance_impl.destroy()
        self.service_state = ServiceState.SHUTDOWN_ALREADY
        if self.node.hooks.on:
            self.node.hooks.emit(ClientStopped(self.instance.client_id, self.group_name, "consumer"))

    def make_sure_state_ok(self) -> None:
        """MQClientException unless the consumer runs, in the process that it was started in."""
        check_process_lives(self.instance_life, self.node, "consumer")
        if self.service_state is not ServiceState.RUNNING:
            raise MQClientException(
                f"The consumer is not in running status, {self.service_state}. "
                "What to do: await consumer.start() first."
            )

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
        self.take_in(queue, result, subscription)
        if self.consume_message_hooks:
            self._run_hooks(queue, result)
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

    def take_in(self, queue: MessageQueue, result: PullResult, subscription: SubscriptionData) -> PullResult:
        """Decode the messages of an answer, and drop those that are not wanted."""
        self.pull_api_wrapper.process_pull_result(queue, result, subscription)
        if self.node.hooks.on:
            self.node.hooks.emit(
                PullFinished(
                    self.group_name,
                    *queue,
                    result.pull_status.value,
                    len(result.msg_found_list),
                    result.next_begin_offset,
                )
            )
        return result

    def _run_hooks(self, queue: MessageQueue, result: PullResult) -> None:
        """What is pulled counts as consumed at once."""
        context = ConsumeMessageContext(self.group_name, result.msg_found_list, queue)
        for hook in self.consume_message_hooks:
            hook.consume_message_before(context)
        context.status = "CONSUME_SUCCESS"
        context.success = True
        for hook in self.consume_message_hooks:
            hook.consume_message_after(context)
