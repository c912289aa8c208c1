"""Automatic batches: messages of one kind that are sent within a few ms travel as one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mqlab.client.producer.send_kernel import ASYNC, SYNC
from mqlab.client.producer.send_result import SendResult
from mqlab.errors import LearnerError, MqlabError
from mqlab.protocol.batch import MessageBatch
from mqlab.protocol.message import Message, MessageConst, MessageQueue
from mqlab.protocol.topics import check_message, is_retry_topic
from mqlab.sim import Future, ServiceThread

if TYPE_CHECKING:
    from mqlab.client.producer.async_send import Outcome
    from mqlab.client.producer.default_mq_producer import DefaultMQProducer

HOLD_MS = 10
HOLD_BYTES = 32 * 1024
TOTAL_HOLD_BYTES = 32 * 1024 * 1024

_NOT_IN_BATCHES = (
    MessageConst.DELAY_TIME_LEVEL,
    MessageConst.TIMER_DELAY_MS,
    MessageConst.TIMER_DELAY_SEC,
    MessageConst.TIMER_DELIVER_MS,
    MessageConst.PRODUCER_GROUP,
)


class AggregateKey(NamedTuple):
    """What messages must have in common to travel as one (and whether somebody waits for their answers)."""

    topic: str
    queue: MessageQueue | None
    wait_store_msg_ok: bool
    tag: str | None
    mode: str


class MessageAccumulation:
    """Messages that wait for company (ProduceAccumulator.MessageAccumulation)."""

    def __init__(self, key: AggregateKey, producer: DefaultMQProducer, created_us: int) -> None:
        self.key = key
        self.producer = producer
        self.created_us = created_us
        self.size_bytes = 0
        self.messages: list[Message] = []
        self.answers: list[Future[SendResult]] = []

    def batch(self) -> MessageBatch:
        """The messages as one, with the tag and all keys of its parts."""
        batch = MessageBatch(self.messages)
        keys = dict.fromkeys(key for message in self.messages for key in (message.keys or "").split())
        if keys:
            batch.properties[MessageConst.KEYS] = " ".join(keys)
        if self.key.tag is not None:
            batch.properties[MessageConst.TAGS] = self.key.tag
        self.producer.impl.kernel.set_unique_key(batch)
        return batch

    def tell(self, result: SendResult | None, error: Exception | None) -> None:
        """Give each message its part of the answer."""
        if result is None:
            assert error is not None
            for answer in self.answers:
                answer.set_exception(error)
            return
        whole = "," not in result.msg_id
        ids, places = result.msg_id.split(","), result.offset_msg_id.split(",")
        for k, answer in enumerate(self.answers):
            answer.set_result(result if whole else _part(result, k, ids[k], places[k]))


def _part(result: SendResult, k: int, msg_id: str, offset_msg_id: str) -> SendResult:
    return SendResult(
        result.send_status,
        msg_id,
        offset_msg_id,
        result.message_queue,
        result.queue_offset + k,
        result.transaction_id,
        result.region_id,
    )


class ProduceAccumulator(ServiceThread):
    """Holds messages for 10 ms or 32 KiB and sends them as batches; shared by the producers of one client id.

    Java: org.apache.rocketmq.client.producer.ProduceAccumulator. A guard looks every half of the holding time at what
    has waited long enough. Differs from RocketMQ: one guard for both kinds of sending; it starts with the first
    message; when a batch fails, every sender gets the error, where there all but one stumble over a null.
    """

    def __init__(self, producer: DefaultMQProducer) -> None:
        super().__init__(producer.node, "GuardForSend")
        self.hold_ms = HOLD_MS
        self.hold_bytes = HOLD_BYTES
        self.total_hold_bytes = TOTAL_HOLD_BYTES
        self.currently_held_bytes = 0
        self._accumulations: dict[AggregateKey, MessageAccumulation] = {}

    def adjust(self, delay_ms: int, max_bytes: int, total_bytes: int) -> None:
        """Take over a producer's settings; -1 leaves what there is. LearnerError out of RocketMQ's bounds."""
        for name, value, most in (
            ("batch_max_delay_ms", delay_ms, 30_000),
            ("batch_max_bytes", max_bytes, 2 * 1024 * 1024),
            ("total_batch_max_bytes", total_bytes, None),
        ):
            if value != -1 and (value < 1 or (most is not None and value > most)):
                bounds = f"between 1 and {most}" if most is not None else "above 0"
                raise LearnerError(f"{name}={value} cannot be", f"give a whole number {bounds}, or -1 for the default")
        self.hold_ms = delay_ms if delay_ms > -1 else self.hold_ms
        self.hold_bytes = max_bytes if max_bytes > -1 else self.hold_bytes
        self.total_hold_bytes = total_bytes if total_bytes > -1 else self.total_hold_bytes
        self.period_ms = max(1, self.hold_ms // 2)

    def can_batch(self, message: Message) -> bool:
        """Whether a message may wait for others: no delayed, retried or transactional one, and while there is room."""
        return (
            not isinstance(message, MessageBatch)
            and self.currently_held_bytes < self.total_hold_bytes
            and not is_retry_topic(message.topic)
            and not any(name in message.properties for name in _NOT_IN_BATCHES)
        )

    def add(
        self, message: Message, queue: MessageQueue | None, producer: DefaultMQProducer, mode: str
    ) -> Future[SendResult]:
        """Let a message wait for others; the future of its own result."""
        check_message(message, producer.max_message_size)
        producer.impl.kernel.set_unique_key(message)
        key = AggregateKey(message.topic, queue, message.wait_store_msg_ok, message.tags, mode)
        held = self._accumulations.get(key)
        if held is None:
            held = self._accumulations[key] = MessageAccumulation(key, producer, self.node.now_us())
        held.messages.append(message)
        held.size_bytes += len(message.body)
        self.currently_held_bytes += len(message.body)
        answer: Future[SendResult] = Future("the answer to a batch")
        held.answers.append(answer)
        if self._is_ready(held):
            self._begin(held)
        else:
            self.wakeup_for_work()
        return answer

    def _is_ready(self, held: MessageAccumulation) -> bool:
        return held.size_bytes > self.hold_bytes or self.node.now_us() >= held.created_us + self.hold_ms * 1_000

    def has_work(self) -> bool:
        """Whether a batch waits to be sent."""
        return bool(self._accumulations)

    def tick(self) -> None:
        """Send what has waited long enough."""
        for held in [held for held in self._accumulations.values() if self._is_ready(held)]:
            self._begin(held)

    def flush(self) -> None:
        """Send everything that waits, however short it has waited."""
        for held in list(self._accumulations.values()):
            self._begin(held)

    def _begin(self, held: MessageAccumulation) -> None:
        del self._accumulations[held.key]
        self.currently_held_bytes -= held.size_bytes
        self.node.spawn(self._send(held), "send a batch")

    async def _send(self, held: MessageAccumulation) -> None:
        impl, producer, queue = held.producer.impl, held.producer, held.key.queue
        timeout_ms = producer.send_msg_timeout
        batch = held.batch()

        async def dispatch(outcome: Outcome | None, left_ms: int) -> SendResult | None:
            mode = SYNC if outcome is None else ASYNC
            if queue is not None:
                return await impl.send_kernel_once(batch, queue, mode, left_ms, outcome)
            return await impl.send_default_impl(batch, mode, left_ms, outcome)

        try:
            if held.key.mode == ASYNC:
                await impl.async_sender.send(batch, held.tell, timeout_ms, dispatch)
            else:
                held.tell(await dispatch(None, timeout_ms), None)
        except MqlabError as error:
            held.tell(None, error)
