"""A name server: the process that knows where the brokers are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.namesrv.broker_housekeeping_service import BrokerHousekeepingService
from mqlab.namesrv.client_request_processor import ClientRequestProcessor
from mqlab.namesrv.default_request_processor import DefaultRequestProcessor
from mqlab.namesrv.kv_config_manager import KVConfigManager
from mqlab.namesrv.namesrv_config import NamesrvConfig
from mqlab.namesrv.route_info_manager import RouteInfoManager
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.remoting import RemotingClient, RemotingServer, RemotingServerConfig

if TYPE_CHECKING:
    from mqlab.protocol.headers import NotifyMinBrokerIdChangeRequestHeader
    from mqlab.sim import Node, PeriodicTask

SCAN_FIRST_MS = 5_000
NOTICE_TIMEOUT_MS = 300


class NamesrvController:
    """Everything of one name server (org.apache.rocketmq.namesrv.NamesrvController).

    Several name servers are simply several nodes: they never talk to each other, and each knows what brokers told it.
    """

    def __init__(self, node: Node, config: NamesrvConfig | None = None) -> None:
        self.node = node
        self.config = config or NamesrvConfig()
        self.kv_config_manager = KVConfigManager(node, self.config.kv_config_path)
        self.route_info_manager = RouteInfoManager(node, self.config)
        self.remoting_server = RemotingServer(node, self.config.listen_port, "Namesrv", RemotingServerConfig())
        self.default_executor = node.pool(
            "RemotingExecutorThread",
            self.config.default_thread_pool_nums,
            self.config.default_thread_pool_queue_capacity,
        )
        self.client_request_executor = node.pool(
            "ClientRequestExecutorThread",
            self.config.client_request_thread_pool_nums,
            self.config.client_request_thread_pool_queue_capacity,
        )
        self._scan: PeriodicTask | None = None
        self._remoting_client: RemotingClient | None = None
        """Made with the first notice to a broker."""
        self.route_info_manager.send_notice = self._send_notice

    @property
    def address(self) -> str:
        """Where clients and brokers reach this name server."""
        return f"{self.node.spec.ip}:{self.config.listen_port}"

    def start(self) -> None:
        """Load the KV configuration, open the port, begin to scan for silent brokers."""
        self.kv_config_manager.load()
        server, config = self.remoting_server, self.config
        server.register_processor(
            RequestCode.GET_ROUTEINFO_BY_TOPIC,
            ClientRequestProcessor(self.node, config, self.route_info_manager, self.kv_config_manager),
            self.client_request_executor,
            config.route_service_us,
        )
        server.register_default_processor(
            DefaultRequestProcessor(config, self.route_info_manager, self.kv_config_manager),
            self.default_executor,
            config.default_service_us,
        )
        server.channel_listeners.append(BrokerHousekeepingService(self.route_info_manager))
        server.start()
        self._scan = self.node.schedule_at_fixed_rate(
            self.route_info_manager.scan_not_active_broker,
            SCAN_FIRST_MS,
            config.scan_not_active_broker_interval,
            "NSScanExecutorThread",
        )

    def _send_notice(self, address: str, header: NotifyMinBrokerIdChangeRequestHeader) -> None:
        if self._remoting_client is None:
            self._remoting_client = RemotingClient(self.node, name="NamesrvRemotingClient")
        request = RemotingCommand.request(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, header)
        self._remoting_client.invoke_oneway(address, request, NOTICE_TIMEOUT_MS)

    def shutdown(self) -> None:
        """Close the port and stop scanning; the routes are forgotten with the process."""
        if self._scan is not None:
            self._scan.cancel()
        if self._remoting_client is not None:
            self._remoting_client.shutdown()
        self.remoting_server.shutdown()
        self.default_executor.close()
        self.client_request_executor.close()

    def __repr__(self) -> str:
        routes = self.route_info_manager
        return (
            f"<NamesrvController {self.address}: {len(routes.broker_addr_table)} brokers, "
            f"{len(routes.topic_queue_table)} topics>"
        )
