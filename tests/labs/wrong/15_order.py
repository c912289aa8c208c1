"""Plausible wrong solutions of lab 15_order, each of which its check catches."""

from __future__ import annotations

import hashlib
import random
import zlib
from collections.abc import Sequence
from typing import Any, ClassVar

from mqlab.client import ConsumeOrderlyStatus
from mqlab.protocol.message import MessageExt, MessageQueue

SUCCESS = ConsumeOrderlyStatus.SUCCESS
SUSPEND = ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT


# -- a queue for each order -------------------------------------------------------------------------------------------


class HashOfThisProcess:
    """Takes Python's own hash of a text, which is another one in each process."""

    def queue_of(self, queues: list[MessageQueue], order: str) -> MessageQueue:
        return queues[hash(order) % len(queues)]


class OneAfterTheOther:
    """Gives a new order the next queue and remembers it; another machine remembers something else."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def queue_of(self, queues: list[MessageQueue], order: str) -> MessageQueue:
        return queues[self._places.setdefault(order, random.randrange(len(queues))) % len(queues)]


class LengthOfTheName:
    """Takes a number that is the same for nearly all orders."""

    def queue_of(self, queues: list[MessageQueue], order: str) -> MessageQueue:
        return queues[len(order) % len(queues)]


class OneQueueForAll:
    """Keeps the order of everything, and so of each order."""

    def queue_of(self, queues: list[MessageQueue], order: str) -> MessageQueue:
        return queues[0]


# -- what order costs -------------------------------------------------------------------------------------------------


def threads_help(counts: list[int], threads: int, work_ms: int) -> tuple[int, int]:
    """Takes the threads of an orderly consumer for as many hands."""
    both = -(-sum(counts) // threads) * work_ms
    return both, both


def one_for_all(counts: list[int], threads: int, work_ms: int) -> tuple[int, int]:
    """Takes order to mean that one message is done at a time."""
    return sum(counts) * work_ms, -(-sum(counts) // threads) * work_ms


def half_a_turn(counts: list[int], threads: int, work_ms: int) -> tuple[int, float]:
    """Takes a turn that is not full for a part of one."""
    return max(counts) * work_ms, sum(counts) / threads * work_ms


# -- an old lock ------------------------------------------------------------------------------------------------------


def from_the_first(renewed_ms: list[int], asks_ms: list[int]) -> int | None:
    """Counts from when the lock was taken."""
    return next((at_ms for at_ms in asks_ms if at_ms - renewed_ms[0] > 60_000), None)


def at_once_when_it_is_60_s(renewed_ms: list[int], asks_ms: list[int]) -> int | None:
    """Lets the lock go when it is just 60 s old."""
    return next((at_ms for at_ms in asks_ms if at_ms - renewed_ms[-1] >= 60_000), None)


def as_the_client_believes(renewed_ms: list[int], asks_ms: list[int]) -> int | None:
    """Takes the 30 s of the client for those of the broker."""
    return next((at_ms for at_ms in asks_ms if at_ms - renewed_ms[-1] > 30_000), None)


def to_the_millisecond(renewed_ms: list[int], asks_ms: list[int]) -> int | None:
    """Gives the lock away when it expires, and not when somebody asks."""
    return renewed_ms[-1] + 60_001


# -- whose turn it is -------------------------------------------------------------------------------------------------


def never_waits(done: int, step: int) -> str:
    """Knows what came twice, and not what comes too early."""
    return "skip" if step <= done else "do"


def counts_from_zero(done: int, step: int) -> str:
    """Takes the number of steps that are done for the next step's."""
    if step < done:
        return "skip"
    return "do" if step == done else "wait"


def early_is_skipped(done: int, step: int) -> str:
    """Skips whatever is not the next one."""
    return "do" if step == done + 1 else "skip"


# -- a whole day ------------------------------------------------------------------------------------------------------


class Shards:
    """The rule of the solution, for clerks that are wrong."""

    def queue_of(self, queues: list[MessageQueue], order: str) -> MessageQueue:
        return max(queues, key=lambda queue: hashlib.md5(f"{order} {queue.queue_id}".encode()).digest())


class RestOfADivision:
    """Divides by the number of queues, so that most orders move when there are more."""

    def queue_of(self, queues: list[MessageQueue], order: str) -> MessageQueue:
        return queues[zlib.crc32(order.encode()) % len(queues)]


