"""Where the queues of a topic are: what the name server answers, and what the cluster looks like.

Java: org.apache.rocketmq.remoting.protocol.route.TopicRouteData, QueueData, BrokerData and
org.apache.rocketmq.remoting.protocol.body.ClusterInfo, BrokerMemberGroup.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from mqlab.protocol.json_body import JsonBody
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.sysflag import PermName
from mqlab.protocol.topic_config import check_queue_nums

MASTER_ID = 0
"""The broker id of a master (MixAll.MASTER_ID); slaves have others."""


@dataclass(slots=True)
class QueueData(JsonBody):
    """How many queues of a topic one broker has, and what may be done with them (`perm`: see PermName)."""

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_sys_flag: int = 0

    def __post_init__(self) -> None:
        check_queue_nums(self.broker_name, max(self.read_queue_nums, self.write_queue_nums))


@dataclass(slots=True)
class BrokerData(JsonBody):
    """The addresses that share one broker name, by broker id: 0 the master, others its slaves."""

    cluster: str
    broker_name: str
    broker_addrs: dict[int, str] = field(default_factory=dict)
    zone_name: str | None = None
    enable_acting_master: bool = False

    @property
    def master_addr(self) -> str | None:
        """The address of the master, if there is one."""
        return self.broker_addrs.get(MASTER_ID)

    def seen_from(self, outer_address: Callable[[str], str]) -> BrokerData:
        """The same with the addresses that somebody elsewhere must use (`Channel.outer_address`)."""
        return replace(self, broker_addrs={i: outer_address(addr) for i, addr in self.broker_addrs.items()})


@dataclass(slots=True)
class TopicRouteData(JsonBody):
    """The route of a topic: its queues by broker, and where those brokers are."""

    queue_datas: list[QueueData] = field(default_factory=list)
    broker_datas: list[BrokerData] = field(default_factory=list)
    filter_server_table: dict[str, list[str]] = field(default_factory=dict)
    order_topic_conf: str | None = None
    topic_queue_mapping_by_broker: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        for part in (self.order_topic_conf or "").split(";"):
            broker_name, _, number = part.partition(":")
            if number.isdecimal():
                check_queue_nums(broker_name, int(number[:20]))

    def encode_standard(self) -> bytes:
        """The body in plain JSON: keys quoted and sorted, other than ASCII escaped.

        So a name server answers clients of version 4.9.4 and later, or those that ask for it.
        """
        return json.dumps(_sorted(self.to_json()), separators=(",", ":")).encode()

    def select_broker_data(self, broker_name: str) -> BrokerData | None:
        """The broker of that name in this route."""
        return next((data for data in self.broker_datas if data.broker_name == broker_name), None)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _sorted(value[key]) for key in sorted(value)}
    return [_sorted(element) for element in value] if isinstance(value, (list, tuple)) else value


@dataclass(slots=True)
class ClusterInfo(JsonBody):
    """All brokers a name server knows, by broker name, and which cluster has which broker names."""

    broker_addr_table: dict[str, BrokerData] = field(default_factory=dict)
    cluster_addr_table: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class BrokerMemberGroup(JsonBody):
    """The addresses that share one broker name, as brokers ask for them."""

    cluster: str
    broker_name: str
    broker_addrs: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class GetBrokerMemberGroupResponseBody(JsonBody):
    """The answer to GET_BROKER_MEMBER_GROUP."""

    broker_member_group: BrokerMemberGroup


def queues_to_subscribe(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """The queues to consume from: all readable ones, whether their broker has a master at present or not.

    Java: org.apache.rocketmq.client.impl.factory.MQClientInstance.topicRouteData2TopicSubscribeInfo.
    """
    return [
        MessageQueue(topic, data.broker_name, queue_id)
        for data in route.queue_datas
        if PermName.is_readable(data.perm)
        for queue_id in range(data.read_queue_nums)
    ]
