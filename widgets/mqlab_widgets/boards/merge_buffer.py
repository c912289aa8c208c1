"""The merge buffer: the batches that a broker has handed out and not noted on its disk, and what a crash would lose."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import ClassVar, NamedTuple

from mqlab_widgets.boards.pop_picture import (
    BOLD,
    HIGH,
    IN_MEMORY,
    IN_STORE,
    LINE,
    OPEN,
    WIDE,
    fit,
    legend,
    picture,
    place_words,
    pointer,
    square,
    squares,
    state_of,
    text,
)
from mqlab_widgets.boards.pop_state import ACKED, MEMORY, DeliveryKey, Point, PointKey, PopBoard

MOST_QUEUES, MOST_BATCHES, MOST_BITS = 6, 8, 16
WIDTH, LEFT, GAP, MORE_WIDE = 760, 150, 12, 24
ROW = HIGH + 2 * LINE + 18

Queue = tuple[str, str, str, int]
"""(broker, group, topic, queue id)"""
_FRAMES = (
    ('<rect class="danger" x="1" y="1" width="24" height="13" rx="4"/>', 26, "noted in memory alone"),
    ('<rect class="lane" x="1" y="1" width="24" height="13" rx="4"/>', 26, "the check point is stored, too"),
    (pointer(9, 7, "noted"), 18, "on disk: the group goes on here after it"),
    (pointer(7, 7, "read"), 14, "in memory: here it goes on"),
)


class Loss(NamedTuple):
    """What a crash at this moment would do: messages that are popped again at once, those of them that are acknowledged
    already, and acknowledgements that are lost although their check point is stored.
    """

    again: int = 0
    acked: int = 0
    acks: int = 0


class MergeBufferBoard(PopBoard):
    """The batches of which the broker's disk does not know all, queue by queue, in the order of the messages."""

    title: ClassVar[str] = "Merge buffer"

    def _batches(self, queue: Queue) -> list[tuple[PointKey, Point]]:
        """The batches of a queue that are in memory, or that the offset on the disk does not know yet."""
        on_disk = self.persisted.get(queue, -1)
        found = [
            (key, point)
            for key, point in self.points.items()
            if key[:4] == queue
            and not point.done.startswith("lost")
            and (point.in_memory or point.offsets[-1] >= on_disk)
        ]
        return sorted(found, key=lambda one: (one[0].start_offset, one[0].pop_time))

    def _shown(self) -> dict[Queue, list[tuple[PointKey, Point]]]:
        found = {queue: batches for queue in sorted(self.committed) if (batches := self._batches(queue))}
        return dict(list(found.items())[:MOST_QUEUES])

    def loss_of(self, queue: Queue) -> Loss:
        """What a crash of its broker would do to a queue at this moment."""
        on_disk = self.persisted.get(queue, -1)
        again: set[int] = set()
        acked: set[int] = set()
        acks = 0
        for key, point in self._batches(queue):
            behind = {offset for offset in point.offsets if offset >= on_disk}
            again |= behind
            acked |= {offset for offset in behind & point.acked.keys() if self._is_done(key, offset)}
            if point.stored:
                acks += sum(1 for offset, where in point.acked.items() if where == MEMORY and offset < on_disk)
        return Loss(len(again), len(acked), acks)

    def _is_done(self, key: PointKey, offset: int) -> bool:
        """Whether its consumer has acknowledged a message; a wish for another time acknowledges a check point, too."""
        delivery = self.deliveries.get(DeliveryKey(*key[:4], offset, key.pop_time))
        return delivery is None or delivery.state == ACKED

    # -- the picture ------------------------------------------------------------------------------------------------

    def html(self) -> str:
        """A line of batches for each queue, and above them what a crash would do."""
        shown = self._shown()
        if not shown:
            return '<div class="mq-faint">Nothing is known in memory alone: a crash now would lose nothing.</div>'
        body, y = [text(6, 17, self._all(), "warn")], 28.0
        for queue, batches in shown.items():
            body += self._row(queue, batches, y)
            y += ROW
        shapes, below = legend((*_FRAMES, *squares(OPEN, IN_MEMORY, IN_STORE)), y + 4, WIDTH)
        return picture("the merge buffer", WIDTH, y + 6 + below, [*body, *shapes])

    def _row(self, queue: Queue, batches: list[tuple[PointKey, Point]], y: float) -> Iterator[str]:
        broker, group, topic, queue_id = queue
        yield text(6, y + 20, fit(place_words(topic, group, queue_id), LEFT - 8, BOLD), "strong")
        yield text(6, y + 36, fit(f"{group}, {broker}", LEFT - 8), "faint")
        pointers = [("noted", self.persisted.get(queue, -1)), ("read", self.committed[queue])]
        x = LEFT + 14.0
        shown = batches[:MOST_BATCHES]
        for place, (key, point) in enumerate(shown):
            passed = [pointer for pointer in pointers if point.offsets[-1] >= pointer[1]]
            yield from (_pointer(x - 7, y + HIGH + 15, *pointer) for pointer in passed)
            pointers = [pointer for pointer in pointers if pointer not in passed]
            labels = self.labels(self.unique_keys(key))
            room = int((WIDTH - x - 40) // (WIDE + 2))
            count = min(len(point.offsets), MOST_BITS, room)
            if count < 1:
                yield text(x, y + 28, f"+{len(batches) - place}", "faint")
                break
            wide = count * (WIDE + 2) + 6
            css = "lane" if point.stored else "danger"
            yield f'<g><title>{escape(self._line(key, point))}</title>'
            yield f'<rect class="{css}" x="{x:g}" y="{y + 3:g}" width="{wide}" height="{HIGH + 8}" rx="6"/>'
            for bit, offset in enumerate(point.offsets[:count]):
                tip = f"bit {bit}, offset {offset:,}"
                yield square(x + 4 + bit * (WIDE + 2), y + 7, labels[bit], state_of(point, offset), tip)
            yield "</g>"
            x += wide + GAP
            if len(point.offsets) > count:
                yield text(x - GAP + 4, y + 28, f"+{len(point.offsets) - count}", "faint")
                x += MORE_WIDE
        yield from (_pointer(x - 7, y + HIGH + 15, *pointer) for pointer in pointers)
        yield text(LEFT + 10, y + HIGH + 2 * LINE + 6, self._words(queue), "")

    def _all(self) -> str:
        """What a crash would do to all queues together."""
        losses = [self.loss_of(queue) for queue in self.committed]
        total = Loss(*(sum(numbers) for numbers in zip(*losses, strict=True)))
        return f"A crash now: {_told(total)}"

    def _words(self, queue: Queue) -> str:
        return _told(self.loss_of(queue))

    # -- as text ----------------------------------------------------------------------------------------------------

    def _line(self, key: PointKey, point: Point) -> str:
        labels = self.labels(self.unique_keys(key))
        acked = [label for label, offset in zip(labels, point.offsets, strict=True) if offset in point.acked]
        where = "in memory and in the store" if point.stored else "in memory alone"
        return f"messages {', '.join(labels)}, acknowledged: {', '.join(acked) or 'none'}; {where}"

    def text(self) -> list[str]:
        """A line for each queue, then one for each of its batches."""
        lines = []
        for queue, batches in self._shown().items():
            broker, group, topic, queue_id = queue
            where = f"{place_words(topic, group, queue_id)} on {broker}, {group}"
            known = f"goes on at {self.committed[queue]:,}, on disk at {self.persisted.get(queue, -1):,}"
            lines.append(f"{where}: {known.replace('-1', 'nothing')}; a crash now: {self._words(queue)}")
            lines += [f"  {self._line(key, point)}" for key, point in batches[:MOST_BATCHES]]
        return lines or ["nothing is known in memory alone"]


def _pointer(x: float, y: float, css: str, offset: int) -> str:
    place = "on its disk" if css == "noted" else "in memory"
    words = f"the broker has {f'offset {offset:,}' if offset >= 0 else 'no offset of the group'} {place}"
    return pointer(x, y, css, words)


def _told(loss: Loss) -> str:
    """What a crash would do, in words."""
    parts = []
    if loss.again:
        parts.append(f"{_messages(loss.again)} popped again at once" + (
            f", {loss.acked:,} of them though acknowledged" if loss.acked else ""))  # fmt: skip
    if loss.acks:
        acks = "1 acknowledgement" if loss.acks == 1 else f"{loss.acks:,} acknowledgements"
        parts.append(f"{acks} forgotten, so the messages are revived")
    return "; ".join(parts) or "nothing is lost"


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"
