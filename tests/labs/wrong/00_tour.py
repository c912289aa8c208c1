"""Plausible wrong solutions of lab 00_tour, each of which its check catches."""

from __future__ import annotations

from mqlab.trace.record import Record


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


WRONG = {"00/visible": [StopsWhenStored, ForgetsTheBroker, WaitsForAConsumer, TakesTheNextDispatch]}
