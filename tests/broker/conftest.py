"""A small cluster with a raw client, which speaks to name server and broker in commands alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqlab.broker import BrokerConfig, BrokerController
from mqlab.namesrv import NamesrvController
from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    ProducerData,
    SubscriptionData,
    build_subscription_data,
)
from mqlab.protocol.message import MessageExt
from mqlab.protocol.properties import encode_properties
from mqlab.protocol.record import scan_records
from mqlab.protocol.sysflag import PullSysFlag
from mqlab.protocol.topic_config import TopicConfig
from mqlab.remoting import Channel, RemotingClient, RequestProcessor
from mqlab.sim import EPOCH_MS, FAULTS, World
from mqlab.store import MessageStoreConfig
from tests.worlds import events_in


class Noted(RequestProcessor):
    """Remembers what the broker asked."""

    def __init__(self) -> None:
        self.requests: list[RemotingCommand] = []

    def process_request(self, channel: Channel, request: RemotingCommand) -> None:
        self.requests.append(request)


class RawClient:
    """A process that sends commands and looks at the answers."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.node = cluster.world.node(name)
        self.remoting = RemotingClient(self.node)
        self.noted = Noted()
        self.remoting.register_processor(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, self.noted)

    def begin(self, code: int, header: Any = None, body: bytes | None = None, to: str = "") -> Any:
        """Send a request; the future of its answer."""
        address = to or self.cluster.broker_address
        request = RemotingCommand.request(code, header, body)
        return self.node.spawn(self.remoting.invoke_sync(address, request, 30_000), f"call {code}").join()

    def call(self, code: int, header: Any = None, body: bytes | None = None, to: str = "") -> RemotingCommand:
        """Send a request and play until its answer is there."""
        answer: RemotingCommand = self.cluster.world.wait_for(self.begin(code, header, body, to))
        return answer

    @staticmethod
    def send_header(topic: str, **more: Any) -> h.SendMessageRequestHeaderV2:
        """The header of a plain message."""
        properties = more.pop("properties", {"TAGS": "TagA"})
        values: dict[str, Any] = {
            "producer_group": "P",
            "default_topic": "TBW102",
            "default_topic_queue_nums": 4,
            "queue_id": 0,
            "sys_flag": 0,
            "born_timestamp": 1,
            "flag": 0,
            "properties": encode_properties(properties),
            "reconsume_times": 0,
            "unit_mode": False,
            "batch": False,
            **more,
        }
        return h.SendMessageRequestHeaderV2(topic=topic, **values)

    def send(self, topic: str, body: bytes = b"x", **more: Any) -> RemotingCommand:
        """Send one message."""
        return self.call(RequestCode.SEND_MESSAGE_V2, self.send_header(topic, **more), body)

    def pull_header(self, topic: str, offset: int, **more: Any) -> h.PullMessageRequestHeader:
        """What a pull with its subscription in it looks like."""
        subscription = more.pop("subscription", "*")
        suspend = more.pop("suspend", False)
        sys_flag = PullSysFlag.build(more.pop("commit", False), suspend, subscription is not None)
        values: dict[str, Any] = {
            "consumer_group": "G",
            "queue_id": 0,
            "max_msg_nums": 32,
            "commit_offset": 0,
            "suspend_timeout_millis": 15_000,
            "sub_version": 0,
            **more,
        }
        return h.PullMessageRequestHeader(
            topic=topic, queue_offset=offset, sys_flag=sys_flag, subscription=subscription, **values
        )

    def pull(self, topic: str, offset: int = 0, **more: Any) -> RemotingCommand:
        """Pull and play until the answer is there."""
        return self.call(RequestCode.PULL_MESSAGE, self.pull_header(topic, offset, **more))

    def begin_pull(self, topic: str, offset: int = 0, **more: Any) -> Any:
        """Pull; the future of the answer."""
        return self.begin(RequestCode.PULL_MESSAGE, self.pull_header(topic, offset, **more))

    def heartbeat(self, *subscriptions: SubscriptionData, **more: Any) -> RemotingCommand:
        """Say that this client is alive; `more` is what `heartbeat_body` takes."""
        body = self.heartbeat_body(*subscriptions, **more)
        return self.call(RequestCode.HEART_BEAT, h.HeartbeatRequestHeader(), body)

    def heartbeat_body(
        self,
        *subscriptions: SubscriptionData,
        group: str = "G",
        producers: tuple[str, ...] = (),
        client_id: str = "",
        model: MessageModel = MessageModel.CLUSTERING,
        consume_type: ConsumeType = ConsumeType.CONSUME_PASSIVELY,
    ) -> bytes:
        """What stands in a heartbeat."""
        consumer = ConsumerData(
            group,
            consume_type,
            model,
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            list(subscriptions) or [build_subscription_data("T", "*", sub_version=1)],
        )
        consumers = [consumer] if group else []
        return HeartbeatData(client_id or self.node.name, [ProducerData(p) for p in producers], consumers).encode()


