"""The records of the key-value engine: one for each message that is handed out, in memory or on the disk, until it is
deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import ClassVar

from mqlab.protocol.topics import is_retry_topic
from mqlab.trace.record import Record
from mqlab_widgets.boards.pop_picture import fit, legend, number, picture, place_words, seconds, text
from mqlab_widgets.boards.pop_state import DeliveryKey, PopBoard
from mqlab_widgets.words import clock

MOST_ROWS, MOST_DELETED = 10, 40
COLUMN, GAP, PAD, ROW = 240, 10, 9, 40
"""px of a column, between two of them, inside one, and of a record."""
CACHE, STORE, DELETED = "cache", "store", "deleted"
COLUMNS = {CACHE: "In memory (cache)", STORE: "On the disk", DELETED: "Deleted"}
NOTES = {CACHE: "a crash loses it", STORE: "looked at each half second", DELETED: "the newest first"}
ENDS = {
    "acked": "acknowledged",
    "changed": "another time asked for",
    "revived": "time over: to be retried",
    "rolled back": "not handed out after all",
    "crash": "lost in the crash",
}
"""Why a record was deleted, in words."""


@dataclass(slots=True)
class PopRecord:
    """A record: until when nobody else sees the message (us), where it is held, how often putting it into the retry
    topic has failed; and when and why it was deleted ("": it is there).
    """

    until_us: int
    held_in: str
    attempts: int
    ended: str = ""
    ended_us: int = 0


class PopRecordsBoard(PopBoard):
    """Each record in the column of its place, those that come due first on top."""

    title: ClassVar[str] = "Records of messages that are out"

    def begin(self) -> None:
        """There is no record."""
        super().begin()
        self.records: dict[DeliveryKey, PopRecord] = {}
        self.gone: list[tuple[DeliveryKey, PopRecord]] = []
        """The newest that were deleted."""
        self.written = 0
        self.deleted: dict[str, int] = {}
        """Reason -> how many records were deleted for it."""

    # -- events -----------------------------------------------------------------------------------------------------

    def on_pop_record_written(self, record: Record) -> None:
        until_us = self.us_of(record.pop_time + record.invisible_ms)
        key = _key(record)
        self.written += key not in self.records
        self.records[key] = PopRecord(until_us, record.held_in, record.attempts)

    def on_pop_record_deleted(self, record: Record) -> None:
        self._end(_key(record), record.reason, record.ts_us)

    def _end(self, key: DeliveryKey, reason: str, us: int) -> None:
        kept = self.records.pop(key, None)
        if kept is not None:
            kept.ended, kept.ended_us = reason, us
            self.gone = [(key, kept), *self.gone][:MOST_DELETED]
            self.deleted[reason] = self.deleted.get(reason, 0) + 1

    def on_process_ended(self, record: Record) -> None:
        """What was in memory alone is gone."""
        super().on_process_ended(record)
        lost = [key for key, one in self.records.items() if key.broker == record.target and one.held_in == CACHE]
        for key in lost:
            self._end(key, "crash", record.ts_us)

    # -- the picture ------------------------------------------------------------------------------------------------

    def _columns(self) -> dict[str, list[tuple[DeliveryKey, PopRecord]]]:
        due = sorted(self.records.items(), key=lambda one: one[1].until_us)
        held = {place: [one for one in due if one[1].held_in == place] for place in (CACHE, STORE)}
        return {**held, DELETED: self.gone}

    def html(self) -> str:
        """Three columns of records."""
        if not self.written:
            return '<div class="mq-faint">No record has been written: is the key-value engine on?</div>'
        columns, body = self._columns(), []
        rows = max(1, *(min(MOST_ROWS, len(records)) for records in columns.values()))
        high = 44 + rows * ROW + 20
        counts = {**{place: len(columns[place]) for place in (CACHE, STORE)}, DELETED: sum(self.deleted.values())}
        for place, (name, records) in enumerate(columns.items()):
            x = place * (COLUMN + GAP)
            body += [
                f'<rect class="{"danger" if name == CACHE and records else "lane"}" x="{x + 0.5}" y="0.5" '
                f'width="{COLUMN}" height="{high:g}" rx="8"/>',
                text(x + PAD, 19, COLUMNS[name], "strong"),
                text(x + COLUMN - PAD, 19, f"{counts[name]:,}", "strong", end=True),
                text(x + PAD, 36, NOTES[name], "faint"),
            ]
            for row, (key, one) in enumerate(records[:MOST_ROWS]):
                body += self._row(key, one, x + 6, 44 + row * ROW)
            if counts[name] > MOST_ROWS:
                body.append(text(x + PAD, high - 7, f"and {counts[name] - MOST_ROWS:,} more", "faint"))
        width = 3 * COLUMN + 2 * GAP + 1
        danger = '<rect class="danger" x="1" y="1" width="22" height="14" rx="4"/>'
        shapes, below = legend([(danger, 24, "lost in a crash")], high + 12, width)
        body.append(text(width - PAD, high + 24, self._summary(), "faint", end=True))
        return picture("records of messages that are out", width, high + 14 + below, [*body, *shapes])

    def _row(self, key: DeliveryKey, one: PopRecord, x: float, y: float) -> Iterator[str]:
        wide = COLUMN - 12
        yield f"<g><title>{escape(self._line(key, one))}</title>"
        yield f'<rect class="box" x="{x:g}" y="{y:g}" width="{wide}" height="{ROW - 5}" rx="6"/>'
        yield number(x + 6, y + 7, self._label(key))
        is_retry, queue = is_retry_topic(key.topic), f"{key.topic} q{key.queue_id}"
        queue = place_words(key.topic, key.group, key.queue_id) if is_retry else queue
        where = f"offset {key.queue_offset:,}, {queue}"
        yield text(x + 43, y + 15, fit(where, wide - 50), "faint")
        yield text(x + 43, y + 30, self._words(one), "warn" if one.ended == "crash" else "")
        yield "</g>"

    def _label(self, key: DeliveryKey) -> str:
        delivery = self.deliveries.get(key)
        return (self.label(delivery.unique_key) if delivery is not None else "") or "?"

    def _words(self, one: PopRecord) -> str:
        if one.ended:
            return f"{ENDS.get(one.ended, one.ended)} at {clock(one.ended_us)}"
        left_us = one.until_us - self.now_us
        words = f"due in {seconds(left_us)}" if left_us > 0 else f"due since {seconds(-left_us)}"
        return words + (f", tried {one.attempts} times" if one.attempts else "")

    def _summary(self) -> str:
        ended = ", ".join(f"{count:,} {ENDS.get(reason, reason)}" for reason, count in self.deleted.items())
        return f"{self.written:,} written" + (f"; {ended}" if ended else "")

    # -- as text ----------------------------------------------------------------------------------------------------

    def _line(self, key: DeliveryKey, one: PopRecord) -> str:
        where = f"offset {key.queue_offset:,} of {place_words(key.topic, key.group, key.queue_id)} on {key.broker}"
        return f"message {self._label(key)}, {where}, {key.group}: {self._words(one)}"

    def text(self) -> list[str]:
        """What was written and deleted, then a line for each record."""
        if not self.written:
            return ["no record has been written"]
        return [
            self._summary(),
            *(
                f"{COLUMNS[name]}: {self._line(key, one)}"
                for name, records in self._columns().items()
                for key, one in records[:MOST_ROWS]
            ),
        ]


def _key(record: Record) -> DeliveryKey:
    return DeliveryKey(
        record.node, record.group, record.topic, record.queue_id, record.queue_offset, record.pop_time
    )
