"""The rule of queues: what was given up is left alone."""

from __future__ import annotations

from typing import ClassVar

from mqlab.explore.readers import push_consumer_of
from mqlab.explore.rule import Case, Rule
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.topics import retry_topic
from mqlab.trace.record import Record

LATE_PULL = "a pull that was being prepared"


class DroppedIsLeftAlone(Rule):
    """A consumer that has given a queue up neither pulls it nor calls its listener, whose late results do not count.

    A listener that was called before may go on.
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "PullRequested": "_pulls", "ConsumeStarted": "_calls_listener", "QueueDropped": "_dropped",
        "ConsumeFinished": "_listener_ended", "MessageGivenBack": "_gives_back", "OffsetUpdated": "_notes_offset",
    }  # fmt: skip
    kinds = tuple(LOOKS)
    EXCEPTIONS: ClassVar[dict[str, str]] = {
        LATE_PULL: (
            "A pull looks at the beginning of its turn whether its queue was given up. When it then has to ask for a "
            "route or for the offset of a queue that was just locked, the queue may be given up meanwhile, and one "
            "more pull goes out."
        )
    }

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._may_pull_once: set[tuple[str, str, str, str, int]] = set()
        self._too_late: dict[tuple[str, str, str, str, int, int], None] = {}
        """The calls of listeners that ended when their queue was given up."""

    def _dropped(self, record: Record) -> None:
        self.judged += 1
        self._may_pull_once.add(_queue(record))

    def _pulls(self, record: Record) -> None:
        if not self.case.is_live or self._has(record):
            return
        self.judged += 1
        key = _queue(record)
        if key in self._may_pull_once:
            self._may_pull_once.remove(key)
            self.excuse(LATE_PULL)
        else:
            self.found(record.row, f"{record.node} pulls {_at(record)}, which it has given up")

    def _calls_listener(self, record: Record) -> None:
        if not self.case.is_live:
            return
        if self._has(record):
            self._too_late.pop((*_queue(record), record.queue_offset), None)
        else:
            self.judged += 1
            self.found(record.row, f"{record.node} calls its listener for {_at(record)}, which it has given up")

    def _listener_ended(self, record: Record) -> None:
        if self.case.is_live and not self._has(record):
            self._too_late[(*_queue(record), record.queue_offset)] = None

    def _gives_back(self, record: Record) -> None:
        if self.case.is_live and (*_queue(record), record.queue_offset) in self._too_late:
            self.judged += 1
            at = _at(record)
            self.found(record.row, f"{record.node} gives a message of {at} back, and has no say in it any more")

    def _notes_offset(self, record: Record) -> None:
        if self.case.is_live and record.task.startswith("ConsumeMessageThread") and not self._has(record):
            self.judged += 1
            self.found(record.row, f"{record.node} notes an offset of {_at(record)}, which it has given up")

    def _has(self, record: Record) -> bool:
        """Does the consumer have the queue at this moment, or may it pop there? Others than push consumers are not
        judged.
        """
        consumer = push_consumer_of(self.case.lab, record.node, record.group)
        if consumer is None:
            return True
        # A listener sees messages of the retry topic under their own topic.
        held, popped = consumer.impl.rebalance_impl.process_queue_table, consumer.impl.pop_process_queue_table
        topic, broker, queue_id = record.topic, record.broker_name, record.queue_id
        if MessageQueue(topic, broker, queue_id) in held:
            return True
        if popped and (MessageQueue(topic, broker, -1) in popped or MessageQueue(topic, broker, queue_id) in popped):
            return True
        return MessageQueue(retry_topic(record.group), broker, queue_id) in held


def _queue(record: Record) -> tuple[str, str, str, str, int]:
    """Whose queue an event is about."""
    return record.node, record.group, record.topic, record.broker_name, record.queue_id


def _at(record: Record) -> str:
    return f"{record.broker_name} {record.topic} queue {record.queue_id}"
