"""Plausible wrong solutions of the example lab, each of which its check catches."""

from __future__ import annotations


def newest_first(queue: list[int], limit: int) -> tuple[list[int], list[int]]:
    """Takes the queue for a stack."""
    return queue[-limit:], queue[:-limit]


def only_full_batches(queue: list[int], limit: int) -> tuple[list[int], list[int]]:
    """Waits for a batch that is never filled."""
    return (queue[:limit], queue[limit:]) if len(queue) >= limit else ([], queue)


def one_at_a_time(queue: list[int], limit: int) -> tuple[list[int], list[int]]:
    """Overlooks the limit, and fails at an empty queue."""
    return [queue[0]], queue[1:]


def falls_off_the_end(queue: list[int], limit: int) -> tuple[list[int], list[int]]:
    """Takes the limit for a promise that so many are there."""
    return [queue[at] for at in range(limit)], queue[limit:]


WRONG = {"90/pull": [newest_first, only_full_batches, one_at_a_time, falls_off_the_end]}
