"""The scenarios of flow control: a slow listener in front of a backlog, and a broker that cannot keep up."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.broker.broker_config import ServiceTimes
from mqlab.client import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere
from mqlab.errors import MQClientException, RemotingException
from mqlab.protocol import Message
from mqlab.scenarios.registry import scenario, story

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer, DefaultMQPushConsumer
    from mqlab.lab import Lab

TOPIC = "Orders"
Listener = Callable[[Sequence[Any], ConsumeConcurrentlyContext], Coroutine[Any, Any, ConsumeConcurrentlyStatus]]


def taking(ms: float, *, first_ms: float = 0, seen: list[int] | None = None) -> Listener:
    """A listener that takes `ms` for each call, or `first_ms` for the first; `seen` gets the offsets that are done."""
    calls = 0

    async def listener(messages: Sequence[Any], context: ConsumeConcurrentlyContext) -> ConsumeConcurrentlyStatus:
        nonlocal calls
        calls += 1
        await context.sleep(first_ms if first_ms and calls == 1 else ms)
        if seen is not None:
            seen.extend(message.queue_offset for message in messages)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    return listener


async def put_backlog(lab: Lab, messages: int, size: int = 10, *, queues: int = 1) -> None:
    """A name server, a broker, and messages of `size` bytes that wait in `Orders`, the same number in each queue."""
    lab.name_server()
    lab.broker("broker-a")
    lab.create_topic(TOPIC, queues)
    producer = lab.producer("shop")
    await producer.start()
    for number in range(messages):
        await producer.send(Message(TOPIC, f"order {number} ".encode().ljust(size, b".")[:size]))
    lab.run_for(ms=2)


def slow_consumer(lab: Lab, listener: Listener, *, threads: int = 1, **settings: Any) -> DefaultMQPushConsumer:
    """A consumer of `Orders` that begins with the oldest message and has few threads; not yet started."""
    settings |= {"consume_thread_min": threads, "consume_thread_max": threads}
    consumer = lab.consumer("readers", consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, **settings)
    consumer.subscribe(TOPIC, "*")
    consumer.register_message_listener(listener)
    return consumer


def spawn_customers(producer: DefaultMQProducer, *, orders: int, every_us: int) -> None:
    """Let a customer come every so often; each sends one order and waits for the answer, beside all the others."""

    async def order(number: int) -> None:
        message = Message(TOPIC, b"order %d" % number, keys=f"order-{number}")
        try:
            await type(producer).send.inside(producer, message)  # type: ignore[attr-defined]  # see public_call
        except (MQClientException, RemotingException):
            return  # the customer goes home; SendFailed has told why

    async def door() -> None:
        for number in range(orders):
            producer.node.spawn(order(number), f"customer {number}")
            await producer.node.sleep(every_us / 1_000)

    producer.node.spawn(door(), "door")


async def open_busy_shop(
    lab: Lab, *, put_ms: int = 20, fast_failure: bool = True, retries: int = 2, **settings: Any
) -> DefaultMQProducer:
    """A broker whose four send threads need `put_ms` for each message, and a producer that knows the way to it."""
    lab.name_server()
    times = ServiceTimes(send=put_ms * 1_000)
    lab.broker("broker-a", service_us=times, broker_fast_failure_enable=fast_failure, **settings)
    lab.create_topic(TOPIC, 4)
    producer = lab.producer("shop", retry_times_when_send_failed=retries)
    await producer.start()
    await producer.send(Message(TOPIC, b"the first order"))
    lab.run_for(seconds=2)  # a broker looks for waiting requests only from a second after its start
    return producer


@scenario("held-back-by-count", seconds=8)
async def held_back_by_count(
    lab: Lab, *, messages: int = 150, size: int = 10, threshold: int = 20, listener_ms: int = 100
) -> None:
    """A backlog waits; the listener is slow and its consumer may hold few messages: the count holds its pulls back."""
    await put_backlog(lab, messages, size)
    await slow_consumer(lab, taking(listener_ms), pull_threshold_for_queue=threshold).start()


@scenario("held-back-by-span", seconds=9)
async def held_back_by_span(lab: Lab, *, messages: int = 150, span: int = 10, blocked_ms: int = 5_000) -> None:
    """The listener is stuck with the first message while another thread consumes what follows: the span holds pulls."""
    await put_backlog(lab, messages)
    listener = taking(20, first_ms=blocked_ms)
    await slow_consumer(lab, listener, threads=2, consume_concurrently_max_span=span).start()


BUSY_BROKER = story("""
    SendAttempted 2 producer-1: Customers come every 2.5 ms, and each sends an order.
    MessageStored 10 broker-a: The broker stores one in 20 ms with each of its four threads: 200 in a second, not 400.
    RequestTimedOutInQueue 1 broker-a: What has waited for a thread for 200 ms is answered: busy.
    SendAttemptFailed 20 producer-1: The producer tries again at once, and so makes the queue longer.
    SendFailed 1 producer-1: After three attempts a customer goes home.
    MessageStored 900 broker-a: Half of the orders get through, and each of them is quick. That is what the others pay
        for.
""")


@scenario("busy-broker", seconds=10, captions=BUSY_BROKER)
async def busy_broker(
    lab: Lab,
    *,
    seconds: int = 6,
    every_us: int = 2_500,
    put_ms: int = 20,
    fast_failure: bool = True,
    retries: int = 2,
) -> None:
    """More orders come than the broker can store: what waits too long before the send threads is answered "busy"."""
    producer = await open_busy_shop(lab, put_ms=put_ms, fast_failure=fast_failure, retries=retries)
    spawn_customers(producer, orders=seconds * 1_000_000 // every_us, every_us=every_us)
