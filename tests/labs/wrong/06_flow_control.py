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


WRONG = {
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
