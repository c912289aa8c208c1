"""What came twice and why, and what each place knows of a group's progress."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mqlab.errors import LearnerError
from mqlab.trace.record import Record
from mqlab.views.table import Table

NOT_DONE = "it was not done when the queue moved"
NOT_COMMITTED = "done, but its offset had not reached the broker"
TOO_LATE = "done only after its owner had given the queue up"
OLD_OFFSET = "the second one went on from an old offset of its own"

Queue = tuple[str, str, int]
"""(group, broker, queue id)."""


class _Delivery(NamedTuple):
    """A call of a listener with one message."""

    at_us: int
    who: str


def duplicates_table(
    history: Iterable[Record],
    topic: str,
    *,
    start_ms: float,
    end_ms: float,
    zero_ms: float | None = None,
    group: str = "",
    most: int = 20,
) -> Table:
    """The messages of `topic` that a clustering group got once more from `start_ms` to `end_ms`: where, when, and why.

    Times are seconds after `zero_ms` (else after `start_ms`). LearnerError for listeners that get several messages at a
    time: the events name only the first of them.
    """
    begin_us, end_us = round(start_ms * 1_000), round(end_ms * 1_000)
    zero_us = begin_us if zero_ms is None else round(zero_ms * 1_000)
    reading = _Deliveries(topic, group)
    rows = []
    for record in history:
        if record.ts_us > end_us:
            break
        found = reading.note(record)
        if found is not None and record.ts_us >= begin_us:
            queue, offset, first, why = found
            seconds = [round((at_us - zero_us) / 1_000_000, 3) for at_us in (first.at_us, record.ts_us)]
            rows.append((queue[2], offset, first.who, seconds[0], record.node, seconds[1], why))
    header = ("queue", "offset", "first by", "at, s", "again by", "at, s", "because")
    messages = "1 message" if len(rows) == 1 else f"{len(rows)} messages"
    return Table(f"{messages} of {topic} came twice", header, rows, most=most)


class _Deliveries:
    """What the events say of deliveries, one event after the other."""

    def __init__(self, topic: str, group: str) -> None:
        self._topic = topic
        self._group = group
        self._taken: dict[tuple[Queue, str], int] = {}
        self._given_up: dict[tuple[Queue, str], int] = {}
        self._first: dict[tuple[Queue, int], _Delivery] = {}
        self._done: dict[tuple[Queue, int, str], int] = {}

    def note(self, record: Record) -> tuple[Queue, int, _Delivery, str] | None:
        """Take one event in; for a delivery that is not the first: queue, offset, the one before, and the reason."""
        if record.kind not in _KINDS or record.topic != self._topic:
            return None
        if self._group not in ("", record.group):
            return None
        queue = (record.group, record.broker_name, record.queue_id)
        who = record.node
        if record.kind == "QueueDropped":
            self._given_up[queue, who] = record.ts_us
            return None
        offset = record.queue_offset
        if record.kind == "QueueAllocated":
            self._taken[queue, who] = record.ts_us
            return None
        if record.kind == "ConsumeFinished":
            self._done[queue, offset, who] = record.ts_us
            return None
        if record.messages != 1:
            raise LearnerError(
                f"the listener on {who} got {record.messages} messages at a time",
                "leave consume_message_batch_max_size at 1, so that each delivery has an event of its own",
            )
        first = self._first.get((queue, offset))
        self._first[queue, offset] = _Delivery(record.ts_us, who)
        return None if first is None else (queue, offset, first, self._reason(queue, offset, first, who))

    def _reason(self, queue: Queue, offset: int, first: _Delivery, again: str) -> str:
        taken_us = self._taken.get((queue, again), 0)
        if again != first.who and taken_us < first.at_us:
            return OLD_OFFSET
        done_us = self._done.get((queue, offset, first.who))
        if done_us is None or done_us > taken_us:
            return NOT_DONE
        given_up_us = self._given_up.get((queue, first.who), -1)
        return TOO_LATE if first.at_us < given_up_us <= done_us else NOT_COMMITTED


_KINDS = ("QueueAllocated", "QueueDropped", "ConsumeStarted", "ConsumeFinished")


def offsets_table(history: Iterable[Record], topic: str, *, group: str, at_ms: float | None = None) -> Table:
    """What each place knows at `at_ms` (else: at the end) of how far a clustering group is with each queue of `topic`.

    All numbers are offsets: the next message that will be stored, given to the listener, and so on. What lies between
    the last two columns but one comes again when the owner dies at this moment.
    """
    end_us = None if at_ms is None else round(at_ms * 1_000)
    known: dict[int, dict[str, int]] = {}
    owners: dict[int, str] = {}
    for record in history:
        if end_us is not None and record.ts_us > end_us:
            break
        place = _PLACES.get(record.kind)
        if place is None or record.topic != topic or (record.kind != "MessageStored" and record.group != group):
            continue
        queue = known.setdefault(record.queue_id, {})
        if record.kind == "QueueAllocated":
            owners[record.queue_id] = record.node
        # These two events name a message, the others the offset behind it.
        behind = record.kind in ("MessageStored", "ConsumeFinished")
        offset = record.queue_offset + behind
        queue[place] = max(queue.get(place, 0), offset) if behind else offset
    rows = []
    for queue_id, queue in sorted(known.items()):
        numbers = [queue.get(place, 0) for place in ("stored", "done", "memory", "broker")]
        rows.append((queue_id, owners.get(queue_id, ""), *numbers, max(0, numbers[1] - numbers[3])))
    header = ("queue", "owner", "stored", "done", "in the owner's memory", "at the broker", "would come twice")
    return Table(f"How far is {group} with {topic}?", header, rows)


_PLACES = {
    "MessageStored": "stored",
    "ConsumeFinished": "done",
    "OffsetUpdated": "memory",
    "QueueAllocated": "memory",
    "OffsetCommitted": "broker",
}
