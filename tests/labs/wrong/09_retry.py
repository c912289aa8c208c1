"""Plausible wrong solutions of lab 09_retry, each of which its check catches."""

from __future__ import annotations

from typing import Any

from mqlab import ConsumeConcurrentlyStatus
from mqlab.scenarios.payment_day import AlreadyNotedError, LedgerTimeoutError

SUCCESS, LATER = ConsumeConcurrentlyStatus.CONSUME_SUCCESS, ConsumeConcurrentlyStatus.RECONSUME_LATER


def read(message: Any) -> tuple[str, int]:
    """The account and the cents of a payment; ValueError if it cannot be read."""
    account, cents = message.body.decode().split()
    return account, int(cents)


class _Keeper:
    """What all of them begin with: right as long as `book` is."""

    def __init__(self, ledger: Any) -> None:
        self.ledger = ledger
        self.seen: set[str] = set()

    async def consume_message(self, messages: Any, context: Any) -> ConsumeConcurrentlyStatus:
        (message,) = messages
        try:
            entry = read(message)
        except ValueError:
            return self.unreadable(context)
        await self.book(message, entry)
        return SUCCESS

    def unreadable(self, context: Any) -> ConsumeConcurrentlyStatus:
        context.delay_level_when_next_consume = -1
        return LATER

    async def book(self, message: Any, entry: tuple[str, int]) -> None:
        try:
            await self.ledger.write(note=message.keys, add=entry)
        except AlreadyNotedError:
            return


class trusts_the_queue(_Keeper):  # noqa: N801 - named as a mistake
    """Books whatever comes: messages come once, do they not?"""

    async def book(self, message: Any, entry: tuple[str, int]) -> None:
        await self.ledger.write(add=entry)


class remembers_in_memory(_Keeper):  # noqa: N801
    """A set in the process: it dies with it, and the other keeper has another one."""

    async def book(self, message: Any, entry: tuple[str, int]) -> None:
        if message.keys not in self.seen:
            self.seen.add(message.keys)
            await self.ledger.write(add=entry)


class knows_the_message_id(_Keeper):  # noqa: N801
    """Notes the message id: what the till sends again is another message with another id."""

    async def book(self, message: Any, entry: tuple[str, int]) -> None:
        try:
            await self.ledger.write(note=message.msg_id, add=entry)
        except AlreadyNotedError:
            return


class knows_the_offset(_Keeper):  # noqa: N801
    """Notes the place in the queue: a copy in the retry topic has another one."""

    async def book(self, message: Any, entry: tuple[str, int]) -> None:
        try:
            await self.ledger.write(note=f"{message.queue_id}/{message.queue_offset}", add=entry)
        except AlreadyNotedError:
            return


class knows_the_payment(_Keeper):  # noqa: N801
    """Notes what is paid: who buys the same thing twice pays once."""

    async def book(self, message: Any, entry: tuple[str, int]) -> None:
        try:
            await self.ledger.write(note=message.body.decode(), add=entry)
        except AlreadyNotedError:
            return


class looks_then_books(_Keeper):  # noqa: N801
    """Looks, books, notes: two keepers may look at once, and one may die in between."""

    async def book(self, message: Any, entry: tuple[str, int]) -> None:
        if not await self.ledger.has(message.keys):
            await self.ledger.write(add=entry)
            await self.ledger.write(note=message.keys)


class notes_then_books(_Keeper):  # noqa: N801
    """Notes first: who dies before booking has a note without an entry, and the payment is lost."""

    async def book(self, message: Any, entry: tuple[str, int]) -> None:
        try:
            await self.ledger.write(note=message.keys)
        except AlreadyNotedError:
            return
        await self.ledger.write(add=entry)


class trusts_reconsume_times(_Keeper):  # noqa: N801
    """Looks only when reconsumeTimes says that it is a retry: most duplicates say 0."""

    async def book(self, message: Any, entry: tuple[str, int]) -> None:
        if message.reconsume_times == 0 or not await self.ledger.has(message.keys):
            await self.ledger.write(add=entry)
            try:
                await self.ledger.write(note=message.keys)
            except AlreadyNotedError:
                return


class swallows_time_outs(_Keeper):  # noqa: N801
    """Logs the time-out and is content: what was not written is never written."""

    async def book(self, message: Any, entry: tuple[str, int]) -> None:
        try:
            await self.ledger.write(note=message.keys, add=entry)
        except (AlreadyNotedError, LedgerTimeoutError):
            return


class fails_on_what_is_done(_Keeper):  # noqa: N801
    """Lets the "already noted" out: a payment that is booked comes again and again."""

    async def consume_message(self, messages: Any, context: Any) -> ConsumeConcurrentlyStatus:
        try:
            return await super().consume_message(messages, context)
        except AlreadyNotedError:
            context.delay_level_when_next_consume = -1
            return LATER

    async def book(self, message: Any, entry: tuple[str, int]) -> None:
        await self.ledger.write(note=message.keys, add=entry)


class drops_the_unreadable(_Keeper):  # noqa: N801
    """Says success to what it cannot read, so nobody will ever look at it."""

    def unreadable(self, context: Any) -> ConsumeConcurrentlyStatus:
        return SUCCESS


class hopes_for_the_unreadable(_Keeper):  # noqa: N801
    """Asks for the unreadable again, as if it could become readable: dead only after nearly five hours."""

    def unreadable(self, context: Any) -> ConsumeConcurrentlyStatus:
        return LATER


