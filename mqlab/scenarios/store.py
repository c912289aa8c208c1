"""The scenarios of the store: a broker with small files under load, and one that is stopped the hard way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from mqlab.protocol import Message
from mqlab.scenarios.registry import scenario, story
from mqlab.scenarios.words import Flush

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer
    from mqlab.lab import Lab

SMALL_FILES: dict[str, Any] = {
    "mapped_file_size_commit_log": 65_536,
    "mapped_file_size_consume_queue": 400,
    "max_hash_slot_num": 100,
    "max_index_num": 400,
}
"""Sizes at which files fill before one's eyes; the recorded stores of a real broker have the same."""

TOPICS = ("Orders", "Payments")


async def start_shop(lab: Lab, *, flush: str, queues: int) -> DefaultMQProducer:
    """A broker with small files, two topics, and a producer."""
    lab.name_server()
    lab.broker("broker-a", flush_disk_type=flush, **SMALL_FILES)
    for topic in TOPICS:
        lab.create_topic(topic, queues)
    producer = lab.producer("shop")
    await producer.start()
    return producer


@scenario("small-files", seconds=1)
async def small_files(lab: Lab, *, messages: int = 387, every_ms: int = 20, flush: Flush = "ASYNC_FLUSH") -> None:
    """Orders and payments of 100 to 999 bytes fill the small files of a broker, one message at a time."""
    producer = await start_shop(lab, flush=flush, queues=2)
    for number in range(messages):
        body = f"message {number} ".encode().ljust(100 + 37 * number % 900, b".")
        await producer.send(Message(TOPICS[number % 2], body, tags="paid", keys=f"key-{number}"))
        lab.run_for(ms=every_ms)


CUT_OFF = story("""
    SendAttempted 1 producer-1: A shop sends ten orders, one after the other, and waits for each answer.
    MessageStored 1 broker-a: The broker puts each order at the end of one file, the commit log.
    SendSucceeded 1 producer-1: It answers "stored". So far the bytes are in the machine's memory, not on its disk.
    MessageDispatched 4 broker-a: The order's queue gets an entry of 20 bytes: where in the log it begins.
    SendSucceeded 10 producer-1: All ten orders are acknowledged. The next writing to the disk is still to come.
    PowerLost 1 broker-a: The power is cut. Of what was not on the disk, luck alone keeps a page or loses it.
    StoreLoaded 2 broker-a: The broker starts again, and sees that its last end was no good one.
    StoreRecovered 2 broker-a: It reads the log up to the first record that is not whole, and cuts off the rest.
    BrokerRegistered 4 namesrv-1: It serves again. The shop was told "stored" ten times, and hears nothing of this.
""")


@scenario("orders-cut-off", seconds=3, captions=CUT_OFF)
async def orders_cut_off(
    lab: Lab,
    *,
    how: Literal["power_off", "crash"] = "power_off",
    flush: Flush = "ASYNC_FLUSH",
    wait_ms: int = 300,
    orders: int = 10,
    size: int = 1_500,
) -> None:
    """Orders are acknowledged, then the broker is stopped by power_off or crash, and starts again 1 s later."""
    producer = await start_shop(lab, flush=flush, queues=1)
    lab.run_for(seconds=2)
    for number in range(orders):
        body = f"order {number} ".encode().ljust(size, b".")
        await producer.send(Message("Orders", body, tags="paid", keys=f"order-{number}"))
    lab.faults(f"at {lab.now_ms + wait_ms:g}ms: {how} broker-a for 1s")
