"""Revive queues: what their readers have read of check points and acks, how far they are, and why they stop."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import ClassVar

from mqlab.trace.record import Record
from mqlab_widgets.boards.pop_picture import (
    BACK,
    HIGH,
    IN_STORE,
    LINE,
    LOST,
    MARKS,
    OPEN,
    WIDE,
    fit,
    legend,
    picture,
    place_words,
    pointer,
    sample,
    square,
    text,
)
from mqlab_widgets.boards.pop_state import Entry, PopBoard, Reviver
from mqlab_widgets.words import clock

BEHIND_MS = 2_000
"""A check point is decided when the end time is so far behind its time (PopReviveService.mergeAndRevive)."""
MOST_QUEUES, MOST_CELLS = 8, 16
WIDTH, LEFT, CELL = 760, 150, WIDE + 4
ROW = HIGH + 2 * LINE + 26
REASONS = {
    "nothing there": "there was nothing to read",
    "nothing more": "nothing more came",
    "long enough": "it has read far enough",
    "scan time over": "it has read for long enough",
}


STATES = {"all acked": IN_STORE, "revived": BACK, "put again": BACK, "topic gone": LOST, "group gone": LOST}
"""What became of a check point -> how its square is drawn."""


class ReviveQueueBoard(PopBoard):
    """A strip for each revive queue, with what its reader has read, and how far it need not read again."""

    title: ClassVar[str] = "Revive queues"

    def begin(self) -> None:
        super().begin()
        self.waits: dict[tuple[str, int], tuple[str, int]] = {}
        """(broker, revive queue) -> what its reader waits for within a round, and until when, ms since 1970."""

    def on_revive_scan_waits(self, record: Record) -> None:
        self.waits[record.node, record.revive_qid] = (record.reason, record.until_ms)
        self._reviver(record.node, record.revive_qid).end_time = record.end_time

    def on_revive_scan_ended(self, record: Record) -> None:
        super().on_revive_scan_ended(record)
        self.waits.pop((record.node, record.revive_qid), None)

    def _shown(self) -> dict[tuple[str, int], Reviver]:
        found = {of: one for of, one in sorted(self.revivers.items()) if one.entries or one.on_the_way}
        return dict(list(found.items())[:MOST_QUEUES])

    # -- the picture ------------------------------------------------------------------------------------------------

    def html(self) -> str:
        """A strip for each queue that anything was written to."""
        shown = self._shown()
        if not shown:
            return '<div class="mq-faint">Nothing has been written to a revive queue yet.</div>'
        body: list[str] = []
        y = 4.0
        for (broker, revive_qid), reviver in shown.items():
            body += self._strip(broker, revive_qid, reviver, y)
            y += ROW
        shapes, below = legend(_LEGEND, y + 6, WIDTH)
        words = "End time: the newest time of delivery read. A check point is decided when it lies 2 s behind that."
        body += [*shapes, text(6, y + below + 16, words, "faint")]
        return picture("revive queues", WIDTH, y + below + 24, body)

    def _strip(self, broker: str, revive_qid: int, reviver: Reviver, y: float) -> Iterator[str]:
        top = y + 6
        yield text(6, top + 15, f"revive queue {revive_qid}", "strong")
        yield text(6, top + 31, broker, "faint")
        coming = f"{reviver.on_the_way:,} on their way" if reviver.on_the_way else "none on its way"
        yield text(6, top + 47, coming, "faint")
        room = MOST_CELLS * CELL + 8
        yield f'<rect class="lane" x="{LEFT}" y="{top:g}" width="{room}" height="{HIGH + 8}" rx="6"/>'
        offsets = sorted(reviver.entries)[-MOST_CELLS:]
        for place, offset in enumerate(offsets):
            yield self._entry(offset, reviver.entries[offset], LEFT + 5 + place * CELL, top + 4)
        noted = sum(1 for offset in offsets if offset <= reviver.committed)
        base = top + HIGH + 12
        if offsets:
            x = LEFT + 3 + noted * CELL
            yield pointer(x, base, "noted", f"noted up to offset {reviver.committed:,}: it will not read that again")
            x = LEFT + 3 + len(offsets) * CELL
            yield pointer(x, base, "read", f"read up to offset {reviver.to_offset - 1:,}")
        for line, words in enumerate(self._words(broker, revive_qid, reviver)):
            yield text(LEFT + 4, base + 22 + line * LINE, fit(words, room + 40), "" if line else "faint")

    def _entry(self, offset: int, entry: Entry, x: float, y: float) -> str:
        labels = self.labels(entry.unique_keys)
        where = place_words(entry.point.topic, entry.point.group, entry.point.queue_id)
        tip = f"offset {offset:,}: {'check point' if entry.is_point else 'acknowledgement'} of {where}"
        told = labels[0] if len(labels) == 1 else f"{labels[0]}+" if labels else "?"
        if entry.is_point:
            return square(x, y, told, STATES.get(entry.done, OPEN), f"{tip}, messages {', '.join(labels)}")
        tip += f", message {', '.join(labels)}" if labels else ", of which no check point was read"
        middle = x + WIDE / 2
        return (
            f'<g><title>{escape(tip)}</title><text class="mid" x="{middle:g}" y="{y + 9:g}">{escape(told)}</text>'
            f"{_ack(middle, y + 25, known=bool(labels))}</g>"
        )

    # -- in words ---------------------------------------------------------------------------------------------------

    def _words(self, broker: str, revive_qid: int, reviver: Reviver) -> list[str]:
        """How its reader stands, and what the first check point that is not decided waits for."""
        waits = self.waits.get((broker, revive_qid))
        if reviver.reading and waits is not None:
            until = f", until {clock(self.us_of(waits[1]))} at most" if waits[1] else ""
            state = f"has read up to {reviver.to_offset - 1:,} and waits for {waits[0]}{until}"
        elif reviver.reading:
            state = f"reads from offset {reviver.from_offset:,} on"
        else:
            why = REASONS.get(reviver.reason, reviver.reason or "it has not read yet")
            state = f"rests since {clock(reviver.since_us)}: {why}"
        if reviver.end_time:
            state += f"; end time {clock(self.us_of(reviver.end_time))}"
        return [state, *self._waiting(reviver)]

    def _waiting(self, reviver: Reviver) -> list[str]:
        for offset in sorted(reviver.entries):
            entry = reviver.entries[offset]
            point = self.points.get(entry.point)
            if entry.is_point and point is not None and not point.done:
                due = entry.point.pop_time + point.invisible_ms
                labels = self.labels(entry.unique_keys)
                told = f"message{'s' if len(labels) > 1 else ''} {', '.join(labels)}"
                return [f"{told}: decided when the end time passes {clock(self.us_of(due + BEHIND_MS))}"]
        return []

    def text(self) -> list[str]:
        """Some lines for each revive queue."""
        lines = []
        for (broker, revive_qid), reviver in self._shown().items():
            words = "; ".join(self._words(broker, revive_qid, reviver))
            lines.append(
                f"revive queue {revive_qid} of {broker}: {words}; noted up to {reviver.committed:,}, "
                f"{reviver.on_the_way:,} on their way"
            )
            for offset in sorted(reviver.entries)[-MOST_CELLS:]:
                entry = reviver.entries[offset]
                labels = ", ".join(self.labels(entry.unique_keys)) or "unknown messages"
                point = f"check point of {labels}, {entry.done or 'undecided'}"
                lines.append(f"  {offset}: {point if entry.is_point else f'ack of {labels}'}")
        return lines or ["nothing has been written to a revive queue yet"]


def _ack(x: float, y: float, *, known: bool = True) -> str:
    css = "store" if known else "lost"
    place = f'transform="translate({x:g} {y:g}) scale(.8)"'
    return (
        f'<circle class="{css}" cx="{x:g}" cy="{y:g}" r="8"/><path class="mark store" {place} d="{MARKS[IN_STORE]}"/>'
    )


_LEGEND = (
    (pointer(9, 7, "noted"), 18, "not read again up to here"),
    (pointer(7, 7, "read"), 14, "read up to here"),
    (_ack(8, 8), 16, "an acknowledgement"),
    (sample(0, 0, OPEN), 16, "a check point: undecided"),
    (sample(0, 0, IN_STORE), 16, "all acknowledged"),
    (sample(0, 0, BACK), 16, "revived"),
)
