"""A broker: the process that keeps messages."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from mqlab.broker.admin_broker_processor import AdminBrokerProcessor
from mqlab.broker.broadcast_offset_manager import BroadcastOffsetManager
from mqlab.broker.broker_config import BrokerConfig
from mqlab.broker.broker_executors import BrokerExecutors
from mqlab.broker.broker_fast_failure import BrokerFastFailure
from mqlab.broker.broker_outer_api import BrokerOuterAPI
from mqlab.broker.broker_processors import POPS, register_processors
from mqlab.broker.broker_stats import BrokerStats
from mqlab.broker.client_housekeeping_service import ClientHousekeepingService
from mqlab.broker.consumer_manager import ConsumerManager
from mqlab.broker.consumer_offset_manager import ConsumerOffsetManager
from mqlab.broker.default_consumer_ids_change_listener import DefaultConsumerIdsChangeListener
from mqlab.broker.errors import RequestError
from mqlab.broker.filter.consumer_filters import ConsumerFilters
from mqlab.broker.notify_message_arriving_listener import NotifyMessageArrivingListener
from mqlab.broker.pop_start import disk_holds_pop, make_pop_with_the_first_check_point
from mqlab.broker.producer_manager import ProducerManager
from mqlab.broker.pull_message_processor import PullMessageProcessor
from mqlab.broker.pull_request_hold_service import PullRequestHoldService
from mqlab.broker.rebalance_lock_manager import RebalanceLockManager
from mqlab.broker.schedule_message_service import ScheduleMessageService
from mqlab.broker.subscription_group_manager import SubscriptionGroupManager
from mqlab.broker.topic_attributes import is_batch_cq
from mqlab.broker.topic_config_manager import TopicConfigManager
from mqlab.broker.whole_broker import WholeBroker
from mqlab.errors import MQBrokerException
from mqlab.protocol.headers import RegisterBrokerRequestHeader, UnRegisterBrokerRequestHeader
from mqlab.protocol.route import MASTER_ID
from mqlab.protocol.sysflag import PermName
from mqlab.protocol.topic_config import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
)
from mqlab.protocol.topics import RMQ_SYS_TRANS_HALF_TOPIC, TIMER_TOPIC
from mqlab.remoting import RemotingServer, RemotingServerConfig
from mqlab.sim import public_call, used_share
from mqlab.store import BrokerRole, DefaultMessageStore, MessageStoreConfig
from mqlab.trace.events.broker import BrokerShutDown, BrokerStarted, MinBrokerChanged

if TYPE_CHECKING:
    from collections.abc import Callable

    from mqlab.auth.auth_config import AuthConfig
    from mqlab.broker.auth.broker_auth import BrokerAuth
    from mqlab.broker.broker_outer_api import RegisterBrokerResult
    from mqlab.broker.coldctr.cold_data_control import ColdDataControl
    from mqlab.broker.ha.default_ha_service import DefaultHAService
    from mqlab.broker.ha.slave_synchronize import SlaveSynchronize
    from mqlab.broker.pop.pop_services import PopServices
    from mqlab.broker.query_assignment_processor import QueryAssignmentProcessor
    from mqlab.broker.transaction.transaction_services import TransactionServices
    from mqlab.sim import Future, Node, PeriodicTask, Transport
    from mqlab.store import MessageExtBrokerInner, PutMessageResult
    from mqlab.store.timer import TimerMessageStore

REGISTER_FIRST_MS = 10_000
FLUSH_OFFSET_FIRST_MS = 10_000


class BrokerService(Protocol):
    """A part of a broker that works by itself from the broker's start to its end."""

    def start(self) -> None:
        """Begin to work; this is called once, when the broker starts."""
        ...

    def shutdown(self) -> None:
        """Do nothing from now on."""
        ...


