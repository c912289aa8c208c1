"""Clients that come, stay and leave."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.errors import LearnerError, MqlabError
from mqlab.protocol.heartbeat import ExpressionType, SubscriptionData, build_subscription_data
from mqlab.protocol.v2.definition import (
    ClientType,
    Code,
    FilterExpression,
    FilterType,
    Resource,
    Settings,
    Status,
    SubscriptionEntry,
)
from mqlab.protocol.v2.protobuf import name_of
from mqlab.protocol.v2.service import (
    HeartbeatRequest,
    HeartbeatResponse,
    NotifyClientTerminationRequest,
    NotifyClientTerminationResponse,
    TelemetryCommand,
)
from mqlab.proxy.cluster_metadata_service import TRANSACTION
from mqlab.proxy.errors import GrpcProxyException
from mqlab.proxy.grpc_validator import validate_consumer_group, validate_topic
from mqlab.proxy.response_builder import OK
from mqlab.rpc import RpcError, ServerStream, StatusCode
from mqlab.trace.events.proxy import ClientSettingsTaken

if TYPE_CHECKING:
    from mqlab.proxy.client_manager import ClientManager
    from mqlab.proxy.cluster_metadata_service import ClusterMetadataService
    from mqlab.proxy.cluster_transaction_service import ClusterTransactionService
    from mqlab.proxy.grpc_client_channel import GrpcClientChannel
    from mqlab.proxy.grpc_client_settings_manager import GrpcClientSettingsManager
    from mqlab.proxy.proxy_context import ProxyContext
    from mqlab.sim import Node

CONSUMERS = (ClientType.PUSH_CONSUMER, ClientType.SIMPLE_CONSUMER)


class ClientActivity:
    """Answers Telemetry, Heartbeat and NotifyClientTermination.

    Java: org.apache.rocketmq.proxy.grpc.v2.client.ClientActivity. Differs from RocketMQ: administrators ask nothing of
    clients (stack traces, verifying messages).
    """

    def __init__(
        self,
        node: Node,
        clients: ClientManager,
        settings: GrpcClientSettingsManager,
        metadata: ClusterMetadataService,
        transactions: Callable[[], ClusterTransactionService],
    ) -> None:
        self._node = node
        self._clients = clients
        self._settings = settings
        self._metadata = metadata
        self._transactions = transactions
        clients.producer_left.append(self._producer_left)

    def _producer_left(self, group: str, client_id: str) -> None:
        self._settings.remove(client_id)

    # -- telemetry --------------------------------------------------------------------------------------------------

    def telemetry(self, ctx: ProxyContext, stream: ServerStream) -> None:
        """Hear what a client says of itself, for as long as the stream stands."""

        def heard(command: Any) -> None:
            if command.settings is not None:
                self._node.spawn(self._take_settings(ctx, stream, command.settings), "take settings")

        def completed() -> None:
            if not stream.over:
                stream.end()

        stream.on_message = heard
        stream.on_end = completed

    async def _take_settings(self, ctx: ProxyContext, stream: ServerStream, settings: Settings) -> None:
        try:
            await self._process_and_write_client_settings(ctx, stream, settings)
        except RpcError:
            # The client has gone meanwhile; it will open another stream.
            pass
        except MqlabError as error:
            theirs = isinstance(error, GrpcProxyException) and Code.BAD_REQUEST <= error.code < Code.INTERNAL_ERROR
            code = StatusCode.INVALID_ARGUMENT if theirs else StatusCode.INTERNAL
            said = error.error_message if isinstance(error, GrpcProxyException) else str(error)
            if not stream.over:
                stream.end(code, f"process client telemetryCommand failed. {said}")

    async def _process_and_write_client_settings(
        self, ctx: ProxyContext, stream: ServerStream, settings: Settings
    ) -> None:
        group = ""
        if settings.publishing is not None:
            for topic in settings.publishing.topics:
                validate_topic(topic)
                channel = await self._register_producer(topic.name, ctx.client_id)
                channel.set_client_observer(stream)
        elif settings.subscription is not None:
            validate_consumer_group(settings.subscription.group)
            assert settings.subscription.group is not None
            if settings.client_type not in CONSUMERS:
                kind = name_of(settings.client_type or ClientType.UNSPECIFIED)
                raise GrpcProxyException(Code.INTERNAL_SERVER_ERROR, f"Client type is not consumer, type: {kind}")
            check_subscriptions(settings.subscription.subscriptions)
            group = settings.subscription.group.name
            self._clients.register_consumer(group, ctx.client_id)
        else:
            stream.end(StatusCode.INVALID_ARGUMENT, "there is no publishing or subscription data in settings")
            return
        self._settings.update(ctx.client_id, settings)
        if self._node.hooks.on:
            role = name_of(settings.client_type) if settings.client_type is not None else ""
            self._node.hooks.emit(ClientSettingsTaken(ctx.client_id, group, role))
        stream.write(TelemetryCommand(OK, await self._settings.settings_of(ctx.client_id)))

    async def _register_producer(self, topic: str, client_id: str) -> GrpcClientChannel:
        """A producer is here; brokers shall know of one that sends within transactions.

        Java: org.apache.rocketmq.proxy.grpc.v2.client.ClientActivity.registerProducer.
        """
        channel = self._clients.register_producer(topic, client_id)
        if await self._metadata.topic_message_type(topic) == TRANSACTION:
            await self._transactions().add_transaction_subscription(topic, topic)
        return channel

    # -- staying and leaving ----------------------------------------------------------------------------------------

    async def heartbeat(self, ctx: ProxyContext, request: HeartbeatRequest) -> HeartbeatResponse:
        """Note that a client is still there."""
        settings = await self._settings.settings_of(ctx.client_id)
        return HeartbeatResponse(
            await _for_each_place(
                ctx, settings, request.group, self._register_producer, self._clients.register_consumer
            )
        )

    async def notify_client_termination(
        self, ctx: ProxyContext, request: NotifyClientTerminationRequest
    ) -> NotifyClientTerminationResponse:
        """Forget a client that says that it ends."""
        settings, clients = self._settings.remove(ctx.client_id), self._clients

        async def unregister_producer(topic: str, client_id: str) -> None:
            clients.unregister_producer(topic, client_id)

        return NotifyClientTerminationResponse(
            await _for_each_place(ctx, settings, request.group, unregister_producer, clients.unregister_consumer)
        )


async def _for_each_place(
    ctx: ProxyContext,
    settings: Settings | None,
    group: Resource | None,
    producer: Callable[[str, str], Awaitable[object]],
    consumer: Callable[[str, str], object],
) -> Status:
    """Call `producer` with each topic of a producer and its id, or `consumer` with a consumer's group and its id."""
    if settings is None:
        return Status(Code.UNRECOGNIZED_CLIENT_TYPE, "cannot find client settings for this client")
    if settings.client_type == ClientType.PRODUCER and settings.publishing is not None:
        for topic in settings.publishing.topics:
            await producer(topic.name, ctx.client_id)
    elif settings.client_type in CONSUMERS:
        validate_consumer_group(group)
        assert group is not None
        consumer(group.name, ctx.client_id)
    else:
        return Status(Code.UNRECOGNIZED_CLIENT_TYPE, str(settings.client_type))
    return OK


def check_subscriptions(entries: Sequence[SubscriptionEntry]) -> None:
    """GrpcProxyException for a filter that cannot be read.

    Java: org.apache.rocketmq.proxy.grpc.v2.client.ClientActivity.buildSubscriptionDataSet.
    """
    for entry in entries:
        try:
            subscription_of(entry.topic.name, entry.expression)
        except GrpcProxyException as error:
            raise GrpcProxyException(error.code, "expression format is not correct") from None


def subscription_of(topic: str, expression: FilterExpression) -> SubscriptionData:
    """The subscription that a filter describes; GrpcProxyException when it cannot be read."""
    kind = ExpressionType.SQL92 if expression.type == FilterType.SQL else ExpressionType.TAG
    try:
        return build_subscription_data(topic, expression.expression, kind)
    except LearnerError as error:
        raise GrpcProxyException(Code.ILLEGAL_FILTER_EXPRESSION, error.message) from None