class TheFirstTwo:
    """Uses no queue but the first two, so nothing ever moves."""

    def queue_of(self, queues: list[MessageQueue], order: str) -> MessageQueue:
        return queues[zlib.crc32(order.encode()) % 2]


class SaltedShards:
    """The rule of the solution with Python's own hash."""

    def queue_of(self, queues: list[MessageQueue], order: str) -> MessageQueue:
        return max(queues, key=lambda queue: hash(f"{order} {queue.queue_id}"))


class InTurn:
    """The listener of the solution, for rules that are wrong."""

    def __init__(self, book: Any) -> None:
        self.book = book

    async def consume_message(self, messages: Sequence[MessageExt], context: Any) -> ConsumeOrderlyStatus:
        for message in messages:
            order, step = message.keys or "", int(message.properties["step"])
            done = await self.book.done(order)
            if step > done + 1:
                return SUSPEND
            if step == done + 1:
                await self.book.work(order, step)
                if not await self.book.write_if(order, done, step):
                    return SUSPEND
        return SUCCESS


class WritesWhateverItSays(InTurn):
    """Looks first and writes blindly: one that hung sets the book back."""

    async def consume_message(self, messages: Sequence[MessageExt], context: Any) -> ConsumeOrderlyStatus:
        order, step = messages[0].keys or "", int(messages[0].properties["step"])
        done = await self.book.done(order)
        if step > done + 1:
            return SUSPEND
        if step == done + 1:
            await self.book.work(order, step)
            await self.book.write(order, step)
        return SUCCESS


class SkipsWhatIsEarly(InTurn):
    """Skips a step whose turn has not come; it never comes again."""

    async def consume_message(self, messages: Sequence[MessageExt], context: Any) -> ConsumeOrderlyStatus:
        order, step = messages[0].keys or "", int(messages[0].properties["step"])
        done = await self.book.done(order)
        if step == done + 1:
            await self.book.work(order, step)
            await self.book.write_if(order, done, step)
        return SUCCESS


class TrustsTheQueue(InTurn):
    """Knows what came twice, and believes that nothing comes too early."""

    async def consume_message(self, messages: Sequence[MessageExt], context: Any) -> ConsumeOrderlyStatus:
        order, step = messages[0].keys or "", int(messages[0].properties["step"])
        done = await self.book.done(order)
        if step > done:
            await self.book.work(order, step)
            await self.book.write_if(order, done, step)
        return SUCCESS


class DoesAllAgain(InTurn):
    """Asks nobody what was done."""

    async def consume_message(self, messages: Sequence[MessageExt], context: Any) -> ConsumeOrderlyStatus:
        order, step = messages[0].keys or "", int(messages[0].properties["step"])
        await self.book.work(order, step)
        await self.book.write_if(order, step - 1, step)
        return SUCCESS


class RemembersByItself(InTurn):
    """Keeps what was done in its own memory, which ends with the process and is nobody else's."""

    known: ClassVar[dict[str, int]] = {}

    async def consume_message(self, messages: Sequence[MessageExt], context: Any) -> ConsumeOrderlyStatus:
        order, step = messages[0].keys or "", int(messages[0].properties["step"])
        done = self.known.get(order, 0)
        if step > done + 1:
            return SUSPEND
        if step == done + 1:
            await self.book.work(order, step)
            await self.book.write(order, step)
            self.known[order] = step
        return SUCCESS


WRONG = {
    "15/queue-of": [HashOfThisProcess, OneAfterTheOther, LengthOfTheName, OneQueueForAll],
    "15/how-long": [threads_help, one_for_all, half_a_turn],
    "15/gets-it": [from_the_first, at_once_when_it_is_60_s, as_the_client_believes, to_the_millisecond],
    "15/turn": [never_waits, counts_from_zero, early_is_skipped],
    "15/in-turn": [
        (RestOfADivision, InTurn),
        (TheFirstTwo, InTurn),
        (SaltedShards, InTurn),
        (Shards, WritesWhateverItSays),
        (Shards, SkipsWhatIsEarly),
        (Shards, TrustsTheQueue),
        (Shards, DoesAllAgain),
        (Shards, RemembersByItself),
    ],
}
