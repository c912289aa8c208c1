"""Plausible wrong solutions of lab 10_pull, each of which its check catches."""

from __future__ import annotations

from typing import Any


async def _pulled(queue: Any, context: Any) -> Any:
    consumer = context.pull_consumer
    offset = max(0, await consumer.fetch_consume_offset(queue, False))
    return await consumer.pull(queue, "*", offset, 32)


async def _deliver_all(deliver: Any, result: Any) -> int:
    """Deliver until the warehouse is full; the offset up to which all is delivered."""
    for message in result.msg_found_list:
        if not await deliver(message):
            return int(message.queue_offset)
    return int(result.next_begin_offset)


def always_200_ms(deliver: Any) -> Any:
    """Leaves the delay alone: asks an empty queue, and a full warehouse, five times a second."""

    async def task(queue: Any, context: Any) -> None:
        result = await _pulled(queue, context)
        await context.pull_consumer.update_consume_offset(queue, await _deliver_all(deliver, result))

    return task


def always_a_second(deliver: Any) -> Any:
    """Saves pulls with a long constant delay: a burst of 140 needs five of them."""

    async def task(queue: Any, context: Any) -> None:
        context.set_pull_next_delay_time_millis(1_000)
        result = await _pulled(queue, context)
        await context.pull_consumer.update_consume_offset(queue, await _deliver_all(deliver, result))

    return task


def notes_first(deliver: Any) -> Any:
    """Notes the next offset before it delivers: what the warehouse does not take is passed over."""
    pauses: dict[Any, int] = {}

    async def task(queue: Any, context: Any) -> None:
        result = await _pulled(queue, context)
        await context.pull_consumer.update_consume_offset(queue, result.next_begin_offset)
        done = await _deliver_all(deliver, result) == result.next_begin_offset
        pauses[queue] = 0 if result.msg_found_list and done else min(max(100, 2 * pauses.get(queue, 0)), 1_000)
        context.set_pull_next_delay_time_millis(pauses[queue])

    return task


def notes_nothing_when_full(deliver: Any) -> Any:
    """Returns when the warehouse is full without noting what it took before: those orders come twice."""
    pauses: dict[Any, int] = {}

    async def task(queue: Any, context: Any) -> None:
        result = await _pulled(queue, context)
        done = await _deliver_all(deliver, result) == result.next_begin_offset
        if done:
            await context.pull_consumer.update_consume_offset(queue, result.next_begin_offset)
        pauses[queue] = 0 if result.msg_found_list and done else min(max(100, 2 * pauses.get(queue, 0)), 1_000)
        context.set_pull_next_delay_time_millis(pauses[queue])

    return task


def doubles_for_ever(deliver: Any) -> Any:
    """A pause without a ceiling: after a quiet hour the next order waits for minutes."""
    pauses: dict[Any, int] = {}

    async def task(queue: Any, context: Any) -> None:
        result = await _pulled(queue, context)
        delivered_to = await _deliver_all(deliver, result)
        await context.pull_consumer.update_consume_offset(queue, delivered_to)
        full = delivered_to != result.next_begin_offset
        pauses[queue] = 0 if result.msg_found_list and not full else max(100, 2 * pauses.get(queue, 0))
        context.set_pull_next_delay_time_millis(pauses[queue])

    return task


def hurries_when_full(deliver: Any) -> Any:
    """Takes a full answer for a reason to hurry, whether the warehouse took it or not."""
    pauses: dict[Any, int] = {}

    async def task(queue: Any, context: Any) -> None:
        result = await _pulled(queue, context)
        await context.pull_consumer.update_consume_offset(queue, await _deliver_all(deliver, result))
        pauses[queue] = 50 if result.msg_found_list else min(max(100, 2 * pauses.get(queue, 0)), 1_000)
        context.set_pull_next_delay_time_millis(pauses[queue])

    return task


def keeps_what_was_refused_in_memory(deliver: Any) -> Any:
    """Notes all that it pulled, and keeps what was refused in a list: the list dies with the process."""
    kept: dict[Any, list[Any]] = {}
    pauses: dict[Any, int] = {}

    async def task(queue: Any, context: Any) -> None:
        waiting = kept.setdefault(queue, [])
        if not waiting:
            result = await _pulled(queue, context)
            waiting += result.msg_found_list
            await context.pull_consumer.update_consume_offset(queue, result.next_begin_offset)
        found = bool(waiting)
        while waiting and await deliver(waiting[0]):
            waiting.pop(0)
        pauses[queue] = 0 if found and not waiting else min(max(100, 2 * pauses.get(queue, 0)), 1_000)
        context.set_pull_next_delay_time_millis(pauses[queue])

    return task


