"""A shop and its readers: a day with load for statistics, and small worlds in which orders arrive in every way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker import ServiceTimes
from mqlab.protocol import Message
from mqlab.scenarios.ground import keep_nothing, start_consumer
from mqlab.scenarios.registry import scenario

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer
    from mqlab.lab import Lab

ORDERS, PAYMENTS = "Orders", "Payments"
PASS_S = 5
"""The hold service of a broker that started with the world goes through its table at every multiple of this."""


async def send_one(producer: DefaultMQProducer, topic: str) -> None:
    """Send one message and wait for its answer."""
    message = Message(topic, b"an order", tags="paid")
    await type(producer).send.inside(producer, message)  # type: ignore[attr-defined]  # see public_call


async def send_at_random(producer: DefaultMQProducer, *, seconds: int, gap_ms: int) -> None:
    """Send orders for `seconds`, with gaps of up to twice `gap_ms` between them, each drawn by the world."""
    node = producer.node
    end_us = node.now_us() + seconds * 1_000_000
    while True:
        await node.sleep(node.choose("gap", 2 * gap_ms + 1))
        if node.now_us() >= end_us:
            return
        await send_one(producer, ORDERS)


@scenario("shop-day", seconds=600)
async def shop_day(
    lab: Lab,
    *,
    queues: int = 6,
    readers: int = 3,
    day_s: int = 60,
    day_gap_ms: int = 50,
    night_s: int = 600,
    night_gap_ms: int = 10_000,
    long_polling: bool = True,
) -> None:
    """Orders come before anybody reads them, readers join one by one, and after a busy minute the night is quiet."""
    lab.name_server()
    lab.broker("broker-a", long_polling_enable=long_polling)
    lab.create_topic(ORDERS, queues)
    producer = lab.producer("shop")
    await producer.start()

    async def day_and_night() -> None:
        await send_at_random(producer, seconds=day_s, gap_ms=day_gap_ms)
        await send_at_random(producer, seconds=night_s, gap_ms=night_gap_ms)

    producer.node.spawn(day_and_night(), "orders")
    for _ in range(readers):
        lab.run_for(ms=1_000 + producer.node.choose("join", 3_000))
        await start_consumer(lab, "readers", ORDERS)


@scenario("every-delivery", seconds=27)
async def every_delivery(lab: Lab) -> None:
    """Orders reach their readers in every way: found by a pull, by a wake-up, at the end of a hold, and twice."""
    draw = lab.world.choose
    lab.name_server()
    for _ in range(1 + draw("brokers", 2)):
        lab.broker(service_us=ServiceTimes(pull=(40, 2_000, 5_000)[draw("slow", 3)]))
    lab.create_topic(ORDERS, 1 + draw("queues", 3))
    lab.create_topic(PAYMENTS, 1)
    producer = lab.producer("shop")
    await producer.start()
    node = producer.node

    async def send_some(topic: str, count: int, gap_ms: int) -> None:
        for _ in range(count):
            await send_one(producer, topic)
            await node.sleep(node.choose("gap", gap_ms))

    async def send_around_a_pass() -> None:
        """Orders within a few ms of the moment at which the holds of the quiet time end."""
        await node.sleep((5 * PASS_S * 1_000_000 - node.now_us()) / 1_000 - 0.3)
        await send_some(ORDERS, 8 + draw("late orders", 8), 2)

    node.spawn(send_some(ORDERS, 2 + draw("early orders", 10), 5), "early orders")
    node.spawn(send_around_a_pass(), "late orders")
    lab.run_for(ms=100 + draw("opening", 1_000))
    first = await start_consumer(lab, "packers", ORDERS)
    await start_consumer(lab, "packers", ORDERS)
    lab.run_for(ms=2_000)
    if draw("auditors", 2):
        auditors = lab.consumer("auditors")
        auditors.subscribe(ORDERS, "*")
        auditors.subscribe(PAYMENTS, "*")
        auditors.register_message_listener(keep_nothing)
        await auditors.start()
    node.spawn(send_some(ORDERS, draw("orders", 12), 200), "orders")
    node.spawn(send_some(PAYMENTS, draw("payments", 6), 400), "payments")
    lab.run_for(ms=2_500)
    node.spawn(send_some(ORDERS, 6, 2), "orders before a crash")
    lab.run_for(ms=3 + draw("crash", 8))
    if draw("crashes", 2):
        lab.crash(first.node.name)
