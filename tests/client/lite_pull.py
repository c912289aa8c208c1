"""Lite pull consumers of a small cluster: started ones, what they poll, and who fills their queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlab.client import ConsumeFromWhere, Message, MessageQueue
from mqlab.client.consumer.lite.default_lite_pull_consumer import DefaultLitePullConsumer

NAMESRV = "10.0.0.1:9876"
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
Q = [MessageQueue("T", "broker-a", queue_id) for queue_id in range(8)]


def new_lite(cluster: Any, name: str = "lite", group: str = "G", **settings: Any) -> DefaultLitePullConsumer:
    settings = {"namesrv_addr": NAMESRV, "consume_from_where": FIRST, **settings}
    return DefaultLitePullConsumer(cluster.node(name), group, **settings)


def subscribed(cluster: Any, name: str = "lite", tags: str = "*", **settings: Any) -> DefaultLitePullConsumer:
    """A started consumer of topic T that has its queues."""
    consumer = new_lite(cluster, name, **settings)
    consumer.subscribe("T", tags)
    consumer.start().play()
    cluster.world.run_until(lambda: bool(consumer.assignment()))
    return consumer


def assigned(cluster: Any, queues: list[MessageQueue], name: str = "lite", **settings: Any) -> DefaultLitePullConsumer:
    """A started consumer of just these queues."""
    consumer = new_lite(cluster, name, **settings)
    consumer.assign(queues)
    consumer.start().play()
    return consumer


def send(cluster: Any, count: int, *, first: int = 0, size: int = 0, topic: str = "T", queue: Any = None, **more: Any):
    producer = getattr(cluster, "test_producer", None)
    if producer is None:
        producer = cluster.test_producer = cluster.producer("test-producer")
    for number in range(first, first + count):
        body = f"m{number}".encode().ljust(size, b".")
        message = Message(topic, body, **more)
        producer.send(message, queue=queue).play()


def poll(consumer: DefaultLitePullConsumer, timeout_ms: int | None = None) -> list[str]:
    return [message.body.decode().rstrip(".") for message in consumer.poll(timeout_ms).play()]


def poll_all(consumer: DefaultLitePullConsumer, timeout_ms: int = 500) -> list[str]:
    """Poll until nothing comes any more."""
    bodies: list[str] = []
    while batch := poll(consumer, timeout_ms):
        bodies += batch
    return bodies


def numbered(count: int, first: int = 0) -> list[str]:
    return [f"m{number}" for number in range(first, first + count)]


def spawn_polling(
    cluster: Any, consumer: DefaultLitePullConsumer, got: list[str], work: Callable[[], Any] | None = None
) -> None:
    """A task on the consumer's machine that polls for ever, as an application does."""

    async def application() -> None:
        while consumer.is_running():
            for message in await consumer.poll():
                got.append(message.body.decode())
            if work is not None:
                await work()

    consumer.node.spawn(application(), "application")
