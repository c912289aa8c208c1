"""Small applications with Apache RocketMQ's own Python client of 5.x, each in a process of its own.

    python client_programs.py PROGRAM ENDPOINTS [DIRECTORY]

They say what happens to them, a line each, and live until they are ended. Nothing of mqlab is imported: whoever has the
client can run them against any RocketMQ. `application` runs the function `work` of DIRECTORY/work.py.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rocketmq import ClientConfiguration, Credentials, FilterExpression, Message, Producer, SimpleConsumer

ORDERS, INVOICES, GROUP = "Orders", "Invoices", "packers"
AWAIT_S, INVISIBLE_S = 5, 12
EVERY_S = 2.0
WORK_S = 1.0
"""So long it takes to pack an order."""


def say(line: str) -> None:
    """Tell whoever has started the program."""
    print(line, flush=True)


def message(topic: str, body: str, key: str) -> Message:
    """A message to send."""
    made = Message()
    made.topic, made.body, made.keys = topic, body.encode(), key
    return made


def order(number: int) -> Message:
    """An order."""
    return message(ORDERS, f"order {number}", f"order-{number}")


def producer(configuration: ClientConfiguration, topic: str = ORDERS) -> Producer:
    """A producer that was told of its topic."""
    made = Producer(configuration, (topic,))
    made.startup()
    say("the producer has started")
    return made


def consumer(configuration: ClientConfiguration) -> SimpleConsumer:
    """A consumer that waits for orders."""
    made = SimpleConsumer(configuration, GROUP, {ORDERS: FilterExpression()}, AWAIT_S)
    made.startup()
    say("the consumer has started")
    return made


def send(configuration: ClientConfiguration) -> None:
    """Start, send one order, and do nothing more."""
    producer(configuration).send(order(0))
    say("sent order 0")
    sys.stdin.read()


def send_on(configuration: ClientConfiguration) -> None:
    """Send an order every two seconds; what fails is told, and not sent again."""
    made, number = producer(configuration), 0
    while True:
        began_s = time.monotonic()
        try:
            made.send(order(number))
            say(f"order {number}: sent")
        except Exception as error:  # noqa: BLE001  whatever it is, it is told
            say(f"order {number}: {type(error).__name__} after {time.monotonic() - began_s:.1f} s")
        number += 1
        time.sleep(EVERY_S)


def receive(configuration: ClientConfiguration) -> None:
    """Receive orders, take a second for each, and acknowledge it."""
    made = consumer(configuration)
    while True:
        try:
            received = made.receive(8, INVISIBLE_S)
        except Exception as error:  # noqa: BLE001  whatever it is, it is told
            say(f"receive: {type(error).__name__}")
            time.sleep(EVERY_S)
            continue
        for each in received:
            acknowledge(made, each)


def acknowledge(made: SimpleConsumer, received: Message) -> None:
    """Say that an order is done, and tell how that went."""
    what = f"{received.body.decode()}, attempt {received.delivery_attempt}"
    say(f"received {what}")
    time.sleep(WORK_S)
    try:
        made.ack(received)
        say(f"acknowledged {what}")
    except Exception as error:  # noqa: BLE001  whatever it is, it is told
        say(f"ack of {what}: {type(error).__name__}")


# -- somebody's own application -------------------------------------------------------------------------------------


class Awaited:
    """A client whose calls are awaited: each runs in a thread, as the client waits for its answer."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._client, name)

        async def awaited(*arguments: Any, **named: Any) -> Any:
            said = await asyncio.to_thread(call, *arguments, **named)
            say(f"{name} is done")
            return said

        return awaited


class Book:
    """Names in a file, which outlives the application."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._path.touch()

    def note(self, name: str) -> None:
        """Write a name down; it is on the disk when this returns."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")
            file.flush()
            os.fsync(file.fileno())

    def has(self, name: str) -> bool:
        """Was it written down?"""
        return name in self._path.read_text(encoding="utf-8").splitlines()


def invoice_for(received: Message) -> Message:
    """The invoice for an order."""
    return message(INVOICES, f"invoice for {received.body.decode()}", *received.keys)


def application(configuration: ClientConfiguration, directory: str) -> None:
    """Run the function `work` of a file there; its book is a file beside it."""
    defined: dict[str, Any] = {}
    exec(compile(Path(directory, "work.py").read_text(encoding="utf-8"), "work.py", "exec"), defined)  # noqa: S102
    given = (Awaited(consumer(configuration)), Awaited(producer(configuration, INVOICES)))
    book = Book(Path(directory, "book.txt"))
    asyncio.run(defined["work"](*given, book, invoice_for, asyncio.sleep))
    say("the application is over")


PROGRAMS: dict[str, Callable[..., None]] = {
    "send": send, "send_on": send_on, "receive": receive, "application": application
}  # fmt: skip


def main(program: str, endpoints: str, *more: str) -> None:
    """Run a program."""
    PROGRAMS[program](ClientConfiguration(endpoints, Credentials()), *more)


if __name__ == "__main__":
    main(*sys.argv[1:])
