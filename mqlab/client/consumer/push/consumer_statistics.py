"""What a consumer counts of its work, by topic."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass


@dataclass
class ConsumeStatus:
    """The sums of one topic; times are in microseconds.

    Pulls that brought something, the messages they brought and the time from request to answer; calls of the listener
    and the time spent in it; messages that were consumed, and messages that failed.
    """

    pulls: int = 0
    pulled: int = 0
    pull_us: int = 0
    calls: int = 0
    consume_us: int = 0
    consume_ok: int = 0
    consume_failed: int = 0


class ConsumerStatistics:
    """Sums over the whole life of a consumer.

    Java: org.apache.rocketmq.client.stat.ConsumerStatsManager. Differs from RocketMQ: sums instead of samples by the
    minute and the hour; rates follow from a trace.
    """

    def __init__(self) -> None:
        self.by_topic: defaultdict[str, ConsumeStatus] = defaultdict(ConsumeStatus)

    def pulled(self, topic: str, messages: int, cost_us: int) -> None:
        """Note a pull that the broker answered with messages; `messages` are those left after the filters."""
        sums = self.by_topic[topic]
        sums.pulls += 1
        sums.pulled += messages
        sums.pull_us += cost_us

    def called(self, topic: str, cost_us: int) -> None:
        """Note one call of the listener."""
        sums = self.by_topic[topic]
        sums.calls += 1
        sums.consume_us += cost_us

    def consumed(self, topic: str, ok: int, failed: int) -> None:
        """Note what became of messages; those of a queue that was given up meanwhile count nowhere."""
        sums = self.by_topic[topic]
        sums.consume_ok += ok
        sums.consume_failed += failed
