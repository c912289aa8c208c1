"""What a consumer counts of its work, by topic."""

from __future__ import annotations

from typing import NamedTuple

from .listener import ConcurrentlyResult, ConsumeConcurrentlyStatus


class ConsumeStatus(NamedTuple):
    """The sums of one topic; the time is that spent in the listener, in microseconds."""

    consume_ok: int = 0
    consume_failed: int = 0
    consume_us: int = 0


class ConsumerStatistics:
    """Sums over the whole life of a consumer.

    Java: org.apache.rocketmq.client.stat.ConsumerStatsManager. Differs from RocketMQ: sums instead of samples by the
    minute and the hour; rates follow from a trace.
    """

    def __init__(self) -> None:
        self.by_topic: dict[str, ConsumeStatus] = {}

    def consumed(self, topic: str, status: ConcurrentlyResult, messages: int, cost_us: int) -> None:
        """Note one call of the listener."""
        ok, failed, spent_us = self.by_topic.get(topic) or ConsumeStatus()
        if status is ConsumeConcurrentlyStatus.CONSUME_SUCCESS:
            ok += messages
        else:
            failed += messages
        self.by_topic[topic] = ConsumeStatus(ok, failed, spent_us + cost_us)
