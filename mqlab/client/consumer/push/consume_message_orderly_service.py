"""Orderly consumption: one thread at a time for each queue, and only while the broker's lock holds."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING

from mqlab.client.consumer.hooks import ConsumeMessageContext, return_type
from mqlab.client.consumer.listener import (
    checked_status,
    warn_that_listener_raised,
    warn_that_listener_returned_none,
)
from mqlab.client.consumer.process_queue import REBALANCE_LOCK_INTERVAL_MS
from mqlab.client.consumer.push.orderly_listener import (
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    OrderlyListenerFunction,
    OrderlyResult,
)
from mqlab.client.consumer.push.send_back import send_orderly_to_retry_topic
from mqlab.errors import SimulationError
from mqlab.protocol.heartbeat import MessageModel
from mqlab.protocol.message import MessageConst, MessageExt, MessageQueue
from mqlab.sim import Lock, PeriodicTask
from mqlab.trace.events.client import ConsumeFinished, ConsumeStarted

if TYPE_CHECKING:
    from mqlab.client.consumer.process_queue import ProcessQueue
    from mqlab.client.consumer.push.default_mq_push_consumer_impl import DefaultMQPushConsumerImpl

LOCK_FIRST_MS = 1_000
MAX_TIME_CONSUME_CONTINUOUSLY_MS = 60_000
LOCK_LOST_MS = 10
NOT_LOCKED_MS = 100
LOCK_REFUSED_MS = 3_000
SUSPEND_MIN_MS, SUSPEND_MAX_MS = 10, 30_000

SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
NO_COMMIT = -1


class ConsumeMessageOrderlyService:
    """Gives each queue to one thread of the pool at a time.

    Java: org.apache.rocketmq.client.impl.consumer.ConsumeMessageOrderlyService. As observed there, each renewal of the
    locks goes out twice, because the twin of this service for Pop renews them as well.
    """

    def __init__(self, owner: DefaultMQPushConsumerImpl, listener: OrderlyListenerFunction) -> None:
        self._owner = owner
        self.node = owner.node
        self.listener = listener
        self.pool = owner.node.pool(f"ConsumeMessageThread_{owner.group_name[:100]}", owner.consumer.consume_thread_min)
        self._queue_locks: dict[MessageQueue, Lock] = {}
        self._renewals: list[PeriodicTask] = []
        self._stopped = False
        self._told: set[str] = set()

    @property
    def _clustering(self) -> bool:
        return self._owner.message_model is MessageModel.CLUSTERING

    def start(self) -> None:
        """Begin to renew the locks every 20 s."""
        if self._clustering:
            self._renewals = [
                self.node.schedule_at_fixed_rate(
                    self._owner.queue_locks.lock_all, LOCK_FIRST_MS, REBALANCE_LOCK_INTERVAL_MS, name
                )
                for name in ("lock renewal", "lock renewal of the Pop twin")
            ]

    async def shutdown(self) -> None:
        """Take no more messages and give all locks back."""
        self._stopped = True
        for renewal in self._renewals:
            renewal.cancel()
        self.pool.close()
        if self._clustering:
            await self._owner.queue_locks.unlock_all()

    def submit_consume_request(
        self,
        messages: Sequence[MessageExt],  # they are in the process queue, which knows their order
        process_queue: ProcessQueue,
        message_queue: MessageQueue,
        dispatch_to_consume: bool,
    ) -> None:
        """Let a thread consume the queue, unless one is at it already."""
        if dispatch_to_consume:
            self.pool.submit(self._consume, process_queue, message_queue)

    def _submit_later(self, process_queue: ProcessQueue, message_queue: MessageQueue, delay_ms: int) -> None:
        if not self._stopped:
            delay_ms = min(max(delay_ms, SUSPEND_MIN_MS), SUSPEND_MAX_MS)
            self.node.timeout(
                delay_ms, self.pool.submit, self._consume, process_queue, message_queue, name="consume later"
            )

    # -- the thread -------------------------------------------------------------------------------------------------

    async def _consume(self, process_queue: ProcessQueue, message_queue: MessageQueue) -> None:
        """What a thread does with a queue (ConsumeMessageOrderlyService.ConsumeRequest.run)."""
        if process_queue.dropped:
            return
        lock = self._queue_locks.setdefault(message_queue, Lock(f"the lock of {message_queue}"))
        async with lock:
            if self._clustering and (not process_queue.locked or process_queue.is_lock_expired):
                self._try_lock_later(process_queue, message_queue, NOT_LOCKED_MS)
                return
            begin_us = self.node.now_us()
            while await self._consume_some(process_queue, message_queue, begin_us):
                pass

    async def _consume_some(self, process_queue: ProcessQueue, message_queue: MessageQueue, begin_us: int) -> bool:
        """Consume the next messages; whether to go on."""
        if process_queue.dropped:
            return False
        if self._clustering and (not process_queue.locked or process_queue.is_lock_expired):
            self._try_lock_later(process_queue, message_queue, LOCK_LOST_MS)
            return False
        if self.node.now_us() - begin_us > MAX_TIME_CONSUME_CONTINUOUSLY_MS * 1_000:
            self._submit_later(process_queue, message_queue, LOCK_LOST_MS)
            return False
        messages = process_queue.take_messages(self._owner.consumer.consume_message_batch_max_size)
        if not messages:
            return False
        self._owner.reset_retry_topic(messages)
        context = ConsumeOrderlyContext(self.node, message_queue)
        await self.node.preempt("orderly.messages-taken")
        async with process_queue.consume_lock:
            if process_queue.dropped:
                return False
            status = await self._call(messages, context)
        await self.node.preempt("orderly.listener-done")
        return await self._process_result(messages, context, status or SUSPEND, process_queue)

    async def _call(self, messages: list[MessageExt], context: ConsumeOrderlyContext) -> OrderlyResult:
        owner, hooks = self._owner, self.node.hooks
        first, queue = messages[0], context.message_queue
        where = (owner.group_name, first.topic, queue.broker_name, queue.queue_id, first.queue_offset, first.msg_id)
        seen = ConsumeMessageContext(owner.group_name, messages, queue)
        for hook in owner.consume_message_hooks:
            hook.consume_message_before(seen)
        if hooks.on:
            hooks.emit(ConsumeStarted(*where, len(messages), first.reconsume_times))
        begin_us = self.node.now_us()
        status: OrderlyResult = None
        failure: Exception | None = None
        try:
            answer = self.listener(tuple(messages), context)
            status = await answer if isinstance(answer, Coroutine) else answer
        except SimulationError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a listener raises means: the same again in a moment
            failure = error
            warn_that_listener_raised(owner.group_name, error, self._told)
        status = checked_status(owner.group_name, status, ConsumeOrderlyStatus)
        if status is None and failure is None:
            warn_that_listener_returned_none(owner.group_name, self._told, SUSPEND, ConsumeOrderlyStatus.SUCCESS)
        cost_us = self.node.now_us() - begin_us
        self._tell_hooks(seen, status, failure, cost_us)
        owner.statistics.called(queue.topic, cost_us)
        if hooks.on:
            text = f"{type(failure).__name__}: {failure}" if failure else f"{status}"
            hooks.emit(ConsumeFinished(*where, text, cost_us))
        return status

    def _tell_hooks(
        self, seen: ConsumeMessageContext, status: OrderlyResult, failure: Exception | None, cost_us: int
    ) -> None:
        timed_out = cost_us >= self._owner.consumer.consume_timeout * 60_000_000
        seen.return_type = return_type(status, status is SUSPEND, failure, timed_out)
        seen.status = str(status or SUSPEND)
        seen.success = status in (ConsumeOrderlyStatus.SUCCESS, ConsumeOrderlyStatus.COMMIT)
        for hook in self._owner.consume_message_hooks:
            hook.consume_message_after(seen)

    def _try_lock_later(self, process_queue: ProcessQueue, message_queue: MessageQueue, delay_ms: int) -> None:
        async def try_lock() -> None:
            locked = await self._owner.queue_locks.lock(message_queue)
            self._submit_later(process_queue, message_queue, LOCK_LOST_MS if locked else LOCK_REFUSED_MS)

        if not self._stopped:
            self.node.call_later(delay_ms, lambda: self.node.spawn(try_lock(), "lock later"), name="lock later")

    # -- the result -------------------------------------------------------------------------------------------------

    async def _process_result(
        self,
        messages: list[MessageExt],
        context: ConsumeOrderlyContext,
        status: ConsumeOrderlyStatus,
        process_queue: ProcessQueue,
    ) -> bool:
        """Commit, or put the messages back and stop for a moment; whether to go on."""
        offset, go_on = NO_COMMIT, True
        if status in (SUSPEND, ConsumeOrderlyStatus.SUCCESS) or context.auto_commit:
            failed = len(messages) if status is SUSPEND else 0
            self._owner.statistics.consumed(context.message_queue.topic, len(messages) - failed, failed)
        if status is SUSPEND:
            if await self._shall_suspend(messages):
                process_queue.make_message_to_consume_again(messages)
                go_on = False
            elif context.auto_commit:
                offset = process_queue.commit()
        elif context.auto_commit or status is ConsumeOrderlyStatus.COMMIT:
            offset = process_queue.commit()
        elif status is ConsumeOrderlyStatus.ROLLBACK:
            process_queue.rollback()
            go_on = False
        if not go_on:
            pause_ms = context.suspend_current_queue_time_millis
            if pause_ms == -1:
                pause_ms = self._owner.consumer.suspend_current_queue_time_millis
            self._submit_later(process_queue, context.message_queue, pause_ms)
        await self.node.preempt("orderly.committed")
        if offset >= 0 and not process_queue.dropped:
            self._owner.offset_store.update_offset(context.message_queue, offset, increase_only=False)
        return go_on

    async def _shall_suspend(self, messages: list[MessageExt]) -> bool:
        """Count one more try; False if all of the messages had so many that they went to the dead letters."""
        suspend = False
        for message in messages:
            if message.reconsume_times >= self._owner.max_reconsume_times_orderly:
                message.properties[MessageConst.RECONSUME_TIME] = str(message.reconsume_times)
                if await send_orderly_to_retry_topic(self._owner, message, self._owner.max_reconsume_times_orderly):
                    continue
            message.reconsume_times += 1
            suspend = True
        return suspend
