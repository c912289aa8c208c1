"""Noticing that the connection of a broker has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.remoting import Channel, ChannelEventListener

if TYPE_CHECKING:
    from mqlab.namesrv.route_info_manager import RouteInfoManager


class BrokerHousekeepingService(ChannelEventListener):
    """Hears of closed channels (org.apache.rocketmq.namesrv.routeinfo.BrokerHousekeepingService)."""

    def __init__(self, routes: RouteInfoManager) -> None:
        self._routes = routes

    def on_close(self, channel: Channel) -> None:
        """A connection has ended: if it was a broker's, its routes go."""
        self._routes.on_channel_destroy(channel)
