"""Which producers are online, by group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.remoting.available_channel import available_channel
from mqlab.trace.events.broker import ClientExpired, ClientRegistered, ClientUnregistered

if TYPE_CHECKING:
    from mqlab.broker.client_channel_info import ClientChannelInfo
    from mqlab.remoting import Channel
    from mqlab.sim import Node

ROLE = "producer"


class ProducerManager:
    """The producer groups that have members online (org.apache.rocketmq.broker.client.ProducerManager).

    The broker needs them for two things: to ask somebody of a group how a transaction ended, and to push a reply to the
    client that asked. As in RocketMQ a client that leaves one of its groups cannot be found any more, though its other
    groups are still here, until it comes with a new connection.
    """

    def __init__(self, node: Node, channel_expired_timeout_ms: int) -> None:
        self._node = node
        self._expired_us = channel_expired_timeout_ms * 1_000
        self._asked = 0
        """How often a member was wanted; the same for all groups."""
        self.group_channel_table: dict[str, dict[Channel, ClientChannelInfo]] = {}
        self.client_channel_table: dict[str, Channel] = {}
        """By client id: where a client can be reached."""

    def register_producer(self, group: str, info: ClientChannelInfo) -> None:
        """Note a heartbeat's producer."""
        members = self.group_channel_table.setdefault(group, {})
        known = members.get(info.channel)
        if known is not None:
            known.last_update_us = self._node.now_us()
            return
        members[info.channel] = info
        self.client_channel_table[info.client_id] = info.channel
        if self._node.hooks.on:
            self._node.hooks.emit(ClientRegistered(info.client_id, group, ROLE, info.channel.remote_address))

    def find_channel(self, client_id: str) -> Channel | None:
        """The connection to a client, or None while none is known."""
        return self.client_channel_table.get(client_id)

    def unregister_producer(self, group: str, channel: Channel, client_id: str) -> None:
        """A producer leaves in good order."""
        if group in self.group_channel_table:
            self.client_channel_table.pop(client_id, None)
        self._leave(group, channel, "asked")

    def do_channel_close_event(self, channel: Channel) -> None:
        """A connection has ended: its clients leave all their groups."""
        for group in [group for group, members in self.group_channel_table.items() if channel in members]:
            self._leave(group, channel, "channel closed")

    def get_available_channel(self, group: str) -> Channel | None:
        """A member of the group to ask something, each in its turn; None when nobody is connected.

        Java: org.apache.rocketmq.broker.client.ProducerManager.getAvailableChannel.
        """
        channels = list(self.group_channel_table.get(group, ()))
        if not channels:
            return None
        self._asked += 1
        return available_channel(channels, self._asked)

    def _leave(self, group: str, channel: Channel, reason: str) -> None:
        members = self.group_channel_table.get(group)
        if members is None:
            return
        gone = members.pop(channel, None)
        if gone is not None:
            self.client_channel_table.pop(gone.client_id, None)
            if self._node.hooks.on:
                self._node.hooks.emit(ClientUnregistered(gone.client_id, group, ROLE, reason))
        if not members:
            del self.group_channel_table[group]

    def scan_not_active_channel(self) -> list[Channel]:
        """Drop every member that was silent for too long; returns the channels that are to be closed."""
        now_us = self._node.now_us()
        silent: list[Channel] = []
        for group, members in list(self.group_channel_table.items()):
            for channel, info in list(members.items()):
                silent_us = now_us - info.last_update_us
                if silent_us > self._expired_us:
                    del members[channel]
                    silent.append(channel)
                    if self.client_channel_table.get(info.client_id) is channel:
                        del self.client_channel_table[info.client_id]
                    if self._node.hooks.on:
                        self._node.hooks.emit(ClientExpired(info.client_id, group, ROLE, silent_us // 1_000))
            if not members:
                del self.group_channel_table[group]
        return silent
