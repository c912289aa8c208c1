"""What all consumers do behind their public classes: answer their client instance, join it, and leave it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from mqlab.client.consumer.listener import warn_that_listener_raised
from mqlab.client.consumer.offset_store import LocalFileOffsetStore, OffsetStore, RemoteBrokerOffsetStore
from mqlab.client.consumer.pull_api_wrapper import FilterMessageHook, PullAPIWrapper
from mqlab.client.mq_client_manager import MQClientManager
from mqlab.client.route_table import no_name_server
from mqlab.client.service_state import ServiceState, check_process_lives
from mqlab.errors import LearnerError, MQClientException, SimulationError
from mqlab.protocol.heartbeat import ConsumeFromWhere, ConsumeType, MessageModel, SubscriptionData
from mqlab.protocol.message import MessageQueue
from mqlab.trace.events.client import ClientStarted, ClientStopped, QueueListenerFailed

if TYPE_CHECKING:
    from mqlab.client.consumer.hooks import ConsumeMessageHook
    from mqlab.client.consumer.lite.lite_pull_consumer_config import LitePullConsumerConfig
    from mqlab.client.consumer.pull.pull_consumer_config import PullConsumerConfig
    from mqlab.client.consumer.push.push_consumer_config import PushConsumerConfig
    from mqlab.client.consumer.rebalance.rebalance_impl import RebalanceImpl
    from mqlab.client.mq_client_instance import MQClientInstance
    from mqlab.protocol.bodies import ConsumeMessageDirectlyResult, ConsumerRunningInfo
    from mqlab.protocol.message import MessageExt
    from mqlab.sim import Life, Node

ROLE = "consumer"

MessageQueueListener = Callable[[str, "list[MessageQueue]", "list[MessageQueue]"], object]
"""(topic, all queues, my queues): called when a rebalance changed something."""


class PublicConsumer(Protocol):
    """What an application hangs into its consumer, whichever of the three that is."""

    node: Node
    consumer_group: str
    offset_store: Callable[[MQClientInstance, str], OffsetStore] | None
    consume_message_hooks: list[ConsumeMessageHook]
    filter_message_hooks: list[FilterMessageHook]


class ConsumerImpl(ABC):
    """The part that push, pull and lite pull consumers have in common.

    In Java each of the three has a copy of its own. A subclass says what it subscribes to, how it rebalances, and puts
    the steps of its start and its end into their order.
    """

    kind: ClassVar[str]
    """How the errors of a start name this consumer."""
    not_running: ClassVar[str]
    """RocketMQ's words for a call to a consumer that does not run; its state comes behind them."""
    consume_type: ClassVar[ConsumeType]
    rebalance_impl: RebalanceImpl

    def __init__(
        self, settings: PushConsumerConfig | PullConsumerConfig | LitePullConsumerConfig, consumer: PublicConsumer
    ) -> None:
        self.settings = settings
        self._public = consumer
        self.node = consumer.node
        self.service_state = ServiceState.CREATE_JUST
        self.consumer_start_ms = consumer.node.now_ms()
        self.consume_message_hooks = consumer.consume_message_hooks
        self.instance_life: Life | None = None
        self.instance: MQClientInstance
        self.pull_api_wrapper: PullAPIWrapper
        self.offset_store: OffsetStore
        self._told: set[str] = set()

    # -- what the instance asks -------------------------------------------------------------------------------------

    @property
    def group_name(self) -> str:
        return self._public.consumer_group

    @property
    def message_model(self) -> MessageModel:
        """Whether the group shares the messages (CLUSTERING), or each member gets all (BROADCASTING)."""
        return self.settings.message_model

    @property
    def unit_mode(self) -> bool:
        """The unit flag of the heartbeat."""
        return self.settings.unit_mode

    @property
    def consume_from_where(self) -> ConsumeFromWhere:
        """What the heartbeats of consumers that pull by themselves say, whatever is set."""
        return ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET

    def subscriptions(self) -> list[SubscriptionData]:
        """The subscriptions, by topic."""
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

    @abstractmethod
    async def try_rebalance(self) -> bool:
        """Rebalance; False when it wants to try again soon."""

    def persist_consumer_offset(self) -> None:
        """Write the offsets of all queues held."""
        if self.service_state is ServiceState.RUNNING:
            self.offset_store.persist_all(self.rebalance_impl.process_queue_table)

    @abstractmethod
    async def consumer_running_info(self) -> ConsumerRunningInfo:
        """What this consumer is at, for administrators."""

    def consumer_status(self, topic: str) -> Mapping[MessageQueue, int]:
        """How far this consumer is in the queues of a topic, as it knows itself."""
        return self.offset_store.clone_offset_table(topic)

    def consume_message_directly(
        self, message: MessageExt, broker_name: str | None
    ) -> Coroutine[Any, Any, ConsumeMessageDirectlyResult] | None:
        """Consume one message because an administrator wants it; None where there is no listener."""
        return None

    def reset_offset(
        self, topic: str, offset_table: Mapping[MessageQueue, int]
    ) -> Coroutine[Any, Any, None] | None:
        """Go on at these offsets, as a broker says; None: only a push consumer does."""
        return None

    async def tell(self, listener: Callable[..., object], topic: str, *queues: list[MessageQueue]) -> None:
        """Call a listener for queues, plain or `async`; what it raises is an event and a warning."""
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

    # -- the steps of a start and of an end -------------------------------------------------------------------------

    def _check_not_started(self) -> None:
        """MQClientException unless this is the first start; from here on a start that ends early has failed."""
        check_process_lives(self.instance_life, self.node, ROLE)
        if self.service_state is not ServiceState.CREATE_JUST:
            raise MQClientException(
                f"The {self.kind} service state not OK, maybe started once, {self.service_state}. "
                "What to do: start a consumer once; make a new one after a shutdown."
            )
        self.service_state = ServiceState.START_FAILED

    def _check_name_servers(self) -> None:
        if not self.settings.name_server_addresses() and self.settings.namesrv_domain is None:
            raise no_name_server()

    def _find_instance(self) -> None:
        """Get the client instance of this consumer's client id; in clustering the id is the process's own."""
        if self.message_model is MessageModel.CLUSTERING:
            self.settings.change_instance_name_to_pid(self.node)
        self.instance = MQClientManager.of(self.node).get_or_create_mq_client_instance(self.settings)
        self.instance_life = self.node.life

    def _build_pulling(self) -> None:
        """Make the pull wrapper and the offset store."""
        self.pull_api_wrapper = PullAPIWrapper(self.instance, self.group_name, self.unit_mode)
        self.pull_api_wrapper.filter_message_hooks = self._public.filter_message_hooks
        if self._public.offset_store is not None:
            self.offset_store = self._public.offset_store(self.instance, self.group_name)
        elif self.message_model is MessageModel.BROADCASTING:
            self.offset_store = LocalFileOffsetStore(self.instance, self.group_name)
        else:
            self.offset_store = RemoteBrokerOffsetStore(self.instance, self.group_name)
        self.offset_store.load()

    def _register(self) -> None:
        """Join the instance; MQClientException when it has one of this group; then the start may be tried again."""
        if not self.instance.register_consumer(self.group_name, self):
            self.service_state = ServiceState.CREATE_JUST
            raise MQClientException(
                f"The consumer group[{self.group_name}] has been created before, specify another name please. "
                "What to do: give this consumer another group or another instance_name."
            )

    def _runs(self) -> None:
        self.service_state = ServiceState.RUNNING
        if self.node.hooks.on:
            self.node.hooks.emit(ClientStarted(self.instance.client_id, self.group_name, ROLE))

    def _is_up(self) -> bool:
        """Whether there is anything to shut down; MQClientException in another process than that of the start."""
        check_process_lives(self.instance_life, self.node, ROLE)
        return self.service_state is ServiceState.RUNNING

    def _has_ended(self) -> None:
        self.service_state = ServiceState.SHUTDOWN_ALREADY
        if self.node.hooks.on:
            self.node.hooks.emit(ClientStopped(self.instance.client_id, self.group_name, ROLE))

    def check_can_be_told(self) -> None:
        """LearnerError for a consumer that ran when its process ended: nobody is there to tell the brokers of a change.
        """
        if self.service_state is ServiceState.RUNNING:
            check_process_lives(self.instance_life, self.node, ROLE)
            if self.node.life.over:
                name = self.node.name
                raise LearnerError(f"{name} is down, and this {ROLE} with it", f"lab.restart({name!r}), then try again")

    def make_sure_state_ok(self) -> None:
        """MQClientException unless the consumer runs, in the process that it was started in."""
        check_process_lives(self.instance_life, self.node, ROLE)
        if self.service_state is not ServiceState.RUNNING:
            ended = self.service_state is ServiceState.SHUTDOWN_ALREADY
            raise MQClientException(
                f"{self.not_running} {self.service_state}. What to do: "
                + ("make a new one, this one was shut down." if ended else "await consumer.start() first.")
            )
