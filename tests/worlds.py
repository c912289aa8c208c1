"""Small worlds for tests of everything above one part: machines with a topic, clients that are started, what was sent
and what a listener got, and a scenario that has played for a while.

What one directory alone needs stands in its own conftest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mqlab import ConsumeConcurrentlyStatus, DefaultMQProducer, DefaultMQPushConsumer, Lab, Message, scenarios
from mqlab.client import SendResult
from mqlab.trace.catalogue import CATALOGUE
from mqlab.trace.recorder import ParquetRecorder


def shop(
    *, seed: int = 7, brokers: int = 1, topic: str = "T", queues: int = 1, wire: str = "objects", **broker: Any
) -> Lab:
    """A name server, brokers named broker-a, broker-b, ... with these settings, and a topic on all of them; with 0
    queues there is no topic.
    """
    lab = Lab(seed=seed, wire=wire)
    lab.name_server()
    for _ in range(brokers):
        lab.broker(**broker)
    if queues:
        lab.create_topic(topic, queues)
    return lab


def started_producer(lab: Lab, group: str = "shop", **settings: Any) -> DefaultMQProducer:
    """A producer that is started; `node` and settings are those of lab.producer."""
    producer = lab.producer(group, **settings)
    lab.run(producer.start())
    return producer


def send(producer: DefaultMQProducer, *bodies: str | bytes, topic: str = "T", **properties: Any) -> list[SendResult]:
    """Send these bodies one after the other, each when the one before has its answer."""
    return [producer.send(Message(topic, body, **properties)).play() for body in bodies]


def succeed(messages: Any, context: Any) -> ConsumeConcurrentlyStatus:
    """A listener with which everything goes well."""
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


def noting(seen: list[Any], field: str = "body") -> Callable[[Any, Any], ConsumeConcurrentlyStatus]:
    """A listener with which everything goes well, and that notes the body of each message, or another field of it; with
    an empty name the message itself.
    """

    def listener(messages: Any, context: Any) -> ConsumeConcurrentlyStatus:
        seen.extend(getattr(message, field) if field else message for message in messages)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    return listener


def slow(ms: float, answer: Any = ConsumeConcurrentlyStatus.CONSUME_SUCCESS) -> Callable[[Any, Any], Any]:
    """A listener that takes so long for each call."""

    async def listener(messages: Any, context: Any) -> Any:
        await context.sleep(ms)
        return answer

    return listener


def started_consumer(
    lab: Lab, listener: Any = succeed, *, group: str = "readers", topic: str = "T", tags: str = "*", **settings: Any
) -> DefaultMQPushConsumer:
    """A push consumer that is started; `node` and settings are those of lab.consumer."""
    consumer = lab.consumer(group, **settings)
    consumer.subscribe(topic, tags)
    consumer.register_message_listener(listener)
    lab.run(consumer.start())
    return consumer


def events_in(rows: Iterable[tuple[Any, ...]], kind: str) -> list[dict[str, Any]]:
    """The events of a kind among what a world has told its sinks, as dicts of their own fields and `ts_ms`."""
    names = CATALOGUE[kind]._fields
    return [{"ts_ms": row[2] / 1_000, **dict(zip(names, row[8:], strict=True))} for row in rows if row[7] == kind]


def played(name: str, seconds: float = 0, *, seed: int = 7, **parameters: Any) -> Lab:
    """The world of a scenario with these parameters, so many seconds after it was built."""
    return scenarios.get(name).build(seed, parameters=parameters).run_for(seconds=seconds)


def one_trace(place: Path) -> Path:
    """A directory, in which the trace of one world is recorded: async-send with seed 3."""
    with ParquetRecorder(place / "a.parquet") as recorder:
        for row in scenarios.get("async-send").play(3).history.rows():
            recorder(row)
    return place
