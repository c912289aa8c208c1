"""A client as the broker knows it: a channel, the id it gave itself, and when it was last heard."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlab.remoting import Channel


class ClientChannelInfo:
    """One client of one group (org.apache.rocketmq.broker.client.ClientChannelInfo).

    `last_update_us` is microseconds of the world. `language` and `version` are the numbers that its commands carry.
    """

    __slots__ = ("channel", "client_id", "language", "last_update_us", "version")

    def __init__(self, channel: Channel, client_id: str, language: int, version: int, now_us: int) -> None:
        self.channel = channel
        self.client_id = client_id
        self.language = language
        self.version = version
        self.last_update_us = now_us

    def __repr__(self) -> str:
        return f"ClientChannelInfo(client_id={self.client_id!r}, remote={self.channel.remote_address!r})"
