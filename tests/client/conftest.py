"""A small cluster - one name server, some brokers - in a world of its own, for the tests of the clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mqlab.broker import BrokerConfig, BrokerController
from mqlab.client import (
    CONSUME_SUCCESS,
    ConsumeFromWhere,
    DefaultMQProducer,
    DefaultMQPushConsumer,
    MessageExt,
)
from mqlab.namesrv import NamesrvController
from mqlab.sim import FAULTS, Node, World

NAMESRV = "10.0.0.1:9876"


class Delivery:
    """One message as a listener got it: when (ms of the world), where, and what."""

    def __init__(self, at_ms: float, consumer: str, message: MessageExt) -> None:
        self.at_ms = at_ms
        self.consumer = consumer
        self.body = message.body.decode()
        self.queue_id = message.queue_id
        self.queue_offset = message.queue_offset
        self.reconsume_times = message.reconsume_times
        self.topic = message.topic


class Cluster:
    """A world with a name server and brokers named broker-a, broker-b, ...; everything that happens is in `rows`.

    Each broker has so many queues of topic T; without any there is no such topic.
    """

    def __init__(
        self, *, seed: int = 7, brokers: int = 1, queues: int = 0, wire_bytes: bool = False, **broker_settings: Any
    ) -> None:
        self.world = World(seed, wire_bytes=wire_bytes)
        self.rows: list[tuple[Any, ...]] = []
        self.world.hooks.attach(self.rows.append)
        self.namesrv = NamesrvController(self.world.node("namesrv"))
        self.namesrv.start()
        self.brokers: dict[str, BrokerController] = {}
        for name in ("broker-a", "broker-b", "broker-c")[:brokers]:
            node = self.world.node(name)

            def boot(node: Node, name: str = name) -> None:
                config = BrokerConfig(broker_name=name, namesrv_addr=NAMESRV, **broker_settings)
                self.brokers[name] = BrokerController(node, config)
                self.brokers[name].start()

            node.boot = boot
            boot(node)
        self.delivered: list[Delivery] = []
        self.run_ms(1_000)
        if queues:
            self.create_topic("T", queues)

    # -- the world --------------------------------------------------------------------------------------------------

    @property
    def now_ms(self) -> float:
        return self.world.now_us / 1_000

    def run_ms(self, ms: float) -> None:
        self.world.run_for(round(ms * 1_000))

    def node(self, name: str) -> Node:
        return self.world.nodes.get(name) or self.world.node(name)

    def events(self, kind: str, node: str | None = None) -> list[tuple[Any, ...]]:
        """The fields of all events of a kind, without the common ones."""
        return [row[8:] for row in self.rows if row[7] == kind and node in (None, row[3])]

    def requests(self, node: str) -> list[str]:
        """The names of the requests that a node has sent, in order."""
        return [row[8 + 6] for row in self.rows if row[7] == "RequestSent" and row[3] == node]

    def times_ms(self, kind: str, node: str) -> list[float]:
        return [row[2] / 1_000 for row in self.rows if row[7] == kind and row[3] == node]

    def fault(self, verb: str, *arguments: Any) -> None:
        """Let something break: "crash", "freeze", "thaw", "restart", ... as in a fault schedule."""
        FAULTS[verb](self.world, *arguments)

    def create_topic(self, topic: str, queues: int = 4) -> None:
        """Create a topic on every broker and let the name server learn of it."""
        for broker in self.brokers.values():
            broker.create_topic(topic, queues)
        self.run_ms(10)

    # -- clients ----------------------------------------------------------------------------------------------------

    def producer(self, name: str = "producer", group: str = "PG", **settings: Any) -> DefaultMQProducer:
        """A started producer on a node of its own."""
        settings = {"namesrv_addr": NAMESRV, **settings}
        producer = DefaultMQProducer(self.node(name), group, **settings)
        producer.start().play()
        return producer

    def new_consumer(
        self,
        name: str = "consumer",
        group: str = "G",
        topic: str = "T",
        tags: str = "*",
        listener: Callable[..., Any] | None = None,
        **settings: Any,
    ) -> DefaultMQPushConsumer:
        """A consumer that is subscribed and has a listener, but is not started; deliveries are noted in any case."""
        settings = {
            "namesrv_addr": NAMESRV,
            "consume_from_where": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            **settings,
        }
        consumer = DefaultMQPushConsumer(self.node(name), group, **settings)
        consumer.subscribe(topic, tags)

        def noting(messages: Sequence[MessageExt], context: Any) -> Any:
            self.delivered.extend(Delivery(self.now_ms, name, message) for message in messages)
            return CONSUME_SUCCESS if listener is None else listener(messages, context)

        consumer.register_message_listener(noting)
        return consumer

    def consumer(self, name: str = "consumer", **settings: Any) -> DefaultMQPushConsumer:
        """A started consumer."""
        consumer = self.new_consumer(name, **settings)
        consumer.start().play()
        return consumer

    @property
    def bodies(self) -> list[str]:
        return [delivery.body for delivery in self.delivered]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "queues(number): of topic T in the cluster of a test of a client")


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """One name server and one broker with topic T of one queue; `@pytest.mark.queues(2)` gives it two, 0 no topic."""
    mark = request.node.get_closest_marker("queues")
    return Cluster(queues=mark.args[0] if mark else 1)


@pytest.fixture
def producer(cluster: Cluster) -> DefaultMQProducer:
    """A started producer."""
    return cluster.producer()


@pytest.fixture
def consumer(cluster: Cluster) -> DefaultMQPushConsumer:
    """A started consumer of T; what it gets is noted in `cluster.delivered`."""
    return cluster.consumer()


@pytest.fixture
def make_cluster() -> type[Cluster]:
    """For clusters with other settings."""
    return Cluster