class BrokerController(WholeBroker):
    """Everything of one broker (org.apache.rocketmq.broker.BrokerController).

    Made, it has read nothing; `start()` loads its tables, recovers its store, opens its port and reports to the name
    servers. A crash needs no farewell: a new controller on the same disk goes on with what the files hold.
    """

    def __init__(
        self,
        node: Node,
        broker_config: BrokerConfig,
        message_store_config: MessageStoreConfig | None = None,
        auth_config: AuthConfig | None = None,
    ) -> None:
        self.node = node
        self.broker_config = broker_config
        self.message_store_config = message_store_config or MessageStoreConfig()
        self.broker_ip = broker_config.broker_ip1 or node.spec.ip
        self.broker_addr = f"{self.broker_ip}:{broker_config.listen_port}"
        self.registered_once = False
        self.is_shutdown = False
        self.stats = BrokerStats(node, broker_config.broker_cluster_name)
        self.config_version = DataVersion(node.now_ms())

        config_path = self.message_store_config.path("config")
        self.topic_config_manager = TopicConfigManager(
            node, f"{config_path}/topics.json", broker_config, self.register_increment_broker_data
        )
        self.subscription_group_manager = SubscriptionGroupManager(
            node, f"{config_path}/subscriptionGroup.json", broker_config
        )
        self.consumer_offset_manager = ConsumerOffsetManager(node, f"{config_path}/consumerOffset.json")
        self.message_store = DefaultMessageStore(node, self.message_store_config, is_batch_topic=self._is_batch_topic)
        self.schedule_message_service = ScheduleMessageService(
            node, f"{config_path}/delayOffset.json", broker_config, self.message_store, self.stats
        )
        self.timer: TimerMessageStore | None = None
        """The timer, made with the first timer message, or at the start when the disk holds files of one."""
        self.schedule_message_service.transform_timer_message = self._transform_timer_message
        self.message_store.put_message_hooks.append(self.schedule_message_service.handle_schedule_message)

        self.remoting_server = RemotingServer(
            node,
            broker_config.listen_port,
            "Broker",
            RemotingServerConfig(
                enable_shutdown_gracefully=broker_config.enable_shutdown_gracefully,
                shutdown_wait_time_seconds=broker_config.shutdown_wait_time_seconds,
            ),
        )
        self.broker_outer_api = BrokerOuterAPI(node)
        self.executors = BrokerExecutors(node, broker_config)
        self.rebalance_lock_manager = RebalanceLockManager(node, broker_config.rebalance_lock_max_live_time)
        self.consumer_filters = ConsumerFilters(self)
        self.consumer_ids_change_listener = DefaultConsumerIdsChangeListener(
            node, broker_config, self.remoting_server, self.consumer_filters
        )
        self.consumer_manager = ConsumerManager(
            node, self.consumer_ids_change_listener, broker_config.channel_expired_timeout
        )
        self.producer_manager = ProducerManager(node, broker_config.channel_expired_timeout)
        self.client_housekeeping_service = ClientHousekeepingService(node, self.producer_manager, self.consumer_manager)
        self.broadcast_offset_manager = BroadcastOffsetManager(
            node, self.consumer_manager, self.consumer_offset_manager
        )
        self.pull_message_processor = PullMessageProcessor(self)
        self.pull_request_hold_service = PullRequestHoldService(
            node,
            broker_config,
            self.message_store.get_max_offset_in_queue,
            self.pull_message_processor.execute_request_when_wakeup,
        )
        self.broker_fast_failure = BrokerFastFailure(
            node, broker_config, self.executors, self.message_store.is_os_page_cache_busy
        )
        self.notify_message_arriving_listener = NotifyMessageArrivingListener(
            broker_config, self.schedule_message_service, [self.pull_request_hold_service]
        )
        self.start_us = node.now_us()
        self.made_transactions: TransactionServices | None = None
        self.made_ha = None
        self.made_pop: PopServices | None = None
        self.change_pop: Callable[[PopServices], None] | None = None
        """Puts other parts in the place of some of Pop's, before they start; None leaves all as they are."""
        self._auth_config = auth_config
        self._auth: BrokerAuth | None = None
        self._cold_data_control: ColdDataControl | None = None
        self._query_assignment_processor: QueryAssignmentProcessor | None = None
        self._periodic: list[PeriodicTask] = []
        self._tables = (self.topic_config_manager, self.subscription_group_manager, self.consumer_offset_manager)
        self.services: list[BrokerService] = [
            self.consumer_filters,
            self.broadcast_offset_manager,
            self.client_housekeeping_service,
            self.consumer_ids_change_listener,
            self.broker_fast_failure,
        ]
        """What begins when the port is open, in this order, and ends before it is closed; a new part adds itself."""
        self.min_broker_id_in_group = MASTER_ID
        self.slave_synchronize: SlaveSynchronize | None = None
        if self.message_store_config.broker_role is BrokerRole.SLAVE:
            from mqlab.broker.ha.slave_synchronize import SlaveSynchronize

            self.slave_synchronize = SlaveSynchronize(self)
            self.services.append(self.slave_synchronize)

    def _is_batch_topic(self, topic: str) -> bool:
        config = self.topic_config_manager.topic_config_table.get(topic)
        return config is not None and is_batch_cq(config.attributes)

    @property
    def store_host(self) -> str:
        """The broker's address, or the one at which it is served."""
        return self.node.outer_address(self.broker_addr)

    @property
    def pop(self) -> PopServices:
        """The parts of Pop, made and started now if nobody has needed them before.

        Differs from RocketMQ: a broker from which nobody pops has none of them; when they come, their threads turn when
        those would that began with the broker.
        """
        services = self.made_pop
        if services is None:
            from mqlab.broker.pop.pop_services import PopServices

            services = self.made_pop = PopServices(self)
            if self.change_pop is not None:
                self.change_pop(services)
            services.start()
            register_processors(self, POPS, now=True)
        return services

    # -- access control ---------------------------------------------------------------------------------------------

    @property
    def auth(self) -> BrokerAuth:
        """Users and rules, read now if nobody has needed them before."""
        auth = self._auth
        if auth is None:
            from mqlab.broker.auth.broker_auth import BrokerAuth

            auth = self._auth = BrokerAuth(self, self._auth_config)
        return auth

    # -- transactions ------------------------------------------------------------------------------------------------

    @property
    def transactions(self) -> TransactionServices:
        """The parts of transactions, made and started now if nobody has needed them before."""
        services = self.made_transactions
        if services is None:
            from mqlab.broker.transaction.transaction_services import TransactionServices

            services = self.made_transactions = TransactionServices(self)
            services.start()
        return services

    def prepare_message(self, message: MessageExtBrokerInner) -> PutMessageResult | Future[PutMessageResult]:
        """Store a message of a transaction as a half message."""
        return self.transactions.prepare_message(message)

    # -- cold data --------------------------------------------------------------------------------------------------

    @property
    def cold_data_control(self) -> ColdDataControl:
        """Who holds readers of old messages back, made and started now if nobody has needed it before."""
        control = self._cold_data_control
        if control is None:
            from mqlab.broker.coldctr.cold_data_control import ColdDataControl

            control = self._cold_data_control = ColdDataControl(self, self.pull_message_processor)
            control.start()
        return control

    def follow_settings(self) -> None:
        """Let cold data control go on or stop, and have what a synchronous master needs, as the settings say."""
        if self.message_store_config.broker_role is not BrokerRole.ASYNC_MASTER:
            _ = self.ha_service
        if self._cold_data_control is not None:
            self._cold_data_control.follow_settings()

    # -- replication ------------------------------------------------------------------------------------------------

    @property
    def ha_service(self) -> DefaultHAService:
        """The broker's part in replication, made and started now if nobody has needed it before."""
        service = self.made_ha
        if service is None:
            from mqlab.broker.ha.default_ha_service import DefaultHAService

            service = self.made_ha = DefaultHAService(self.node, self.message_store)
            service.start()
        return service

    def _accept_replica(self, transport: Transport) -> None:
        self.ha_service.accept(transport)

    # -- the timer --------------------------------------------------------------------------------------------------

    @property
    def timer_message_store(self) -> TimerMessageStore:
        """The timer, made now if there was none."""
        return self.timer or self._begin_timer()

    def _begin_timer(self) -> TimerMessageStore:
        from mqlab.broker.timer_messages import begin_timer

        self.timer = begin_timer(self)
        return self.timer

    def _holds_timer_files(self) -> bool:
        """Has this broker had a timer before?"""
        exists, path = self.node.disk.exists, self.message_store_config.path
        return (
            exists(path("timerwheel"))
            or exists(path("config", "timercheck"))
            or self.message_store.get_max_offset_in_queue(TIMER_TOPIC, 0) > 0
        )

    def _transform_timer_message(self, message: MessageExtBrokerInner) -> PutMessageResult | None:
        """Import what the first timer message needs, which then takes this function's place."""
        from mqlab.broker.timer_messages import transform_timer_message

        transform = partial(transform_timer_message, self)
        self.schedule_message_service.transform_timer_message = transform
        return transform(message)

    def timer_behind(self) -> bool:
        """Is the timer a second or more behind?"""
        return self.timer is not None and self.timer.is_behind()

    # -- life -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Load the tables, recover the store, open the port, report to the name servers, begin the periodic work."""
        self.start_us = self.node.now_us()
        for table in self._tables:
            table.load_or_fail()
        self.consumer_filters.load_or_fail()
        if self._auth_config is not None:
            self.auth.guard()
        self.message_store.load()
        self.schedule_message_service.load_or_fail()
        self.message_store.message_arriving_listener = self.notify_message_arriving_listener.arriving
        self._register_processors()
        self.message_store.start()
        self.node.listen(self.broker_config.ha_listen_port, self._accept_replica)
        if self.message_store_config.broker_role is not BrokerRole.ASYNC_MASTER:
            _ = self.ha_service
        if self.message_store_config.timer_wheel_enable and self._holds_timer_files():
            self._begin_timer()
        self.remoting_server.channel_listeners.append(self.client_housekeeping_service)
        self.remoting_server.start()
        self.broker_outer_api.update_name_server_address_list(self.broker_config.namesrv_list())
        self.pull_request_hold_service.start()
        if self.message_store_config.cold_data_flow_control_enable:
            self.cold_data_control.begin()
        if disk_holds_pop(self):
            _ = self.pop
        elif self.timer is not None:
            make_pop_with_the_first_check_point(self)
        if self.message_store.get_max_offset_in_queue(RMQ_SYS_TRANS_HALF_TOPIC, 0) > 0:
            _ = self.transactions
        self.executors.watch(self.broker_fast_failure.wakeup_for_work)
        for service in self.services:
            service.start()
        self.schedule_message_service.start()
        if self.node.hooks.on:
            config = self.broker_config
            self.node.hooks.emit(BrokerStarted(config.broker_name, config.broker_id, self.broker_addr))
        self.node.spawn(self.register_broker_all(), "register broker")
        self._schedule()

    def _schedule(self) -> None:
        config, node = self.broker_config, self.node
        self._periodic = [
            node.schedule_at_fixed_rate(
                self.consumer_offset_manager.persist,
                FLUSH_OFFSET_FIRST_MS,
                config.flush_consumer_offset_interval,
                "persist consumer offsets",
            ),
            node.schedule_at_fixed_rate(
                self.register_broker_all, REGISTER_FIRST_MS, config.registration_period_ms(), "register broker"
            ),
        ]

    def _register_processors(self) -> None:
        register_processors(self)
        pools, times = self.executors, self.broker_config.service_us
        self.remoting_server.register_default_processor(AdminBrokerProcessor(self), pools.admin, times.admin)

    @public_call
    async def shutdown(self) -> None:
        """End in good order: leave the name servers, write everything, close the store; a second call does nothing."""
        if self.is_shutdown:
            return
        self.is_shutdown = True
        for periodic in self._periodic:
            periodic.cancel()
        await self.broker_outer_api.unregister_broker_all(
            UnRegisterBrokerRequestHeader(
                self.broker_config.broker_name,
                self.broker_addr,
                self.broker_config.broker_cluster_name,
                self.broker_config.broker_id,
            )
        )
        self.pull_request_hold_service.shutdown()
        if self._cold_data_control is not None:
            self._cold_data_control.shutdown()
        for service in self.services:
            service.shutdown()
        await self.remoting_server.leave()
        if self.made_pop is not None:
            await self.made_pop.shutdown()
        if self.made_transactions is not None:
            self.made_transactions.shutdown()
        if self.timer is not None:
            self.timer.shutdown()
        self.schedule_message_service.shutdown()
        if self._query_assignment_processor is not None:
            self._query_assignment_processor.shutdown()
        self.node.stop_listening(self.broker_config.ha_listen_port)
        if self.made_ha is not None:
            self.made_ha.shutdown()
        self.message_store.shutdown()
        self.executors.close()
        for table in self._tables:
            table.persist()
        self.broker_outer_api.shutdown()
        if self.node.hooks.on:
            self.node.hooks.emit(BrokerShutDown(self.broker_config.broker_name, self.broker_config.broker_id))

    # -- registration -----------------------------------------------------------------------------------------------

    async def register_broker_all(self, *, oneway: bool = False) -> None:
        """Report all topics to all name servers (BrokerController.registerBrokerAll)."""
        topics = self.topic_config_manager
        await self._register(list(topics.topic_config_table.values()), topics.data_version.copy(), oneway=oneway)
        self.registered_once = True

    def register_increment_broker_data(self, changed: list[TopicConfig]) -> None:
        """Report only the topics that are new or changed, at once."""
        if self.broker_outer_api.name_servers:
            version = self.topic_config_manager.data_version.copy()
            self.node.spawn(self._register(list(changed), version, oneway=False), "register topics")

    async def _register(self, topics: list[TopicConfig], version: DataVersion, *, oneway: bool) -> None:
        config = self.broker_config
        wrapper = TopicConfigAndMappingSerializeWrapper(
            {topic.topic_name: self._restricted(topic) for topic in topics},
            version,
            DataVersion(self.node.now_ms()),
        )
        header = RegisterBrokerRequestHeader(
            config.broker_name,
            self.broker_addr,
            config.broker_cluster_name,
            f"{self.broker_ip}:{config.ha_listen_port}",
            config.broker_id,
            None,
            config.enable_slave_acting_master,
        )
        results = await self.broker_outer_api.register_broker_all(
            header, RegisterBrokerBody(wrapper), config.register_broker_timeout_mills, oneway=oneway
        )
        # As in RocketMQ only the first name server to answer is listened to.
        for result in results[:1]:
            self._take_master(result)
            if result.kv_table is not None:
                self.topic_config_manager.update_order_topic_config(result.kv_table)

    def _take_master(self, result: RegisterBrokerResult) -> None:
        """Of a slave: follow the master that a name server knows, and ask it for the tables; none while it has none.

        Java: org.apache.rocketmq.broker.BrokerController.handleRegisterBrokerResult.
        """
        if self.slave_synchronize is None or self.made_ha is None or self.made_ha.ha_client is None:
            return
        if result.ha_server_addr and not self.message_store_config.ha_master_address:
            self.made_ha.ha_client.update_ha_master_address(result.ha_server_addr)
        self.slave_synchronize.master_addr = result.master_addr

    def update_min_broker(
        self, min_broker_id: int, min_broker_addr: str | None, offline_broker_addr: str | None, ha_addr: str | None
    ) -> None:
        """Another broker of the group has the smallest id: a slave leaves a master that is gone, and follows one that
        is there again.

        Java: org.apache.rocketmq.broker.BrokerController.updateMinBroker. Differs from RocketMQ: a slave with the
        smallest id does nothing in its master's place, and the group is not asked for its members each second.
        """
        synchronize = self.slave_synchronize
        is_new = min_broker_id != self.min_broker_id_in_group
        if synchronize is None or not self.broker_config.enable_slave_acting_master or not is_new:
            return
        self.min_broker_id_in_group = min_broker_id
        if self.node.hooks.on:
            self.node.hooks.emit(MinBrokerChanged(min_broker_id, min_broker_addr or "", offline_broker_addr or ""))
        client = self.ha_service.ha_client
        assert client is not None
        if offline_broker_addr is not None and offline_broker_addr == synchronize.master_addr:
            self.broker_outer_api.remoting_client.close_channel(offline_broker_addr)
            synchronize.master_addr = None
            client.update_ha_master_address(None)
        if min_broker_id == MASTER_ID and ha_addr is not None:
            client.update_ha_master_address(ha_addr)

    def _restricted(self, topic: TopicConfig) -> TopicConfig:
        """The topic as it is reported: with the broker's own permissions, where those are less than all."""
        permission = self.broker_config.broker_permission
        if PermName.is_readable(permission) and PermName.is_writeable(permission):
            return topic
        return TopicConfig(
            topic.topic_name,
            topic.read_queue_nums,
            topic.write_queue_nums,
            topic.perm & permission,
            topic.topic_filter_type,
            topic.topic_sys_flag,
            topic.order,
            topic.attributes,
        )

    # -- administration ---------------------------------------------------------------------------------------------

    def create_topic(self, topic: str, queues: int = 4, **settings: Any) -> TopicConfig:
        """Create or change a topic as an administrator does; settings are those of TopicConfig."""
        config = TopicConfig(topic, **{"read_queue_nums": queues, "write_queue_nums": queues, **settings})
        self.topic_config_manager.update_topic_config(config)
        return self.topic_config_manager.topic_config_table[topic]

    def query_assignment_processor(self) -> QueryAssignmentProcessor:
        """Who shares queues out to consumers and knows who pops; it is made when it is first asked for."""
        if self._query_assignment_processor is None:
            from mqlab.broker.query_assignment_processor import QueryAssignmentProcessor

            self._query_assignment_processor = QueryAssignmentProcessor(self)
        return self._query_assignment_processor

    def set_message_request_mode(self, topic: str, group: str, mode: str, pop_share_queue_num: int = 0) -> None:
        """Let a group pull or pop a topic, as an administrator does; MQBrokerException when the broker refuses."""
        from mqlab.protocol.assignment import SetMessageRequestModeRequestBody

        body = SetMessageRequestModeRequestBody(topic, group, mode, pop_share_queue_num)
        try:
            self.query_assignment_processor().set_message_request_mode(body)
        except RequestError as error:
            raise MQBrokerException(error.code, error.remark, self.broker_addr) from None

    def describe_disk_use(self) -> str:
        """How full the disk is, as RocketMQ puts it into its answer to a producer; 1.00 is full."""
        share = used_share(self.node.disk)
        return f"CL: {share:5.2f} CQ: {share:5.2f} INDEX: {share:5.2f}"

    def __repr__(self) -> str:
        config = self.broker_config
        return f"<BrokerController {config.broker_name} {self.broker_addr}: {self.message_store!r}>"
