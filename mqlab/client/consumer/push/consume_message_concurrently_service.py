"""Concurrent consumption: a pool of threads that call the listener, and what becomes of its answers."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.client.consumer.hooks import ConsumeMessageContext, return_type
from mqlab.client.consumer.listener import (
    ConcurrentlyResult,
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    MessageListenerFunction,
    checked_status,
    warn_that_listener_raised,
    warn_that_listener_returned_none,
)
from mqlab.client.consumer.listener_call import ListenerCall
from mqlab.protocol.heartbeat import MessageModel
from mqlab.protocol.message import MessageExt, MessageQueue
from mqlab.sim import PeriodicTask
from mqlab.trace.events.client import ConsumeFinished, ConsumeResultIgnored, ConsumeStarted

if TYPE_CHECKING:
    from mqlab.client.consumer.process_queue import ProcessQueue
    from mqlab.client.consumer.push.default_mq_push_consumer_impl import DefaultMQPushConsumerImpl

RETRY_LATER_MS = 5_000
"""What the pool rejects, and what could not be given back, is consumed again here after this time."""

CONSUME_SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
RECONSUME_LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER


class ConsumeRequest(ListenerCall):
    """A job of the pool: some messages of one queue for the listener.

    Java: org.apache.rocketmq.client.impl.consumer.ConsumeMessageConcurrentlyService.ConsumeRequest.
    """

    __slots__ = ("_service", "context", "message_queue", "messages", "process_queue", "seen")

    def __init__(
        self,
        service: ConsumeMessageConcurrentlyService,
        messages: list[MessageExt],
        process_queue: ProcessQueue,
        message_queue: MessageQueue,
    ) -> None:
        super().__init__()
        self._service = service
        self.messages = messages
        self.process_queue = process_queue
        self.message_queue = message_queue
        self.context: ConsumeConcurrentlyContext
        self.seen: ConsumeMessageContext | None = None
        """What the hooks see of the call, when there are any."""

    def run(self) -> Coroutine[Any, Any, None] | None:
        """Call the listener; a coroutine listener keeps the thread until it has ended."""
        if self.process_queue.dropped:
            return None
        service = self._service
        node = service.node
        self.context = ConsumeConcurrentlyContext(node, self.message_queue)
        service.before(self)
        started = str(node.now_ms())
        for message in self.messages:
            message.properties["CONSUME_START_TIME"] = started
        return self.call(node, service.listener, tuple(self.messages), self.context)

    def finish(self, said: ConcurrentlyResult) -> Coroutine[Any, Any, None] | None:
        """Settle the messages of a call: give back what failed, and move the offset on."""
        service, status = self._service, said
        if status is not CONSUME_SUCCESS:
            status = checked_status(service.group_name, status, ConsumeConcurrentlyStatus)
        service.after(self, status, service.node.world.now_us - self.began_us)
        if self.process_queue.dropped:
            service.report_ignored(self)
            return None
        return service.process_consume_result(RECONSUME_LATER if status is None else status, self)


class ConsumeMessageConcurrentlyService:
    """Gives the messages of all queues to a pool of consume threads.

    Java: org.apache.rocketmq.client.impl.consumer.ConsumeMessageConcurrentlyService.
    """

    def __init__(self, owner: DefaultMQPushConsumerImpl, listener: MessageListenerFunction) -> None:
        self._owner = owner
        self.node = owner.node
        self.group_name = owner.group_name
        self.listener = listener
        consumer = owner.consumer
        self.pool = owner.node.pool(f"ConsumeMessageThread_{self.group_name[:100]}", consumer.consume_thread_min)
        self._clean_expired: PeriodicTask | None = None
        self._stopped = False
        self._told: set[str] = set()

    def start(self) -> None:
        """Begin to look for expired messages, every consumeTimeout minutes."""
        period_ms = self._owner.consumer.consume_timeout * 60_000
        self._clean_expired = self.node.schedule_at_fixed_rate(
            self._clean_expired_messages, period_ms, period_ms, "clean expired messages"
        )

    async def shutdown(self) -> None:
        """Take no more messages; what waits for a thread is dropped, what runs ends."""
        self._stopped = True
        if self._clean_expired is not None:
            self._clean_expired.cancel()
        self.pool.close()

    async def _clean_expired_messages(self) -> None:
        minutes = self._owner.consumer.consume_timeout
        for process_queue in list(self._owner.rebalance_impl.process_queue_table.values()):
            await process_queue.clean_expired_msg(minutes, self._owner.send_message_back)

    def submit_consume_request(
        self,
        messages: Sequence[MessageExt],
        process_queue: ProcessQueue,
        message_queue: MessageQueue,
        dispatch_to_consume: bool = True,  # it matters to orderly consumption alone
    ) -> None:
        """Give messages to the pool, consume_message_batch_max_size at a time.

        Java: org.apache.rocketmq.client.impl.consumer.ConsumeMessageConcurrentlyService.submitConsumeRequest.
        """
        size = self._owner.consumer.consume_message_batch_max_size
        submit = self.pool.submit
        for start in range(0, len(messages), size):
            request = ConsumeRequest(self, list(messages[start : start + size]), process_queue, message_queue)
            if not submit(request.run):
                request.messages = list(messages[start:])
                self.submit_later(request)
                return

    def submit_later(self, request: ConsumeRequest) -> None:
        """Give messages to the pool after 5 s.

        Java: org.apache.rocketmq.client.impl.consumer.ConsumeMessageConcurrentlyService.submitConsumeRequestLater.
        """
        if not self._stopped:
            self.node.timeout(
                RETRY_LATER_MS,
                self.submit_consume_request,
                request.messages,
                request.process_queue,
                request.message_queue,
                name="consume later",
            )

    # -- around the listener ----------------------------------------------------------------------------------------

    def before(self, request: ConsumeRequest) -> None:
        """Give messages of the retry topic their own topic again, and run the hooks."""
        owner = self._owner
        messages = request.messages
        owner.reset_retry_topic(messages)
        if owner.consume_message_hooks:
            context = request.seen = ConsumeMessageContext(owner.group_name, messages, request.message_queue)
            for hook in owner.consume_message_hooks:
                hook.consume_message_before(context)
        if self.node.hooks.on:
            first = messages[0]
            self.node.hooks.emit(
                ConsumeStarted(
                    owner.group_name,
                    first.topic,
                    request.message_queue.broker_name,
                    first.queue_id,
                    first.queue_offset,
                    first.msg_id,
                    len(messages),
                    first.reconsume_times,
                )
            )

    def after(self, request: ConsumeRequest, status: ConcurrentlyResult, cost_us: int) -> None:
        """Run the hooks, and note how it went."""
        owner = self._owner
        if request.error is not None:
            warn_that_listener_raised(owner.group_name, request.error, self._told)
        elif status is None:
            warn_that_listener_returned_none(owner.group_name, self._told, RECONSUME_LATER, CONSUME_SUCCESS)
        owner.statistics.called(request.message_queue.topic, cost_us)
        context = request.seen
        if context is not None:
            timeout_us = owner.consumer.consume_timeout * 60_000_000
            context.status = status.value if status is not None else RECONSUME_LATER.value
            context.success = status is CONSUME_SUCCESS
            failed = status is RECONSUME_LATER
            context.return_type = return_type(status, failed, request.error, cost_us >= timeout_us)
            for hook in owner.consume_message_hooks:
                hook.consume_message_after(context)
        if self.node.hooks.on:
            first = request.messages[0]
            text = f"{type(request.error).__name__}: {request.error}" if request.error else f"{status}"
            self.node.hooks.emit(
                ConsumeFinished(
                    owner.group_name,
                    first.topic,
                    request.message_queue.broker_name,
                    first.queue_id,
                    first.queue_offset,
                    first.msg_id,
                    text,
                    cost_us,
                )
            )

    def report_ignored(self, request: ConsumeRequest) -> None:
        """The queue was given up meanwhile: the result counts for nothing."""
        hooks = self.node.hooks
        if hooks.on:
            hooks.emit(
                ConsumeResultIgnored(self._owner.group_name, *request.message_queue, request.messages[0].queue_offset)
            )

    # -- the result -------------------------------------------------------------------------------------------------

    def process_consume_result(
        self, status: ConsumeConcurrentlyStatus, request: ConsumeRequest
    ) -> Coroutine[Any, Any, None] | None:
        """Take consumed messages out of the process queue and move the offset; give the failed ones back.

        Giving back takes time: then a coroutine is returned.

        Java: org.apache.rocketmq.client.impl.consumer.ConsumeMessageConcurrentlyService.processConsumeResult.
        """
        messages = request.messages
        if not messages:
            return None
        consumed = request.context.ack_index + 1 if status is CONSUME_SUCCESS else 0
        failed = messages[consumed:] if consumed > 0 else messages
        owner = self._owner
        owner.statistics.consumed(request.message_queue.topic, len(messages) - len(failed), len(failed))
        if failed and owner.message_model is MessageModel.CLUSTERING:
            return self._give_back(request, failed)
        process_queue = request.process_queue
        offset = process_queue.remove_message(messages)
        if self.node.world.tie_is_choice:
            return self._update_offset(request, offset)
        if offset >= 0 and not process_queue.dropped:
            owner.offset_store.update_offset(request.message_queue, offset, increase_only=True)
        return None

    async def _give_back(self, request: ConsumeRequest, failed: list[MessageExt]) -> None:
        kept: list[MessageExt] = []
        for message in failed:
            if not request.process_queue.contains_message(message):
                continue
            if not await self._owner.send_message_back(message, request.context.delay_level_when_next_consume):
                message.reconsume_times += 1
                kept.append(message)
        if kept:
            offsets = {message.queue_offset for message in kept}
            request.messages = [message for message in request.messages if message.queue_offset not in offsets]
            again = ConsumeRequest(self, kept, request.process_queue, request.message_queue)
            self.submit_later(again)
        await self._update_offset(request, request.process_queue.remove_message(request.messages))

    async def _update_offset(self, request: ConsumeRequest, offset: int) -> None:
        """Move the offset; before that, another thread may overtake this one, or the queue may be given up."""
        await self.node.preempt("consume.messages-removed")
        if offset >= 0 and not request.process_queue.dropped:
            self._owner.offset_store.update_offset(request.message_queue, offset, increase_only=True)
