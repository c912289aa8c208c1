"""Asking for replies: a message is sent, and its reply waited for, by the caller or by a callback."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from mqlab.client.producer.async_send import Outcome
from mqlab.client.producer.request_future_holder import RequestFutureHolder
from mqlab.client.producer.request_response_future import RequestResponseFuture
from mqlab.client.producer.send_kernel import ASYNC
from mqlab.errors import MQBrokerException, MQClientException, RemotingException, RequestTimeoutException
from mqlab.protocol.codes import ClientErrorCode
from mqlab.protocol.message import MessageConst
from mqlab.trace.events.reply import ReplyAwaited

if TYPE_CHECKING:
    from mqlab.client.producer.async_send import SendCallbackFunction
    from mqlab.client.producer.default_mq_producer_impl import DefaultMQProducerImpl
    from mqlab.client.producer.message_queue_selector import MessageQueueSelector
    from mqlab.client.producer.request_response_future import RequestCallback, RequestCallbackFunction
    from mqlab.protocol.message import Message, MessageExt, MessageQueue
    from mqlab.sim import Node

_PARTS_OF_AN_ID = (48, 48, 26)
"""A generator draws 53 bits at most; an id has 122 that are drawn."""


def create_correlation_id(node: Node) -> str:
    """A name for a request, in the form of a random UUID (org.apache.rocketmq.common.utils.CorrelationIdUtil)."""
    drawn = 0
    for bits in _PARTS_OF_AN_ID:
        drawn = drawn << bits | node.choose("correlation-id", 1 << bits)
    high, middle, low = drawn >> 74, drawn >> 62 & 0xFFF, drawn & (1 << 62) - 1
    digits = f"{high << 80 | 4 << 76 | middle << 64 | 2 << 62 | low:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class Destination:
    """How a request goes out: to a queue of the producer's choice, of a selector's, or to a given one.

    Differs from RocketMQ: a message for a given queue is checked as in any other send to a queue.
    """

    def __init__(
        self, queue: MessageQueue | None = None, selector: MessageQueueSelector | None = None, argument: Any = None
    ) -> None:
        self._queue = queue
        self._selector = selector
        self._argument = argument

    @property
    def is_open(self) -> bool:
        """Whether the producer chooses the queue."""
        return self._queue is None and self._selector is None

    def send(
        self, impl: DefaultMQProducerImpl, message: Message, timeout_ms: int, outcome: Outcome
    ) -> Coroutine[Any, Any, object]:
        """Send asynchronously, in the caller's own thread up to where the request goes to remoting."""
        if self._queue is not None:
            return impl.send_kernel_once(message, self._queue, ASYNC, timeout_ms, outcome)
        if self._selector is not None:
            return impl.send_select_impl(message, self._selector, self._argument, ASYNC, timeout_ms, outcome)
        return impl.send_default_impl(message, ASYNC, timeout_ms, outcome)


async def request(
    impl: DefaultMQProducerImpl, message: Message, destination: Destination, timeout_ms: int
) -> MessageExt:
    """Send a message and wait for its reply, both together at most `timeout_ms`.

    RequestTimeoutException when it was sent, as far as is known, and no reply came; MQClientException when it could not
    be sent.

    Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.request. Differs from RocketMQ: releases 5.3.1
    to 5.3.3 wait only until the message is sent, which is a mistake of theirs; here they do so with
    `request_ends_when_sent`.
    """
    node = impl.node
    begin_us = node.now_us()
    holder, future = await _prepare(impl, message, timeout_ms, None)

    def sent(result: object, error: Exception | None) -> None:
        if error is not None:
            future.send_request_ok = False
            future.cause = error
        if error is not None or impl.producer.request_ends_when_sent:
            future.release()

    try:
        left_ms = timeout_ms - (node.now_us() - begin_us) // 1_000
        try:
            await _send(impl, message, destination, left_ms, sent)
        except (MQClientException, MQBrokerException, RemotingException) as error:
            future.tell_given_up(error)
            raise
        reply = await future.wait_response_message(left_ms)
    finally:
        holder.remove(future.correlation_id)
    if reply is not None:
        return reply
    failure = _no_reply(message.topic, future, timeout_ms)
    future.tell_given_up(failure)
    raise failure from future.cause


def _no_reply(topic: str, future: RequestResponseFuture, timeout_ms: int) -> Exception:
    """Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.waitResponse."""
    if not future.send_request_ok:
        return MQClientException(f"send request message to <{topic}> fail")
    text = f"send request message to <{topic}> OK, but wait reply message timeout, {timeout_ms} ms."
    return RequestTimeoutException(text, int(ClientErrorCode.REQUEST_TIMEOUT_EXCEPTION))


async def request_async(
    impl: DefaultMQProducerImpl,
    message: Message,
    callback: RequestCallback | RequestCallbackFunction,
    destination: Destination,
    timeout_ms: int,
) -> None:
    """Send a message; the callback hears of its reply, or, at the first scan after `timeout_ms`, that there is none.

    Where `request_ends_when_sent` is set, the callback also hears that a message to no given queue was sent.

    Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.request.
    """
    node = impl.node
    begin_us = node.now_us()
    holder, future = await _prepare(impl, message, timeout_ms, callback)

    def sent(result: object, error: Exception | None) -> object:
        if error is None:
            told_now = impl.producer.request_ends_when_sent and destination.is_open
            return future.execute_request_callback() if told_now else None
        future.cause = error
        if holder.remove(future.correlation_id) is None:
            return None
        future.send_request_ok = False
        future.tell_given_up(error)
        return future.execute_request_callback()

    left_ms = timeout_ms - (node.now_us() - begin_us) // 1_000
    await _send(impl, message, destination, left_ms, sent)


async def _prepare(
    impl: DefaultMQProducerImpl,
    message: Message,
    timeout_ms: int,
    callback: RequestCallback | RequestCallbackFunction | None,
) -> tuple[RequestFutureHolder, RequestResponseFuture]:
    """Write into a message who asks, and note the request.

    The first message to a topic is preceded by a heartbeat: its broker must know this client to push a reply.

    Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.prepareSendRequest.
    """
    impl.make_sure_state_ok()
    node, instance = impl.node, impl.instance
    correlation_id = create_correlation_id(node)
    message.properties[MessageConst.CORRELATION_ID] = correlation_id
    message.properties[MessageConst.MESSAGE_REPLY_TO_CLIENT] = instance.client_id
    message.properties[MessageConst.MESSAGE_TTL] = str(timeout_ms)
    if message.topic not in instance.routes.topic_route_table:
        await impl.try_to_find_topic_publish_info(message.topic)
        await instance.heartbeats.send_to_all_brokers()
    holder = RequestFutureHolder.of(node)
    future = RequestResponseFuture(node, message.topic, correlation_id, timeout_ms, callback)
    holder.put(future)
    if node.hooks.on:
        node.hooks.emit(ReplyAwaited(message.topic, correlation_id, instance.client_id, timeout_ms))
    return holder, future


async def _send(
    impl: DefaultMQProducerImpl, message: Message, destination: Destination, left_ms: int, sent: SendCallbackFunction
) -> None:
    await destination.send(impl, message, left_ms, Outcome(impl, message, sent))
