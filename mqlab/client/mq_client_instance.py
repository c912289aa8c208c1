"""The heart of a client process: shared by all producers and consumers with one client id."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from mqlab.client.client_remoting_processor import ClientRemotingProcessor, HeartbeatOnActiveChannel
from mqlab.client.consumer.push.pull_message_service import PullMessageService
from mqlab.client.consumer.rebalance.rebalance_service import RebalanceService
from mqlab.client.heartbeats import Heartbeats
from mqlab.client.mq_admin_impl import MQAdminImpl
from mqlab.client.mq_client_api import MQClientAPIImpl
from mqlab.client.route_table import RouteTable
from mqlab.client.service_state import ServiceState
from mqlab.errors import MQBrokerException, MQClientException, RemotingException
from mqlab.protocol.heartbeat import ExpressionType
from mqlab.sim import Lock, PeriodicTask

if TYPE_CHECKING:
    from mqlab.client.client_config import ClientConfig
    from mqlab.client.inner import MQConsumerInner, MQProducerInner
    from mqlab.sim import Node

NAME_SERVER_FIRST_MS = 10_000
NAME_SERVER_PERIOD_MS = 120_000
ROUTE_FIRST_MS = 10
HEARTBEAT_FIRST_MS = 1_000
PERSIST_FIRST_MS = 10_000


class InnerProducerImpl(Protocol):
    """How an instance begins and ends the producer that is its own."""

    def start(self, instance: MQClientInstance) -> None:
        """Begin, as a producer of this instance."""
        ...

    def shutdown(self, shutdown_instance: bool) -> Coroutine[Any, Any, None]:
        """Leave the instance, and end that, too, if asked to."""
        ...


class InnerProducer(Protocol):
    """The producer of an instance itself, which sends copies of messages to retry topics."""

    @property
    def impl(self) -> InnerProducerImpl:
        """What stands behind the public class."""
        ...

    @property
    def send(self) -> Any:
        """DefaultMQProducer.send."""
        ...


class MQClientInstance:
    """What the clients of one id share: connections, routes, heartbeats, the pull thread, the rebalance thread.

    Java: org.apache.rocketmq.client.impl.factory.MQClientInstance. Differs from RocketMQ: the task that adjusts the
    thread pools of push consumers every minute is absent, since it does nothing there either. An instance that has
    ended calls `forget` with its client id.
    """

    def __init__(
        self,
        node: Node,
        config: ClientConfig,
        client_id: str,
        inner_producer: InnerProducer,
        forget: Callable[[str], None],
    ) -> None:
        self.node = node
        self.config = config
        self.client_id = client_id
        self.service_state = ServiceState.CREATE_JUST
        self.producer_table: dict[str, MQProducerInner] = {}
        self.consumer_table: dict[str, MQConsumerInner] = {}
        self.api = MQClientAPIImpl(node, config)
        self.api.remoting_client.update_name_server_address_list(config.name_server_addresses())
        ClientRemotingProcessor(self).register()
        if config.enable_heartbeat_channel_event_listener:
            self.api.remoting_client.channel_listeners.append(HeartbeatOnActiveChannel(self))
        self.routes = RouteTable(self)
        self.mq_admin_impl = MQAdminImpl(self)
        self.heartbeats = Heartbeats(self)
        self.pull_message_service = PullMessageService(self)
        self.rebalance_service = RebalanceService(self)
        self.inner_producer = inner_producer
        self.member_list_problem = ""
        """Why the last list of members could not be had; for those who watch."""
        self._forget = forget
        self._scheduler = Lock("the thread of the scheduled tasks")
        self._periodic: list[PeriodicTask] = []

    # -- start and end ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start everything, once; later calls are ignored. MQClientException after a failed start.

        Java: org.apache.rocketmq.client.impl.factory.MQClientInstance.start.
        """
        if self.service_state is ServiceState.START_FAILED:
            raise MQClientException(f"The Factory object[{self.client_id}] has been created before, and failed.")
        if self.service_state is not ServiceState.CREATE_JUST:
            return
        self.service_state = ServiceState.START_FAILED
        self.api.start()
        self._start_scheduled_tasks()
        self.pull_message_service.start()
        self.rebalance_service.start()
        self.inner_producer.impl.start(self)
        self.service_state = ServiceState.RUNNING

    def _start_scheduled_tasks(self) -> None:
        config = self.config
        every = self._schedule
        if self.api.top_addressing is not None:
            every(
                self.api.fetch_name_server_addr, NAME_SERVER_FIRST_MS, NAME_SERVER_PERIOD_MS, "fetch name servers"
            )
        every(self._refresh_routes, ROUTE_FIRST_MS, config.poll_name_server_interval, "route refresh")
        every(self._clean_and_greet, HEARTBEAT_FIRST_MS, config.heartbeat_broker_interval, "heartbeat")
        every(self._persist_offsets, PERSIST_FIRST_MS, config.persist_consumer_offset_interval, "persist offsets")

    def _schedule(
        self, task: Callable[[], Coroutine[Any, Any, None] | None], initial_ms: int, period_ms: int, name: str
    ) -> None:
        """Repeat a task on the one thread of the scheduler: it waits while another task holds that."""

        async def in_turn() -> None:
            await self._scheduler.acquire()
            await run()

        async def run(begun: Coroutine[Any, Any, None] | None = None) -> None:
            try:
                work = begun or task()
                if work is not None:
                    await work
            finally:
                self._scheduler.release()

        def tick() -> Coroutine[Any, Any, None] | None:
            if not self._scheduler.try_acquire():
                return in_turn()
            work = task()
            if work is None:
                self._scheduler.release()
                return None
            return run(work)

        self._periodic.append(self.node.schedule_at_fixed_rate(tick, initial_ms, period_ms, name))

    def _refresh_routes(self) -> Coroutine[Any, Any, None] | None:
        topics = {topic for producer in self.producer_table.values() for topic in producer.publish_topic_list()}
        for consumer in self.consumer_table.values():
            topics.update(subscription.topic for subscription in consumer.subscriptions())
        return self.routes.refresh_all(topics) if topics else None

    def _clean_and_greet(self) -> Coroutine[Any, Any, None] | None:
        self.heartbeats.clean_offline_brokers()
        return self._greet() if self.routes.broker_addr_table else None

    async def _greet(self) -> None:
        await self.heartbeats.send_to_all_brokers()

    def _persist_offsets(self) -> None:
        for consumer in self.consumer_table.values():
            consumer.persist_consumer_offset()

    async def shutdown(self) -> None:
        """End everything, unless clients are still registered here.

        Java: org.apache.rocketmq.client.impl.factory.MQClientInstance.shutdown.
        """
        if self.consumer_table or len(self.producer_table) > 1:
            return
        if self.service_state is not ServiceState.RUNNING:
            return
        await self.inner_producer.impl.shutdown(False)
        self.service_state = ServiceState.SHUTDOWN_ALREADY
        self.pull_message_service.shutdown()
        for task in self._periodic:
            task.cancel()
        self.api.shutdown()
        self.rebalance_service.shutdown()
        self._forget(self.client_id)

    # -- who lives here ---------------------------------------------------------------------------------------------

    def register_producer(self, group: str, producer: MQProducerInner) -> bool:
        """Take in a producer; False if its group is here already.

        Java: org.apache.rocketmq.client.impl.factory.MQClientInstance.registerProducer.
        """
        return self.producer_table.setdefault(group, producer) is producer

    def register_consumer(self, group: str, consumer: MQConsumerInner) -> bool:
        """Take in a consumer; False if its group is here already.

        Java: org.apache.rocketmq.client.impl.factory.MQClientInstance.registerConsumer.
        """
        return self.consumer_table.setdefault(group, consumer) is consumer

    async def unregister_producer(self, group: str) -> None:
        """Let a producer go, and tell all brokers."""
        if self.producer_table.pop(group, None) is not None:
            await self._unregister_client(group, None)

    async def unregister_consumer(self, group: str) -> None:
        """Let a consumer go, and tell all brokers."""
        if self.consumer_table.pop(group, None) is not None:
            await self._unregister_client(None, group)

    async def _unregister_client(self, producer_group: str | None, consumer_group: str | None) -> None:
        timeout_ms = self.config.mq_client_api_timeout
        for _, addresses in sorted(self.routes.broker_addr_table.items()):
            for _, address in sorted(addresses.items()):
                try:
                    await self.api.unregister_client(
                        address, self.client_id, producer_group, consumer_group, timeout_ms
                    )
                except (RemotingException, MQBrokerException):
                    # A broker that cannot be told finds out by itself: the connection ends, the heartbeats stay away.
                    continue

    # -- duties -----------------------------------------------------------------------------------------------------

    async def check_client_in_broker(self) -> None:
        """Ask a broker whether it can filter as the consumers here want; only other filters than tags need asking.

        Java: org.apache.rocketmq.client.impl.factory.MQClientInstance.checkClientInBroker.
        """
        for group, consumer in self.consumer_table.items():
            for subscription in list(consumer.subscriptions()):
                if ExpressionType.is_tag_type(subscription.expression_type):
                    continue
                address = self.routes.find_broker_addr_by_topic(subscription.topic)
                if address is None:
                    continue
                try:
                    await self.api.check_client_in_broker(
                        address, group, self.client_id, subscription, self.config.mq_client_api_timeout
                    )
                except RemotingException as error:
                    failure = MQClientException(
                        f"Check client in broker error: {error}. What to do: a subscription with "
                        f"{subscription.expression_type} needs a broker that can be asked; see that it runs."
                    )
                    # Compiled code leaves `from` out, and who starts clients again asks for the cause.
                    failure.__cause__ = error
                    raise failure from error

    async def find_consumer_id_list(self, topic: str, group: str) -> list[str] | None:
        """The members of a group, as one broker of the topic knows them; None when it cannot be asked.

        Java: org.apache.rocketmq.client.impl.factory.MQClientInstance.findConsumerIdList.
        """
        address = self.routes.find_broker_addr_by_topic(topic)
        if address is None:
            await self.routes.refresh(topic)
            address = self.routes.find_broker_addr_by_topic(topic)
        if address is None:
            self.member_list_problem = "no broker of the topic is known"
            return None
        try:
            return await self.api.get_consumer_id_list_by_group(address, group, None, self.config.mq_client_api_timeout)
        except (RemotingException, MQBrokerException) as error:
            self.member_list_problem = str(error)
            return None

    async def do_rebalance(self) -> bool:
        """Let every consumer here rebalance; False if one of them wants to try again soon."""
        balanced = True
        for consumer in list(self.consumer_table.values()):
            if not await consumer.try_rebalance():
                balanced = False
        return balanced

    def rebalance_immediately(self) -> None:
        """Wake the rebalance thread.

        Java: org.apache.rocketmq.client.impl.factory.MQClientInstance.rebalanceImmediately.
        """
        self.rebalance_service.wakeup()

    def rebalance_later(self, delay_ms: int) -> None:
        """Wake the rebalance thread after a while."""
        if delay_ms <= 0:
            self.rebalance_service.wakeup()
        else:
            self.node.call_later(delay_ms, self.rebalance_service.wakeup, name="rebalance later")

    def __repr__(self) -> str:
        return (
            f"<MQClientInstance {self.client_id}: {self.service_state}, {len(self.producer_table)} producers, "
            f"{len(self.consumer_table)} consumers>"
        )
