"""What 5.x clients of a drawn world do: they send, listen, and receive through a proxy."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mqlab.scenarios.demo import process_of
from mqlab.scenarios.numbered import KEY, pause

if TYPE_CHECKING:
    from mqlab.client.v5 import MessageView, Producer, SimpleConsumer
    from mqlab.lab import Lab
    from mqlab.sim import Node

QUICK_MS, SLOW_ONE_IN = 20, 20
INVISIBLE_MS = 15_000


async def start_producer(lab: Lab, name: str, settings: dict[str, Any], first: int, says: dict[str, Any]) -> None:
    """A producer that sends the numbered messages of its line through the proxies."""
    producer = lab.producer_v5(node=name, topics=says["topic"], **settings)
    await producer.start()
    producer.node.spawn(_send_all(producer, first, says), "load")


async def start_listening(lab: Lab, group: str, node: str, settings: dict[str, Any], says: dict[str, Any]) -> None:
    """A push consumer whose listener fails, and is slow, now and then."""
    consumer = lab.push_consumer_v5(group, node=node, **settings)
    consumer.subscribe(says["topic"])
    consumer.set_message_listener(_listener(consumer.node, says))
    await consumer.start()


async def start_receiving(lab: Lab, group: str, node: str, settings: dict[str, Any], says: dict[str, Any]) -> None:
    """A simple consumer that receives again and again, and forgets to acknowledge one message in `refuse_one_in`."""
    consumer = lab.simple_consumer(group, node=node, **settings)
    consumer.subscribe(says["topic"])
    await consumer.start()
    process_of(lab, consumer).run_in_each_life("receive", partial(_receive_all, consumer, says))


async def _send_all(producer: Producer, first: int, says: dict[str, Any]) -> None:
    from mqlab.client.v5 import ClientException, Message

    for number in range(first, first + says["messages"]):
        key = f"{KEY}{number}"
        body = f"this is {key} ".encode().ljust(says["size"], b".")
        with suppress(ClientException):
            await producer.send(Message(says["topic"], body, tag="paid", keys=key))
        await pause(producer.node, says["every_ms"])


def _listener(node: Node, says: dict[str, Any]) -> Any:
    from mqlab.client.v5 import ConsumeResult

    async def listen(message: MessageView) -> ConsumeResult:
        slow = node.choose("kind of reader", SLOW_ONE_IN) == 0
        await node.sleep(node.choose("reading time", (says["slow_ms"] if slow else QUICK_MS) + 1))
        return ConsumeResult.FAILURE if _refuses(node, says) else ConsumeResult.SUCCESS

    return listen


async def _receive_all(consumer: SimpleConsumer, says: dict[str, Any]) -> None:
    from mqlab.client.v5 import ClientException

    while True:
        received: list[MessageView] = []
        with suppress(ClientException):
            received = await consumer.receive(says["batch"], INVISIBLE_MS)
        await consumer.node.sleep(QUICK_MS * max(1, len(received)))
        for message in received:
            if not _refuses(consumer.node, says):
                with suppress(ClientException):
                    await consumer.ack(message)


def _refuses(node: Node, says: dict[str, Any]) -> bool:
    one_in: int = says["refuse_one_in"]
    return one_in > 0 and node.choose("refuse", one_in) == 0
