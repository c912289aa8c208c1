"""Plausible wrong solutions of lab 30_real_clients, each of which its check catches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any


def forgets_the_first(first_s: float, every_s: float, until_s: float) -> int:
    """Counts the steps between calls, and not the first call."""
    return max(0, int((until_s - first_s) // every_s))


def begins_at_once(first_s: float, every_s: float, until_s: float) -> int:
    """Lets the first call come at the start, as if there were no initial delay."""
    return int(until_s // every_s) + 1


def goes_back_in_time(first_s: float, every_s: float, until_s: float) -> float:
    """Does not round down: a call is not made by two thirds."""
    return (until_s - first_s) / every_s + 1


def all_that_there_would_be(attempts: list[str], most: int) -> tuple[int, bool]:
    """Makes attempts until one is answered, however many."""
    stored = 0
    for way in attempts:
        stored += way != "request lost"
        if way == "answered":
            return stored, True
    return stored, False


def an_error_stores_nothing(attempts: list[str], most: int) -> tuple[int, bool]:
    """Takes an attempt that was not answered for one that was not stored."""
    told = "answered" in attempts[:most]
    return int(told), told


def never_ends(attempts: list[str], most: int) -> tuple[int, bool]:
    """Does not stop when it is answered."""
    return sum(way != "request lost" for way in attempts[:most]), "answered" in attempts[:most]


def the_last_one_counts(invisible_s: int, tries: list[tuple[int, str]]) -> bool:
    """Looks at the last acknowledgement alone."""
    after_s, way = tries[-1]
    return after_s >= invisible_s or way == "request lost"


def what_was_told_counts(invisible_s: int, tries: list[tuple[int, str]]) -> bool:
    """Takes an acknowledgement whose answer was lost for one that was never made."""
    return not any(after_s < invisible_s and way == "answered" for after_s, way in tries)


def never_too_late(invisible_s: int, tries: list[tuple[int, str]]) -> bool:
    """Forgets that the order has come again already."""
    return not any(way != "request lost" for _, way in tries)


async def _for_each(consumer: Any, pause: Any, handle: Callable[[Any], Awaitable[None]]) -> None:
    """Receive orders for ever, and handle each; after an error there is a pause, and the others come again."""
    while True:
        try:
            for order in await consumer.receive(16, 15):
                await handle(order)
        except Exception:  # noqa: BLE001  as a student writes it
            await pause(1)


async def acknowledges_first(consumer: Any, producer: Any, book: Any, invoice_for: Any, pause: Any) -> None:
    """Says that an order is done before its invoice is sent: a kill in between loses it."""

    async def handle(order: Any) -> None:
        await consumer.ack(order)
        await producer.send(invoice_for(order))

    await _for_each(consumer, pause, handle)


async def notes_first(consumer: Any, producer: Any, book: Any, invoice_for: Any, pause: Any) -> None:
    """Notes an invoice before it is sent: after a kill, or an error, it is taken for sent."""

    async def handle(order: Any) -> None:
        name = order.body.decode()
        if not book.has(name):
            book.note(name)
            await producer.send(invoice_for(order))
        await consumer.ack(order)

    await _for_each(consumer, pause, handle)


async def without_the_book(consumer: Any, producer: Any, book: Any, invoice_for: Any, pause: Any) -> None:
    """Sends the invoice again whenever the order comes again."""

    async def handle(order: Any) -> None:
        await producer.send(invoice_for(order))
        await consumer.ack(order)

    await _for_each(consumer, pause, handle)


async def remembers_in_memory(consumer: Any, producer: Any, book: Any, invoice_for: Any, pause: Any) -> None:
    """Keeps the names in a set, which a kill takes away."""
    sent: set[str] = set()

    async def handle(order: Any) -> None:
        name = order.body.decode()
        if name not in sent:
            await producer.send(invoice_for(order))
            sent.add(name)
        await consumer.ack(order)

    await _for_each(consumer, pause, handle)


async def fears_no_error(consumer: Any, producer: Any, book: Any, invoice_for: Any, pause: Any) -> None:
    """Catches no error: the first one ends the application."""
    while True:
        for order in await consumer.receive(16, 15):
            name = order.body.decode()
            if not book.has(name):
                await producer.send(invoice_for(order))
                book.note(name)
            await consumer.ack(order)


async def gives_up_and_acknowledges(consumer: Any, producer: Any, book: Any, invoice_for: Any, pause: Any) -> None:
    """Leaves an invoice that could not be sent, and acknowledges the order all the same."""

    async def handle(order: Any) -> None:
        name = order.body.decode()
        try:
            if not book.has(name):
                await producer.send(invoice_for(order))
                book.note(name)
        except Exception:  # noqa: BLE001  as a student writes it
            await pause(1)
        await consumer.ack(order)

    await _for_each(consumer, pause, handle)


async def never_acknowledges(consumer: Any, producer: Any, book: Any, invoice_for: Any, pause: Any) -> None:
    """Never says that an order is done: it comes again and again."""

    async def handle(order: Any) -> None:
        name = order.body.decode()
        if not book.has(name):
            await producer.send(invoice_for(order))
            book.note(name)

    await _for_each(consumer, pause, handle)


WRONG = {
    "30/calls": [forgets_the_first, begins_at_once, goes_back_in_time],
    "30/copies": [all_that_there_would_be, an_error_stores_nothing, never_ends],
    "30/again": [the_last_one_counts, what_was_told_counts, never_too_late],
    "30/application": [
        acknowledges_first,
        notes_first,
        without_the_book,
        remembers_in_memory,
        fears_no_error,
        gives_up_and_acknowledges,
        never_acknowledges,
    ],
}
