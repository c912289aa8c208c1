"""Counting what a broker does."""

from __future__ import annotations


class BrokerStats:
    """Totals since the broker's start: messages put, messages got, and when it started.

    Java: org.apache.rocketmq.store.stats.BrokerStatsManager. Differs from RocketMQ: three figures of many; there are
    none by topic, queue or group, none over the last minute, hour or day, no sizes and no latencies. RocketMQ leaves
    out system topics, so there a delayed message, and one that was given back, is counted as put when it is delivered;
    here the delayed one is counted when it is sent, the other never.
    """

    __slots__ = ("boot_ms", "messages_got", "messages_put")

    def __init__(self, boot_ms: int) -> None:
        self.boot_ms = boot_ms
        self.messages_put = 0
        self.messages_got = 0
