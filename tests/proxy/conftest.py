"""A cluster with proxies and 5.x clients, for the tests of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from mqlab.client.v5 import (
    ConsumeResult,
    FilterExpression,
    Message,
    MessageView,
    Producer,
    PushConsumer,
    SimpleConsumer,
)
from mqlab.lab import Lab

Verdict = Callable[[MessageView], Any]


class Delivery(NamedTuple):
    """One message as a listener got it: when (ms of the world), where, and what."""

    at_ms: float
    node: str
    body: str
    attempt: int
    message: MessageView


class Shop:
    """A name server, brokers, a topic T of two queues, a proxy; who consumes notes it in `delivered`."""

    def __init__(self, *, seed: int = 5, brokers: int = 1, proxies: int = 1, queues: int = 2, **settings: Any) -> None:
        self.lab = lab = Lab(seed, **settings)
        lab.name_server()
        for _ in range(brokers):
            lab.broker()
        lab.create_topic("T", queues)
        for _ in range(proxies):
            lab.proxy()
        self.delivered: list[Delivery] = []
        self._producer: Producer | None = None

    @property
    def proxy(self) -> Any:
        """The controller of the first proxy."""
        return self.lab.proxies[0].running()

    def run(self, call: Any) -> Any:
        """Play until a call has its answer."""
        return self.lab.run(call)

    def run_ms(self, ms: float) -> None:
        self.lab.run_for(ms=ms)

    def producer(self) -> Producer:
        if self._producer is None:
            self._producer = self.lab.producer_v5()
            self.run(self._producer.start())
        return self._producer

    def send(self, *bodies: str, topic: str = "T", **settings: Any) -> list[Any]:
        """Send these bodies one after the other."""
        return [self.run(self.producer().send(Message(topic, body, **settings))) for body in bodies]

    def push_consumer(
        self, verdict: Verdict | None = None, group: str = "g", tags: str = "*", takes_ms: float = 0, **settings: Any
    ) -> Any:
        """A push consumer that has scanned its assignments; without a verdict everything succeeds, after `takes_ms`."""
        consumer = self.lab.push_consumer_v5(group, **settings)
        consumer.subscribe("T", tags)

        async def succeed(_: MessageView) -> ConsumeResult:
            await consumer.node.sleep(takes_ms)
            return ConsumeResult.SUCCESS

        at_once: Verdict = succeed if takes_ms else lambda _: ConsumeResult.SUCCESS
        consumer.set_message_listener(self.noting(consumer, verdict or at_once))
        self.run(consumer.start())
        self.run_ms(1_100)
        return consumer

    def noting(self, consumer: PushConsumer, verdict: Verdict) -> Verdict:
        """A listener that notes what it gets, and then says `verdict`."""

        def listener(message: MessageView) -> Any:
            self.delivered.append(
                Delivery(
                    self.lab.now_ms, consumer.node.name, message.body.decode(), message.delivery_attempt, message
                )
            )
            return verdict(message)

        return listener

    def simple_consumer(
        self, group: str = "g", tags: str | FilterExpression = "*", **settings: Any
    ) -> SimpleConsumer:
        consumer = self.lab.simple_consumer(group, **settings)
        consumer.subscribe("T", tags)
        self.run(consumer.start())
        return consumer

    def bodies(self) -> list[str]:
        return [delivery.body for delivery in self.delivered]

    def events(self, kind: str, **fields: Any) -> list[Any]:
        return list(self.lab.history.find(kind, **fields))

    def stored(self, topic: str) -> int:
        """How many messages brokers have stored in a topic."""
        return len(self.events("MessageStored", topic=topic))


@pytest.fixture
def shop() -> Shop:
    return Shop()
