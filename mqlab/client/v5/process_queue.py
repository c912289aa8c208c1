"""One assigned queue of a push consumer: what is received from it, cached, and settled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.v5.consume_service import ConsumeResult
from mqlab.client.v5.errors import ClientException
from mqlab.client.v5.retry import next_attempt_delay_ms
from mqlab.protocol.message import MEBIBYTE
from mqlab.protocol.v2.definition import Code
from mqlab.trace.events.client import FlowControlled, MessagesCached
from mqlab.trace.events.proxy import FifoAttemptPutOff, ReceivePutOff, SettlingFailed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mqlab.client.v5.filter_expression import FilterExpression
    from mqlab.client.v5.message import MessageView
    from mqlab.client.v5.push_consumer import PushConsumerImpl
    from mqlab.protocol.v2.definition import MessageQueue

SETTLING_FAILURE_BACKOFF_MS = 1_000
RECEIVING_FLOW_CONTROL_BACKOFF_MS = 20
RECEIVING_FAILURE_BACKOFF_MS = 1_000
RECEIVING_BACKOFF_WHEN_CACHE_IS_FULL_MS = 1_000


class ProcessQueue:
    """Receives again and again, and settles what was consumed.

    Java: org.apache.rocketmq.client.java.impl.consumer.ProcessQueueImpl. A receive that failed, or brought nothing, is
    repeated with the same attempt id; Python's client takes a new one after an empty answer.
    """

    def __init__(self, consumer: PushConsumerImpl, queue: MessageQueue, expression: FilterExpression) -> None:
        self._consumer = consumer
        self._node = consumer.node
        self.message_queue = queue
        self._expression = expression
        self.dropped = False
        self.cached_messages: dict[MessageView, None] = {}
        self.cached_bytes = 0
        self.receiving = False
        self._activity_us = self._node.now_us()
        self._cache_full_us = -(1 << 62)

    @property
    def _where(self) -> tuple[str, str, str, int]:
        queue = self.message_queue
        return self._consumer.group, queue.topic.name, queue.broker.name, queue.id

    def drop(self) -> None:
        """Receive no more; what is cached is still consumed and settled."""
        self.dropped = True

    def expired(self) -> bool:
        """Whether nothing was asked for in three times the longest receive, though there was room."""
        consumer = self._consumer
        idle_us = (consumer.long_polling_ms + consumer.config.request_timeout) * 3_000
        now_us = self._node.now_us()
        return now_us - self._activity_us >= idle_us and now_us - self._cache_full_us >= idle_us

    # -- receiving --------------------------------------------------------------------------------------------------

    def fetch_message_immediately(self) -> None:
        """Ask for messages of this queue at once."""
        self._receive_message_immediately(self._consumer.generate_attempt_id())

    def _receive_message_later(self, reason: str, delay_ms: int, attempt_id: str) -> None:
        if self._node.hooks.on:
            self._node.hooks.emit(ReceivePutOff(*self._where, reason, delay_ms))
        self._node.call_later(delay_ms, self._receive_message, attempt_id, name="receive later")

    def _receive_message(self, attempt_id: str) -> None:
        if self.dropped:
            return
        if self._is_cache_full():
            self._receive_message_later("the cache is full", RECEIVING_BACKOFF_WHEN_CACHE_IS_FULL_MS, attempt_id)
        else:
            self._receive_message_immediately(attempt_id)

    def _receive_message_immediately(self, attempt_id: str) -> None:
        if self._consumer.is_running:
            self._node.spawn(self._receive(attempt_id), "receive")

    async def _receive(self, attempt_id: str) -> None:
        """Receive once, and go on: at once, after 20 ms when the proxy has too many requests, after 1 s of an error.

        Java: org.apache.rocketmq.client.java.impl.consumer.ProcessQueueImpl.receiveMessageImmediately.
        """
        consumer = self._consumer
        self._activity_us = self._node.now_us()
        await_ms = consumer.long_polling_ms
        request = consumer.receive_request(
            self.message_queue, self._expression, self._reception_batch_size(), await_ms, attempt_id=attempt_id
        )
        self.receiving = True
        try:
            messages = await consumer.receive_message(request, await_ms)
        except ClientException as error:
            delay_ms = RECEIVING_FAILURE_BACKOFF_MS
            if error.is_too_many_requests:
                delay_ms = RECEIVING_FLOW_CONTROL_BACKOFF_MS
            self._receive_message_later(str(error), delay_ms, attempt_id)
            return
        finally:
            self.receiving = False
        if messages:
            self._cache_messages(messages)
            consumer.consume_service.consume(self, messages)
            attempt_id = consumer.generate_attempt_id()
        self._receive_message(attempt_id)

    def _reception_batch_size(self) -> int:
        room = self._consumer.cache_message_count_threshold_per_queue() - len(self.cached_messages)
        return min(max(room, 1), self._consumer.receive_batch_size)

    # -- the cache --------------------------------------------------------------------------------------------------

    def _cache_messages(self, messages: list[MessageView]) -> None:
        for message in messages:
            self.cached_messages[message] = None
            self.cached_bytes += len(message.body)
        if self._node.hooks.on:
            self._node.hooks.emit(
                MessagesCached(*self._where, len(messages), len(self.cached_messages), self.cached_bytes)
            )

    def _is_cache_full(self) -> bool:
        consumer = self._consumer
        limits = (
            ("count", len(self.cached_messages), consumer.cache_message_count_threshold_per_queue(), 1),
            ("size", self.cached_bytes, consumer.cache_message_bytes_threshold_per_queue(), MEBIBYTE),
        )
        for reason, cached, limit, unit in limits:
            if cached >= limit:
                self._cache_full_us = self._node.now_us()
                if self._node.hooks.on:
                    self._node.hooks.emit(FlowControlled(*self._where, reason, cached // unit, limit // unit))
                return True
        return False

    def _evict_cache(self, message: MessageView) -> None:
        if message in self.cached_messages:
            del self.cached_messages[message]
            self.cached_bytes -= len(message.body)

    # -- settling ---------------------------------------------------------------------------------------------------

    def erase_message(self, message: MessageView, result: ConsumeResult) -> None:
        """Acknowledge what was consumed, give back what was not, and then take it out of the cache.

        Java: org.apache.rocketmq.client.java.impl.consumer.ProcessQueueImpl.eraseMessage.
        """
        self._node.spawn(self._erase(message, result), "erase message")

    async def _erase(self, message: MessageView, result: ConsumeResult) -> None:
        if result is ConsumeResult.SUCCESS:
            await self._ack_message(message)
        else:
            await self._nack_message(message)
        self._evict_cache(message)

    def discard_message(self, message: MessageView) -> None:
        """Give a damaged message back unseen."""
        self._node.spawn(self._erase(message, ConsumeResult.FAILURE), "discard message")

    def discard_fifo_message(self, message: MessageView) -> None:
        """Give a damaged message up unseen."""
        self._node.spawn(self._give_up(message), "discard message")

    async def _give_up(self, message: MessageView) -> None:
        await self._settle(message, "dead letter", self._consumer.forward_message_to_dead_letter_queue)
        self._evict_cache(message)

    async def erase_fifo_message(self, message: MessageView, result: ConsumeResult) -> None:
        """Let the listener have a message again, here and after the waits of the retry policy, until it succeeds; after
        the last attempt it becomes a dead letter.

        Java: org.apache.rocketmq.client.java.impl.consumer.ProcessQueueImpl.eraseFifoMessage.
        """
        consumer = self._consumer
        while result is not ConsumeResult.SUCCESS and message.delivery_attempt < consumer.retry_policy.max_attempts:
            delay_ms = next_attempt_delay_ms(consumer.retry_policy, message.delivery_attempt)
            message.delivery_attempt += 1
            if self._node.hooks.on:
                self._node.hooks.emit(
                    FifoAttemptPutOff(
                        self._consumer.group, message.topic, message.broker_name, message.queue_id,
                        message.queue_offset, message.message_id, message.delivery_attempt, delay_ms,
                    )
                )  # fmt: skip
            await self._node.sleep(delay_ms)
            called = consumer.consume_service.call(message)
            if called is None:
                return
            result = await called
        if result is ConsumeResult.SUCCESS:
            await self._ack_message(message)
            self._evict_cache(message)
        else:
            await self._give_up(message)

    async def _ack_message(self, message: MessageView) -> None:
        await self._settle(message, "ack", self._consumer.ack_message)

    async def _nack_message(self, message: MessageView) -> None:
        """Let the message be invisible for as long as the retry policy says after this attempt."""
        consumer = self._consumer
        delay_ms = next_attempt_delay_ms(consumer.retry_policy, max(1, message.delivery_attempt))
        await self._settle(message, "nack", lambda each: consumer.change_invisible_duration(each, delay_ms, "nack"))

    async def _settle(
        self, message: MessageView, settled_as: str, settle: Callable[[MessageView], Awaitable[None]]
    ) -> None:
        """Settle a delivery: again after 1 s until it works, unless its handle has expired."""
        while True:
            try:
                await settle(message)
                return
            except ClientException as error:
                is_final = error.code == Code.INVALID_RECEIPT_HANDLE and settled_as != "dead letter"
                if self._node.hooks.on:
                    self._node.hooks.emit(
                        SettlingFailed(
                            self._consumer.group, message.topic, message.broker_name, message.queue_id,
                            message.queue_offset, message.message_id, settled_as, str(error), is_final,
                        )
                    )  # fmt: skip
                if is_final or self._consumer.has_ended:
                    return
            await self._node.sleep(SETTLING_FAILURE_BACKOFF_MS)

    def __repr__(self) -> str:
        queue = self.message_queue
        return f"<ProcessQueue {queue.topic.name}@{queue.broker.name}@{queue.id}: {len(self.cached_messages)} cached>"
