"""The demo worlds: they never end, and whatever is broken and mended in them, their orders flow again.

Their programs are written as programs in production are: whoever sends goes on when a call fails, and a process that
is started again begins its work anew. The order book is the application's own and outlives its process, so that no
order has the number of another one.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from mqlab.client import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere
from mqlab.client.service_state import ServiceState
from mqlab.lab.processes import ClientProcess
from mqlab.protocol import MessageConst
from mqlab.scenarios.numbered import LATER, SUCCESS, TOPIC, numbered_message, send_async, send_sync
from mqlab.scenarios.registry import ANY_FAULT, scenario, story

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer, DefaultMQPullConsumer, DefaultMQPushConsumer
    from mqlab.client.v5 import Producer, SimpleConsumer
    from mqlab.lab import Lab
    from mqlab.protocol.message import MessageExt

Listener = Callable[
    [Sequence["MessageExt"], ConsumeConcurrentlyContext], Coroutine[Any, Any, ConsumeConcurrentlyStatus | None]
]

SHOP, PACKERS = "shop", "packers"
READY_MS = 2_500
"""By then a consumer has its queues, and the broker holds its pulls."""
RUSH_ONE_IN, RUSH = 5, 3
"""One time in five, three orders come at once."""
UNTIL_THE_END = 0
"""A load of so many messages has no end."""


def process_of(
    lab: Lab, client: DefaultMQProducer | DefaultMQPushConsumer | DefaultMQPullConsumer | Producer | SimpleConsumer
) -> ClientProcess:
    """The process in which a client runs."""
    process = lab.processes[client.node.name]
    assert isinstance(process, ClientProcess)
    return process


def order_book(messages: int) -> Iterator[int]:
    """The numbers of the orders: so many, or without end."""
    return iter(range(messages)) if messages != UNTIL_THE_END else count()


# -- sending --------------------------------------------------------------------------------------------------------


async def open_shop(lab: Lab, brokers: int, queues: int, **settings: Any) -> DefaultMQProducer:
    """A name server, brokers with so many queues each of the topic Orders, and a producer that is ready to send."""
    lab.name_server()
    for _ in range(brokers):
        lab.broker(**settings)
    lab.create_topic(TOPIC, queues)
    producer = lab.producer(SHOP, topics=[TOPIC])
    await producer.start()
    return producer


async def take_orders(producer: DefaultMQProducer, orders: Iterator[int], every_ms: int) -> None:
    """Send one order after the other, with a pause of 0.4 to 1.6 times `every_ms`; now and then three at once."""
    node = producer.node
    for number in orders:
        if node.choose("rush", RUSH_ONE_IN) == 0:
            for rushed in (number, *islice(orders, RUSH - 1)):
                await send_async(producer, numbered_message(TOPIC, rushed, 100))
        else:
            await send_sync(producer, numbered_message(TOPIC, number, 100))
        await node.sleep(every_ms * 2 // 5 + node.choose("pause", every_ms * 6 // 5 + 1))


async def take_orders_in_waves(
    producer: DefaultMQProducer, orders: Iterator[int], wave: int, every_ms: int, calm_ms: int
) -> None:
    """Send a wave of orders, one each `every_ms`, then rest for `calm_ms`, and so on."""
    for number in orders:
        await send_sync(producer, numbered_message(TOPIC, number, 100))
        await producer.node.sleep(calm_ms if number % wave == wave - 1 else every_ms)


# -- consuming ------------------------------------------------------------------------------------------------------


def packing(consumer: DefaultMQPushConsumer, most_ms: int) -> Listener:
    """A listener that takes between a quarter of `most_ms` and all of it, and is content."""

    async def pack(messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        await context.sleep(most_ms // 4 + consumer.node.choose("packing", most_ms * 3 // 4 + 1))
        return SUCCESS

    return pack


def packing_with_mishaps(consumer: DefaultMQPushConsumer, most_ms: int) -> Listener:
    """The same for a listener that fails with every fifth order at first, and with every twentieth always."""
    pack = packing(consumer, most_ms)

    async def try_to_pack(
        messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus | None:
        packed = await pack(messages, context)
        number = number_in_id(messages[0])
        fails = number % 5 == 4 and (messages[0].reconsume_times == 0 or number % 20 == 19)
        return LATER if fails else packed

    return try_to_pack


def packing_by_pop(consumer: DefaultMQPushConsumer, most_ms: int, stuck_ms: int) -> Listener:
    """A listener that fails with every fifth order at first, and hangs `stuck_ms` over every thirteenth at first."""
    pack = packing(consumer, most_ms)

    async def pack_popped(
        messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus | None:
        packed = await pack(messages, context)
        number, first = number_in_id(messages[0]), messages[0].reconsume_times == 0
        if first and number % 13 == 6:
            await context.sleep(stuck_ms)
        return LATER if first and number % 5 == 4 else packed

    return pack_popped


def number_in_id(message: MessageExt) -> int:
    """The number of a message in its producer's count: the end of the id that the producer gave it.

    A record that a loss of power has torn may come without its properties, and counts as 0.
    """
    return int(message.properties.get(MessageConst.UNIQ_CLIENT_MESSAGE_ID_KEYIDX, "0")[-4:], 16)


def new_packer(lab: Lab, *, threads: int = 2, **settings: Any) -> DefaultMQPushConsumer:
    """A consumer of the orders, from the first on, with few threads; it has no listener yet."""
    consumer = lab.consumer(
        PACKERS,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        consume_thread_min=threads,
        consume_thread_max=threads,
        **settings,
    )
    consumer.subscribe(TOPIC, "*")
    return consumer


async def join_later(consumer: DefaultMQPushConsumer, after_ms: int) -> None:
    """Start a consumer after a while; a process that is started again has started it by then, if it ran before."""
    await consumer.node.sleep(after_ms)
    if consumer.impl.service_state is ServiceState.CREATE_JUST:
        await type(consumer).start.inside(consumer)  # type: ignore[attr-defined]  # see public_call


# -- the worlds -----------------------------------------------------------------------------------------------------


DEMO = story("""
    PullHeld 2 broker-a: The consumer asks for messages. There are none yet, so the broker keeps the question.
    SendAttempted 1 producer-1: The producer sends a message, and waits for the answer.
    MessageStored 2 broker-a: The broker writes each message to the end of its log, and then answers: stored.
    MessageDispatched 4 broker-a: A moment later the message gets its place in one of two queues.
    PullWoken 6 broker-a: Now the broker can answer the question that it kept: with the message.
    PullRequested 9 consumer-1: The consumer asks again at once. This push is a pull that waits.
    ConsumeStarted 12 consumer-1: The listener gets the message: the code of the application.
    ConsumeFinished 15 consumer-1: The message is done. So far only the consumer knows.
    OffsetCommitted 16 broker-a: With one of its next questions the consumer tells the broker how far it has come.
    SendAttempted 36 broker-a: So it goes on. Click a machine and break it: what will the others do?
