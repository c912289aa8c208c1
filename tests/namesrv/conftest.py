"""A name server, and clients that register as brokers do, in commands alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import pytest

from mqlab.namesrv import NamesrvConfig, NamesrvController
from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.route import TopicRouteData
from mqlab.protocol.topic_config import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigAndMappingSerializeWrapper,
)
from mqlab.remoting import RemotingClient
from mqlab.sim import FAULTS, Node, World, faults
from tests.worlds import events_in


class Caller:
    """A process that calls the name server; as a broker it reports topics by name with a number of queues."""

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.node = server.world.node(name)
        self.remoting = RemotingClient(self.node)
        self.version = DataVersion(1, 1)

    def call(self, code: int, header: Any = None, body: bytes | None = None) -> RemotingCommand:
        request = RemotingCommand.request(code, header, body)
        call = self.remoting.invoke_sync(self.server.address, request, 3_000)
        answer: RemotingCommand = self.server.world.wait_for(self.node.spawn(call, f"call {code}").join())
        return answer

    def header(self, broker_name: str, broker_id: int = 0, **more: Any) -> h.RegisterBrokerRequestHeader:
        addr = more.pop("addr", f"{self.node.spec.ip}:10911")
        return h.RegisterBrokerRequestHeader(broker_name, addr, "c1", f"{self.node.spec.ip}:10912", broker_id, **more)

    def register(
        self,
        broker_name: str = "broker-a",
        topics: dict[str, int] | None = None,
        *,
        broker_id: int = 0,
        perm: int = 6,
        version: DataVersion | None = None,
        **more: Any,
    ) -> RemotingCommand:
        """Report these topics; two unless told."""
        table = {
            topic: TopicConfig(topic, queues, queues, perm)
            for topic, queues in (topics if topics is not None else {"T": 4, "U": 2}).items()
        }
        body = RegisterBrokerBody(TopicConfigAndMappingSerializeWrapper(table, version or self.version)).encode()
        header = self.header(broker_name, broker_id, **{"body_crc32": crc32(body) & 0x7FFFFFFF, **more})
        return self.call(RequestCode.REGISTER_BROKER, header, body)

    def route(self, topic: str) -> TopicRouteData | None:
        """The route of a topic, None when there is none."""
        response = self.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, h.GetRouteInfoRequestHeader(topic))
        return TopicRouteData.decode(response.body) if response.code == 0 else None


class Server:
    """One name server in a world of its own."""

    def __init__(self, **settings: Any) -> None:
        self.world = World(1)
        self.rows: list[tuple[Any, ...]] = []
        self.world.hooks.attach(self.rows.append)
        self.node = self.world.node("namesrv")
        self.config = NamesrvConfig(**settings)
        self.node.boot = self._boot
        self.controller: NamesrvController
        faults.start(self.world, "namesrv")
        self.run(1)

    def _boot(self, node: Node) -> None:
        self.controller = NamesrvController(node, self.config)
        self.controller.start()

    @property
    def address(self) -> str:
        return self.controller.address

    def caller(self, name: str) -> Caller:
        return Caller(self, name)

    def run(self, ms: float) -> None:
        self.world.run_for(round(ms * 1_000))

    def do(self, verb: str, **arguments: Any) -> None:
        FAULTS[verb](self.world, **arguments)

    @property
    def now_ms(self) -> float:
        return self.world.now_us / 1_000

    def seen(self, kind: str) -> list[dict[str, Any]]:
        return events_in(self.rows, kind)


@pytest.fixture
def make_server() -> Callable[..., Server]:
    """Make a name server with settings of one's own."""
    return Server


@pytest.fixture
def server() -> Server:
    """A name server with RocketMQ's settings."""
    return Server()


@pytest.fixture
def broker(server: Server) -> Caller:
    """A caller that plays a broker."""
    return server.caller("broker-a")


@pytest.fixture
def client(server: Server) -> Caller:
    """A caller that asks for routes."""
    return server.caller("client")
