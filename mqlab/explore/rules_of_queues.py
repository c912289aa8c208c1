"""The rule of queues: what was given up is left alone."""

from __future__ import annotations

from typing import ClassVar

from ..client import DefaultMQPushConsumer
from ..processes import ClientProcess
from ..protocol.message import MessageQueue
from ..protocol.topics import retry_topic
from ..trace.record import Record
from .rule import Case, Rule

LATE_PULL = "a pull that was being prepared"


class DroppedIsLeftAlone(Rule):
    """A consumer that has given a queue up neither pulls it nor calls its listener with messages of it.

    A listener that was called before may go on; what it returns counts for nothing.
    """

    kinds = ("PullRequested", "ConsumeStarted", "QueueDropped")
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

    def on_event(self, record: Record) -> None:
        """Look whether the consumer still has the queue."""
        key = (record.node, record.group, record.topic, record.broker_name, record.queue_id)
        if record.kind == "QueueDropped":
            self._may_pull_once.add(key)
            return
        process = self.case.lab.processes.get(record.node)
        if not isinstance(process, ClientProcess):
            return
        for client, group, _ in process.clients:
            if group == record.group and isinstance(client, DefaultMQPushConsumer):
                held = client.impl.rebalance_impl.process_queue_table
                # A listener sees messages of the retry topic under their own topic.
                topics = (record.topic, retry_topic(group))
                if any(MessageQueue(topic, record.broker_name, record.queue_id) in held for topic in topics):
                    continue
                if record.kind == "PullRequested" and key in self._may_pull_once:
                    self._may_pull_once.remove(key)
                    self.excuse(LATE_PULL)
                else:
                    at = f"{record.broker_name} {record.topic} queue {record.queue_id}"
                    did = "pulls" if record.kind == "PullRequested" else "calls its listener for"
                    self.found(record.row, f"{record.node} {did} {at}, which it has given up")