class buries_time_outs(_Keeper):  # noqa: N801
    """Sends all that fails straight to the dead letters, also what would go well in ten seconds."""

    async def consume_message(self, messages: Any, context: Any) -> ConsumeConcurrentlyStatus:
        try:
            return await super().consume_message(messages, context)
        except LedgerTimeoutError:
            return self.unreadable(context)


def begins_at_level_one(reconsume_times: int, delays_ms: list[int], most: int) -> int | None:
    """Takes the first level for the first retry: 1 s and 5 s are for producers."""
    return None if reconsume_times >= most else delays_ms[min(reconsume_times, len(delays_ms) - 1)]


def one_more_than_allowed(reconsume_times: int, delays_ms: list[int], most: int) -> int | None:
    """Compares with > instead of >=: one retry too many."""
    return None if reconsume_times > most else delays_ms[min(2 + reconsume_times, len(delays_ms) - 1)]


def level_as_index(reconsume_times: int, delays_ms: list[int], most: int) -> int | None:
    """Forgets that level 1 stands at index 0."""
    return None if reconsume_times >= most else delays_ms[min(3 + reconsume_times, len(delays_ms) - 1)]


def forgets_the_return(bill: Any) -> Any:
    """Bills, and says nothing: which is a failure."""

    def listener(messages: Any, context: Any) -> ConsumeConcurrentlyStatus | None:
        try:
            bill(messages[0])
        except (ValueError, ConnectionError) as error:
            context.delay_level_when_next_consume = -1 if isinstance(error, ValueError) else 2
            return LATER
        return None

    return listener


def seconds_for_a_level(bill: Any) -> Any:
    """Writes 5 for five seconds; level 5 is a minute."""

    def listener(messages: Any, context: Any) -> ConsumeConcurrentlyStatus:
        try:
            bill(messages[0])
        except (ValueError, ConnectionError) as error:
            context.delay_level_when_next_consume = -1 if isinstance(error, ValueError) else 5
            return LATER
        return SUCCESS

    return listener


def success_for_the_unreadable(bill: Any) -> Any:
    """Drops what cannot be read, so that nobody will ever look at it."""

    def listener(messages: Any, context: Any) -> ConsumeConcurrentlyStatus:
        try:
            bill(messages[0])
        except ConnectionError:
            context.delay_level_when_next_consume = 2
            return LATER
        except ValueError:
            return SUCCESS
        return SUCCESS

    return listener


def level_for_queue(stored_ms: int, level: int, delays_ms: list[int]) -> tuple[int, int]:
    """Takes the level for the number of its queue."""
    level = min(level, len(delays_ms))
    return level, stored_ms + delays_ms[level - 1]


def without_a_last_level(stored_ms: int, level: int, delays_ms: list[int]) -> tuple[int, int]:
    """A level that there is not is an error here."""
    return level - 1, stored_ms + delays_ms[level - 1]


def counts_all_calls(stored: list[bool]) -> int:
    """Takes reconsumeTimes for the number of failures."""
    return len(stored)


def counts_what_was_stored(stored: list[bool]) -> int:
    """Forgets that the consumer counts its own retries."""
    return sum(stored)


def all_of_them(delivered_s: list[float], killed_s: float) -> int:
    """As if nothing had been noted."""
    return len(delivered_s)


def those_before_the_note(delivered_s: list[float], killed_s: float) -> int:
    """The wrong side of the note."""
    return sum(at_s <= killed_s // 10 * 10 for at_s in delivered_s)


def of_the_last_ten_seconds(delivered_s: list[float], killed_s: float) -> int:
    """As if the last note were always ten seconds old."""
    return sum(at_s > killed_s - 10 for at_s in delivered_s)


def both_waits(pace_ms: int, retries: int, n: int) -> int:
    """Adds the two, as if the orders were sent only when the queue goes on."""
    return n * pace_ms + retries * 1_000


def nobody_waits(pace_ms: int, retries: int, n: int) -> int:
    """As in a concurrent group."""
    return n * pace_ms


def only_the_pace_of_retries(pace_ms: int, retries: int, n: int) -> int:
    """As if all orders had been there from the beginning."""
    return retries * 1_000


def an_alarm_clock(running_min: int, timeout_min: int) -> int:
    """As if each call had one of its own."""
    return timeout_min


def always_the_next_look(running_min: int, timeout_min: int) -> int:
    """Gives it back at the next look, however old it is."""
    return timeout_min - running_min % timeout_min


def on_the_consumers_clock(running_min: int, timeout_min: int) -> int:
    """Says when it is, not how long it took."""
    look = timeout_min
    while look < running_min + timeout_min:
        look += timeout_min
    return look


WRONG = {
    "09/parked": [level_for_queue, without_a_last_level],
    "09/says-next": [counts_all_calls, counts_what_was_stored],
    "09/come-again": [all_of_them, those_before_the_note, of_the_last_ten_seconds],
    "09/behind-poison": [both_waits, nobody_waits, only_the_pace_of_retries],
    "09/given-back": [an_alarm_clock, always_the_next_look, on_the_consumers_clock],
    "09/next-wait": [begins_at_level_one, one_more_than_allowed, level_as_index],
    "09/two-failures": [forgets_the_return, seconds_for_a_level, success_for_the_unreadable],
    "09/idempotent-listener": [
        trusts_the_queue,
        remembers_in_memory,
        knows_the_message_id,
        knows_the_offset,
        knows_the_payment,
        looks_then_books,
        notes_then_books,
        trusts_reconsume_times,
        swallows_time_outs,
        fails_on_what_is_done,
        drops_the_unreadable,
        hopes_for_the_unreadable,
        buries_time_outs,
    ],
}
