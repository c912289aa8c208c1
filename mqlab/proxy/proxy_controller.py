"""A proxy: the process that 5.x clients speak to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.client.client_config import ClientConfig
from mqlab.client.mq_client_api import MQClientAPIImpl
from mqlab.proxy.client_activity import ClientActivity
from mqlab.proxy.client_manager import ClientManager
from mqlab.proxy.cluster_message_service import ClusterMessageService
from mqlab.proxy.cluster_metadata_service import ClusterMetadataService
from mqlab.proxy.consumer_processor import ConsumerProcessor
from mqlab.proxy.grpc_client_settings_manager import GrpcClientSettingsManager
from mqlab.proxy.grpc_messaging_application import GrpcMessagingApplication
from mqlab.proxy.proxy_config import ProxyConfig
from mqlab.proxy.receipt_handle_manager import ReceiptHandleManager
from mqlab.proxy.receive_message_activity import ReceiveMessageActivity
from mqlab.proxy.route_activity import RouteActivity
from mqlab.proxy.send_message_activity import SendMessageActivity
from mqlab.proxy.settle_activity import SettleActivity
from mqlab.proxy.topic_route_service import TopicRouteService
from mqlab.rpc import RpcServer
from mqlab.trace.events.proxy import ProxyStarted

if TYPE_CHECKING:
    from mqlab.auth.auth_config import AuthConfig
    from mqlab.protocol.v2.service import (
        EndTransactionRequest,
        EndTransactionResponse,
        RecallMessageRequest,
        RecallMessageResponse,
    )
    from mqlab.proxy.cluster_transaction_service import ClusterTransactionService
    from mqlab.proxy.proxy_context import ProxyContext
    from mqlab.sim import Node


class Activities(NamedTuple):
    """Who answers which calls."""

    route: RouteActivity
    client: ClientActivity
    send: SendMessageActivity
    receive: ReceiveMessageActivity
    settle: SettleActivity
    end_transaction: Callable[[ProxyContext, Any], Awaitable[Any]]
    recall_message: Callable[[ProxyContext, Any], Awaitable[Any]]


class ProxyController:
    """Everything of one proxy in cluster mode (org.apache.rocketmq.proxy.ProxyStartup and DefaultMessagingProcessor).

    It keeps nothing on its disk: settings, members, handles and where half messages lie die with the process, and
    clients tell a new one what they are. What few worlds need is imported and made when it is first needed.
    """

    def __init__(
        self, node: Node, config: ProxyConfig | None = None, auth_config: AuthConfig | None = None
    ) -> None:
        self.node = node
        self.config = config = config or ProxyConfig()
        credentials = None if auth_config is None else auth_config.inner_credentials
        self.api = MQClientAPIImpl(node, ClientConfig(namesrv_addr=config.namesrv_addr, credentials=credentials))
        self.topic_route_service = TopicRouteService(node, config, self.api)
        self.metadata_service = ClusterMetadataService(
            node, config, self.topic_route_service, self.api.remoting_client
        )
        self.message_service = ClusterMessageService(self.topic_route_service, self.api)
        self.client_manager = ClientManager(node, config)
        self.consumer_processor = ConsumerProcessor(node, self.message_service)
        self.settings_manager = GrpcClientSettingsManager(node, config, self.metadata_service, self.client_manager)
        self.receipt_handle_manager = ReceiptHandleManager(
            node, config, self.client_manager, self.metadata_service, self.consumer_processor
        )
        self.application = GrpcMessagingApplication(node, config, self._activities())
        if auth_config is not None and auth_config.authentication_enabled:
            from mqlab.proxy.auth_pipeline import AuthPipeline

            self.application.pipeline = AuthPipeline(node, config, auth_config, self.metadata_service)
        self.grpc_server = RpcServer(node, config.grpc_server_port, self.application.serve)
        self._transactions: ClusterTransactionService | None = None
        self._start_us = 0

    def _activities(self) -> Activities:
        node, config, routes, metadata = self.node, self.config, self.topic_route_service, self.metadata_service
        consumers, handles = self.consumer_processor, self.receipt_handle_manager
        return Activities(
            RouteActivity(config, routes, metadata),
            ClientActivity(node, self.client_manager, self.settings_manager, metadata, self.transaction_service),
            SendMessageActivity(node, config, routes, metadata, self.message_service, self.transaction_service),
            ReceiveMessageActivity(node, config, routes, self.settings_manager, consumers, handles),
            SettleActivity(config, consumers, handles),
            self._end_transaction,
            self._recall_message,
        )

    def transaction_service(self) -> ClusterTransactionService:
        """Everything of transactions, made when it is first asked for."""
        if self._transactions is None:
            from mqlab.proxy.cluster_transaction_service import ClusterTransactionService

            self._transactions = ClusterTransactionService(
                self.node, self.config, self.topic_route_service, self.client_manager, self.api.config
            )
            self._transactions.start(self._start_us)
        return self._transactions

    async def _end_transaction(self, ctx: ProxyContext, request: EndTransactionRequest) -> EndTransactionResponse:
        from mqlab.proxy.end_transaction_activity import EndTransactionActivity

        activity = EndTransactionActivity(self.node, self.message_service, self.transaction_service())
        return await activity.end_transaction(ctx, request)

    async def _recall_message(self, ctx: ProxyContext, request: RecallMessageRequest) -> RecallMessageResponse:
        from mqlab.proxy.recall_message_activity import RecallMessageActivity

        activity = RecallMessageActivity(self.config, self.metadata_service, self.message_service)
        return await activity.recall_message(ctx, request)

    @property
    def address(self) -> str:
        """Where clients reach this proxy."""
        return f"{self.node.spec.ip}:{self.config.grpc_server_port}"

    def start(self) -> None:
        """Connect to the name servers, begin the scans, open the port."""
        self._start_us = self.node.now_us()
        self.api.remoting_client.update_name_server_address_list(self.api.config.name_server_addresses())
        self.api.start()
        self.client_manager.start()
        self.receipt_handle_manager.start()
        self.settings_manager.start()
        self.grpc_server.start()
        if self.node.hooks.on:
            self.node.hooks.emit(ProxyStarted(self.address))

    def shutdown(self) -> None:
        """Close the port, end the scans; what clients still have is given back to the brokers, in 1 s."""
        self.grpc_server.shutdown()
        self.settings_manager.shutdown()
        self.receipt_handle_manager.shutdown()
        if self._transactions is not None:
            self._transactions.shutdown()
        self.client_manager.shutdown()

    def __repr__(self) -> str:
        return f"<ProxyController {self.address}: {len(self.grpc_server.connections)} connections>"
