"""The scenario of the 5.x clients: they send and receive through a proxy, and know nothing of queues."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mqlab.scenarios.demo import process_of
from mqlab.scenarios.numbered import KEY, TOPIC, body_of
from mqlab.scenarios.registry import ANY_FAULT, scenario, story

if TYPE_CHECKING:
    from mqlab.client.v5 import MessageView, Producer, SimpleConsumer
    from mqlab.lab import Lab

FAILS, TAKES_LONG, FORGOTTEN = 7, 11, 5
"""Every seventh message fails at its first delivery, every eleventh takes the workers long; of those that the auditors
receive, every fifth is not acknowledged.
"""
WORK_MS, LONG_WORK_MS = 40, 70_000
INVISIBLE_MS = 15_000

STORY = story("""
    ClientSettingsTaken 1 proxy-1: A client tells the proxy what it is, and hears what was decided for its group.
    AssignmentsScanned 1 consumer-1: It asks which queues are its own. The answer is a broker: whoever asks gets
      what is next.
    SendAttempted 1 producer-1: A producer sends through the proxy, which chooses the broker and the queue.
    MessagePopped 1 broker-a: The broker hands the message out, and hides it from all others for a while.
    MessageSettled 1 consumer-1: The listener is done. This one message is acknowledged, not an offset.
    InvisibleTimeChanged 1 broker-a: A listener has failed: its message is hidden for one more second, for a retry.
    MessageRevived 1 broker-a: Nobody acknowledged it in time, so the broker puts it to the retry topic.
    HandleRenewed 1 proxy-1: A listener takes long. As its consumer lives, the proxy has the message hidden longer.
""")


def number_of(message: MessageView) -> int:
    """The number of a message of the load."""
    return int(message.keys[0].removeprefix(KEY))


async def send_numbered(producer: Producer, messages: int, every_ms: int, size: int) -> None:
    """Send a load, message by message; an application that goes on when a send fails."""
    from mqlab.client.v5 import ClientException, Message

    for number in range(messages):
        key = f"{KEY}{number}"
        message = Message(TOPIC, body_of(key, size), tag="paid", keys=key)
        with suppress(ClientException):
            await producer.send(message)
        await producer.node.sleep(every_ms)


def worker(node: Any, long_ms: int) -> Any:
    """A listener that fails now and then, and sometimes takes very long."""
    from mqlab.client.v5 import ConsumeResult

    async def listener(message: MessageView) -> ConsumeResult:
        number = number_of(message)
        await node.sleep(long_ms if number % TAKES_LONG == TAKES_LONG - 1 else WORK_MS)
        failed = message.delivery_attempt == 1 and number % FAILS == FAILS - 1
        return ConsumeResult.FAILURE if failed else ConsumeResult.SUCCESS

    return listener


async def audit(consumer: SimpleConsumer, batch: int) -> None:
    """Receive and acknowledge by hand, and forget some; an application that asks again whatever happens."""
    from mqlab.client.v5 import ClientException

    while True:
        received: list[MessageView] = []
        with suppress(ClientException):
            received = await consumer.receive(batch, INVISIBLE_MS)
        await consumer.node.sleep(WORK_MS * max(1, len(received)))
        for message in received:
            if message.delivery_attempt > 1 or number_of(message) % FORGOTTEN:
                with suppress(ClientException):
                    await consumer.ack(message)


@scenario(
    "through-a-proxy", seconds=100, captions=STORY, faults=ANY_FAULT, explored_with={"messages": 30},
    goals=("handle-is-renewed", "5x-message-comes-again"),
)
async def through_a_proxy(
    lab: Lab,
    *,
    brokers: int = 1,
    proxies: int = 1,
    queues: int = 4,
    workers: int = 2,
    auditors: int = 1,
    messages: int = 60,
    every_ms: int = 250,
    size: int = 100,
    long_ms: int = LONG_WORK_MS,
) -> None:
    """5.x clients send and receive through a proxy; some listeners fail, some take long, some acks are forgotten."""
    lab.name_server()
    for _ in range(brokers):
        lab.broker()
    lab.create_topic(TOPIC, queues)
    for _ in range(proxies):
        lab.proxy()
    for _ in range(workers):
        consumer = lab.push_consumer_v5("workers")
        consumer.subscribe(TOPIC)
        consumer.set_message_listener(worker(consumer.node, long_ms))
        await consumer.start()
    for _ in range(auditors):
        auditor = lab.simple_consumer("auditors")
        auditor.subscribe(TOPIC, "paid")
        await auditor.start()
        process_of(lab, auditor).run_in_each_life("audit", partial(audit, auditor, batch=8))
    producer = lab.producer_v5(topics=TOPIC)
    await producer.start()
    lab.run_for(seconds=2)
    producer.node.spawn(send_numbered(producer, messages, every_ms, size), "load")
