"""Requests and replies in a drawn world: who asks waits, or is called back, and who is asked answers, some too late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mqlab.client import ConsumeConcurrentlyContext, ConsumeConcurrentlyStatus, create_reply_message
from mqlab.client.message_util import get_reply_to_client
from mqlab.errors import RequestTimeoutException
from mqlab.scenarios.drawing.loads import look_at, refuses
from mqlab.scenarios.drawing.ways import to_a_queue, to_the_queue_of
from mqlab.scenarios.numbered import FAILURES, LATER, SUCCESS, numbered_message, pause, reading_time_ms
from mqlab.scenarios.request_reply import check_reply

if TYPE_CHECKING:
    from mqlab.client import DefaultMQProducer, DefaultMQPushConsumer
    from mqlab.protocol.message import MessageExt


async def ask_all(producer: DefaultMQProducer, first: int, says: dict[str, Any]) -> None:
    """Send the numbered requests of an `asker` line, by turns waiting for the reply and with a callback."""
    for number in range(first, first + says["messages"]):
        message = numbered_message(says["topic"], number, says["size"])
        with suppress(*FAILURES, RequestTimeoutException):
            destination: dict[str, Any] = {"timeout": says["timeout_ms"]}
            if says["to"] == "queue":
                destination["queue"] = await to_a_queue(producer, says["topic"])
            elif says["to"] == "selector":
                destination |= {"selector": to_the_queue_of, "argument": number}
            if number % 2:
                await producer.request_async(message, partial(check_reply, message), **destination)
            else:
                check_reply(message, await producer.request(message, **destination), None)
        await pause(producer.node, says["every_ms"])


def replier(consumer: DefaultMQPushConsumer, answers: DefaultMQProducer, says: dict[str, Any]) -> Callable[..., Any]:
    """A listener that answers each request with its own body, and wants one message in `refuse_one_in` once more."""

    async def listen(
        messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus:
        for message in messages:
            look_at(message)
            await context.sleep(reading_time_ms(consumer, says["slow_ms"]))
            if get_reply_to_client(message) is not None:
                with suppress(*FAILURES):
                    await answers.send(create_reply_message(message, message.body))
        return LATER if refuses(consumer.node, says) else SUCCESS

    return listen
