"""What producers of a drawn world do: loads in several ways, to a queue of anybody's choice, and transactions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from mqlab.client.producer.async_send import SendCallback
from mqlab.protocol.message import MessageConst
from mqlab.scenarios.numbered import FAILURES, numbered_message, pause

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer, SendResult
    from mqlab.client.producer.transaction_mq_producer import TransactionMQProducer
    from mqlab.protocol import MessageQueue
    from mqlab.protocol.message import Message

MOST_IN_BATCH = 6
TAGS = ("paid", "late")
KINDS = ("gift", "", "toy", "")
NUMBERS_APART = 1_000_000
"""The numbers of the second producer begin so far behind those of the first."""
WORTH = 700_000_000
"""By so much a gift is worth more than what stands in front of it in its load."""
BATCHES = "batches"
"""How a way of sending begins that sends several messages at once."""


async def send_all(producer: DefaultMQProducer, first: int, says: dict[str, Any]) -> None:
    """Send the numbered messages of a `producer` line, one after a pause of 0 to twice `every_ms`."""
    numbers = iter(range(first, first + says["messages"]))
    for number in numbers:
        sent: Message | list[Message] = _message(producer, number, says)
        if says["way"].startswith(BATCHES):
            count = producer.node.choose("batch", MOST_IN_BATCH)
            sent = [_message(producer, n, says) for n in (number, *islice(numbers, count))]
        # An application that goes on when a message cannot be sent.
        with suppress(*FAILURES):
            await _send(producer, sent, number, says)
        await pause(producer.node, says["every_ms"])


async def _send(producer: DefaultMQProducer, sent: Message | list[Message], number: int, says: dict[str, Any]) -> None:
    """Send a message, or a batch, in the way and to the queue that the line says."""
    way = says["way"].removeprefix(BATCHES).removeprefix("-") or "sync"
    by_selector = says["to"] == "selector" and way != "one-way" and not isinstance(sent, list)
    queue = None if says["to"] == "any" or by_selector else await to_a_queue(producer, says["topic"])
    if way == "one-way" and not isinstance(sent, list):
        await producer.send_oneway(sent, queue=queue)
    elif way == "async":
        selector = to_the_queue_of if by_selector else None
        await producer.send_async(sent, _callback(number), queue=queue, selector=selector, argument=number)
    else:
        if by_selector and not isinstance(sent, list):
            result = await producer.send_by_selector(sent, to_the_queue_of, number)
        else:
            result = await producer.send(sent, queue=queue)
        await _take_back(producer, result, number, says)


async def _take_back(producer: DefaultMQProducer, result: SendResult, number: int, says: dict[str, Any]) -> None:
    """Recall one in so many of the messages that wait for their time."""
    if result.recall_handle and says["recall_one_in"] and number % says["recall_one_in"] == 0:
        await producer.recall_message(says["topic"], result.recall_handle)


class _Heard(SendCallback):
    """The callback, as a class, of an application that has nothing to do when a message is sent, or is not."""


async def _hear(result: object, error: Exception | None) -> None:
    """The same as a coroutine."""


def _leave_it(result: object, error: Exception | None) -> None:
    """The same as a function."""


def _callback(number: int) -> Any:
    """By turns one of the three."""
    return (_leave_it, _Heard(), _hear)[number % 3]


async def send_in_transactions(bank: TransactionMQProducer, first: int, says: dict[str, Any]) -> None:
    """Send the numbered messages of a `transactions` line, each with its local part: the next one when that is over, or
    with `at_once` before.
    """
    for number in range(first, first + says["messages"]):
        message = numbered_message(says["topic"], number, says["size"])
        if says["immune_s"]:
            message.properties[MessageConst.CHECK_IMMUNITY_TIME_IN_SECONDS] = str(says["immune_s"])
        if says["at_once"]:
            bank.node.spawn(_transfer(bank, message), f"transfer {number}")
        else:
            await _transfer(bank, message)
        await pause(bank.node, says["every_ms"])


async def _transfer(bank: TransactionMQProducer, message: Message) -> None:
    """Send one message with its local part; the application goes on when the half message cannot be sent."""
    with suppress(*FAILURES):
        await bank.send_message_in_transaction(message, None)


async def to_a_queue(producer: DefaultMQProducer, topic: str) -> MessageQueue:
    """One of the queues that the producer could send to; what is raised where it knows none is the caller's."""
    queues = await producer.fetch_publish_message_queues(topic)
    return queues[producer.node.choose("queue", len(queues))]


def to_the_queue_of(queues: Sequence[MessageQueue], message: Message, number: int) -> MessageQueue:
    """The selector of an application that sends messages with one number to one queue."""
    return queues[number % len(queues)]


def _message(producer: DefaultMQProducer, number: int, says: dict[str, Any]) -> Message:
    message = numbered_message(says["topic"], number, says["size"])
    message.tags = TAGS[number % len(TAGS)]
    for name, value in properties_of(number).items():
        message.put_user_property(name, value)
    if says["way"].startswith(BATCHES):
        return message
    if says["delay_level"]:
        message.delay_time_level = says["delay_level"]
    elif says["timer_ms"]:
        _delay(message, says["timer_as"], says["timer_ms"], producer.node.now_ms())
    return message


def properties_of(number: int) -> dict[str, str]:
    """What conditions are about: the place of a message in its load, what kind of thing is ordered, and what a gift is
    worth, which may be more than fits into 32 bits, and less than nothing.
    """
    kind, place = KINDS[number % len(KINDS)], number % NUMBERS_APART
    said = {"place": str(place), **({"kind": kind} if kind else {})}
    return {**said, "worth": str((place - 9) * WORTH)} if kind == "gift" else said


def _delay(message: Message, how: str, timer_ms: int, now_ms: int) -> None:
    """Let the timer keep a message for so long, said in one of its three ways."""
    if how == "delay-ms":
        message.delay_time_ms = timer_ms
    elif how == "delay-s":
        message.delay_time_sec = max(1, timer_ms // 1_000)
    else:
        message.deliver_time_ms = now_ms + timer_ms
