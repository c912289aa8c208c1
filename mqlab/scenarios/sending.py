"""The scenarios of sending: sync, async and one-way, to two brokers, with one reader who gets it all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client import ConsumeFromWhere
from mqlab.scenarios.numbered import TOPIC, SendOne, reader, send_async, send_one_way, send_sync, spawn_sending
from mqlab.scenarios.registry import ANY_FAULT, WITHOUT_POWER_CUTS, scenario

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


@scenario("sync-send-two-brokers", seconds=30, faults=ANY_FAULT)
async def sync_send_two_brokers(
    lab: Lab, *, messages: int = 40, every_ms: int = 500, queues: int = 2, flush: str = "SYNC_FLUSH", size: int = 100
) -> None:
    """A producer sends to two brokers and waits for each answer; what fails at one broker is tried at the other."""
    await _send_all(lab, send_sync, messages=messages, every_ms=every_ms, queues=queues, flush=flush, size=size)


@scenario("async-send", seconds=30, faults=ANY_FAULT)
async def async_send(
    lab: Lab, *, messages: int = 40, every_ms: int = 500, queues: int = 2, flush: str = "SYNC_FLUSH", size: int = 100
) -> None:
    """A producer sends to two brokers and does not wait: the answers come to callbacks, failures are tried again."""
    await _send_all(lab, send_async, messages=messages, every_ms=every_ms, queues=queues, flush=flush, size=size)


@scenario("one-way", seconds=30, faults=WITHOUT_POWER_CUTS)
async def one_way(
    lab: Lab, *, messages: int = 40, every_ms: int = 500, queues: int = 2, flush: str = "ASYNC_FLUSH", size: int = 100
) -> None:
    """A producer sends to two brokers and never learns what became of it."""
    await _send_all(lab, send_one_way, messages=messages, every_ms=every_ms, queues=queues, flush=flush, size=size)