""")


@scenario("demo", seconds=30, faults=ANY_FAULT, explored_with={"messages": 60}, captions=DEMO)
async def demo(
    lab: Lab, *, queues: int = 2, every_ms: int = 250, packing_ms: int = 160, messages: int = UNTIL_THE_END
) -> None:
    """A shop sends orders, a broker keeps them, a packer gets them: for ever, whatever is broken and mended."""
    producer = await open_shop(lab, 1, queues)
    consumer = new_packer(lab)
    consumer.register_message_listener(packing(consumer, packing_ms))
    await consumer.start()
    lab.run_for(ms=READY_MS)
    orders = order_book(messages)
    process_of(lab, producer).run_in_each_life("orders", lambda: take_orders(producer, orders, every_ms))


DEMO_TWO_BROKERS = story("""
    PullHeld 4 consumer-1: Two brokers with two queues each. One consumer has them all, and a question waits at each.
    SendAttempted 2 producer-1: The producer takes one queue after the other, so the brokers share the messages.
    ConsumeStarted 6 consumer-1: Whichever broker has a message, the same consumer gets it.
    ClientStarted 6 consumer-2: A second consumer comes, and tells both brokers that it belongs to the group.
    ConsumerGroupChanged 4 broker-b: Each broker tells the members of the group that there is a new one.
    ConsumeStarted 72 consumer-1: Each member has worked out its share by itself, and the first one gave two queues up.
    ConsumeStarted 86 consumer-2: The second one took them, and began where the first one had stopped.
    ConsumeStarted 100 consumer-2: Now they share the work. Kill one of them, or a broker: the others go on.
""")


@scenario("demo-two-brokers", seconds=40, faults=ANY_FAULT, explored_with={"messages": 80}, captions=DEMO_TWO_BROKERS)
async def demo_two_brokers(
    lab: Lab,
    *,
    queues: int = 2,
    every_ms: int = 250,
    packing_ms: int = 160,
    joins_ms: int = 10_000,
    messages: int = UNTIL_THE_END,
) -> None:
    """Two brokers share the orders, and after a while a second packer comes: for ever, whatever is broken."""
    producer = await open_shop(lab, 2, queues)
    first, second = new_packer(lab), new_packer(lab)
    for consumer in (first, second):
        consumer.register_message_listener(packing(consumer, packing_ms))
    await first.start()
    lab.run_for(ms=READY_MS)
    orders = order_book(messages)
    process_of(lab, producer).run_in_each_life("orders", lambda: take_orders(producer, orders, every_ms))
    process_of(lab, second).run_in_each_life("joins later", lambda: join_later(second, joins_ms))


DEMO_SLOW_CONSUMER = story("""
    PullHeld 2 broker-a: The consumer asks for messages, and the broker keeps the questions.
    SendAttempted 1 producer-1: A wave of orders comes, one each 40 ms.
    MessagesCached 4 consumer-1: One order takes the listener up to 400 ms, so they pile up in the consumer's cache.
    FlowControlled 1 consumer-1: More than four of a queue are too many: the consumer asks no more, and looks again
        after 50 ms.
    MessageStored 16 broker-a: The rest waits in the broker, which does not know why nobody asks.
    MessagesCached 14 consumer-1: An order is done, there is room again: the consumer asks for the next ones.
    SendAttempted 25 producer-1: The next wave comes, and it begins again.
    MessageStored 49 broker-a: The queue in the broker is the buffer: no order is lost, it only waits.
