"""Concurrent consumption of popped messages: each is acknowledged by itself, or asked for again after a while."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
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
from mqlab.client.consumer.push.consume_message_concurrently_service import RETRY_LATER_MS
from mqlab.errors import ProtocolError
from mqlab.protocol.extra_info import parse_handle
from mqlab.protocol.message import MessageConst, MessageExt, MessageQueue
from mqlab.trace.events.client import ConsumeFinished, ConsumeStarted
from mqlab.trace.events.pop import PopGivenUp, PopThreadFailed

if TYPE_CHECKING:
    from mqlab.client.consumer.pop.pop_acks import PopAcks
    from mqlab.client.consumer.pop.pop_request import PopProcessQueue
    from mqlab.client.consumer.push.default_mq_push_consumer_impl import DefaultMQPushConsumerImpl

POP_DELAY_LEVEL = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1_200, 1_800, 3_600, 7_200)
"""Seconds until a message that was not consumed comes again, by the number of tries before."""

CONSUME_SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
RECONSUME_LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER


def delay_s(delay_level: int, reconsume_times: int) -> int:
    """Seconds until a message comes again: those of the level that its listener asked for, or else (0) of its tries.

    Java: org.apache.rocketmq.client.impl.consumer.ConsumeMessagePopConcurrentlyService.changePopInvisibleTime.
    IndexError for a level below 0, as there.
    """
    level = delay_level or reconsume_times
    if level < 0:
        raise IndexError(f"Index {level} out of bounds for length {len(POP_DELAY_LEVEL)}")
    return POP_DELAY_LEVEL[min(level, len(POP_DELAY_LEVEL) - 1)]


def timed_out(cost_ms: int, invisible_ms: int) -> bool:
    """Whether a call counts as one that timed out: nearly never, as RocketMQ takes the ms of the invisible time for
    seconds here.
    """
    return cost_ms >= invisible_ms * 1_000


class PopConsumeRequest(ListenerCall):
    """A job of the pool: some popped messages for the listener, which must be done before their invisible time is over.

    `pop_time` and `invisible_time` (ms) are those of the first message.

    Java: org.apache.rocketmq.client.impl.consumer.ConsumeMessagePopConcurrentlyService.ConsumeRequest.
    """

    __slots__ = (
        "_service",
        "context",
        "invisible_time",
        "message_queue",
        "messages",
        "pop_time",
        "process_queue",
        "seen",
    )

    def __init__(
        self,
        service: ConsumeMessagePopConcurrentlyService,
        messages: list[MessageExt],
        process_queue: PopProcessQueue,
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
        try:
            handle = parse_handle(messages[0].properties.get(MessageConst.POP_CK, ""))
            self.pop_time, self.invisible_time = handle.pop_time, handle.invisible_time
        except ProtocolError:
            # A filter hook has broken it: then the time counts as over.
            self.pop_time = self.invisible_time = 0

    @property
    def is_pop_timeout(self) -> bool:
        """Whether the messages may be somebody else's by now, as the clock of this machine says."""
        if self.pop_time <= 0 or self.invisible_time <= 0:
            return True
        return self._service.node.now_ms() - self.pop_time >= self.invisible_time

    def run(self) -> Coroutine[Any, Any, None] | None:
        """Call the listener, unless it is too late; a coroutine listener keeps the thread until it has ended."""
        service = self._service
        if self.process_queue.dropped:
            service.report_given_up(self, "the assignment was given up before the listener was called")
            return None
        if self.is_pop_timeout:
            self.process_queue.wait_ack_msg_count -= len(self.messages)
            service.report_given_up(self, "the invisible time was over before the listener was called")
            return None
        self.context = ConsumeConcurrentlyContext(service.node, self.message_queue)
        service.before(self)
        started = str(service.node.now_ms())
        for message in self.messages:
            message.properties[MessageConst.CONSUME_START_TIMESTAMP] = started
        return self.call(service.node, service.listener, tuple(self.messages), self.context)

    def finish(self, said: ConcurrentlyResult) -> None:
        """Acknowledge the messages or ask for them again, if it is not too late for that."""
        service, status = self._service, said
        if status is not CONSUME_SUCCESS:
            status = checked_status(service.group_name, status, ConsumeConcurrentlyStatus)
        service.after(self, status, service.node.now_us() - self.began_us)
        if not self.process_queue.dropped and not self.is_pop_timeout:
            service.process_consume_result(RECONSUME_LATER if status is None else status, self)
            return
        self.process_queue.wait_ack_msg_count -= len(self.messages)
        what = "the assignment was given up" if self.process_queue.dropped else "the invisible time was over"
        service.report_given_up(self, f"{what} when the listener ended")


