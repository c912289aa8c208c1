"""Rules of flow control: what a push consumer may hold of a queue, and by how much an answer may go beyond it."""

from __future__ import annotations

from typing import NamedTuple

from mqlab.client import DefaultMQPushConsumer, ProcessQueue
from mqlab.explore.readers import push_consumer_of
from mqlab.explore.rule import Case, Rule
from mqlab.protocol.message import MEBIBYTE, MessageQueue
from mqlab.trace.record import Record


class _Limits(NamedTuple):
    """What a consumer minds when it asks."""

    batch_size: int
    messages: int
    size: int


class ThresholdsHold(Rule):
    """A consumer that holds more of a queue than a threshold does not pull, so one pull's answer is all that goes over.

    Thresholds are of messages, MiB of bodies and, unless consumed in order, the span of offsets. A threshold itself may
    be reached: RocketMQ pulls while the count is not greater. One pull at a time is under way for a queue. What is
    changed meanwhile counts from the next one on.
    """

    kinds = ("PullRequested", "MessagesCached")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._asked: dict[tuple[str, str, MessageQueue], _Limits] = {}
        """(process, group, queue) -> the limits at its last pull."""

    def on_event(self, record: Record) -> None:
        """Compare what the consumer holds with its settings."""
        found = self._held(record)
        if found is None:
            return
        self.judged += 1
        consumer, held = found
        key = record.node, record.group, MessageQueue(record.topic, record.broker_name, record.queue_id)
        limits = _limits(consumer)
        if record.kind == "PullRequested":
            self._asked[key] = limits
            self._may_pull(record, consumer, held)
        else:
            self._may_hold(record, held, self._asked.get(key, limits))

    def _held(self, record: Record) -> tuple[DefaultMQPushConsumer, ProcessQueue] | None:
        consumer = push_consumer_of(self.case.lab, record.node, record.group)
        if consumer is None:
            return None
        queue = MessageQueue(record.topic, record.broker_name, record.queue_id)
        held = consumer.impl.rebalance_impl.process_queue_table.get(queue)
        return None if held is None else (consumer, held)

    def _may_pull(self, record: Record, consumer: DefaultMQPushConsumer, held: ProcessQueue) -> None:
        self._compare(record, "messages", held.msg_count, consumer.pull_threshold_for_queue)
        self._compare(record, "MiB", held.msg_size // MEBIBYTE, consumer.pull_threshold_size_for_queue)
        if not consumer.impl.consume_orderly:
            self._compare(record, "offsets of span", held.max_span(), consumer.consume_concurrently_max_span)

    def _may_hold(self, record: Record, held: ProcessQueue, limits: _Limits) -> None:
        """What was held before this answer came was within the threshold, and the answer is no larger than asked."""
        if record.messages > limits.batch_size:
            self.found(record.row, f"a pull brought {record.messages} messages, asked were {limits.batch_size}")
        newest = list(held.msg_tree_map.values())[-record.messages :]
        before = held.msg_size - sum(len(message.body) for message in newest)
        self._compare(record, "messages", record.cached - record.messages, limits.messages)
        self._compare(record, "MiB", before // MEBIBYTE, limits.size)

    def _compare(self, record: Record, what: str, held: int, threshold: int) -> None:
        if held > threshold:
            done = "pulled" if record.kind == "PullRequested" else "had pulled"
            self.found(record.row, f"{record.group} {done} with {held} {what} in hand, allowed are {threshold}")


def _limits(consumer: DefaultMQPushConsumer) -> _Limits:
    return _Limits(
        consumer.pull_batch_size, consumer.pull_threshold_for_queue, consumer.pull_threshold_size_for_queue
    )
