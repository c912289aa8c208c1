"""What a broker says of itself, and what a name server keeps of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mqlab.protocol.topic_config import DataVersion, TopicConfigAndMappingSerializeWrapper
    from mqlab.remoting import Channel


class BrokerAddrInfo(NamedTuple):
    """What tells one broker process from another: its cluster and its address."""

    cluster_name: str
    broker_addr: str


class BrokerLiveInfo:
    """When a broker was last heard, and for how long that counts; times in ms of the name server's clock."""

    __slots__ = ("channel", "data_version", "ha_server_addr", "heartbeat_timeout_ms", "last_update_ms")

    def __init__(
        self, last_update_ms: int, heartbeat_timeout_ms: int, data_version: DataVersion, channel: Channel, ha_addr: str
    ) -> None:
        self.last_update_ms = last_update_ms
        self.heartbeat_timeout_ms = heartbeat_timeout_ms
        self.data_version = data_version
        self.channel = channel
        self.ha_server_addr = ha_addr


class BrokerReport(NamedTuple):
    """What a broker says of itself when it registers; `timeout_ms` None means the name server's own limit."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: int
    ha_server_addr: str
    timeout_ms: int | None
    enable_acting_master: bool | None
    topics: TopicConfigAndMappingSerializeWrapper
    filter_servers: list[str]


class RegisterBrokerResult(NamedTuple):
    """For a slave: its master's addresses; both None otherwise."""

    ha_server_addr: str | None = None
    master_addr: str | None = None
