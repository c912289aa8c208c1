"""Noticing that clients are gone: closed connections at once, silent ones by a scan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.remoting import Channel, ChannelEventListener

if TYPE_CHECKING:
    from mqlab.broker.consumer_manager import ConsumerManager
    from mqlab.broker.producer_manager import ProducerManager
    from mqlab.sim import Node, PeriodicTask

SCAN_FIRST_MS = 10_000
SCAN_PERIOD_MS = 10_000


class ClientHousekeepingService(ChannelEventListener):
    """Scans for silent clients every 10 s and hears of closed channels.

    Java: org.apache.rocketmq.broker.client.ClientHousekeepingService. All tables are scanned before a channel is
    closed, so that its close finds nobody left to tell (in RocketMQ the close comes from another thread, a little
    later).
    """

    def __init__(self, node: Node, producers: ProducerManager, consumers: ConsumerManager) -> None:
        self._node = node
        self._producers = producers
        self._consumers = consumers
        self._scan: PeriodicTask | None = None

    def start(self) -> None:
        """Look for silent clients from now on, every ten seconds."""
        self._scan = self._node.schedule_at_fixed_rate(
            self.scan_exception_channel, SCAN_FIRST_MS, SCAN_PERIOD_MS, "ClientHousekeepingScheduledThread"
        )

    def shutdown(self) -> None:
        """Stop looking for silent clients."""
        if self._scan is not None:
            self._scan.cancel()

    def scan_exception_channel(self) -> None:
        """Drop the silent ones, then close their channels."""
        silent = self._producers.scan_not_active_channel() + self._consumers.scan_not_active_channel()
        for channel in dict.fromkeys(silent):
            channel.close()

    def on_close(self, channel: Channel) -> None:
        """A connection has ended, whoever ended it."""
        self._producers.do_channel_close_event(channel)
        self._consumers.do_channel_close_event(channel)
