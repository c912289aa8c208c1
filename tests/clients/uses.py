"""What applications do with Apache RocketMQ's own Python client of 5.x: uses.py USE ENDPOINTS.

It says what happens, a line each, and lives until its standard input ends.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
    TransactionChecker,
    TransactionResolution,
)

TOPICS = ("T", "F", "D", "X")


def say(line: str) -> None:
    print(line, flush=True)


def message(topic: str, body: str, **settings: Any) -> Message:
    made = Message()
    made.topic, made.body, made.keys = topic, body.encode(), f"key-{body}"
    for name, value in settings.items():
        setattr(made, name, value)
    return made


def sent(receipt: Any) -> str:
    return "sent" if receipt.message_id else "without an id"


def receive(configuration: ClientConfiguration, topic: str, wanted: int, expression: str = "*") -> SimpleConsumer:
    """Receive and acknowledge until so many have come."""
    subscription = {topic: FilterExpression(expression)}
    consumer = SimpleConsumer(configuration, f"simple-{topic}", subscription, 5)
    consumer.startup()
    while wanted > 0:
        for received in consumer.receive(8, 20):
            # First this: time may jump as soon as it is said, beyond the time for which it is hidden.
            consumer.ack(received)
            say(f"received {received.body.decode()}")
            wanted -= 1
    return consumer


class Checker(TransactionChecker):
    """Says of every transaction that it shall be committed."""

    def check(self, asked: Message) -> TransactionResolution:
        say(f"asked {asked.body.decode()}")
        return TransactionResolution.COMMIT


class Listener(MessageListener):
    """Fails once with each message."""

    def __init__(self) -> None:
        self.failed: set[bytes] = set()

    def consume(self, received: Message) -> ConsumeResult:
        say(f"consumed {received.body.decode()} at attempt {received.delivery_attempt}")
        if received.body in self.failed:
            return ConsumeResult.SUCCESS
        self.failed.add(received.body)
        return ConsumeResult.FAILURE


def use_send(configuration: ClientConfiguration, producer: Producer) -> None:
    say(f"sync {sent(producer.send(message('T', 'sync', tag='a')))}")
    say(f"async {sent(producer.send_async(message('T', 'async', tag='b')).result())}")
    receive(configuration, "T", 1, "b")


def use_order(configuration: ClientConfiguration, producer: Producer) -> None:
    for number in range(5):
        producer.send(message("F", f"step-{number}", message_group="g"))
    receive(configuration, "F", 5)


def use_delay(configuration: ClientConfiguration, producer: Producer) -> None:
    producer.send(message("D", "in an hour", delivery_timestamp=int(time.time()) + 3_600))
    say("sent")
    receive(configuration, "D", 1)


def use_transaction(configuration: ClientConfiguration, producer: Producer) -> None:
    for end in ("commit", "rollback", "leave"):
        transaction = producer.begin_transaction()
        producer.send(message("X", end), transaction)
        if end != "leave":
            getattr(transaction, end)()
    say("sent")
    receive(configuration, "X", 2)


def use_push(configuration: ClientConfiguration, producer: Producer) -> None:
    producer.send(message("T", "pushed"))
    PushConsumer(configuration, "push", Listener(), {"T": FilterExpression()}).startup()


def use_sign(endpoints: str) -> None:
    signing = ClientConfiguration(endpoints, Credentials("orders", "secret"))
    producer = Producer(signing, ("T",))
    producer.startup()
    say(f"signed {bool(producer.send(message('T', 'signed')).message_id)}")
    receive(signing, "T", 1)
    for name, secret, topic in (("elsewhere", "secret", "U"), ("wrong", "wrong", "T")):
        refused = Producer(ClientConfiguration(endpoints, Credentials("orders", secret)), (topic,))
        try:
            refused.startup()
            refused.send(message(topic, name))
        except Exception as error:  # noqa: BLE001  # what the client makes of an answer without a route
            say(f"{name} {error}")


def main(use: str, endpoints: str) -> None:
    if use == "sign":
        use_sign(endpoints)
        say("done")
        sys.stdin.read()
        return
    configuration = ClientConfiguration(endpoints, Credentials())
    producer = Producer(configuration, TOPICS, Checker() if use == "transaction" else None)
    producer.startup()
    globals()[f"use_{use}"](configuration, producer)
    say("done")
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
