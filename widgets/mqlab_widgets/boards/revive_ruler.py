"""The two seconds of a reviver as a ruler: how far it has read, beside how far it must have read to decide."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import ClassVar

from mqlab.protocol.pop_check_point import ACK_TIME_INTERVAL_MS
from mqlab.trace.record import Record
from mqlab_widgets.boards.pop_picture import (
    BACK,
    BOLD,
    IN_STORE,
    LETTER,
    LOST,
    MARKS,
    OPEN,
    fit,
    legend,
    number,
    picture,
    text,
)
from mqlab_widgets.boards.pop_state import ACKED, DeliveryKey, Point, PointKey, PopBoard
from mqlab_widgets.boards.revive_queue import BEHIND_MS, STATES
from mqlab_widgets.words import clock

MOST_ROWS, DONE_ABOVE = 6, 2
"""So many check points are shown, and so many of these at most that are decided already."""
WIDTH, LEFT, RIGHT, ROW, HEAD = 840, 112, 176, 38, 26
"""px: the picture, what stands left and right of the time axis, a check point's row, a revive queue's headline."""
BEFORE_US, AFTER_US = 3_000_000, 1_500_000
"""The axis begins so long before the first end of an invisible time, and ends so long behind the last ruler."""
BAR, MARK = 10, 7
_OWN = (
    ".mq-handed .ruler{fill:var(--mq-card,#fff);stroke:var(--mq-ink,#1a1a1a);stroke-width:1.3}"
    ".mq-handed .measured{fill:#F0E442;stroke:none}.mq-handed .notch{stroke:var(--mq-ink,#1a1a1a);stroke-width:1}"
    ".mq-handed text.on-ruler{text-anchor:middle;font-size:11px;font-weight:600;fill:#1a1a1a}"
    ".mq-handed .newest{stroke:#0072B2;stroke-width:3.5;stroke-opacity:.8}"
    ".mq-handed text.newest{stroke:none;fill:#0072B2;font-weight:600}"
    '[data-jp-theme-light="false"] .mq-handed text.newest{fill:#7CC4F0}'
    '[data-jp-theme-light="false"] .mq-handed .newest{stroke:#56B4E9}'
    '[data-jp-theme-light="false"] .mq-handed .measured{fill:#8a8300}'
    '[data-jp-theme-light="false"] .mq-handed text.on-ruler{fill:var(--mq-ink,#eee)}'
    ".mq-handed .clock{stroke:var(--mq-ink,#1a1a1a);stroke-width:1.2;stroke-dasharray:3 3}"
    ".mq-handed .unread{fill:var(--mq-card,#fff);stroke:var(--mq-ink,#1a1a1a);stroke-dasharray:2 2}"
    ".mq-handed .is-read{fill:var(--mq-ink,#1a1a1a);stroke:var(--mq-ink,#1a1a1a)}"
    ".mq-handed text.at{text-anchor:middle}"
)


class ReviveRulerBoard(PopBoard):
    """A row for each check point: its invisible time, behind that a ruler of 2 s, and how far its reader has read.

    A check point is decided when the newest due time that was read in this round lies beyond its ruler.
    """

    title: ClassVar[str] = "The reviver's two seconds"

    def begin(self) -> None:
        super().begin()
        self.acks: dict[PointKey, dict[int, int]] = {}
        """Of each batch the offsets with an acknowledgement in the store, and at which place of the revive queue that
        was read; -1: it was not read yet.
        """

    # -- how far it has read ----------------------------------------------------------------------------------------

    def on_revive_check_point_read(self, record: Record) -> None:
        super().on_revive_check_point_read(record)
        self._has_read(record, record.pop_time + record.invisible_ms - ACK_TIME_INTERVAL_MS)

    def on_revive_ack_read(self, record: Record) -> None:
        super().on_revive_ack_read(record)
        key = PointKey(record.node, record.group, record.topic, record.queue_id, record.start_offset, record.pop_time)
        point = self.points.get(key)
        if point is None:
            return
        self._has_read(record, record.pop_time + point.invisible_ms)
        for bit in map(int, record.bits.split(",") if record.bits else ()):
            self.acks.setdefault(key, {})[point.offsets[bit]] = record.revive_offset

    def on_ack_stored(self, record: Record) -> None:
        super().on_ack_stored(record)
        key = PointKey(record.node, record.group, record.topic, record.queue_id, record.start_offset, record.pop_time)
        for offset in map(int, record.offsets.split(",")):
            self.acks.setdefault(key, {}).setdefault(offset, -1)

    def on_revive_scan_waits(self, record: Record) -> None:
        self._reviver(record.node, record.revive_qid).end_time = record.end_time

    def _has_read(self, record: Record, due_ms: int) -> None:
        reviver = self._reviver(record.node, record.revive_qid)
        reviver.end_time = max(reviver.end_time, due_ms)

    # -- which check points -----------------------------------------------------------------------------------------

    def _rows(self) -> list[tuple[PointKey, Point]]:
        """The check points in the order in which they end: the next ones to be decided, below the last decided ones."""
        shown = [one for one in self.points.items() if not one[1].in_memory and one[1].done != "all acked in memory"]
        shown.sort(key=lambda one: (one[0].pop_time + one[1].invisible_ms, one[0]))
        first_open = next((place for place, (_, point) in enumerate(shown) if point.is_open), len(shown))
        begin = max(0, min(first_open - DONE_ABOVE, len(shown) - MOST_ROWS))
        rows = shown[begin : begin + MOST_ROWS]
        return sorted(rows, key=lambda one: (one[0].broker, one[1].revive_qid))

    def _end_us(self, key: PointKey, point: Point) -> int:
        return self.us_of(key.pop_time + point.invisible_ms)

    def _newest_us(self, broker: str, revive_qid: int) -> int | None:
        """The newest due time that the reader of a queue has read in its round; None when it has read nothing."""
        reviver = self.revivers.get((broker, revive_qid))
        return self.us_of(reviver.end_time) if reviver is not None and reviver.end_time else None

    def _is_read(self, key: PointKey, point: Point, revive_offset: int) -> bool:
        """Whether the reader has read that place of its queue, and in this round if the check point is undecided."""
        reviver = self.revivers.get((key.broker, point.revive_qid))
        return revive_offset >= 0 and (bool(point.done) or reviver is None or revive_offset < reviver.to_offset)

    # -- the picture ------------------------------------------------------------------------------------------------

    def html(self) -> str:
        """A row with a ruler for each check point, over one axis of time."""
        rows = self._rows()
        if not rows:
            return '<div class="mq-faint">No check point has been written yet.</div>'
        ends = [self._end_us(*row) for row in rows]
        axis = _Axis(min(ends) - BEFORE_US, max(ends) + BEHIND_MS * 1_000 + AFTER_US)
        body, y = [f"<style>{_OWN}</style>"], 4.0
        for (broker, revive_qid), group in groupby(rows, key=lambda one: (one[0].broker, one[1].revive_qid)):
            members = list(group)
            body += self._queue(broker, revive_qid, members, axis, y)
            y += HEAD + len(members) * ROW
        body += self._axis(axis, y)
        shapes, below = legend(_LEGEND, y + 48, WIDTH)
        words = "A check point is decided when the newest due time read lies right of its ruler: more than 2 s behind."
        body += [*shapes, text(6, y + 48 + below + 14, words, "faint")]
        return picture("the two seconds of the reviver as a ruler", WIDTH, y + 48 + below + 22, body)

    def _queue(
        self, broker: str, revive_qid: int, rows: list[tuple[PointKey, Point]], axis: _Axis, y: float
    ) -> Iterator[str]:
        """The headline of a revive queue, a row for each of its check points, and how far its reader has read."""
        yield text(6, y + 14, f"revive queue {revive_qid}", "strong")
        for place, (key, point) in enumerate(rows):
            yield from self._row(key, point, axis, y + HEAD + place * ROW)
        newest_us = self._newest_us(broker, revive_qid)
        if newest_us is None:
            yield text(axis.x(axis.begin_us), y + 14, "its reader has read nothing in this round", "newest")
            return
        told = f"newest due time read: {newest_us / 1_000_000:.1f} s"
        bottom = y + HEAD + len(rows) * ROW
        x = axis.x(newest_us)
        if axis.holds(newest_us):
            yield f'<line class="newest" x1="{x:g}" y1="{y + 18:g}" x2="{x:g}" y2="{bottom:g}"/>'
        elif newest_us < axis.begin_us:
            told = f"◀ {told}"
        else:
            told = f"{told} ▶"
        wide = len(told) * BOLD
        yield text(min(max(x - wide / 2, LEFT), WIDTH - wide), y + 14, told, "newest")

    def _row(self, key: PointKey, point: Point, axis: _Axis, y: float) -> Iterator[str]:
        end_us = self._end_us(key, point)
        middle = y + ROW / 2
        labels = self.labels(self.unique_keys(key))
        yield number(6, middle - 10, labels[0] if labels else "?")
        if len(labels) > 1:
            yield text(40, middle + 4, fit(f"and {len(labels) - 1} more", LEFT - 42))
        begin_x, end_x = axis.x(self.us_of(key.pop_time)), axis.x(end_us)
        tip = f"invisible from {clock(self.us_of(key.pop_time))} to {clock(end_us)}"
        yield (
            f'<g><title>{escape(tip)}</title><rect class="wait" x="{begin_x:g}" y="{middle - BAR / 2:g}" '
            f'width="{end_x - begin_x:g}" height="{BAR}"/></g>'
        )
        yield from self._ruler(key, point, axis, middle)
        read = self._is_read(key, point, point.revive_offset)
        yield _check_point(axis.x(end_us - ACK_TIME_INTERVAL_MS * 1_000), middle, read=read)
        for place, (offset, at) in enumerate(sorted(self.acks.get(key, {}).items())):
            ack_read = self._is_read(key, point, at)
            yield _ack(end_x + min(place, 3) * 4, middle, read=ack_read, tip=f"acknowledgement of offset {offset:,}")
        words, state = self._became(key, point)
        yield _mark(WIDTH - RIGHT + 16, middle, state)
        yield text(WIDTH - RIGHT + 32, middle + 4, fit(words, RIGHT - 34, LETTER), "" if point.done else "faint")

    def _ruler(self, key: PointKey, point: Point, axis: _Axis, middle: float) -> Iterator[str]:
        """From the end of the invisible time to two seconds behind it; what the reader has read of that is filled."""
        end_us = self._end_us(key, point)
        left, right = axis.x(end_us), axis.x(end_us + BEHIND_MS * 1_000)
        top, high = middle - 11, 22
        tip = f"decided when the newest due time read is behind {clock(end_us + BEHIND_MS * 1_000)}"
        yield f"<g><title>{escape(tip)}</title>"
        yield f'<rect class="ruler" x="{left:g}" y="{top:g}" width="{right - left:g}" height="{high}"/>'
        newest_us = self._newest_us(key.broker, point.revive_qid)
        if point.done or (newest_us is not None and newest_us > end_us):
            wide = right - left if point.done or newest_us is None else min(axis.x(newest_us), right) - left
            yield f'<rect class="measured" x="{left:g}" y="{top + 1:g}" width="{wide:g}" height="{high - 2}"/>'
        for part in range(1, 8):
            x, long = left + (right - left) * part / 8, 9 if part == 4 else 5
            yield f'<line class="notch" x1="{x:g}" y1="{top:g}" x2="{x:g}" y2="{top + long:g}"/>'
        yield text((left + right) / 2, middle + 9, "2 s", "on-ruler") + "</g>"

    def _axis(self, axis: _Axis, y: float) -> Iterator[str]:
        for second in axis.seconds():
            x = axis.x(second * 1_000_000)
            yield f'<line class="tick" x1="{x:g}" y1="{y:g}" x2="{x:g}" y2="{y + 5:g}"/>'
            yield text(x, y + 18, str(second), "at faint")
        left, right = axis.x(axis.begin_us), axis.x(axis.end_us)
        yield f'<line class="tick" x1="{left:g}" y1="{y:g}" x2="{right:g}" y2="{y:g}"/>'
        yield text(right + 20, y + 18, "s of the world's time", "faint")
        now_us = self.now_us
        if axis.holds(now_us):
            x = axis.x(now_us)
            yield f'<line class="clock" x1="{x:g}" y1="26" x2="{x:g}" y2="{y + 22:g}"/>'
            yield text(x, y + 34, "the clock", "at strong")
        else:
            words = f"the clock: {now_us / 1_000_000:.1f} s"
            if now_us < axis.begin_us:
                yield text(left, y + 34, f"◀ {words}", "strong")
            else:
                yield text(right, y + 34, f"{words} ▶", "strong", end=True)

    # -- in words ---------------------------------------------------------------------------------------------------

    def _became(self, key: PointKey, point: Point) -> tuple[str, str]:
        """What has become of a check point or is to come, and the mark for it."""
        if point.done:
            words = {"all acked": "all acknowledged", "revived": "comes back", "put again": "to be tried again"}
            return words.get(point.done, point.done), STATES.get(point.done, LOST)
        if point.revive_offset < 0:
            keys = (DeliveryKey(*key[:4], offset, key.pop_time) for offset in point.offsets)
            done = sum(1 for one in keys if one in self.deliveries and self.deliveries[one].state == ACKED)
            return f"unread ({done} of {len(point.offsets)} done)", OPEN
        if not self._is_read(key, point, point.revive_offset):
            return "to be read again", OPEN
        newest_us = self._newest_us(key.broker, point.revive_qid) or 0
        short_us = self._end_us(key, point) + BEHIND_MS * 1_000 - newest_us
        if short_us < 0:
            return "read, to be decided", OPEN
        return f"read, {short_us / 1_000_000:.1f} s short", OPEN

    def text(self) -> list[str]:
        """A line for each revive queue, and one for each of its check points."""
        lines = []
        for (broker, revive_qid), group in groupby(self._rows(), key=lambda one: (one[0].broker, one[1].revive_qid)):
            newest_us = self._newest_us(broker, revive_qid)
            told = "nothing read in this round" if newest_us is None else f"newest due time read {clock(newest_us)}"
            lines.append(f"revive queue {revive_qid} of {broker}: {told}; the clock {clock(self.now_us)}")
            for key, point in group:
                labels = ", ".join(self.labels(self.unique_keys(key)))
                ruler_us = self._end_us(key, point) + BEHIND_MS * 1_000
                lines.append(f"  {labels}: its ruler ends at {clock(ruler_us)}; {self._became(key, point)[0]}")
        return lines or ["no check point has been written yet"]


class _Axis:
    """Times (us) along the picture; what lies beyond an end is drawn at that end."""

    def __init__(self, begin_us: int, end_us: int) -> None:
        self.begin_us, self.end_us = begin_us // 1_000_000 * 1_000_000, -(-end_us // 1_000_000) * 1_000_000

    def holds(self, us: int) -> bool:
        return self.begin_us <= us <= self.end_us

    def x(self, us: int) -> float:
        """Where a time lies, px."""
        inside = min(max(us, self.begin_us), self.end_us) - self.begin_us
        return round(LEFT + inside * (WIDTH - LEFT - RIGHT) / (self.end_us - self.begin_us), 1)

    def seconds(self) -> range:
        """The seconds that are named."""
        begin, end = self.begin_us // 1_000_000, self.end_us // 1_000_000
        return range(begin, end + 1, max(1, -(-(end - begin) // 16)))


def _check_point(x: float, y: float, *, read: bool) -> str:
    css, tip = ("is-read", "a check point, read") if read else ("unread", "a check point, not read yet")
    side = 2 * MARK - 2
    return (
        f'<g><title>{tip}</title><rect class="{css}" x="{x - side / 2:g}" y="{y - side / 2:g}" width="{side}" '
        f'height="{side}"/></g>'
    )


def _ack(x: float, y: float, *, read: bool, tip: str = "an acknowledgement") -> str:
    css, how = ("is-read", "read") if read else ("unread", "not read yet")
    return f'<g><title>{escape(tip)}, {how}</title><circle class="{css}" cx="{x:g}" cy="{y:g}" r="{MARK - 1}"/></g>'


def _mark(x: float, y: float, state: str) -> str:
    place = f'transform="translate({x:g} {y:g}) scale(.8)"'
    return (
        f'<rect class="{state}" x="{x - 8:g}" y="{y - 8:g}" width="16" height="16" rx="3"/>'
        f'<path class="mark {state}" {place} d="{MARKS.get(state, "")}"/>'
    )


_RULER = '<rect class="ruler" x="0" y="1" width="26" height="15"/>'
_LEGEND = (
    ('<rect class="wait" x="0" y="4" width="22" height="9"/>', 22, "invisible time"),
    (_RULER, 26, "2 s behind its end"),
    (f'{_RULER}<rect class="measured" x="1" y="2" width="15" height="13"/>', 26, "read of them"),
    ('<line class="newest" x1="4" y1="0" x2="4" y2="16"/>', 8, "newest due time read"),
    (_check_point(8, 8, read=False) + _check_point(26, 8, read=True), 34, "a check point: unread, read"),
    (_ack(8, 8, read=False) + _ack(26, 8, read=True), 34, "an acknowledgement: unread, read"),
    (_mark(8, 8, IN_STORE), 16, "all acknowledged"),
    (_mark(8, 8, BACK), 16, "comes back"),
)  # fmt: skip