class Cluster:
    """A name server and a broker, up and registered."""

    def __init__(
        self,
        store: dict[str, Any] | None = None,
        *,
        seed: int = 1,
        wire_bytes: bool = False,
        disk_bytes: int | None = None,
        epoch_ms: int = EPOCH_MS,
        **settings: Any,
    ) -> None:
        self.world = World(seed, wire_bytes=wire_bytes, epoch_ms=epoch_ms)
        self.events: list[tuple[Any, ...]] = []
        self.world.hooks.attach(self.events.append)
        self.namesrv_node = self.world.node("namesrv")
        self.namesrv = NamesrvController(self.namesrv_node)
        self.namesrv_node.boot = lambda node: self._boot_namesrv()
        self.broker_node = self.world.node("broker-a")
        if disk_bytes is not None:
            self.broker_node.disk.capacity_bytes = disk_bytes
        self.broker_config = BrokerConfig(namesrv_addr=self.namesrv.address, **settings)
        self.store_config = MessageStoreConfig(**(store or {}))
        self.broker: BrokerController
        self.broker_node.boot = lambda node: self._boot_broker()
        self.do("start", node="namesrv")
        self.do("start", node="broker-a")
        self.world.run_until(lambda: hasattr(self, "broker") and self.broker.registered_once)
        self.clients = 0

    def _boot_namesrv(self) -> None:
        self.namesrv = NamesrvController(self.namesrv_node)
        self.namesrv.start()

    def _boot_broker(self) -> None:
        self.broker = BrokerController(self.broker_node, self.broker_config, self.store_config)
        self.broker.start()

    def do(self, verb: str, **arguments: Any) -> None:
        """Let a fault happen."""
        if verb == "start":
            from mqlab.sim import faults

            faults.start(self.world, arguments["node"])
        else:
            FAULTS[verb](self.world, **arguments)

    @property
    def broker_address(self) -> str:
        return self.broker.broker_addr

    @property
    def namesrv_address(self) -> str:
        return self.namesrv.address

    def client(self, name: str = "") -> RawClient:
        """One more client process."""
        self.clients += 1
        return RawClient(self, name or f"client-{self.clients}")

    def topic(self, name: str, queues: int = 1, **settings: Any) -> TopicConfig:
        """Create a topic and let the name server hear of it."""
        config = self.broker.create_topic(name, queues, **settings)
        self.run(10)
        return config

    def restart(self, ms: float = 0) -> None:
        """Start the broker again, and let time pass."""
        self.do("restart", node="broker-a")
        self.run(ms)

    def run(self, ms: float) -> None:
        """Let time pass."""
        self.world.run_for(round(ms * 1_000))

    @property
    def now_ms(self) -> float:
        return self.world.now_us / 1_000

    def seen(self, kind: str) -> list[dict[str, Any]]:
        """The events of a kind so far, as dicts of their own fields."""
        return events_in(self.events, kind)


def messages_of(response: RemotingCommand) -> list[MessageExt]:
    """The messages in the answer to a pull or a pop."""
    return list(scan_records(response.body or b""))


@pytest.fixture
def make_cluster() -> Callable[..., Cluster]:
    """Make a cluster with settings of one's own."""
    return Cluster


@pytest.fixture
def cluster() -> Cluster:
    """A cluster with RocketMQ's settings and one topic, T, with one queue."""
    cluster = Cluster()
    cluster.topic("T")
    return cluster


@pytest.fixture
def client(cluster: Cluster) -> RawClient:
    """A client of that cluster."""
    return cluster.client()
