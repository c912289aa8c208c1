"""Which call goes to which part, and to which threads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.errors import MqlabError
from mqlab.protocol.v2 import service
from mqlab.protocol.v2.definition import Code, Status
from mqlab.protocol.v2.protobuf import name_of
from mqlab.proxy.errors import GrpcProxyException
from mqlab.proxy.proxy_context import ProxyContext
from mqlab.proxy.response_builder import status_of
from mqlab.rpc import RpcError, ServerStream
from mqlab.sim import Lock
from mqlab.trace.events.proxy import RpcRefused

if TYPE_CHECKING:
    from mqlab.proxy.auth_pipeline import AuthPipeline
    from mqlab.proxy.proxy_config import ProxyConfig
    from mqlab.proxy.proxy_controller import Activities
    from mqlab.sim import Node, Pool

Serve = Callable[[ProxyContext, Any], Awaitable[Any]]


class _Route(NamedTuple):
    """Where a call is worked on."""

    pool: Pool
    service_us: int
    serve: Serve | None


class GrpcMessagingApplication:
    """Gives each call to its threads, and writes its answer.

    A thread begins a call and goes on to the next one while the call waits for brokers; so a pool is full only when
    calls come faster than they can be begun.

    Java: org.apache.rocketmq.proxy.grpc.v2.GrpcMessagingApplication.
    """

    def __init__(self, node: Node, config: ProxyConfig, activities: Activities) -> None:
        self._node = node
        self._activities = activities
        cores = node.spec.cores
        route = node.pool(
            "GrpcRouteThreadPool", config.grpc_route_thread_pool_nums or cores, config.grpc_route_thread_queue_capacity
        )
        producer = node.pool(
            "GrpcProducerThreadPool",
            config.grpc_producer_thread_pool_nums or cores,
            config.grpc_producer_thread_queue_capacity,
        )
        consumer = node.pool(
            "GrpcConsumerThreadPool",
            config.grpc_consumer_thread_pool_nums or cores,
            config.grpc_consumer_thread_queue_capacity,
        )
        client_manager = node.pool(
            "GrpcClientManagerThreadPool",
            config.grpc_client_manager_thread_pool_nums or cores,
            config.grpc_client_manager_thread_queue_capacity,
        )
        transaction = node.pool(
            "GrpcTransactionThreadPool",
            config.grpc_transaction_thread_pool_nums or cores,
            config.grpc_transaction_thread_queue_capacity,
        )
        self.pipeline: AuthPipeline | None = None
        """Who looks at each message of a client before it is worked on; None lets everybody in."""
        self.pools = (route, producer, consumer, client_manager, transaction)
        settle, client = activities.settle, activities.client
        route_us, producer_us = config.route_service_us, config.producer_service_us
        consumer_us, client_us = config.consumer_service_us, config.client_manager_service_us
        self._routes: dict[service.Rpc, _Route] = {
            service.QUERY_ROUTE: _Route(route, route_us, activities.route.query_route),
            service.QUERY_ASSIGNMENT: _Route(route, route_us, activities.route.query_assignment),
            service.SEND_MESSAGE: _Route(producer, producer_us, activities.send.send_message),
            service.FORWARD_MESSAGE_TO_DEAD_LETTER_QUEUE: _Route(
                producer, producer_us, settle.forward_message_to_dead_letter_queue
            ),
            service.RECALL_MESSAGE: _Route(producer, producer_us, activities.recall_message),
            service.END_TRANSACTION: _Route(
                transaction, config.transaction_service_us, activities.end_transaction
            ),
            service.RECEIVE_MESSAGE: _Route(consumer, consumer_us, None),
            service.ACK_MESSAGE: _Route(consumer, consumer_us, settle.ack_message),
            service.CHANGE_INVISIBLE_DURATION: _Route(consumer, consumer_us, settle.change_invisible_duration),
            service.HEARTBEAT: _Route(client_manager, client_us, client.heartbeat),
            service.NOTIFY_CLIENT_TERMINATION: _Route(client_manager, client_us, client.notify_client_termination),
        }

    def serve(self, stream: ServerStream) -> None:
        """A call has come."""
        self._hear(stream)
        if self.pipeline is not None:
            self._look_at_each_message(stream, self.pipeline)

    def _look_at_each_message(self, stream: ServerStream, pipeline: AuthPipeline) -> None:
        """Let a message through when the pipeline has looked at it, each after the one before it."""
        let_in = stream.on_message
        turn = Lock("the pipeline of a call")

        async def look(request: Any) -> None:
            async with turn:
                try:
                    await pipeline.execute(stream, request)
                except MqlabError as error:
                    client_id = stream.metadata.get("x-mq-client-id", "")
                    self._refuse(stream, client_id, status_of(error))
                    return
                if not stream.over:
                    let_in(request)

        def heard(request: Any) -> None:
            self._node.spawn(look(request), f"authenticate {stream.rpc.name}")

        stream.on_message = heard

    def _hear(self, stream: ServerStream) -> None:
        """Say who works on a call's messages; who does not say its client id is refused."""
        try:
            ctx = ProxyContext.of(stream)
        except GrpcProxyException as error:
            refused = status_of(error)
            stream.on_message = lambda request: self._refuse(stream, "", refused)
            return
        if stream.rpc is service.TELEMETRY:
            self._activities.client.telemetry(ctx, stream)
        else:
            stream.on_message = lambda request: self._add_executor(ctx, stream, request)

    def _add_executor(self, ctx: ProxyContext, stream: ServerStream, request: Any) -> None:
        """Give a call to its threads; one that the pool has no room for is refused.

        Java: org.apache.rocketmq.proxy.grpc.v2.GrpcMessagingApplication.addExecutor.
        """
        route = self._routes[stream.rpc]
        if not route.pool.submit(self._begin, ctx, request, route.serve, service_us=route.service_us):
            self._refuse(stream, ctx.client_id, Status(Code.TOO_MANY_REQUESTS, "flow limit"))

    def _begin(self, ctx: ProxyContext, request: Any, serve: Serve | None) -> None:
        if serve is None:
            work = self._activities.receive.receive_message(ctx, request, ctx.stream)
        else:
            work = self._serve(ctx, request, serve)
        self._node.spawn(work, ctx.stream.rpc.name)

    async def _serve(self, ctx: ProxyContext, request: Any, serve: Serve) -> None:
        try:
            response = await serve(ctx, request)
        except MqlabError as error:
            self._refuse(ctx.stream, ctx.client_id, status_of(error))
            return
        self._answer(ctx.stream, response)

    def _refuse(self, stream: ServerStream, client_id: str, status: Status) -> None:
        if self._node.hooks.on:
            self._node.hooks.emit(RpcRefused(client_id, stream.rpc.name, name_of(status.code), status.message))
        self._answer(stream, _refused(stream, status))

    def _answer(self, stream: ServerStream, response: Any) -> None:
        # The client may have gone, or wait no longer.
        with suppress(RpcError):
            stream.answer(response)


def _refused(stream: ServerStream, status: Status) -> Any:
    return stream.rpc.response(status=status)  # type: ignore[call-arg]  # every answer has a status
