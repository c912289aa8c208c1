"""The rule of queues: what was given up is left alone."""

from __future__ import annotations

from ..client import DefaultMQPushConsumer
from ..processes import ClientProcess
from ..protocol.message import MessageQueue
from ..protocol.topics import retry_topic
from ..trace.record import Record
from .rule import Rule


class DroppedIsLeftAlone(Rule):
    """A consumer that has given a queue up neither pulls it nor calls its listener with messages of it.

    A listener that was called before may go on; what it returns counts for nothing.
    """

    kinds = ("PullRequested", "ConsumeStarted")

    def on_event(self, record: Record) -> None:
        """Look whether the consumer still has the queue."""
        process = self.case.lab.processes.get(record.node)
        if not isinstance(process, ClientProcess):
            return
        for client, group, _ in process.clients:
            if group == record.group and isinstance(client, DefaultMQPushConsumer):
                held = client.impl.rebalance_impl.process_queue_table
                # A listener sees messages of the retry topic under their own topic.
                topics = (record.topic, retry_topic(group))
                if not any(MessageQueue(topic, record.broker_name, record.queue_id) in held for topic in topics):
                    at = f"{record.broker_name} {record.topic} queue {record.queue_id}"
                    did = "pulls" if record.kind == "PullRequested" else "calls its listener for"
                    self.found(record.row, f"{record.node} {did} {at}, which it has given up")
