"""Check points: what a broker notes of each batch that it has handed out, bit by bit, and where the note is."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import ClassVar

from mqlab_widgets.boards.pop_picture import (
    BACK,
    BOLD,
    HIGH,
    IN_MEMORY,
    IN_STORE,
    LINE,
    LOST,
    OPEN,
    WIDE,
    fit,
    legend,
    picture,
    place_words,
    seconds,
    square,
    squares,
    state_of,
    text,
)
from mqlab_widgets.boards.pop_state import Point, PointKey, PopBoard
from mqlab_widgets.words import clock

MOST_CARDS, MOST_BITS = 5, 7
COLUMN, GAP, PAD = 240, 10, 9
"""px of a column, between two of them, and inside a card."""
CARD = 3 * LINE + HIGH + 2 * PAD
COLUMNS = {"memory": "In memory (merge buffer)", "revive": "In the revive topic", "done": "Done with"}
NOTES = {
    "memory": "a crash loses it",
    "revive": "on the timer wheel, then in its queue",
    "done": "",
}
REASONS = {
    "all acked": "all acknowledged",
    "all acked in memory": "all acknowledged, never stored",
    "revived": "the rest: to be retried",
    "put again": "a new check point for the rest",
}
"""Why a check point was done with, in words."""


class CheckPointsBoard(PopBoard):
    """Each check point as a card with a square for each of its messages, in the column of the place where it is."""

    title: ClassVar[str] = "Check points"

    def _columns(self) -> dict[str, list[tuple[PointKey, Point]]]:
        """The check points by place, those that come due first on top, those done with last on top."""
        found: dict[str, list[tuple[PointKey, Point]]] = {name: [] for name in COLUMNS}
        for key, point in self.points.items():
            found["done" if point.done else "memory" if point.in_memory else "revive"].append((key, point))
        for name in ("memory", "revive"):
            found[name].sort(key=lambda one: one[0].pop_time + one[1].invisible_ms)
        found["done"].sort(key=lambda one: -one[1].done_us)
        return found

    # -- the picture ------------------------------------------------------------------------------------------------

    def html(self) -> str:
        """Three columns of cards."""
        if not self.points:
            return '<div class="mq-faint">No check point has been made yet.</div>'
        body: list[str] = []
        columns = self._columns()
        rows = max(min(MOST_CARDS, len(cards)) for cards in columns.values())
        high = 44 + rows * (CARD + 8) + 20
        for place, (name, cards) in enumerate(columns.items()):
            x = place * (COLUMN + GAP)
            body += [
                f'<rect class="lane" x="{x + 0.5}" y="0.5" width="{COLUMN}" height="{high:g}" rx="8"/>',
                text(x + PAD, 19, COLUMNS[name], "strong"),
                text(x + COLUMN - PAD, 19, f"{len(cards):,}", "strong", end=True),
                text(x + PAD, 36, NOTES[name], "faint"),
            ]
            y = 44.0
            for key, point in cards[:MOST_CARDS]:
                body += self._card(key, point, x + 6, y)
                y += CARD + 8
            if len(cards) > MOST_CARDS:
                body.append(text(x + PAD, high - 8, f"and {len(cards) - MOST_CARDS:,} more", "faint"))
        width = 3 * COLUMN + 2 * GAP + 1
        shapes, below = legend(squares(OPEN, IN_MEMORY, IN_STORE, BACK, LOST), high + 12, width)
        return picture("check points by the place where they are", width, high + 14 + below, [*body, *shapes])

    def _card(self, key: PointKey, point: Point, x: float, y: float) -> Iterator[str]:
        wide = COLUMN - 12
        yield f'<g><title>{escape(self._line(key, point))}</title>'
        yield f'<rect class="box" x="{x:g}" y="{y:g}" width="{wide}" height="{CARD}" rx="6"/>'
        where = place_words(key.topic, key.group, key.queue_id)
        yield text(x + PAD, y + 18, fit(where, wide - 2 * PAD, BOLD), "strong")
        yield text(x + PAD, y + 18 + LINE, f"{key.group}, from offset {key.start_offset:,} on", "faint")
        bits = [state_of(point, offset) for offset in point.offsets]
        labels = self.labels(self.unique_keys(key))
        shown = len(bits) if len(bits) <= MOST_BITS else MOST_BITS - 1
        for place in range(shown):
            tip = f"bit {place}: offset {point.offsets[place]:,}"
            yield square(x + PAD + place * (WIDE + 2), y + 26 + LINE, labels[place], bits[place], tip)
        if shown < len(bits):
            yield text(x + PAD + shown * (WIDE + 2) + 2, y + 48 + LINE, f"+{len(bits) - shown}", "faint")
        yield text(x + PAD, y + CARD - 8, fit(self._words(point, key), wide - 2 * PAD))
        yield "</g>"

    def _words(self, point: Point, key: PointKey) -> str:
        """When it comes due, or why it was done with."""
        if point.done:
            return REASONS.get(point.done, point.done)
        if point.revive_offset >= 0:
            return f"read at {point.revive_offset:,} of revive queue {point.revive_qid}"
        left_us = self.us_of(key.pop_time + point.invisible_ms) - self.now_us
        when = f"due in {seconds(left_us)}" if left_us > 0 else f"due since {seconds(-left_us)}"
        return f"{when}, revive queue {point.revive_qid}" if point.stored else when

    # -- as text ----------------------------------------------------------------------------------------------------

    def _line(self, key: PointKey, point: Point) -> str:
        bits = ", ".join(
            f"{label} {state_of(point, offset).replace('store', 'acked').replace('memory', 'acked in memory')}"
            for label, offset in zip(self.labels(self.unique_keys(key)), point.offsets, strict=True)
        )
        due = clock(self.us_of(key.pop_time + point.invisible_ms))
        return (
            f"{key.group}, {place_words(key.topic, key.group, key.queue_id)} from offset {key.start_offset:,} on, "
            f"due at {due}: {bits}; {self._words(point, key)}"
        )

    def text(self) -> list[str]:
        """A line for each check point, by place."""
        lines = [
            f"{COLUMNS[name]}: {self._line(key, point)}"
            for name, cards in self._columns().items()
            for key, point in cards[:MOST_CARDS]
        ]
        return lines or ["no check point has been made yet"]
