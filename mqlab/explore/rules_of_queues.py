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

    kinds = ("PullRequested", "ConsumeStarted", "QueueDropped", "ConsumeFinished", "MessageGivenBack", "OffsetUpdated")
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

    def on_event(self, record: Record) -> None:
        """Look whether the consumer still has the queue."""
        key = (record.node, record.group, record.topic, record.broker_name, record.queue_id)
        at = f"{record.broker_name} {record.topic} queue {record.queue_id}"
        if record.kind == "QueueDropped":
            self.judged += 1
            self._may_pull_once.add(key)
        elif not self.case.is_live:
            return
        elif record.kind == "MessageGivenBack":
            if (*key, record.queue_offset) in self._too_late:
                self.judged += 1
                self.found(record.row, f"{record.node} gives a message of {at} back, and has no say in it any more")
        elif record.kind == "OffsetUpdated":
            if record.task.startswith("ConsumeMessageThread") and not self._has(record):
                self.judged += 1
                self.found(record.row, f"{record.node} notes an offset of {at}, which it has given up")
        elif self._has(record):
            if record.kind == "ConsumeStarted":
                self._too_late.pop((*key, record.queue_offset), None)
        elif record.kind == "ConsumeFinished":
            self._too_late[(*key, record.queue_offset)] = None
        else:
            self.judged += 1
            if record.kind == "PullRequested" and key in self._may_pull_once:
                self._may_pull_once.remove(key)
                self.excuse(LATE_PULL)
                return
            did = "pulls" if record.kind == "PullRequested" else "calls its listener for"
            self.found(record.row, f"{record.node} {did} {at}, which it has given up")

    def _has(self, record: Record) -> bool:
        """Does the consumer have the queue at this moment, or may it pop there? Others than push consumers are not
        judged.
        """
        consumer = push_consumer_of(self.case.lab, record.node, record.group)
        if consumer is None:
            return True
        popped = consumer.impl.pop_process_queue_table
        if any(MessageQueue(record.topic, record.broker_name, place) in popped for place in (-1, record.queue_id)):
            return True
        held = consumer.impl.rebalance_impl.process_queue_table
        # A listener sees messages of the retry topic under their own topic.
        topics = (record.topic, retry_topic(record.group))
        return any(MessageQueue(topic, record.broker_name, record.queue_id) in held for topic in topics)
