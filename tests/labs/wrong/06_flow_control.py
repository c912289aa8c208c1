"""Plausible wrong solutions of lab 06_flow_control, each of which its check catches."""

from __future__ import annotations

from math import ceil
from typing import Any

MIB = 1024 * 1024


def _needed(case: Any) -> int:
    """Messages for each queue that keep the threads at work until the next pull has come."""
    per_ms: float = case.threads / case.listener_ms
    messages: int = ceil((case.threads + per_ms * (50 + case.round_trip_ms)) / case.queues)
    return messages


def the_threshold_is_the_limit(case: Any) -> dict[str, int]:
    """Takes the threshold for the most that is held; a pull of 32 comes on top of it."""
    return {"pull_threshold_for_queue": max(1, case.memory // (case.body * case.queues))}


def forgets_the_other_queues(case: Any) -> dict[str, int]:
    """Gives each queue the memory of all; the threshold counts for every queue by itself."""
    room = case.memory // case.body
    batch = max(1, min(32, room - _needed(case)))
    return {"pull_threshold_for_queue": room - batch, "pull_batch_size": batch}


def counts_what_travels(case: Any) -> dict[str, int]:
    """Counts the bytes on the wire; in memory the bodies are unpacked."""
    room = case.memory // (case.wire * case.queues)
    batch = max(1, min(32, room - _needed(case)))
    return {"pull_threshold_for_queue": min(65_535, room - batch), "pull_batch_size": batch}


def leaves_the_batch_at_32(case: Any) -> dict[str, int]:
    """Keeps batches of 32, so that little or nothing is left for the threshold."""
    room = case.memory // (case.body * case.queues)
    return {"pull_threshold_for_queue": max(1, room - 32), "pull_batch_size": min(32, max(1, room - 1))}


def one_message_at_a_time(case: Any) -> dict[str, int]:
    """Pulls single messages to have no overshoot; each costs a round trip."""
    room = case.memory // (case.body * case.queues)
    return {"pull_threshold_for_queue": room - 1, "pull_batch_size": 1}


def half_and_half(case: Any) -> dict[str, int]:
    """Shares the room equally between threshold and batch, whatever the threads use up."""
    room = case.memory // (case.body * case.queues)
    return {"pull_threshold_for_queue": max(1, room // 2), "pull_batch_size": max(1, min(32, room // 2))}


def forgets_what_is_in_hand(case: Any) -> dict[str, int]:
    """Counts what is used up until the next pull, but not the messages that the threads have in hand."""
    room = case.memory // (case.body * case.queues)
    threshold = max(1, int(case.threads / case.listener_ms * case.round_trip_ms / case.queues))
    return {"pull_threshold_for_queue": threshold, "pull_batch_size": max(1, min(32, room - threshold))}


def trusts_the_size_limit(case: Any) -> dict[str, int]:
    """Sets the limit in MiB; it is compared in whole MiB, is at least 1, and knows nothing of the batch."""
    return {"pull_threshold_size_for_queue": max(1, case.memory // case.queues // MIB)}


def without_the_batch(queues: int, limit: int, batch: int, body: int) -> int:
    """Takes the limit for the most that is held."""
    return queues * limit * body


def of_one_queue(queues: int, limit: int, batch: int, body: int) -> int:
    """Forgets that each queue has a limit of its own."""
    return (limit + batch) * body


def one_batch_for_all(queues: int, limit: int, batch: int, body: int) -> int:
    """Adds one batch in all; each queue can have one on top."""
    return (queues * limit + batch) * body


def at_least(count: int, size: int, span: int, most: int, most_mib: int, widest: int) -> str | None:
    """Refuses when the limit is reached; it has to be exceeded."""
    names = (("count", count >= most), ("size", size // MIB >= most_mib), ("span", span >= widest))
    return next((name for name, over in names if over), None)


def exact_bytes(count: int, size: int, span: int, most: int, most_mib: int, widest: int) -> str | None:
    """Compares bytes, where whole MiB are compared."""
    names = (("count", count > most), ("size", size > most_mib * MIB), ("span", span > widest))
    return next((name for name, over in names if over), None)


def span_first(count: int, size: int, span: int, most: int, most_mib: int, widest: int) -> str | None:
    """Asks in another order."""
    names = (("span", span > widest), ("size", size // MIB > most_mib), ("count", count > most))
    return next((name for name, over in names if over), None)


def how_many_are_done(pulled: list[int], done: set[int]) -> int:
    """Counts what is done; holes do not matter to it."""
    return len(done)


def behind_the_last_that_is_done(pulled: list[int], done: set[int]) -> int:
    """Goes by the largest offset that is done: what is stuck before it would be lost."""
    return max(done, default=-1) + 1


def zero_when_all_are_done(pulled: list[int], done: set[int]) -> int:
    """Finds nothing that is left, and begins again."""
    return min((offset for offset in pulled if offset not in done), default=0)


def without_the_rhythm(held: int, limit: int, ms_each: int) -> int:
    """As if the consumer pulled as soon as it may."""
    return (held - limit) * ms_each


def one_more_must_go(held: int, limit: int, ms_each: int) -> int:
    """As if a pull wanted fewer messages than the limit."""
    return -(-(held - limit + 1) * ms_each // 50) * 50


def rounds_down(held: int, limit: int, ms_each: int) -> int:
    """Takes the look before."""
    return (held - limit) * ms_each // 50 * 50


def only_the_first(queue: list[int], now_ms: int) -> int:
    """Looks at the head once."""
    if queue and now_ms - queue[0] >= 200:
        queue.pop(0)
        return 1
    return 0


def leaves_them_there(queue: list[int], now_ms: int) -> int:
    """Counts, and takes nothing out."""
    return sum(now_ms - at >= 200 for at in queue)


def more_than_200(queue: list[int], now_ms: int) -> int:
    """200 ms exactly are not enough for it."""
    old = [at for at in queue if now_ms - at > 200]
    queue[:] = [at for at in queue if now_ms - at <= 200]
    return len(old)


WRONG = {
    "06/next-pull": [without_the_rhythm, one_more_must_go, rounds_down],
    "06/refuse-old": [only_the_first, leaves_them_there, more_than_200],
    "06/most-bytes": [without_the_batch, of_one_queue, one_batch_for_all],
    "06/held-back-by": [at_least, exact_bytes, span_first],
    "06/progress": [how_many_are_done, behind_the_last_that_is_done, zero_when_all_are_done],
    "06/limits": [
        the_threshold_is_the_limit,
        forgets_the_other_queues,
        counts_what_travels,
        leaves_the_batch_at_32,
        one_message_at_a_time,
        half_and_half,
        forgets_what_is_in_hand,
        trusts_the_size_limit,
    ]
}
