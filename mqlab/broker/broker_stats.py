"""Counting what a broker does."""

from __future__ import annotations


class BrokerStats:
    """Totals since the broker's start: a small part of org.apache.rocketmq.store.stats.BrokerStatsManager."""

    __slots__ = ("boot_ms", "messages_got", "messages_put")

    def __init__(self, boot_ms: int) -> None:
        self.boot_ms = boot_ms
        self.messages_put = 0
        self.messages_got = 0
