"""Numbered messages: loads and listeners that can tell whether a message is the one that was sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.client import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus
from mqlab.errors import MQBrokerException, MQClientException, RemotingException, SimulationError
from mqlab.protocol import Message

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer, DefaultMQPushConsumer, MQPullConsumerScheduleService
    from mqlab.protocol.message import MessageExt
    from mqlab.sim import Node

SendOne = Callable[["DefaultMQProducer", Message], Awaitable[object]]
"""Sends one message in one of the three ways."""

FAILURES = (MQClientException, MQBrokerException, RemotingException)
"""What an application has to expect of a call of a client."""

TOPIC = "Orders"
KEY = "order-"
SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER

QUICK_MS, SLOW_MS, VERY_SLOW_MS = 5, 200, 3_000


class WrongBody(SimulationError):
    """A listener was given a message whose body is not the one that was sent under its key."""

    def __init__(self, message: MessageExt) -> None:
        super().__init__(f"message {message.msg_id} with key {message.keys!r} has the body {message.body[:40]!r}")


def numbered_message(topic: str, number: int, size: int) -> Message:
    """Message `number` of a load: its body of `size` bytes repeats its key, so that a mix-up is seen."""
    key = f"{KEY}{number}"
    return Message(topic, body_of(key, size), tags="paid", keys=key)


def body_of(key: str, size: int) -> bytes:
    """The body of `size` bytes that a message with this key has: it repeats the key."""
    return f"this is {key} ".encode().ljust(size, b".")


def number_of(message: MessageExt) -> int:
    """The number of a message of a load; WrongBody if its body is not the one that was sent under its key.

    A record that a loss of power has torn may come without its properties, and so without its key, or with zeros in it.
    """
    written = message.body.split(b" ", 3)[2:3]
    key = message.keys or ""
    if not key or "\0" in key:
        key = b"".join(written).decode("ascii", "replace")
    if message.body != body_of(key, len(message.body)) or not key.startswith(KEY):
        raise WrongBody(message)
    return int(key.removeprefix(KEY))


# -- sending --------------------------------------------------------------------------------------------------------


async def send_sync(producer: DefaultMQProducer, message: Message | Sequence[Message]) -> None:
    """Send a message, or a batch, and wait for the answer; an application that goes on when it fails."""
    try:
        await type(producer).send.inside(producer, message)  # type: ignore[attr-defined]  # see public_call
    except FAILURES:
        return


async def send_async(producer: DefaultMQProducer, message: Message) -> None:
    """Send a message and go on; what became of it comes to a callback that leaves it at that."""
    try:
        await type(producer).send_async.inside(  # type: ignore[attr-defined]  # see public_call
            producer, message, _leave_it
        )
    except FAILURES:
        return


def _leave_it(result: Any, error: Any) -> None:
    """The callback of an application that has nothing to do when a message is sent, or is not."""


async def send_one_way(producer: DefaultMQProducer, message: Message) -> None:
    """Send a message without asking for an answer."""
    try:
        await type(producer).send_oneway.inside(producer, message)  # type: ignore[attr-defined]  # see public_call
    except FAILURES:
        return


def spawn_sending(
    producer: DefaultMQProducer,
    *,
    messages: int,
    every_ms: int,
    size: int = 100,
    send_one: SendOne = send_sync,
    delay_levels: Sequence[int] = (0,),
    delays_ms: Sequence[int] = (0,),
) -> None:
    """Let a producer send numbered messages from a task of its own, one after a pause of 0 to twice `every_ms`.

    The delay levels take turns, and so do the delays of the timer; 0 is no delay.
    """
    node = producer.node

    async def load() -> None:
        for number in range(messages):
            message = numbered_message(TOPIC, number, size)
            level = delay_levels[number % len(delay_levels)]
            if level:
                message.delay_time_level = level
            delay_ms = delays_ms[number % len(delays_ms)]
            if delay_ms:
                message.delay_time_ms = delay_ms
            await send_one(producer, message)
            await pause(node, every_ms)

    node.spawn(load(), "load")


async def pause(node: Node, every_ms: int) -> None:
    """Sleep from 0 to twice `every_ms`."""
    await node.sleep(node.choose("pause", 2 * every_ms + 1))


# -- consuming ------------------------------------------------------------------------------------------------------


def reading_time_ms(
    consumer: DefaultMQPushConsumer, very_slow_ms: int = VERY_SLOW_MS, *, very_slow_in_40: int = 1
) -> int:
    """How long a listener takes for a message: mostly some ms, one time in ten up to 200 ms, rarely up to 3 s.

    Rarely is one time in forty, unless `very_slow_in_40` says more.
    """
    draw = consumer.node.choose
    kind = draw("kind of reader", 40)
    most_ms = very_slow_ms if kind < very_slow_in_40 else SLOW_MS if kind < 4 else QUICK_MS
    return draw("reading time", most_ms + 1)


def reader(
    consumer: DefaultMQPushConsumer, very_slow_ms: int = VERY_SLOW_MS, *, looks: bool = True
) -> Callable[..., Any]:
    """A listener that looks at the bodies, takes its time, and is content.

    Where records are torn a message may have the properties of another one; who expects that does not look.
    """

    async def listener(
        messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus:
        for message in messages if looks else ():
            number_of(message)
        await context.sleep(reading_time_ms(consumer, very_slow_ms))
        return SUCCESS

    return listener


async def come_and_go(
    consumer: DefaultMQPushConsumer | MQPullConsumerScheduleService, after_ms: int, stay_ms: int
) -> None:
    """A consumer that joins its group after a while, and leaves it again in good order."""
    node = consumer.node
    kind: Any = type(consumer)
    await node.sleep(after_ms)
    try:
        await kind.start.inside(consumer)
        await node.sleep(stay_ms)
        await kind.shutdown.inside(consumer)
    except FAILURES:
        return
