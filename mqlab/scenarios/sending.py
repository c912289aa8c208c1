"""The scenarios of sending: sync, async and one-way, to two brokers, with one reader who gets it all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client import ConsumeFromWhere
from mqlab.scenarios.numbered import (
    TOPIC,
    SendOne,
    numbered_message,
    reader,
    send_async,
    send_one_way,
    send_sync,
    spawn_sending,
)
from mqlab.scenarios.registry import ANY_FAULT, WITHOUT_POWER_CUTS, scenario, story
from mqlab.scenarios.words import Flush

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer
    from mqlab.lab import Lab

READERS = "readers"


async def two_brokers_and_a_reader(lab: Lab, *, queues: int, flush: str, brokers: int = 2) -> DefaultMQProducer:
    """A name server, brokers, a topic, a started producer and a started consumer."""
    lab.name_server()
    for _ in range(brokers):
        lab.broker(flush_disk_type=flush)
    lab.create_topic(TOPIC, queues)
    producer = lab.producer("shop")
    await producer.start()
    consumer = lab.consumer(READERS, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    consumer.subscribe(TOPIC, "*")
    consumer.register_message_listener(reader(consumer))
    await consumer.start()
    return producer


async def _send_all(
    lab: Lab, send_one: SendOne, *, messages: int, every_ms: int, queues: int, flush: str, size: int
) -> None:
    producer = await two_brokers_and_a_reader(lab, queues=queues, flush=flush)
    spawn_sending(producer, messages=messages, every_ms=every_ms, size=size, send_one=send_one)


@scenario("sync-send-two-brokers", seconds=30, faults=ANY_FAULT, goals=("send-goes-to-another-broker",))
async def sync_send_two_brokers(
    lab: Lab, *, messages: int = 40, every_ms: int = 500, queues: int = 2, flush: Flush = "SYNC_FLUSH", size: int = 100
) -> None:
    """A producer sends to two brokers and waits for each answer; what fails at one broker is tried at the other."""
    await _send_all(lab, send_sync, messages=messages, every_ms=every_ms, queues=queues, flush=flush, size=size)


@scenario("async-send", seconds=30, faults=ANY_FAULT, goals=("async-send-is-tried-again",))
async def async_send(
    lab: Lab, *, messages: int = 40, every_ms: int = 500, queues: int = 2, flush: Flush = "SYNC_FLUSH", size: int = 100
) -> None:
    """A producer sends to two brokers and does not wait: the answers come to callbacks, failures are tried again."""
    await _send_all(lab, send_async, messages=messages, every_ms=every_ms, queues=queues, flush=flush, size=size)


@scenario("one-way", seconds=30, faults=WITHOUT_POWER_CUTS, goals=("one-way-message-is-lost",))
async def one_way(
    lab: Lab, *, messages: int = 40, every_ms: int = 500, queues: int = 2, flush: Flush = "ASYNC_FLUSH", size: int = 100
) -> None:
    """A producer sends to two brokers and never learns what became of it."""
    await _send_all(lab, send_one_way, messages=messages, every_ms=every_ms, queues=queues, flush=flush, size=size)


THREE_WAYS = story("""
    SendAttempted 1 producer-1: The shop sends an order, and waits for the answer: sync.
    SendSucceeded 1 producer-1: The answer is there. Only now the shop goes on.
    SendAttempted 4 producer-1: Three orders, async: each call returns at once, and the next one begins.
    MessageStored 4 broker-a: The broker sees no difference. It stores one order after the other, and answers each.
    SendSucceeded 4 producer-1: Each answer finds its call by its number, and a callback hears of it.
    SendAttempted 5 producer-1: One-way: two orders go out, and nobody will answer.
    NodeFrozen 1 broker-a: The broker hangs. Its connections are open, and nothing comes back.
    SendAttempted 7 producer-1: One order in each of the three ways. Who notices?
    SendFailed 1 producer-1: After its time-out the sync call fails, and soon the callback hears of a failure, too.
    NodeThawed 1 broker-a: Of the one-way order nobody hears. The broker wakes up, and stores all that waited.
""")


@scenario("three-ways", seconds=9, captions=THREE_WAYS)
async def three_ways(lab: Lab, *, delay_ms: int = 20, asyncs: int = 3, oneways: int = 2, hangs_s: int = 6) -> None:
    """Orders are sent sync, async and one-way, first to a broker that is well and then to one that hangs."""
    lab.name_server()
    lab.broker("broker-a")
    lab.create_topic(TOPIC, 2)
    producer = lab.producer("shop")
    await producer.start()
    lab.run_for(seconds=1)
    for source, target in (("producer-1", "broker-a"), ("broker-a", "producer-1")):
        lab.act("delay", source=source, target=target, ms=delay_ms)

    async def send_all(begin: int, asyncs: int, oneways: int) -> None:
        for number in range(begin, begin + asyncs):
            await send_async(producer, numbered_message(TOPIC, number, 100))
        for number in range(begin + asyncs, begin + asyncs + oneways):
            await send_one_way(producer, numbered_message(TOPIC, number, 100))
            await producer.node.sleep(5)

    async def load() -> None:
        await send_sync(producer, numbered_message(TOPIC, 0, 100))
        await producer.node.sleep(500)
        await send_all(1, asyncs, 0)
        await producer.node.sleep(500)
        await send_all(1 + asyncs, 0, oneways)
        await producer.node.sleep(1_000)
        await send_all(1 + asyncs + oneways, 1, 1)
        await send_sync(producer, numbered_message(TOPIC, 3 + asyncs + oneways, 100))

    producer.node.spawn(load(), "load")
    lab.faults(f"at {lab.now_ms + 1_500:g}ms: freeze broker-a for {hangs_s}s")


COPIES = story("""
    SendAttempted 1 producer-1: The shop sends a payment, and waits for the answer: up to 3 s.
    SendSucceeded 1 producer-1: The answer comes within a millisecond or two. So it is nearly always.
    NodeFrozen 1 broker-a: Now the broker hangs. Its connections are open, and it says nothing.
    SendAttempted 2 producer-1: The next payment goes out. Its bytes arrive, and nobody looks at them.
    SendFailed 1 producer-1: After 3 s the shop stops waiting: a time-out. Is the payment stored? Nobody knows.
    SendAttempted 3 producer-1: So it sends the same payment again, and waits again.
    SendFailed 2 producer-1: The same error. It tries once more.
    NodeThawed 1 broker-a: The broker wakes up. All that has arrived meanwhile lies before it.
    MessageStored 4 broker-a: It stores the payment each time that it was sent: one key, three copies, no error.
    SendSucceeded 2 producer-1: And the last call hears SEND_OK. Of the other two copies nobody is told.
""")


@scenario("three-copies", seconds=11, captions=COPIES)
async def three_copies(lab: Lab, *, sends: int = 3) -> None:
    """A payment is sent again and again to a broker that hangs; when it wakes up, it stores every copy."""
    lab.name_server()
    lab.broker("broker-a")
    lab.create_topic(TOPIC, 1)
    producer = lab.producer("shop")
    await producer.start()
    lab.run_for(seconds=1)

    async def load() -> None:
        await send_sync(producer, numbered_message(TOPIC, 0, 100))
        await producer.node.sleep(1_000)
        payment = numbered_message(TOPIC, 1, 100)
        for _ in range(sends):
            await send_sync(producer, payment)

    producer.node.spawn(load(), "load")
    lab.faults(f"at {lab.now_ms + 500:g}ms: freeze broker-a for 8s")
