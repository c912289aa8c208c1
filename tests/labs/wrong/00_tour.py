"""Plausible wrong solutions of lab 00_tour, each of which its check catches."""

from __future__ import annotations

from typing import Any

from mqlab.trace.record import Record


def same_offset(stored: Any, dispatched: Any) -> bool:
    """Forgets the broker, as if there were one commit log."""
    return bool(stored.commit_log_offset == dispatched.commit_log_offset)


def same_place_in_a_queue(stored: Any, dispatched: Any) -> bool:
    """Forgets the topic: every topic has a queue 0."""
    queue = (stored.node, stored.queue_id, stored.queue_offset)
    return queue == (dispatched.node, dispatched.queue_id, dispatched.queue_offset)


def same_queue(stored: Any, dispatched: Any) -> bool:
    """Takes the queue for the message."""
    queue = (stored.node, stored.topic, stored.queue_id)
    return queue == (dispatched.node, dispatched.topic, dispatched.queue_id)


def never_mind_how_early(returned: dict[str, float], called: dict[str, float]) -> float:
    """Counts the messages instead of measuring how early the listener was."""
    return sum(called[one] < returned[one] for one in called if one in returned)


def negative_when_late(returned: dict[str, float], called: dict[str, float]) -> float:
    """Forgets that the listener may never have been early."""
    return max(returned[one] - called[one] for one in called if one in returned)


def how_late(returned: dict[str, float], called: dict[str, float]) -> float:
    """Subtracts the wrong way round."""
    return max([0.0, *(called[one] - returned[one] for one in called if one in returned)])


def forgets_unread_queues(ends: dict[int, int], read: dict[int, int]) -> int:
    """Counts only queues that the group has read something of."""
    return sum(ends[queue_id] - offset for queue_id, offset in read.items())


def offset_is_the_last_one_read(ends: dict[int, int], read: dict[int, int]) -> int:
    """Takes the offset to read next for the last one that was read."""
    return sum(max(0, end - read.get(queue_id, -1) - 1) for queue_id, end in ends.items())


def longest_queue_only(ends: dict[int, int], read: dict[int, int]) -> int:
    """Says how far the group is behind in its worst queue."""
    return max(end - read.get(queue_id, 0) for queue_id, end in ends.items())


class StopsWhenStored:
    """Takes the commit log for the queue: stored, but no consumer can see it yet."""

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id

    def __call__(self, record: Record) -> bool:
        return record.kind == "MessageStored" and bool(record.unique_key == self.message_id)


class ForgetsTheBroker:
    """Knows the message by its place in the commit log, as if there were one commit log."""

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        self.place = -1

    def __call__(self, record: Record) -> bool:
        if record.kind == "MessageStored" and record.unique_key == self.message_id:
            self.place = record.commit_log_offset
        return record.kind == "MessageDispatched" and bool(record.commit_log_offset == self.place)


class WaitsForAConsumer:
    """Stops when a held pull is woken, which happens only if somebody waits."""

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        self.place: tuple[str, int, int] | None = None

    def __call__(self, record: Record) -> bool:
        if record.kind == "MessageStored" and record.unique_key == self.message_id:
            self.place = (record.node, record.queue_id, record.queue_offset)
        return record.kind == "PullWoken" and (record.node, record.queue_id, record.queue_offset) == self.place


class TakesTheNextDispatch:
    """Takes the first dispatch after the message was stored for its own."""

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        self.stored = False

    def __call__(self, record: Record) -> bool:
        if record.kind == "MessageStored" and record.unique_key == self.message_id:
            self.stored = True
        return self.stored and record.kind == "MessageDispatched"


WRONG = {
    "00/same-message": [same_offset, same_place_in_a_queue, same_queue],
    "00/most-early": [never_mind_how_early, negative_when_late, how_late],
    "00/lag": [forgets_unread_queues, offset_is_the_last_one_read, longest_queue_only],
    "00/visible": [StopsWhenStored, ForgetsTheBroker, WaitsForAConsumer, TakesTheNextDispatch],
}
