"""Ordered pops: the batch that is out of each queue, under whose attempt, and who was turned away meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html import escape
from typing import ClassVar, NamedTuple

from mqlab.trace.record import Record
from mqlab_widgets.boards.pop_picture import (
    BOLD,
    HIGH,
    IN_STORE,
    LINE,
    NOTED,
    OPEN,
    WIDE,
    fit,
    legend,
    picture,
    place_words,
    sample,
    seconds,
    square,
    squares,
    text,
)
from mqlab_widgets.boards.pop_state import DeliveryKey, PopBoard
from mqlab_widgets.words import clock

MOST_QUEUES, MOST_BITS, MOST_REFUSED = 8, 16, 3
WIDTH, PAD = 740, 10
"""px of the picture, and inside the box of a queue."""
BOX = 4 * LINE + HIGH + 2 * PAD + 8
ORDER_INFO = "consumerOrderInfo.json"
Queue = tuple[str, str, str, int]
"""(broker, group, topic, queue id)"""


class Refused(NamedTuple):
    """An attempt that got nothing since another one had the batch, and when it was told last."""

    attempt: str
    us: int


@dataclass(slots=True)
class Batch:
    """What the last ordered pop of a queue has given out: its attempt, its offsets with the moment (us) from which each
    can be seen again, which of them are done, and where the group goes on (-1: as before).
    """

    attempt: str
    pop_time: int
    at_us: int
    visible_us: dict[int, int]
    acked: list[int] = field(default_factory=list)
    next_offset: int = -1
    refused: list[Refused] = field(default_factory=list)

    def not_done(self) -> list[int]:
        """The offsets that are not acknowledged."""
        return [offset for offset in self.visible_us if offset not in self.acked]

    def free_us(self) -> int:
        """When nothing blocks the queue any more, if nobody acknowledges anything: the last becomes visible."""
        return max((self.visible_us[offset] for offset in self.not_done()), default=0)


class OrderedPopsBoard(PopBoard):
    """Each queue that is popped in order, with the batch that is out and what it waits for.

    Java: org.apache.rocketmq.broker.offset.ConsumerOrderInfoManager.
    """

    title: ClassVar[str] = "Ordered pops"

    def begin(self) -> None:
        """Nothing is out."""
        super().begin()
        self.batches: dict[Queue, Batch] = {}
        self.saved: dict[Queue, Batch] = {}
        """The batches as the file says, which is written every 10 s."""

    # -- events -----------------------------------------------------------------------------------------------------

    def on_order_taken(self, record: Record) -> None:
        until_us = self.us_of(record.pop_time + record.invisible_ms)
        visible_us = {int(offset): until_us for offset in record.offsets.split(",")}
        before = self.batches.get(_queue(record))
        refused = before.refused if before is not None else []
        self.batches[_queue(record)] = Batch(
            record.attempt_id, record.pop_time, record.ts_us, visible_us, refused=refused
        )

    def on_order_acked(self, record: Record) -> None:
        super().on_order_acked(record)
        batch = self.batches.get(_queue(record))
        if batch is not None and batch.pop_time == record.pop_time and record.queue_offset in batch.visible_us:
            if record.queue_offset not in batch.acked:
                batch.acked = sorted([*batch.acked, record.queue_offset])
            batch.next_offset = max(batch.next_offset, record.next_offset)

    def on_order_blocked(self, record: Record) -> None:
        batch = self.batches.get(_queue(record))
        if batch is not None:
            others = [one for one in batch.refused if one.attempt != record.attempt_id]
            batch.refused = [*others, Refused(record.attempt_id, record.ts_us)][-MOST_REFUSED:]

    def on_order_freed(self, record: Record) -> None:
        if record.reason == "reset":
            self.batches.pop(_queue(record), None)

    def on_invisible_time_changed(self, record: Record) -> None:
        super().on_invisible_time_changed(record)
        batch = self.batches.get(_queue(record))
        if batch is not None and batch.pop_time == record.pop_time and record.queue_offset in batch.visible_us:
            until_us = self.us_of(record.new_pop_time + record.invisible_ms)
            batch.visible_us = {**batch.visible_us, record.queue_offset: until_us}

    def on_config_persisted(self, record: Record) -> None:
        super().on_config_persisted(record)
        if record.file.endswith(ORDER_INFO):
            mine = {queue: replace(batch) for queue, batch in self.batches.items() if queue[0] == record.node}
            others = {queue: batch for queue, batch in self.saved.items() if queue[0] != record.node}
            self.saved = others | mine

    def on_process_ended(self, record: Record) -> None:
        """A broker knows what its file says."""
        super().on_process_ended(record)
        others = {queue: batch for queue, batch in self.batches.items() if queue[0] != record.target}
        kept = {queue: replace(batch) for queue, batch in self.saved.items() if queue[0] == record.target}
        self.batches = others | kept

    # -- what is to be said -------------------------------------------------------------------------------------------

    def is_blocked(self, queue: Queue) -> bool:
        """Whether another attempt gets nothing of this queue at this moment."""
        return self.batches[queue].free_us() > self.now_us

    def _state(self, queue: Queue) -> str:
        batch, now_us = self.batches[queue], self.now_us
        left = batch.not_done()
        if not left:
            return "free: all are done"
        if not self.is_blocked(queue):
            return f"free: {_those(len(left))} not done, and can be seen again"
        return (
            f"blocked for every other attempt: {_those(len(left))} not done, and hidden for "
            f"{seconds(batch.free_us() - now_us)} more"
        )

    def _goes_on(self, queue: Queue) -> int:
        """The first offset that is not done; behind the batch when all are."""
        batch = self.batches[queue]
        return min(batch.not_done(), default=max(batch.visible_us) + 1)

    def _turned_away(self, batch: Batch) -> str:
        told = ", ".join(f"{one.attempt or 'an attempt without a name'} at {clock(one.us)}" for one in batch.refused)
        return f"turned away: {told}" if told else "nobody was turned away"

    # -- the picture ------------------------------------------------------------------------------------------------

    def html(self) -> str:
        """A box for each queue."""
        if not self.batches:
            return '<div class="mq-faint">Nothing was popped in order yet.</div>'
        body: list[str] = []
        for place, queue in enumerate(list(self.batches)[-MOST_QUEUES:]):
            body += self._box(queue, place * (BOX + 8))
        high = min(MOST_QUEUES, len(self.batches)) * (BOX + 8)
        goes_on = f'<path class="noted" transform="translate(8 8)" d="{NOTED}"/>'
        done = (sample(0, 0, IN_STORE), 16, "acknowledged")
        shapes, below = legend([*squares(OPEN), done, (goes_on, 16, "here the group goes on")], high + 4, WIDTH)
        return picture("queues that are popped in order", WIDTH, high + 6 + below, [*body, *shapes])

    def _box(self, queue: Queue, y: float) -> Iterator[str]:
        broker, group, topic, queue_id = queue
        batch, blocked = self.batches[queue], self.is_blocked(queue)
        css = "danger" if blocked else "box"
        yield f"<g><title>{escape(self._line(queue))}</title>"
        yield f'<rect class="box" x="0.5" y="{y + 0.5:g}" width="{WIDTH - 1}" height="{BOX}" rx="7"/>'
        yield f'<rect class="{css}" x="0.5" y="{y + 0.5:g}" width="{WIDTH - 1}" height="{BOX}" rx="7"/>'
        yield text(PAD, y + 20, fit(f"{place_words(topic, group, queue_id)}, {group}", 300, BOLD), "strong")
        holder = f"attempt {batch.attempt}" if batch.attempt else "an attempt without a name"
        yield text(WIDTH - PAD, y + 20, f"{holder}, popped at {clock(batch.at_us)}", "strong", end=True)
        goes_on = self._goes_on(queue)
        offsets = list(batch.visible_us)[:MOST_BITS]
        for place, offset in enumerate(offsets):
            x = PAD + place * (WIDE + 4)
            key = DeliveryKey(broker, group, topic, queue_id, offset, batch.pop_time)
            label = self.label(self.deliveries[key].unique_key) if key in self.deliveries else "?"
            state = IN_STORE if offset in batch.acked else OPEN
            yield square(x, y + 30, label, state, f"offset {offset:,}")
            if offset == goes_on:
                yield _pointer(x + WIDE / 2, y + 30 + HIGH + 10, offset)
        end = PAD + len(offsets) * (WIDE + 4)
        if len(batch.visible_us) > MOST_BITS:
            yield text(end, y + 54, f"+{len(batch.visible_us) - MOST_BITS}", "faint")
        elif goes_on > max(batch.visible_us):
            yield _pointer(end + 8, y + 30 + HIGH + 10, goes_on)
        yield text(PAD, y + BOX - LINE - 8, self._state(queue), "warn" if blocked else "")
        yield text(PAD, y + BOX - 8, self._turned_away(batch), "faint")
        yield "</g>"

    # -- as text ----------------------------------------------------------------------------------------------------

    def _line(self, queue: Queue) -> str:
        broker, group, topic, queue_id = queue
        batch = self.batches[queue]
        out = ", ".join(f"{offset}{' done' if offset in batch.acked else ''}" for offset in batch.visible_us)
        return (
            f"{place_words(topic, group, queue_id)} on {broker}, {group}: attempt {batch.attempt or 'without a name'} "
            f"has offsets {out}; {self._state(queue)}; the group goes on at {self._goes_on(queue):,}; "
            f"{self._turned_away(batch)}"
        )

    def text(self) -> list[str]:
        """A line for each queue."""
        return [self._line(queue) for queue in self.batches] or ["nothing was popped in order yet"]


def _queue(record: Record) -> Queue:
    return record.node, record.group, record.topic, record.queue_id


def _pointer(x: float, y: float, offset: int) -> str:
    tip = f"<title>the group goes on at offset {offset:,}</title>"
    return f'<path class="noted" transform="translate({x:g} {y:g})" d="{NOTED}">{tip}</path>'


def _those(count: int) -> str:
    return "1 message is" if count == 1 else f"{count:,} messages are"
