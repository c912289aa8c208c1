"""Which clients a proxy knows, until they leave or fall silent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mqlab.proxy.grpc_client_channel import GrpcClientChannel
from mqlab.remoting.available_channel import available_channel
from mqlab.trace.events.proxy import ProxyClientLeft

if TYPE_CHECKING:
    from mqlab.proxy.proxy_config import ProxyConfig
    from mqlab.sim import Node, PeriodicTask

SCAN_PERIOD_MS = 10_000

Left = Callable[[str, str], None]
"""Called with group and client id when a client is no member of the group any more."""


class ClientKey(NamedTuple):
    """A client in a group; a producer is counted by each of its topics."""

    group: str
    client_id: str


class ClientManager:
    """The members of groups (org.apache.rocketmq.broker.client.ConsumerManager and ProducerManager, in a proxy).

    A client is registered by its settings and by each heartbeat. It leaves when it says so, or when nothing was heard
    of it for 120 s, which a scan sees every 10 s; that its connection has ended changes nothing. Differs from RocketMQ:
    proxies do not tell each other of their clients.
    """

    def __init__(self, node: Node, config: ProxyConfig) -> None:
        self._node = node
        self._expired_us = config.channel_expired_timeout * 1_000
        self._consumers: dict[ClientKey, int] = {}
        self._producers: dict[ClientKey, int] = {}
        self._channels: dict[str, GrpcClientChannel] = {}
        self._asked = 0
        """How often a producer was wanted; the same for all topics."""
        self.consumer_left: list[Left] = []
        self.producer_left: list[Left] = []
        self._scan: PeriodicTask | None = None

    def start(self) -> None:
        """Begin to look for silent clients."""
        self._scan = self._node.schedule_at_fixed_rate(
            self.scan_not_active_channel, SCAN_PERIOD_MS, SCAN_PERIOD_MS, "scan of clients"
        )

    def shutdown(self) -> None:
        """Stop looking for silent clients."""
        if self._scan is not None:
            self._scan.cancel()

    def register_consumer(self, group: str, client_id: str) -> None:
        """A consumer is here."""
        self._consumers[ClientKey(group, client_id)] = self._node.now_us()

    def register_producer(self, topic: str, client_id: str) -> GrpcClientChannel:
        """A producer of this topic is here; over the channel it can be asked."""
        self._producers[ClientKey(topic, client_id)] = self._node.now_us()
        channel = self._channels.get(client_id)
        if channel is None:
            channel = self._channels[client_id] = GrpcClientChannel(client_id)
        return channel

    def group_online(self, topic: str) -> bool:
        """Whether any producer of a topic is here."""
        return any(key.group == topic for key in self._producers)

    def available_producer(self, topic: str) -> GrpcClientChannel | None:
        """A producer of a topic that can be asked something, each in its turn; None when there is none.

        Java: org.apache.rocketmq.broker.client.ProducerManager.getAvailableChannel.
        """
        channels = [self._channels[key.client_id] for key in self._producers if key.group == topic]
        if not channels:
            return None
        self._asked += 1
        return available_channel(channels, self._asked)

    def is_consumer(self, group: str, client_id: str) -> bool:
        """Whether a client is a member of the group."""
        return ClientKey(group, client_id) in self._consumers

    def unregister_consumer(self, group: str, client_id: str, reason: str = "it said so") -> None:
        """A consumer has gone."""
        if self._consumers.pop(ClientKey(group, client_id), None) is not None:
            self._tell(group, client_id, reason, self.consumer_left)

    def unregister_producer(self, topic: str, client_id: str, reason: str = "it said so") -> None:
        """A producer has gone."""
        if self._producers.pop(ClientKey(topic, client_id), None) is not None:
            if not any(key.client_id == client_id for key in self._producers):
                del self._channels[client_id]
            self._tell("", client_id, reason, self.producer_left)

    def _tell(self, group: str, client_id: str, reason: str, listeners: list[Left]) -> None:
        if self._node.hooks.on:
            self._node.hooks.emit(ProxyClientLeft(client_id, group, reason))
        for left in listeners:
            left(group, client_id)

    def scan_not_active_channel(self) -> None:
        """Forget who has been silent for too long."""
        oldest_us = self._node.now_us() - self._expired_us
        for key, heard_us in list(self._consumers.items()):
            if heard_us < oldest_us:
                self.unregister_consumer(*key, reason="no heartbeat")
        for key, heard_us in list(self._producers.items()):
            if heard_us < oldest_us:
                self.unregister_producer(*key, reason="no heartbeat")
