"""Asynchronous sending: the caller goes on, a callback hears the outcome, and a failed attempt starts the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from mqlab.client.call_back import OutcomeCallback, call_back
from mqlab.client.producer.send_kernel import UNIQ_KEY, Prepared
from mqlab.client.topic_publish_info import APPLICATION, CALLBACK, FIRST_SENDER
from mqlab.errors import (
    MQBrokerException,
    MQClientException,
    RemotingException,
    RemotingSendRequestException,
    RemotingTimeoutException,
    RemotingTooMuchRequestException,
)
from mqlab.sim import Semaphore
from mqlab.trace.events.client import SendCallbackFailed

if TYPE_CHECKING:
    from mqlab.client.producer.default_mq_producer_impl import DefaultMQProducerImpl
    from mqlab.client.producer.send_result import SendResult
    from mqlab.client.topic_publish_info import TopicPublishInfo
    from mqlab.protocol.command import RemotingCommand
    from mqlab.protocol.message import Message, MessageQueue
    from mqlab.remoting import ResponseFuture

SENDER_QUEUE_CAPACITY = 50_000
BACK_PRESSURE_MIN_NUM = 10
BACK_PRESSURE_MIN_SIZE = 1024 * 1024


class SendCallback(OutcomeCallback):
    """Hears how an asynchronous send ended (org.apache.rocketmq.client.producer.SendCallback)."""

    def on_success(self, result: SendResult) -> object:
        """The message is stored. A coroutine keeps its callback thread until it has ended."""

    def on_exception(self, error: Exception) -> object:
        """The message was not stored, or nobody knows."""


SendCallbackFunction = Callable[["SendResult | None", Exception | None], object]
"""callback(result, error): one of the two is None."""


class Outcome:
    """Calls the application back once, and gives back what the send held."""

    __slots__ = ("_callback", "_held", "_impl", "_message", "done", "thread")

    def __init__(
        self, impl: DefaultMQProducerImpl, message: Message, callback: SendCallback | SendCallbackFunction
    ) -> None:
        self._impl = impl
        self._message = message
        self._callback = callback
        self._held: list[tuple[Semaphore, int]] = []
        self.done = False
        self.thread = APPLICATION
        """The thread that chooses the queue."""

    def hold(self, permits: Semaphore, number: int) -> None:
        """Keep so many permits until the callback is called."""
        self._held.append((permits, number))

    def __call__(self, result: SendResult | None, error: Exception | None) -> object:
        if self.done:
            return None
        self.done = True
        for permits, number in self._held:
            permits.release(number)
        return call_back(self._callback, result, error, self._report)

    def _report(self, mistake: Exception) -> None:
        hooks = self._impl.node.hooks
        if hooks.on:
            msg_id = self._message.properties.get(UNIQ_KEY, "")
            hooks.emit(SendCallbackFailed(self._message.topic, msg_id, f"{type(mistake).__name__}: {mistake}"))


class AsyncSend:
    """One message on its way: called with the answer, it ends the send or starts the next attempt.

    A retry only learns another broker's name from the queue that it selects: the request, with its queue id, stays as
    it is, and gets a new opaque.

    Java: org.apache.rocketmq.client.impl.MQClientAPIImpl.onExceptionImpl.
    """

    __slots__ = (
        "_begin_us",
        "_impl",
        "_info",
        "_outcome",
        "_prepared",
        "_queue",
        "_request",
        "_started_us",
        "_timeout_ms",
        "_times",
    )

    def __init__(
        self,
        impl: DefaultMQProducerImpl,
        prepared: Prepared,
        queue: MessageQueue,
        info: TopicPublishInfo | None,
        outcome: Outcome,
        timeout_ms: int,
    ) -> None:
        self._impl = impl
        self._prepared = prepared
        self._queue = queue
        self._info = info
        self._outcome = outcome
        self._timeout_ms = timeout_ms
        self._begin_us = self._started_us = impl.node.now_us()
        self._times = 0
        self._request: RemotingCommand = impl.instance.api.send_request(prepared.wire_message, prepared.header)

    def start(self, address: str) -> None:
        """Hand the request to remoting."""
        self._begin_us = self._impl.node.now_us()
        self._impl.instance.api.send_message_async(address, self._request, self._timeout_ms, self)

    def __call__(self, future: ResponseFuture) -> object:
        impl = self._impl
        cost_ms = (impl.node.now_us() - self._begin_us) // 1_000
        if future.response is None:
            return self._communication_failed(future.error, cost_ms)
        prepared, broker_name = self._prepared, self._queue.broker_name
        message = prepared.wire_message
        try:
            result = impl.instance.api.process_send_response(
                self._queue, message, future.response, prepared.address
            )
        except (MQBrokerException, RemotingException) as error:
            impl.fault_strategy.update_fault_item(broker_name, cost_ms, True, True)
            return self._failed(error, cost_ms, need_retry=False)
        impl.kernel.run_after_hooks(prepared.context, result, None)
        impl.report_success(message, result)
        told = self._outcome(result, None)
        if isinstance(told, Coroutine):
            return self._answered_after(told, broker_name)
        impl.fault_strategy.update_fault_item(broker_name, cost_ms, False, True)
        return None

    async def _answered_after(self, told: Coroutine[Any, Any, object], broker_name: str) -> None:
        """As in RocketMQ, a callback that takes long makes the broker look slow: the time is taken after it."""
        await told
        latency_ms = (self._impl.node.now_us() - self._begin_us) // 1_000
        self._impl.fault_strategy.update_fault_item(broker_name, latency_ms, False, True)

    def _communication_failed(self, cause: RemotingException | None, cost_ms: int) -> object:
        self._impl.fault_strategy.update_fault_item(self._queue.broker_name, cost_ms, True, True)
        if isinstance(cause, RemotingSendRequestException):
            error = MQClientException("send request failed")
        elif isinstance(cause, RemotingTimeoutException):
            error = MQClientException(f"wait response timeout, cost={cost_ms}")
        else:
            error = MQClientException(f"unknown reason: {cause}")
        error.__cause__ = cause
        return self._failed(error, cost_ms, need_retry=not isinstance(cause, RemotingTooMuchRequestException))

    def _failed(self, error: Exception, cost_ms: int, *, need_retry: bool) -> object:
        """Start the next attempt, or tell the application (MQClientAPIImpl.onExceptionImpl)."""
        impl = self._impl
        self._times += 1
        self._timeout_ms -= cost_ms
        again = need_retry and self._times <= impl.producer.retry_times_when_send_async_failed and self._timeout_ms > 0
        message = self._prepared.wire_message
        impl.report_failed_attempt(message, self._queue, self._times, error, retriable=again)
        if again:
            broker_name = self._queue.broker_name
            if self._info is not None:
                chosen = impl.fault_strategy.select_one_message_queue(self._info, broker_name, False, CALLBACK)
                broker_name = chosen.broker_name if chosen is not None else broker_name
            address = impl.instance.routes.find_broker_address_in_publish(broker_name)
            if address is not None:
                self._queue = self._queue._replace(broker_name=broker_name)
                self.start(address)
                return None
        impl.kernel.run_after_hooks(self._prepared.context, None, error)
        impl.report_failure(message, self._times, self._started_us, str(error))
        return self._outcome(None, error)


class AsyncSender:
    """The pool that starts asynchronous sends, and the two semaphores of back-pressure.

    The pool has as many threads as the node has cores, and 50,000 places before them.

    Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.executeAsyncMessageSend.
    """

    def __init__(self, impl: DefaultMQProducerImpl) -> None:
        producer = impl.producer
        self._impl = impl
        self._node = impl.node
        cores = impl.node.spec.cores
        self.pool = impl.node.pool("AsyncSenderExecutor", cores, SENDER_QUEUE_CAPACITY)
        # A new thread for each of the first jobs, then the one that has been idle the longest, as in Java.
        self._idle_threads = deque(range(FIRST_SENDER, FIRST_SENDER + cores))
        number = max(producer.back_pressure_for_async_send_num, BACK_PRESSURE_MIN_NUM)
        size = max(producer.back_pressure_for_async_send_size, BACK_PRESSURE_MIN_SIZE)
        self.async_send_num = number
        self.async_send_size = size
        self.semaphore_async_send_num = Semaphore(number, "asynchronous sends")
        self.semaphore_async_send_size = Semaphore(size, "bytes of asynchronous sends")

    async def send(
        self,
        message: Message,
        callback: SendCallback | SendCallbackFunction,
        timeout_ms: int,
        dispatch: Callable[[Outcome, int], Coroutine[Any, Any, object]],
    ) -> None:
        """Let a thread of the pool start the send; waits only for permits, and only with back-pressure.

        `dispatch(outcome, timeout_ms)` is what the thread does. MQClientException when the pool's queue is full.
        """
        begin_us = self._node.now_us()
        outcome = Outcome(self._impl, message, callback)

        async def send() -> None:
            left_ms = timeout_ms - (self._node.now_us() - begin_us) // 1_000
            if left_ms <= 0:
                outcome(None, RemotingTooMuchRequestException("DEFAULT ASYNC send call timeout"))
                return
            try:
                await dispatch(outcome, left_ms)
            except (MQClientException, MQBrokerException, RemotingException) as error:
                outcome(None, error)

        async def run() -> None:
            outcome.thread = self._idle_threads.popleft()
            try:
                await send()
            finally:
                self._idle_threads.append(outcome.thread)

        if not self._impl.producer.enable_backpressure_for_async_mode:
            if not self.pool.submit(run):
                raise MQClientException("executor rejected. What to do: send more slowly, or enable back-pressure.")
            return
        if await self.hold_permits(message, outcome, timeout_ms, begin_us) and not self.pool.submit(run):
            await send()

    async def hold_permits(self, message: Message, outcome: Outcome, timeout_ms: int, begin_us: int) -> bool:
        """Wait for a permit for the message and for one for each of its bytes; False if they did not come in time.

        First come, first served; the outcome keeps them until its callback is called.

        Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.executeAsyncMessageSend.
        """
        size = len(message.body or b"") or 1
        for permits, number, name in (
            (self.semaphore_async_send_num, 1, "semaphoreAsyncNum"),
            (self.semaphore_async_send_size, size, "semaphoreAsyncSize"),
        ):
            left_ms = timeout_ms - (self._node.now_us() - begin_us) // 1_000
            if left_ms <= 0 or not await permits.acquire(number, left_ms):
                outcome(None, RemotingTooMuchRequestException(f"send message tryAcquire {name} timeout"))
                return False
            outcome.hold(permits, number)
        return True
