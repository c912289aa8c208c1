"""Counting what a broker does."""

from __future__ import annotations

from collections import defaultdict

from mqlab.protocol.topics import is_system_topic


class BrokerStats:
    """Totals since the broker's start, by topic: messages put and messages got; and when it started.

    A delayed message, or one that was given back, counts as put when it is delivered: its first topic is a system one.

    Java: org.apache.rocketmq.store.stats.BrokerStatsManager. Differs from RocketMQ: three figures of many; there are
    none by queue or group, none over the last minute, hour or day, no sizes and no latencies.
    """

    __slots__ = ("boot_ms", "got_nums", "put_nums")

    def __init__(self, boot_ms: int) -> None:
        self.boot_ms = boot_ms
        self.put_nums: defaultdict[str, int] = defaultdict(int)
        self.got_nums: defaultdict[str, int] = defaultdict(int)

    @property
    def messages_put(self) -> int:
        """All that were put, without those of system topics."""
        return _without_system_topics(self.put_nums)

    @property
    def messages_got(self) -> int:
        """All that were got, without those of system topics."""
        return _without_system_topics(self.got_nums)


def _without_system_topics(nums: dict[str, int]) -> int:
    return sum(number for topic, number in nums.items() if not is_system_topic(topic))
