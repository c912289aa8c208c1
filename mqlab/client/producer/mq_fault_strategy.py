"""How a producer chooses the queue for its next attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.producer.latency_fault_tolerance import (
    ISOLATED_LATENCY_MS,
    LatencyFaultTolerance,
    not_available_duration_ms,
)
from mqlab.trace.events.client import FaultItemUpdated

if TYPE_CHECKING:
    from mqlab.client.topic_publish_info import TopicPublishInfo
    from mqlab.protocol.message import MessageQueue
    from mqlab.sim import Node


class MQFaultStrategy:
    """Takes the queues in turn; with `send_latency_fault_enable` it also avoids brokers that were slow or failed.

    Java: org.apache.rocketmq.client.latency.MQFaultStrategy.
    """

    def __init__(self, node: Node, send_latency_fault_enable: bool, start_detector_enable: bool) -> None:
        self._node = node
        self.send_latency_fault_enable = send_latency_fault_enable
        self.start_detector_enable = start_detector_enable
        self.latency_fault_tolerance = LatencyFaultTolerance(node)

    def select_one_message_queue(
        self, info: TopicPublishInfo, last_broker: str | None, reset_index: bool, thread: int
    ) -> MessageQueue | None:
        """The queue for a thread's next attempt; `last_broker` is that of the attempt before, which is avoided."""
        if not self.send_latency_fault_enable:
            return info.select_avoiding(last_broker, thread)
        if not info.ok:
            return None
        if reset_index:
            info.reset_index(thread)
        faults = self.latency_fault_tolerance

        def elsewhere(queue: MessageQueue) -> bool:
            return queue.broker_name != last_broker

        return (
            info.select_one(lambda queue: faults.is_available(queue.broker_name), elsewhere, thread=thread)
            or info.select_one(lambda queue: faults.is_reachable(queue.broker_name), elsewhere, thread=thread)
            or info.select_one(thread=thread)
        )

    def update_fault_item(self, broker_name: str, latency_ms: int, isolated: bool, reachable: bool) -> None:
        """Note how a send to a broker went; an isolated one counts as if it had taken 10 s."""
        if not self.send_latency_fault_enable:
            return
        duration = not_available_duration_ms(ISOLATED_LATENCY_MS if isolated else latency_ms)
        self.latency_fault_tolerance.update_fault_item(broker_name, latency_ms, duration, reachable)
        if self._node.hooks.on:
            self._node.hooks.emit(FaultItemUpdated(broker_name, latency_ms, duration, reachable))