def lets_others_overtake(deliver: Any) -> Any:
    """Delivers the newest first, and remembers what is done: nothing is lost, but the order is."""
    done: set[str] = set()

    async def task(queue: Any, context: Any) -> None:
        result = await _pulled(queue, context)
        left = [message for message in result.msg_found_list if message.msg_id not in done]
        next_offset, full = result.next_begin_offset, False
        for message in reversed(left):
            if not await deliver(message):
                next_offset, full = result.msg_found_list[0].queue_offset, True
                break
            done.add(message.msg_id)
        await context.pull_consumer.update_consume_offset(queue, next_offset)
        context.set_pull_next_delay_time_millis(0 if left and not full else 1_000)

    return task


async def asks_the_memory(consumer: Any, queues: Any) -> int:
    """Takes what the consumer has noted for itself; the broker may not have it, and another member never does."""
    return sum(
        [await consumer.max_offset(queue) - await consumer.fetch_consume_offset(queue, False) for queue in queues]
    )


async def counts_what_is_stored(consumer: Any, queues: Any) -> int:
    """Forgets what the group has read already."""
    return sum([await consumer.max_offset(queue) for queue in queues])


async def looks_at_one_queue(consumer: Any, queues: Any) -> int:
    """Returns inside the loop: only the first queue counts."""
    queue = queues[0]
    return int(await consumer.max_offset(queue) - max(0, await consumer.fetch_consume_offset(queue, True)))


def doubles_nothing(pause_ms: float, found: bool, longest_ms: int) -> float:
    """Doubles a pause of 0, and asks as fast as it can."""
    return 0 if found else min(2 * pause_ms, longest_ms)


def never_quick_again(pause_ms: float, found: bool, longest_ms: int) -> float:
    """Grows and never goes back: after a quiet hour even a burst is pulled once a second."""
    return min(max(100, 2 * pause_ms), longest_ms)


def without_a_ceiling(pause_ms: float, found: bool, longest_ms: int) -> float:
    """Doubles for as long as nothing comes."""
    return 0 if found else max(100, 2 * pause_ms)


def a_ceiling_for_all(pause_ms: float, found: bool, longest_ms: int) -> float:
    """A second is the longest pause of every queue."""
    return 0 if found else min(max(100, 2 * pause_ms), 1_000)


def a_constant(pause_ms: float, found: bool, longest_ms: int) -> float:
    """The usual 200 ms, whether there is anything to do or not."""
    return 0 if found else 200


async def asks_once(messages: list[Any], handle: Any, mine: Any) -> int:
    """Asks before the first message only."""
    if not mine():
        return 0
    for message in messages:
        await handle(message)
    return len(messages)


async def asks_behind(messages: list[Any], handle: Any, mine: Any) -> int:
    """Asks behind each message: the first one is handled in any case."""
    done = 0
    for message in messages:
        await handle(message)
        done += 1
        if not mine():
            break
    return done


async def counts_all(messages: list[Any], handle: Any, mine: Any) -> int:
    """Says how many there were, not how many it has handled."""
    for message in messages:
        if mine():
            await handle(message)
    return len(messages)


def the_last_poll(polls: list[tuple[int, int]]) -> int:
    """As if each poll committed what the polls before it handed out."""
    return polls[-1][1]


def all_that_was_polled(polls: list[tuple[int, int]]) -> int:
    """As if nothing had been committed."""
    return sum(got for _, got in polls)


def every_poll_commits_itself(polls: list[tuple[int, int]]) -> int:
    """As if a poll committed what it hands out."""
    return 0


WRONG = {
    "10/backlog": [asks_the_memory, counts_what_is_stored, looks_at_one_queue],
    "10/pause": [doubles_nothing, never_quick_again, without_a_ceiling, a_ceiling_for_all, a_constant],
    "10/while-mine": [asks_once, asks_behind, counts_all],
    "10/comes-again": [the_last_poll, all_that_was_polled, every_poll_commits_itself],
    "10/pull-task": [
        always_200_ms,
        always_a_second,
        notes_first,
        notes_nothing_when_full,
        doubles_for_ever,
        hurries_when_full,
        keeps_what_was_refused_in_memory,
        lets_others_overtake,
    ],
}
