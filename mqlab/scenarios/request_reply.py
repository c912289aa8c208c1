"""The scenario of request and reply: askers wait for what repliers answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mqlab.client import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, ConsumeFromWhere, create_reply_message
from mqlab.errors import RequestTimeoutException, SimulationError
from mqlab.scenarios.demo import process_of
from mqlab.scenarios.numbered import FAILURES, QUICK_MS, SUCCESS, number_of, numbered_message, pause
from mqlab.scenarios.registry import ANY_FAULT, scenario, story

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer, DefaultMQPushConsumer
    from mqlab.lab import Lab
    from mqlab.protocol.message import Message, MessageExt

TOPIC = "Prices"
SLOW = 9
"""The replier takes too long for the last of so many questions."""

STORY = story("""
    ReplyAwaited 1 producer-1: A shop asks for a price. It waits for the answer, as with a call of a function.
    MessageStored 1 broker-a: For the broker it is a message as any other, in a topic as any other.
    ConsumeStarted 1 consumer-1: Somebody consumes the question, looks the price up, and sends the answer.
    ReplyArrived 1 producer-1: The broker has pushed the answer to who asked. An id tells which question it answers.
    ReplyPushed 1 broker-a: Only behind that the broker stores the answer, in a topic that nobody reads.
    ReplyGivenUp 1 producer-1: One answer takes too long, so the shop waits for it no longer.
""")


class WrongReply(SimulationError):
    """A request was given the reply to another one."""

    def __init__(self, asked: str, reply: MessageExt) -> None:
        super().__init__(f"the request {asked!r} got the reply {reply.body[:40]!r}")


def check_reply(request: Message, reply: MessageExt | None, error: Exception | None) -> None:
    """WrongReply unless a reply, if there is one, repeats the body of its request."""
    if reply is not None and reply.body != request.body:
        raise WrongReply(request.keys or "", reply)


async def ask(
    producer: DefaultMQProducer, numbers: Iterator[int], every_ms: int, timeout_ms: int, size: int
) -> None:
    """Ask again and again, by turns waiting and with a callback; an application that goes on when a request fails."""
    for number in numbers:
        message = numbered_message(TOPIC, number, size)
        with suppress(*FAILURES, RequestTimeoutException):
            if number % 2:
                await producer.request_async(message, partial(check_reply, message), timeout=timeout_ms)
            else:
                check_reply(message, await producer.request(message, timeout=timeout_ms), None)
        await pause(producer.node, every_ms)


def replier(consumer: DefaultMQPushConsumer, producer: DefaultMQProducer, slow_ms: int) -> Callable[..., Any]:
    """A listener that answers each message with its own body, and takes long for some."""

    async def listener(
        messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus:
        for message in messages:
            await context.sleep(slow_ms if number_of(message) % SLOW == SLOW - 1 else QUICK_MS)
            with suppress(*FAILURES):
                await producer.send(create_reply_message(message, message.body))
        return SUCCESS

    return listener


@scenario(
    "request-reply", seconds=30, captions=STORY, faults=ANY_FAULT, explored_with={"messages": 30},
    goals=("reply-matches", "reply-comes-too-late"),
)
async def request_reply(
    lab: Lab,
    *,
    brokers: int = 2,
    queues: int = 2,
    workers: int = 2,
    messages: int = 60,
    every_ms: int = 250,
    timeout_ms: int = 3_000,
    slow_ms: int = 5_000,
    size: int = 100,
) -> None:
    """A producer asks and waits for replies, or has them come to callbacks; consumers answer, a few of them late."""
    lab.name_server()
    for _ in range(brokers):
        lab.broker()
    lab.create_topic(TOPIC, queues)
    asker = lab.producer("askers", topics=[TOPIC])
    await asker.start()
    for _ in range(workers):
        consumer = lab.consumer("repliers", consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
        producer = lab.producer("answers", node=consumer.node.name)
        consumer.subscribe(TOPIC, "*")
        consumer.register_message_listener(replier(consumer, producer, slow_ms))
        await producer.start()
        await consumer.start()
    lab.run_for(seconds=1)
    work = partial(ask, asker, iter(range(messages)), every_ms, timeout_ms, size)
    process_of(lab, asker).run_in_each_life("asks", work)