""")


@scenario(
    "demo-slow-consumer", seconds=40, faults=ANY_FAULT, explored_with={"messages": 96}, captions=DEMO_SLOW_CONSUMER
)
async def demo_slow_consumer(
    lab: Lab,
    *,
    queues: int = 2,
    wave: int = 24,
    every_ms: int = 40,
    calm_ms: int = 6_000,
    packing_ms: int = 400,
    threshold: int = 4,
    messages: int = UNTIL_THE_END,
) -> None:
    """Orders come in waves and the packer is slow: its cache fills, it stops asking, and the broker keeps the rest."""
    producer = await open_shop(lab, 1, queues)
    consumer = new_packer(lab, threads=1, pull_batch_size=2, pull_threshold_for_queue=threshold)
    consumer.register_message_listener(packing(consumer, packing_ms))
    await consumer.start()
    lab.run_for(ms=READY_MS)
    orders = order_book(messages)
    process_of(lab, producer).run_in_each_life(
        "orders", lambda: take_orders_in_waves(producer, orders, wave, every_ms, calm_ms)
    )


DEMO_RETRY = story("""
    PullHeld 2 broker-a: The consumer asks for messages, and the broker keeps the questions.
    ConsumeStarted 2 consumer-1: The listener packs one order after the other.
    MessageGivenBack 1 consumer-1: This order could not be packed: the consumer gives it back to the broker.
    MessageParked 2 broker-a: The broker parks what comes back, for ten seconds the first time.
    ConsumeStarted 14 consumer-1: Meanwhile the other orders are packed. Nobody waits for the one that failed.
    ParkedMessageDelivered 1 broker-a: Its ten seconds are over: it comes back, through a queue of the group's own.
    ParkedMessageDelivered 4 consumer-1: Mostly the second try succeeds.
    MessageParked 15 broker-a: Some orders always fail. They wait longer each time, and after the last try nobody gets
        them.
""")


@scenario("demo-retry", seconds=40, faults=ANY_FAULT, explored_with={"messages": 60}, captions=DEMO_RETRY)
async def demo_retry(
    lab: Lab,
    *,
    queues: int = 2,
    every_ms: int = 500,
    packing_ms: int = 160,
    max_reconsume_times: int = 2,
    messages: int = UNTIL_THE_END,
) -> None:
    """The packer fails with some orders: they come again after 10 s and 30 s, or end among the dead letters."""
    producer = await open_shop(lab, 1, queues)
    consumer = new_packer(lab, max_reconsume_times=max_reconsume_times)
    consumer.register_message_listener(packing_with_mishaps(consumer, packing_ms))
    await consumer.start()
    lab.run_for(ms=READY_MS)
    orders = order_book(messages)
    process_of(lab, producer).run_in_each_life("orders", lambda: take_orders(producer, orders, every_ms))


DEMO_POP = story("""
    PopHeld 2 broker-a: Two consumers ask for orders from any queue: nobody owns one. The broker keeps both questions.
    MessagePopped 1 broker-a: An order goes to one of them, and is hidden from the other for ten seconds.
    AckRequested 1 consumer-1: It is packed. This one message is acknowledged, whatever becomes of those beside it.
    AckStored 2 broker-a: The broker stores each acknowledgement, and beside each pop it has stored a check point.
    InvisibleTimeRequested 1 consumer-1: This order could not be packed: it shall stay hidden for ten more seconds.
    ReviveScanBegun 1 broker-a: Check points come off the timer wheel, and readers compare them with acknowledgements.
    MessageRevived 1 broker-a: Nobody has acknowledged this order in time: it goes into a retry queue.
    MessageRevived 2 broker-a: From there it is popped like any other, by whoever asks next.
""")


@scenario("demo-pop", seconds=40, captions=DEMO_POP)
async def demo_pop(
    lab: Lab,
    *,
    queues: int = 2,
    every_ms: int = 500,
    packing_ms: int = 300,
    invisible_ms: int = 10_000,
    merge: bool = False,
    messages: int = UNTIL_THE_END,
) -> None:
    """Two packers pop orders from the same queues; each is hidden from the other one until its time is over."""
    producer = await open_shop(lab, 1, queues, enable_pop_buffer_merge=merge)
    lab.set_message_request_mode(TOPIC, PACKERS, "POP")
    for _ in range(2):
        consumer = new_packer(lab, threads=4, client_rebalance=False, pop_invisible_time=invisible_ms)
        consumer.register_message_listener(packing_by_pop(consumer, packing_ms, invisible_ms * 3 // 2))
        await consumer.start()
    lab.run_for(ms=READY_MS)
    orders = order_book(messages)
    process_of(lab, producer).run_in_each_life("orders", lambda: take_orders(producer, orders, every_ms))
