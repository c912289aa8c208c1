"""A client's wish for messages, from the checks of its times to the stream of the answer."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from mqlab.client.consumer.pop.pop_result import PopStatus
from mqlab.errors import MqlabError
from mqlab.protocol.extra_info import parse_handle
from mqlab.protocol.v2.definition import Code, RetryPolicy, Settings, Status, Subscription
from mqlab.protocol.v2.protobuf import Timestamp, name_of
from mqlab.protocol.v2.service import ReceiveMessageRequest, ReceiveMessageResponse
from mqlab.proxy.client_activity import subscription_of
from mqlab.proxy.client_manager import ClientKey
from mqlab.proxy.consumer_processor import Pop
from mqlab.proxy.errors import GrpcProxyException
from mqlab.proxy.grpc_converter import build_message
from mqlab.proxy.grpc_validator import validate_consumer_group, validate_invisible_time, validate_topic
from mqlab.proxy.receipt_handle_manager import MessageReceiptHandle
from mqlab.proxy.response_builder import status_of
from mqlab.rpc import RpcError, ServerStream
from mqlab.trace.events.proxy import RpcRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mqlab.protocol.message import MessageExt
    from mqlab.proxy.consumer_processor import ConsumerProcessor
    from mqlab.proxy.grpc_client_settings_manager import GrpcClientSettingsManager
    from mqlab.proxy.message_queue_selector import AddressableMessageQueue
    from mqlab.proxy.proxy_config import ProxyConfig
    from mqlab.proxy.proxy_context import ProxyContext
    from mqlab.proxy.receipt_handle_manager import ReceiptHandleManager
    from mqlab.proxy.topic_route_service import TopicRouteService
    from mqlab.sim import Node

ILLEGAL_POLLING_TIME_INTRODUCED_CLIENT_VERSION = "5.0.3"
"""Clients that say an older version, or none, get BAD_REQUEST for it; as in RocketMQ versions are compared as texts."""

NACK_INVISIBLE_MS = 1_000
"""How long what could not be written to its client stays invisible."""


class ReceiveMessageActivity:
    """Answers ReceiveMessage: first the status, then each message, last the time of the delivery, whatever happened.

    Of the queue in the request only the broker counts: a pop always takes from all of its queues. What cannot be
    written, since the client has gone, is given back with 1 s; as its handle was noted before, the proxy gives it back
    once more when it clears the handles of that client, and the message comes twice.

    Java: org.apache.rocketmq.proxy.grpc.v2.consumer.ReceiveMessageActivity with ReceiveMessageResponseStreamWriter.
    """

    def __init__(
        self,
        node: Node,
        config: ProxyConfig,
        routes: TopicRouteService,
        settings: GrpcClientSettingsManager,
        consumers: ConsumerProcessor,
        handles: ReceiptHandleManager,
    ) -> None:
        self._node = node
        self._config = config
        self._routes = routes
        self._settings = settings
        self._consumers = consumers
        self._handles = handles

    async def receive_message(self, ctx: ProxyContext, request: ReceiveMessageRequest, stream: ServerStream) -> None:
        """Pop for a client and write what comes."""
        messages: Sequence[MessageExt] = ()
        try:
            status, messages = await self._receive(ctx, request)
        except MqlabError as error:
            status = status_of(error)
            if self._node.hooks.on:
                self._node.hooks.emit(RpcRefused(ctx.client_id, "ReceiveMessage", name_of(status.code), status.message))
        self._write(stream, status, messages, request)

    async def _receive(self, ctx: ProxyContext, request: ReceiveMessageRequest) -> tuple[Status, Sequence[MessageExt]]:
        settings = await self._settings.settings_of(ctx.client_id)
        if settings is None:
            raise GrpcProxyException(Code.INTERNAL_SERVER_ERROR, "there are no settings of this client")
        remaining_ms = ctx.remaining_ms
        poll_ms = self._poll_ms(ctx, request, settings)
        validate_topic(request.message_queue.topic)
        validate_consumer_group(request.group)
        renewed = self._config.enable_proxy_auto_renew and request.auto_renew
        pop = self._pop(request, settings, poll_ms, renewed)
        queue = await self._queue(pop.topic, request.message_queue.broker.name)
        result = await self._consumers.pop_message(queue, pop, remaining_ms)
        if result.pop_status is PopStatus.POLLING_FULL:
            return Status(Code.TOO_MANY_REQUESTS, "polling full"), ()
        if result.pop_status is not PopStatus.FOUND:
            return Status(Code.MESSAGE_NOT_FOUND, "no new message"), ()
        if not result.msg_found_list:
            return Status(Code.MESSAGE_NOT_FOUND, "no match message"), ()
        if renewed:
            for message in result.msg_found_list:
                handle = parse_handle(message.properties["POP_CK"])
                self._handles.add(
                    ClientKey(pop.group, ctx.client_id),
                    MessageReceiptHandle(message.msg_id, pop.topic, handle, message.reconsume_times),
                )
        return Status(Code.OK, "OK"), result.msg_found_list

    def _poll_ms(self, ctx: ProxyContext, request: ReceiveMessageRequest, settings: Settings) -> int:
        """For how long the broker may keep the pop: within the proxy's limits, and the client still being there."""
        remaining_ms = ctx.remaining_ms
        least = self._config.grpc_client_consumer_min_long_polling_timeout_millis
        most = self._config.grpc_client_consumer_max_long_polling_timeout_millis
        wanted_ms = remaining_ms - (settings.request_timeout or 0) // 2
        if request.long_polling_timeout is not None:
            wanted_ms = request.long_polling_timeout
        poll_ms = min(max(wanted_ms, least), most)
        if poll_ms > remaining_ms:
            if remaining_ms < least:
                knows_code = ctx.client_version >= ILLEGAL_POLLING_TIME_INTRODUCED_CLIENT_VERSION
                raise GrpcProxyException(
                    Code.ILLEGAL_POLLING_TIME if knows_code else Code.BAD_REQUEST,
                    "The deadline time remaining is not enough for polling, please check network condition",
                )
            poll_ms = remaining_ms
        return poll_ms

    def _pop(self, request: ReceiveMessageRequest, settings: Settings, poll_ms: int, renewed: bool) -> Pop:
        config = self._config
        invisible_ms = int(request.invisible_duration or 0)
        if renewed:
            invisible_ms = config.default_invisible_time_mills
        else:
            validate_invisible_time(
                invisible_ms, config.min_invisible_time_mills_for_recv, config.max_invisible_time_mills
            )
        topic = request.message_queue.topic.name
        return Pop(
            group=request.group.name,
            topic=topic,
            max_messages=request.batch_size,
            invisible_ms=invisible_ms,
            poll_ms=poll_ms,
            subscription=subscription_of(topic, request.filter_expression),
            fifo=bool((settings.subscription or Subscription()).fifo),
            attempt_id=request.attempt_id,
            max_attempts=(settings.backoff_policy or RetryPolicy()).max_attempts,
        )

    async def _queue(self, topic: str, broker_name: str) -> AddressableMessageQueue:
        selector = (await self._routes.view(topic)).read_selector
        queue = selector.queue_of_broker(broker_name) or selector.select_one(only_broker=True)
        if queue is None:
            raise GrpcProxyException(Code.FORBIDDEN, "no readable queue")
        return queue

    def _write(
        self, stream: ServerStream, status: Status, messages: Sequence[MessageExt], request: ReceiveMessageRequest
    ) -> None:
        written = 0
        try:
            stream.write(ReceiveMessageResponse(status=status))
            for message in messages:
                stream.write(ReceiveMessageResponse(message=build_message(message, self._node.now_ms())))
                written += 1
            stream.answer(ReceiveMessageResponse(delivery_timestamp=Timestamp(self._node.now_ms())))
        except RpcError:
            # The client has gone while its messages were fetched: others shall have them soon.
            for message in messages[written:]:
                self._node.spawn(self._nack(message, request), "nack of what could not be written")

    async def _nack(self, message: MessageExt, request: ReceiveMessageRequest) -> None:
        handle = parse_handle(message.properties["POP_CK"])
        topic, group = request.message_queue.topic.name, request.group.name
        # Otherwise it stays invisible for as long as it was popped for.
        with suppress(MqlabError):
            await self._consumers.change_invisible_time(handle, topic, group, NACK_INVISIBLE_MS)
