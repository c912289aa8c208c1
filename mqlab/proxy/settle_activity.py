"""What clients say of messages that they have received: done, later, never."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.errors import MQBrokerException, MqlabError
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.errors import ExtraInfoError
from mqlab.protocol.extra_info import ReceiptHandle, parse_handle
from mqlab.protocol.v2.definition import Code, Status
from mqlab.protocol.v2.service import (
    AckMessageEntry,
    AckMessageRequest,
    AckMessageResponse,
    AckMessageResultEntry,
    ChangeInvisibleDurationRequest,
    ChangeInvisibleDurationResponse,
    ForwardMessageToDeadLetterQueueRequest,
    ForwardMessageToDeadLetterQueueResponse,
)
from mqlab.proxy.client_manager import ClientKey
from mqlab.proxy.errors import GrpcProxyException
from mqlab.proxy.grpc_validator import validate_consumer_group, validate_invisible_time, validate_topic
from mqlab.proxy.response_builder import OK, status_of, status_of_all, status_of_code

if TYPE_CHECKING:
    from mqlab.proxy.consumer_processor import ConsumerProcessor
    from mqlab.proxy.proxy_config import ProxyConfig
    from mqlab.proxy.proxy_context import ProxyContext
    from mqlab.proxy.receipt_handle_manager import ReceiptHandleManager


HANDLE_PARTS = 8
"""What a handle has at least; the ninth part is the place in the commit log."""


class SettleActivity:
    """Answers AckMessage, ChangeInvisibleDuration and ForwardMessageToDeadLetterQueue.

    A handle that the proxy has renewed is replaced by its newest one, which the client does not know. What a client
    settles is renewed no more.

    Java: org.apache.rocketmq.proxy.grpc.v2.consumer.AckMessageActivity and ChangeInvisibleDurationActivity,
    org.apache.rocketmq.proxy.grpc.v2.producer.ForwardMessageToDLQActivity. Differs from RocketMQ: several entries of
    one request are acknowledged one after the other, where all are asked for at once there; clients send one.
    """

    def __init__(self, config: ProxyConfig, consumers: ConsumerProcessor, handles: ReceiptHandleManager) -> None:
        self._config = config
        self._consumers = consumers
        self._handles = handles

    async def ack_message(self, ctx: ProxyContext, request: AckMessageRequest) -> AckMessageResponse:
        """Acknowledge messages, one after the other."""
        validate_topic(request.topic)
        validate_consumer_group(request.group)
        entries = [await self._ack_entry(ctx, request, entry) for entry in request.entries]
        status = status_of_all([entry.status for entry in entries], "ack message result is empty")
        return AckMessageResponse(status, tuple(entries))

    async def _ack_entry(
        self, ctx: ProxyContext, request: AckMessageRequest, entry: AckMessageEntry
    ) -> AckMessageResultEntry:
        group = request.group.name
        try:
            handle = self._handles.remove(
                ClientKey(group, ctx.client_id), entry.message_id, _decoded(entry.receipt_handle)
            )
            done = await self._consumers.ack_message(handle, request.topic.name, group)
            status = OK if done else Status(Code.INTERNAL_SERVER_ERROR, "ack failed: status is abnormal")
        except MqlabError as error:
            status = status_of(error)
        return AckMessageResultEntry(entry.message_id, entry.receipt_handle, status)

    async def change_invisible_duration(
        self, ctx: ProxyContext, request: ChangeInvisibleDurationRequest
    ) -> ChangeInvisibleDurationResponse:
        """Let a message be invisible from now on for so long; the client gets its new handle, and renews it itself."""
        validate_topic(request.topic)
        validate_consumer_group(request.group)
        validate_invisible_time(request.invisible_duration, 0, self._config.max_invisible_time_mills)
        group = request.group.name
        handle = self._handles.remove(
            ClientKey(group, ctx.client_id), request.message_id, _decoded(request.receipt_handle)
        )
        changed = await self._consumers.change_invisible_time(
            handle, request.topic.name, group, request.invisible_duration
        )
        if changed is None:
            return ChangeInvisibleDurationResponse(
                Status(Code.INTERNAL_SERVER_ERROR, "changeInvisibleDuration failed: status is abnormal")
            )
        return ChangeInvisibleDurationResponse(OK, changed.encode())

    async def forward_message_to_dead_letter_queue(
        self, ctx: ProxyContext, request: ForwardMessageToDeadLetterQueueRequest
    ) -> ForwardMessageToDeadLetterQueueResponse:
        """Put a message to the dead letters of its group."""
        validate_topic(request.topic)
        validate_consumer_group(request.group)
        group = request.group.name
        handle = self._handles.remove(
            ClientKey(group, ctx.client_id), request.message_id, _decoded(request.receipt_handle)
        )
        try:
            await self._consumers.forward_message_to_dead_letter_queue(
                handle, request.message_id, request.topic.name, group
            )
        except MQBrokerException as error:
            return ForwardMessageToDeadLetterQueueResponse(status_of_code(error.response_code, error.error_message))
        return ForwardMessageToDeadLetterQueueResponse(status_of_code(int(ResponseCode.SUCCESS), None))


def _decoded(text: str) -> ReceiptHandle:
    """The handle that a text is; GrpcProxyException, worded as Java's error, for one with too few parts.

    Java: org.apache.rocketmq.common.consumer.ReceiptHandle.decode.
    """
    try:
        return parse_handle(text)
    except ExtraInfoError:
        parts = len(text.rstrip(" ").split(" "))
        if parts >= HANDLE_PARTS:
            raise
        raise GrpcProxyException(
            Code.INTERNAL_SERVER_ERROR,
            f"Parse failed, dataList size {parts}. IllegalArgumentException. "
            "org.apache.rocketmq.common.consumer.ReceiptHandle.decode(ReceiptHandle.java:56)",
        ) from None
