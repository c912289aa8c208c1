"""The scenarios of hardship: power cuts, recovery, batches, time-outs, silence - what safeguards are for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.client import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    DefaultMQProducer,
    DefaultMQPushConsumer,
    MessageListenerOrderly,
)
from mqlab.protocol import Message
from mqlab.scenarios.numbered import (
    LATER,
    SUCCESS,
    TOPIC,
    come_and_go,
    number_of,
    numbered_message,
    pause,
    reader,
    send_async,
    send_sync,
    spawn_sending,
)
from mqlab.scenarios.pushing import READERS, SlowlyInOrder, new_reader, start_members, start_shop
from mqlab.scenarios.registry import ANY_FAULT, WITHOUT_POWER_CUTS, scenario
from mqlab.scenarios.store import SMALL_FILES
from mqlab.scenarios.words import AnyFlush, Flush, drawn_flush

if TYPE_CHECKING:
    from mqlab.lab import Lab
    from mqlab.lab.processes import BrokerProcess
    from mqlab.protocol.message import MessageExt

OF_BROKERS = ("power_off", "crash", "hang_disk", "fill_disk", "freeze")
OF_MAINTENANCE = ("fill_disk", "hang_disk", "crash", "cut")
MOSTLY_POWER = ("power_off", "power_off", "power_off", "crash", "hang_disk", "fill_disk")
"""A kind that stands three times is drawn three times as often."""
OF_SLOWNESS = ("slow_disk", "slow_disk", "slow_disk", "crash", "power_off")
OF_SILENCE = ("freeze", "partition", "cut")
TWINS = ("Aa", "BB")
"""Two tags whose hash codes in Java are the same, so that the broker cannot tell them apart."""
HANGING_MS = 150_000
FOR_EVER_MS = 100_000_000
ROOM_BYTES = 100_000_000


@scenario(
    "power-cuts", seconds=20, faults=MOSTLY_POWER,
    goals=("power-cut-loses-pages", "log-is-cut", "log-file-is-deleted-for-space"),
)
async def power_cuts(
    lab: Lab,
    *,
    producers: int = 4,
    messages: int = 400,
    every_ms: int = 150,
    size: int = 6_000,
    flush: AnyFlush = "any",
) -> None:
    """Producers send big messages to a broker with small files, which loses power, is killed, and recovers.

    With `flush` "any" the seed draws whether the broker flushes before it answers; puts that wait share a flush.
    """
    flush = drawn_flush(lab, flush)
    lab.name_server()
    lab.broker(flush_disk_type=flush, **SMALL_FILES)
    lab.create_topic(TOPIC, 2)
    for number in range(producers):
        producer = lab.producer(f"shop-{number + 1}", compress_msg_body_over_howmuch=4 * 1024 * 1024)
        await producer.start()
        spawn_sending(producer, messages=messages // producers, every_ms=every_ms, size=size)
    consumer = new_reader(lab)
    consumer.register_message_listener(reader(consumer, looks=False))
    await consumer.start()


@scenario(
    "many-files", seconds=40, faults=OF_BROKERS,
    goals=("next-log-file-begins", "recovery-begins-at-a-later-file"),
)
async def many_files(
    lab: Lab, *, messages: int = 300, every_ms: int = 60, size: int = 700, delayed: bool = True, flush: AnyFlush = "any"
) -> None:
    """Many small messages fill one small file after the other, some of them delayed, and the broker recovers."""
    flush = drawn_flush(lab, flush)
    lab.name_server()
    lab.broker(flush_disk_type=flush, **SMALL_FILES)
    lab.create_topic(TOPIC, 3)
    producer = lab.producer("shop")
    await producer.start()
    levels = (0, 0, 0, 1, 0, 0, 2) if delayed else (0,)
    spawn_sending(producer, messages=messages, every_ms=every_ms, size=size, delay_levels=levels)
    consumer = new_reader(lab)
    consumer.register_message_listener(reader(consumer, 500, looks=False))
    await consumer.start()


@scenario("slow-disks", seconds=30, faults=OF_SLOWNESS, goals=("page-cache-is-busy", "put-holds-the-lock-long"))
async def slow_disks(
    lab: Lab, *, messages: int = 200, every_ms: int = 80, size: int = 700, delayed: bool = True, flush: AnyFlush = "any"
) -> None:
    """Two brokers that keep nothing in memory get slow disks, and refuse what they can't take.

    Puts wait for the lock of the log, pulls for what they read, and while a put takes over a second the broker is busy.
    """
    flush = drawn_flush(lab, flush)
    lab.name_server()
    for _ in range(2):
        lab.broker(flush_disk_type=flush, access_message_in_memory_max_ratio=0)
    lab.create_topic(TOPIC, 2)
    levels = (0, 0, 1) if delayed else (0,)
    for number in range(2):
        producer = lab.producer(f"shop-{number + 1}")
        await producer.start()
        spawn_sending(producer, messages=messages // 2, every_ms=2 * every_ms, size=size, delay_levels=levels)
        producer.node.spawn(_send_bursts(producer, messages // 4, every_ms), "bursts")
    consumer = new_reader(lab)
    consumer.register_message_listener(reader(consumer, looks=False))
    await consumer.start()


@scenario("batches", seconds=30, faults=ANY_FAULT, goals=("batch-is-stored",))
async def batches(
    lab: Lab, *, batches: int = 30, most: int = 12, every_ms: int = 700, size: int = 900, flush: Flush = "SYNC_FLUSH"
) -> None:
    """A producer sends batches of up to 12 messages to two brokers; a batch is stored whole or not at all."""
    lab.name_server()
    for _ in range(2):
        lab.broker(flush_disk_type=flush)
    lab.create_topic(TOPIC, 2)
    producer = lab.producer("shop")
    await producer.start()
    producer.node.spawn(_send_batches(producer, batches, most, every_ms, size), "load")
    consumer = new_reader(lab)
    consumer.register_message_listener(reader(consumer))
    await consumer.start()


async def _send_batches(producer: DefaultMQProducer, batches: int, most: int, every_ms: int, size: int) -> None:
    node, number = producer.node, 0
    for _ in range(batches):
        count = 1 + node.choose("batch", most)
        batch = [numbered_message(TOPIC, number + i, size) for i in range(count)]
        number += count
        await send_sync(producer, batch)
        await pause(node, every_ms)


@scenario(
    "short-consume-timeout", seconds=260, faults=ANY_FAULT,
    goals=("message-given-back-while-its-listener-works",),
)
async def short_consume_timeout(
    lab: Lab, *, messages: int = 40, every_ms: int = 4_000, queues: int = 2, flush: Flush = "SYNC_FLUSH"
) -> None:
    """A listener may take a message for a minute, and sometimes takes it for longer: the consumer gives it back."""
    await start_shop(lab, brokers=1, queues=queues, flush=flush, messages=messages, every_ms=every_ms)
    consumer = new_reader(lab, consume_timeout=1, consume_thread_min=8, consume_thread_max=8)
    consumer.register_message_listener(_hanging(consumer))
    await consumer.start()


def _hanging(consumer: DefaultMQPushConsumer) -> Callable[..., Any]:
    """A listener that hangs for up to 150 s one time in four, and then wants the message again half of the time."""

    async def listener(
        messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus:
        draw = consumer.node.choose
        for message in messages:
            number_of(message)
        if draw("hangs", 4):
            await context.sleep(draw("reading time", 100))
            return SUCCESS
        await context.sleep(1 + draw("hanging", HANGING_MS))
        return LATER if draw("content", 2) else SUCCESS

    return listener


@scenario(
    "orderly-rebalance", seconds=90, faults=ANY_FAULT,
    goals=("orderly-queue-changes-hands", "two-owners-at-once"),
)
async def orderly_rebalance(
    lab: Lab,
    *,
    consumers: int = 3,
    queues: int = 4,
    messages: int = 120,
    every_ms: int = 500,
    flush: Flush = "SYNC_FLUSH",
) -> None:
    """Members of an orderly group come and go, and take locked queues over from each other, for longer than a lock."""
    await start_shop(lab, brokers=1, queues=queues, flush=flush, messages=messages, every_ms=every_ms)
    members = [new_reader(lab) for _ in range(consumers)]
    for member in members:
        member.register_message_listener(SlowlyInOrder(member, 8))
    await start_members(lab, members)
    late = new_reader(lab)
    late.register_message_listener(SlowlyInOrder(late, 8))
    late.node.spawn(come_and_go(late, 40_000, 25_000), "come and go")


@scenario("orderly-backlog", seconds=80, faults=WITHOUT_POWER_CUTS)
async def orderly_backlog(
    lab: Lab, *, consumers: int = 2, queues: int = 2, messages: int = 160, most_ms: int = 1_500
) -> None:
    """Each queue has a backlog that takes its orderly listener longer than a lock lives without being renewed."""
    lab.name_server()
    lab.broker()
    lab.create_topic(TOPIC, queues)
    producer = lab.producer("shop")
    await producer.start()
    spawn_sending(producer, messages=messages, every_ms=5)
    for _ in range(consumers):
        member = new_reader(lab)
        member.register_message_listener(Slowly(member, most_ms))
        await member.start()


class Slowly(MessageListenerOrderly):
    """An orderly listener that takes its time for every message."""

    def __init__(self, consumer: DefaultMQPushConsumer, most_ms: int) -> None:
        self._consumer = consumer
        self._most_ms = most_ms

    async def consume_message(
        self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext
    ) -> ConsumeOrderlyStatus:
        """Read one message after the other."""
        for message in messages:
            number_of(message)
        await context.sleep(self._most_ms // 2 + self._consumer.node.choose("reading time", self._most_ms // 2))
        return ConsumeOrderlyStatus.SUCCESS


@scenario("silence", seconds=200, faults=OF_SILENCE, goals=("silent-broker-expires", "client-asks-another-name-server"))
async def silence(lab: Lab, *, messages: int = 60, every_ms: int = 3_000, flush: Flush = "SYNC_FLUSH") -> None:
    """Two name servers and two brokers, any of which may fall silent for longer than the others wait."""
    for _ in range(2):
        lab.name_server()
    for _ in range(2):
        lab.broker(flush_disk_type=flush)
    lab.create_topic(TOPIC, 2)
    producer = lab.producer("shop")
    await producer.start()
    spawn_sending(producer, messages=messages, every_ms=every_ms)
    for _ in range(2):
        consumer = new_reader(lab)
        consumer.register_message_listener(reader(consumer))
        await consumer.start()


@scenario(
    "hurried-senders", seconds=30, faults=WITHOUT_POWER_CUTS,
    goals=("broker-answers-busy-at-once", "call-times-out"),
)
async def hurried_senders(
    lab: Lab, *, producers: int = 2, messages: int = 60, every_ms: int = 200, timeout_ms: int = 400, waiting: int = 2
) -> None:
    """Producers with little patience and few permits send to brokers that let few requests wait."""
    lab.name_server()
    for _ in range(2):
        lab.broker(send_message_thread_pool_nums=1, send_thread_pool_queue_capacity=waiting)
    lab.create_topic(TOPIC, 2)
    for number in range(producers):
        producer = lab.producer(
            f"shop-{number + 1}",
            send_msg_timeout=timeout_ms,
            enable_backpressure_for_async_mode=True,
            back_pressure_for_async_send_num=10,
        )
        await producer.start()
        spawn_sending(producer, messages=messages // 2, every_ms=2 * every_ms)
        producer.node.spawn(_send_bursts(producer, messages, every_ms), "bursts")
    consumer = new_reader(lab)
    consumer.register_message_listener(reader(consumer))
    await consumer.start()


async def _send_bursts(producer: DefaultMQProducer, messages: int, every_ms: int) -> None:
    """Send messages asynchronously, up to six at once."""
    node, number = producer.node, 0
    while number < messages:
        for _ in range(1 + node.choose("burst", 6)):
            await send_async(producer, numbered_message(TOPIC, number, 100))
            number += 1
        await node.sleep(node.choose("pause", 6 * every_ms + 1))


@scenario("tag-twins", seconds=20, faults=WITHOUT_POWER_CUTS, goals=("client-filters-what-the-broker-let-through",))
async def tag_twins(lab: Lab, *, messages: int = 40, every_ms: int = 300, flush: Flush = "ASYNC_FLUSH") -> None:
    """Two tags have the same hash code, and a consumer wants only one of them."""
    lab.name_server()
    lab.broker(flush_disk_type=flush)
    lab.create_topic(TOPIC, 2)
    producer = lab.producer("shop")
    await producer.start()
    producer.node.spawn(_send_twins(producer, messages, every_ms), "load")
    consumer = lab.consumer(READERS, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    consumer.subscribe(TOPIC, TWINS[0])
    consumer.register_message_listener(reader(consumer))
    await consumer.start()


async def _send_twins(producer: DefaultMQProducer, messages: int, every_ms: int) -> None:
    for number in range(messages):
        message = numbered_message(TOPIC, number, 100)
        twin = Message(message.topic, message.body, tags=TWINS[number % 2], keys=message.keys)
        await send_sync(producer, twin)
        await pause(producer.node, every_ms)


@scenario("maintenance", seconds=50, faults=OF_MAINTENANCE, goals=("broker-says-that-it-goes",))
async def maintenance(
    lab: Lab, *, messages: int = 40, every_ms: int = 400, down_ms: int = 2_000, flush: Flush = "SYNC_FLUSH"
) -> None:
    """A member stops in good order, then its broker; when that is back, another member goes on where the first was."""
    await start_shop(lab, brokers=1, queues=2, flush=flush, messages=messages, every_ms=every_ms)
    broker = lab.brokers[0]
    stop_ms = 8_000 + lab.world.choose("the first member stops", 8_000)
    shutdown_ms = stop_ms + 2_000 + lab.world.choose("the broker stops", 15_000)
    start_ms = shutdown_ms + down_ms
    for after_ms, stay_ms in ((0, stop_ms), (start_ms, FOR_EVER_MS)):
        member = new_reader(lab)
        member.register_message_listener(reader(member))
        member.node.spawn(come_and_go(member, after_ms, stay_ms), "come and go")
    broker.node.spawn(shut_down(broker, shutdown_ms), "maintenance")
    # A broker does not start on a full disk (it cannot write its file `abort`), so whoever starts it makes room first.
    at = f"at {lab.now_ms + start_ms:g}ms"
    lab.faults(f"{at}: fill_disk {broker.name} by {ROOM_BYTES}\n{at}: restart {broker.name}")


async def shut_down(broker: BrokerProcess, after_ms: int) -> None:
    """Shut a broker down in good order after a while."""
    await broker.node.sleep(after_ms)
    await broker.running().shutdown()