class ConsumeMessagePopConcurrentlyService:
    """Gives popped messages to a pool of consume threads of its own.

    Java: org.apache.rocketmq.client.impl.consumer.ConsumeMessagePopConcurrentlyService. As there, the shutdown of a
    consumer does not end it: what waits is dropped, because the assignments are. Its twin for orderly listeners
    (ConsumeMessagePopOrderlyService) consumes nothing in RocketMQ either: their queues are always shared out by
    clients.
    """

    def __init__(self, owner: DefaultMQPushConsumerImpl, listener: MessageListenerFunction, acks: PopAcks) -> None:
        self._owner = owner
        self.node = owner.node
        self.group_name = owner.group_name
        self.listener = listener
        self.acks = acks
        self.pool = owner.node.pool("ConsumeMessageThread_", owner.consumer.consume_thread_min)
        self.delay_s: Callable[[int, int], int] = delay_s
        """In how many seconds a message comes again, from what its listener asked for, and how often it did before."""
        self.timed_out: Callable[[int, int], bool] = timed_out
        """Whether hooks are told that a call timed out, from how long it took, and the invisible time (ms)."""
        self._told: set[str] = set()

    def submit_pop_consume_request(
        self, messages: list[MessageExt], process_queue: PopProcessQueue, message_queue: MessageQueue
    ) -> None:
        """Give messages to the pool, consume_message_batch_max_size at a time; what it rejects comes after 5 s."""
        size = self._owner.consumer.consume_message_batch_max_size
        for start in range(0, len(messages), size):
            request = PopConsumeRequest(self, messages[start : start + size], process_queue, message_queue)
            if not self.pool.submit(request.run):
                request.messages = messages[start:]
                self.node.timeout(RETRY_LATER_MS, self.pool.submit, request.run, name="consume later")
                return

    # -- around the listener ----------------------------------------------------------------------------------------

    def before(self, request: PopConsumeRequest) -> None:
        """Run the hooks, and note that the listener is called."""
        owner = self._owner
        messages = request.messages
        owner.reset_retry_topic(messages)
        if owner.consume_message_hooks:
            context = request.seen = ConsumeMessageContext(owner.group_name, messages, request.message_queue)
            for hook in owner.consume_message_hooks:
                hook.consume_message_before(context)
        if self.node.hooks.on:
            self.node.hooks.emit(ConsumeStarted(*self._first_of(request), len(messages), messages[0].reconsume_times))

    def after(self, request: PopConsumeRequest, status: ConcurrentlyResult, cost_us: int) -> None:
        """Run the hooks, and note how it went."""
        owner = self._owner
        if request.error is not None:
            warn_that_listener_raised(owner.group_name, request.error, self._told)
        elif status is None:
            warn_that_listener_returned_none(owner.group_name, self._told, RECONSUME_LATER, CONSUME_SUCCESS)
        owner.statistics.called(request.message_queue.topic, cost_us)
        context = request.seen
        if context is not None:
            context.status = status.value if status is not None else RECONSUME_LATER.value
            context.success = status is CONSUME_SUCCESS
            failed, slow = status is RECONSUME_LATER, self.timed_out(cost_us // 1_000, request.invisible_time)
            context.return_type = return_type(status, failed, request.error, slow)
            for hook in owner.consume_message_hooks:
                hook.consume_message_after(context)
        if self.node.hooks.on:
            text = f"{type(request.error).__name__}: {request.error}" if request.error else f"{status}"
            self.node.hooks.emit(ConsumeFinished(*self._first_of(request), text, cost_us))

    def report_given_up(self, request: PopConsumeRequest, reason: str) -> None:
        """Nothing is told to the broker: the messages come again, if they have not already."""
        if self.node.hooks.on:
            self.node.hooks.emit(PopGivenUp(*self._first_of(request), len(request.messages), reason))

    def _first_of(self, request: PopConsumeRequest) -> tuple[str, str, str, int, int, str]:
        """The group and the first message, as the events have them."""
        first = request.messages[0]
        broker_name = request.message_queue.broker_name
        return self.group_name, first.topic, broker_name, first.queue_id, first.queue_offset, first.msg_id

    # -- the result -------------------------------------------------------------------------------------------------

    def process_consume_result(self, status: ConsumeConcurrentlyStatus, request: PopConsumeRequest) -> None:
        """Acknowledge what was consumed, and ask for the rest again after a while.

        Java: org.apache.rocketmq.client.impl.consumer.ConsumeMessagePopConcurrentlyService.processConsumeResult.
        """
        messages = request.messages
        ack_index = min(request.context.ack_index, len(messages) - 1) if status is CONSUME_SUCCESS else -1
        ok = max(0, ack_index + 1)
        self._owner.statistics.consumed(request.message_queue.topic, ok, len(messages) - ok)
        for message in messages[:ok]:
            self.acks.ack_async(message, "consumed")
            request.process_queue.wait_ack_msg_count -= 1
        for message in messages[ok:]:
            request.process_queue.wait_ack_msg_count -= 1
            try:
                self._consume_later(message, request.context.delay_level_when_next_consume)
            except IndexError as error:
                # In RocketMQ, too, the job ends here, and nobody is told of this message and those behind it.
                if self.node.hooks.on:
                    self.node.hooks.emit(PopThreadFailed(*self._first_of(request), str(error)))
                return

    def _consume_later(self, message: MessageExt, delay_level: int) -> None:
        if message.reconsume_times >= self._owner.max_reconsume_times:
            self._check_need_ack_or_delay(message)
        else:
            self._change_pop_invisible_time(message, delay_level)

    def _check_need_ack_or_delay(self, message: MessageExt) -> None:
        """A message that was tried too often is given up, but not before it is four hours old.

        Java: org.apache.rocketmq.client.impl.consumer.ConsumeMessagePopConcurrentlyService.checkNeedAckOrDelay.
        """
        age_ms = self.node.now_ms() - message.born_timestamp
        if age_ms > POP_DELAY_LEVEL[-1] * 1_000 * 2:
            self.acks.ack_async(message, "tried too often")
            return
        passed = [level for level, seconds in enumerate(POP_DELAY_LEVEL) if age_ms >= seconds * 1_000]
        # Younger than the first delay: level -1, which is none.
        self._change_pop_invisible_time(message, passed[-1] + 1 if passed else -1)

    def _change_pop_invisible_time(self, message: MessageExt, delay_level: int) -> None:
        seconds = self.delay_s(delay_level, message.reconsume_times)
        self.acks.change_pop_invisible_time_async(message, seconds * 1_000)
