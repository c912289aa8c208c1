"""The scenarios of the ground floor: one message's way, a held pull, rebalance, routes, the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mqlab.client import ConsumeConcurrentlyStatus
from mqlab.protocol import Message
from mqlab.scenarios.registry import scenario, story
from mqlab.scenarios.words import Flush

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer, DefaultMQPushConsumer
    from mqlab.lab import Lab


def keep_nothing(messages: Sequence[Any], context: Any) -> ConsumeConcurrentlyStatus:
    """A listener that is content with whatever comes."""
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


def spawn_load(
    producer: DefaultMQProducer,
    topic: str,
    *,
    messages: int,
    every_ms: float,
    size: int = 100,
    tags: tuple[str, ...] = ("TagA",),
) -> None:
    """Let a producer send `messages` messages of `size` bytes, one each `every_ms`, from a task of its own."""

    async def load() -> None:
        for number in range(messages):
            body = f"message {number} ".encode().ljust(size, b".")
            message = Message(topic, body, tags=tags[number % len(tags)], keys=f"key-{number}")
            await type(producer).send.inside(producer, message)  # type: ignore[attr-defined]  # see public_call
            await producer.node.sleep(every_ms)

    producer.node.spawn(load(), "load")


async def start_consumer(
    lab: Lab, group: str, topic: str, listener: Any = keep_nothing, expression: str = "*", **settings: Any
) -> DefaultMQPushConsumer:
    """A started push consumer with one subscription."""
    consumer = lab.consumer(group, **settings)
    consumer.subscribe(topic, expression)
    consumer.register_message_listener(listener)
    await consumer.start()
    return consumer


@scenario("first-message", seconds=2)
async def first_message(lab: Lab, *, queues: int = 1) -> None:
    """One message from send to listener: a consumer waits with its pull held, then a producer sends."""
    lab.name_server()
    lab.broker("broker-a")
    lab.create_topic("TopicTest", queues)
    await start_consumer(lab, "readers", "TopicTest")
    lab.run_for(seconds=3)
    producer = lab.producer("orders")
    await producer.start()
    spawn_load(producer, "TopicTest", messages=1, every_ms=1)


@scenario("steady-load", seconds=30)
async def steady_load(
    lab: Lab, *, messages: int = 200, every_ms: int = 100, queues: int = 4, consumers: int = 1, size: int = 100
) -> None:
    """A producer sends at a steady pace and one group consumes."""
    lab.name_server()
    lab.broker("broker-a")
    lab.create_topic("TopicTest", queues)
    for _ in range(consumers):
        await start_consumer(lab, "readers", "TopicTest")
    producer = lab.producer("orders")
    await producer.start()
    spawn_load(producer, "TopicTest", messages=messages, every_ms=every_ms, size=size, tags=("TagA", "TagB"))


@scenario("held-pulls", seconds=120)
async def held_pulls(
    lab: Lab, *, consumers: int = 3, queues: int = 6, every_ms: int = 20_000, messages: int = 5
) -> None:
    """Pulls on nearly empty queues are held by the broker, woken by a message now and then, or sent home after 15 s."""
    lab.name_server()
    lab.broker("broker-a")
    lab.create_topic("TopicTest", queues)
    for _ in range(consumers):
        await start_consumer(lab, "readers", "TopicTest")
        lab.run_for(ms=1_700)
    producer = lab.producer("orders")
    await producer.start()
    spawn_load(producer, "TopicTest", messages=messages, every_ms=every_ms)


@scenario("rebalance", seconds=60)
async def rebalance(lab: Lab, *, queues: int = 8, every_ms: int = 50) -> None:
    """A second consumer joins a group and leaves it again: queues move, and the load goes on."""
    lab.name_server()
    lab.broker("broker-a")
    lab.create_topic("TopicTest", queues)
    await start_consumer(lab, "readers", "TopicTest")
    producer = lab.producer("orders")
    await producer.start()
    spawn_load(producer, "TopicTest", messages=60_000 // every_ms, every_ms=every_ms)
    lab.run_for(seconds=10)
    second = await start_consumer(lab, "readers", "TopicTest")
    lab.run_for(seconds=10)
    await second.shutdown()


TWO_BROKERS = story("""
    SendAttempted 1 producer-1: The producer asks the name server for the route, and sends to the queues of two
        brokers in turn.
    QueueAllocated 8 consumer-1: The consumer has all eight queues, and keeps a question waiting at each.
    NodeCrashed 1 broker-b: Broker-b is killed. Its connections end at once.
    BrokerUnregistered 1 namesrv-1: The name server sees the connection end, and takes broker-b out of the routes.
    SendAttemptFailed 2 producer-1: The producer does not know it yet. What fails at one broker, it tries at the
        other.
    RouteUpdated 4 producer-1: Every 30 seconds the clients ask for the route, and learn it.
    BrokerRegistered 10 broker-b: Broker-b is back, and reports itself. With the next route the clients find it again.
""")


@scenario("two-brokers", seconds=60, captions=TWO_BROKERS)
async def two_brokers(
    lab: Lab, *, every_ms: int = 200, name_servers: int = 1, faults: str = "at 20s: crash broker-b for 20s"
) -> None:
    """Two brokers serve one topic; one of them is killed and comes back."""
    for _ in range(name_servers):
        lab.name_server()
    lab.broker("broker-a")
    lab.broker("broker-b")
    lab.create_topic("TopicTest", 4)
    lab.faults(faults)
    await start_consumer(lab, "readers", "TopicTest")
    producer = lab.producer("orders")
    await producer.start()
    spawn_load(producer, "TopicTest", messages=60_000 // every_ms, every_ms=every_ms)


@scenario("new-topic", seconds=5)
async def new_topic(lab: Lab, *, name_servers: int = 1) -> None:
    """A producer sends to a topic that nobody created: the route of TBW102 is borrowed, and the broker creates it."""
    for _ in range(name_servers):
        lab.name_server()
    lab.broker("broker-a")
    producer = lab.producer("orders")
    await producer.start()
    spawn_load(producer, "Brand-New", messages=3, every_ms=1_000)


@scenario("power-cut", seconds=3)
async def power_cut(lab: Lab, *, flush: Flush = "ASYNC_FLUSH", cut_ms: int = 300, messages: int = 50) -> None:
    """Messages are acknowledged, then the broker's machine loses power and is started again."""
    lab.name_server()
    lab.broker("broker-a", flush_disk_type=flush)
    lab.create_topic("TopicTest", 2)
    producer = lab.producer("orders")
    await producer.start()
    spawn_load(producer, "TopicTest", messages=messages, every_ms=10)
    lab.run_for(ms=messages * 11 + cut_ms)
    lab.faults(f"at {lab.now_ms + 1:g}ms: power_off broker-a for 1s")
