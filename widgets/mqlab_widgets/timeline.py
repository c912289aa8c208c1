"""The time line: a world from its beginning to now, with what was stored and consumed, and when things broke.

Its axis is time and ends at a round number, so that it stands still while the world goes on. All places are percentages
of its width: it fits any page, and its letters stay as they are.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from mqlab.trace.record import KIND, Record
from mqlab_widgets.words import action_words, clock, say
from mqlab_widgets.world_numbers import Interval, WorldNumbers

if TYPE_CHECKING:
    from mqlab import Lab
    from mqlab_widgets.cursor import Cursor
    from mqlab_widgets.worlds import Worlds

HEIGHT = 64
FLAGS, MIDDLE, AXIS = 15, 34, 50
"""Where the lanes end, in px from above: flags; stored (upwards) and consumed (downwards) from the middle; the axis."""
SECOND = 1_000_000
ENDS_US = (
    *(number * 10**power for power in (5, 6) for number in (1, 2, 3, 5)),
    *(number * SECOND for number in (10, 20, 30, 60, 120, 180, 300, 600, 1_200, 1_800, 3_600)),
    *(hours * 3_600 * SECOND for hours in (2, 3, 6, 12, 24)),
)
"""Where the axis may end; then at whole days."""
MOST_TICKS = 10
MEANING = "messages stored (above the line) and consumed (below); shaded: stored and not consumed yet"
LEAST_WAITING = 10
"""So many messages that wait fill the lane at least: one is not much."""
NEAR_PX, LETTER_PX = 10, 6.2
"""Flags that stand nearer than this are one; so wide is a letter beside one."""
FAULTS = ("NodeCrashed", "PowerLost", "NodeStarted", "DiskFullChanged")
"""What may break or begin by itself; what somebody did says `ActionTaken`."""
STEERING = ("pick", "hold", "override")
"""Actions that are no fault."""


class Flag(NamedTuple):
    """Something that broke or was mended: when, behind which event, and in words."""

    at_us: int
    place: int
    words: str


class TimelineNumbers:
    """What a time line shows of a world; no event is looked at twice."""

    def __init__(self, lab: Lab) -> None:
        self.world = WorldNumbers(lab)
        self.flags: list[Flag] = []
        self._looked_at = 0
        self._shapes: tuple[tuple[int, int], str] = ((-1, 0), "")

    def follow(self, lab: Lab, until: int | None = None) -> None:
        """Take in all events that are new and stand before a place."""
        self.world.follow(until)
        for place, row in enumerate(lab.history.rows(self._looked_at, until), self._looked_at):
            if row[KIND] == "ActionTaken" or row[KIND] in FAULTS:
                self._note(Record(row), place, lab)
            self._looked_at = place + 1

    def _note(self, record: Record, place: int, lab: Lab) -> None:
        if record.kind == "ActionTaken":
            words = "" if record.verb in STEERING else action_words(record)
        elif record.kind == "NodeStarted":
            words = f"restart {record.target}" if record.life > 1 else ""
        else:
            words = say(record, lab).partition(":")[0]
        caused = self.flags and self.flags[-1].at_us == record.ts_us and record.kind != "ActionTaken"
        if words and not caused:
            self.flags.append(Flag(record.ts_us, place, words))

    def shapes(self) -> str:
        """What was stored, consumed and waited, as three paths over as many units as there are intervals."""
        intervals = self.world.intervals
        state = (len(intervals), self.world.width_us)
        if state != self._shapes[0]:
            tallest = max((max(at.stored, at.consumed) for at in intervals), default=0) or 1
            waiting = [max(at.backlog.values(), default=0) for at in intervals]
            most = max(LEAST_WAITING, *waiting, 0)
            lag = _steps(waiting, lambda count: AXIS - FLAGS - (AXIS - FLAGS) * count / most, AXIS - FLAGS)
            up, down = MIDDLE - FLAGS, AXIS - MIDDLE - 2
            # A root, since one pull may bring a hundred messages, and a single one shall be seen beside it.
            stored = _bars(intervals, lambda at: -up * (at.stored / tallest) ** 0.5)
            consumed = _bars(intervals, lambda at: down * (at.consumed / tallest) ** 0.5)
            drawn = (
                f'<path class="lag" d="{lag}"/><path class="stored" d="{stored}"/>'
                f'<path class="consumed" d="{consumed}"/>'
            )
            self._shapes = (state, drawn)
        return self._shapes[1]


def follow(lab: Lab, until: int) -> TimelineNumbers:
    """The numbers of a world, up to a place at least."""
    numbers: TimelineNumbers | None = lab.worked_out.get(TimelineNumbers)
    if numbers is None:
        numbers = lab.worked_out[TimelineNumbers] = TimelineNumbers(lab)
    numbers.follow(lab, until)
    return numbers


def timeline_html(cursor: Cursor, worlds: Worlds, width_px: float) -> str:
    """The time line of the world that is shown, with the cursor; the page is so wide, in px."""
    lab = cursor.lab
    numbers = follow(lab, cursor.known)
    now_us, cursor_us = lab.world.now_us, cursor.now_us
    end_us = axis_end(now_us)
    now, here = (f"{100 * us / end_us:.2f}%" for us in (now_us, cursor_us))
    drawn_us = len(numbers.world.intervals) * numbers.world.width_us
    parts = [
        f'<rect class="lane" y="{FLAGS}" width="{now}" height="{AXIS - FLAGS}"/>',
        f'<svg y="{FLAGS}" width="{100 * drawn_us / end_us:.2f}%" height="{AXIS - FLAGS}" preserveAspectRatio="none" '
        f'viewBox="0 0 {max(1, len(numbers.world.intervals))} {AXIS - FLAGS}">{numbers.shapes()}</svg>',
        f'<line class="middle" x2="{now}" y1="{MIDDLE}" y2="{MIDDLE}"/>',
        *_ticks(end_us),
        *_flags(numbers.flags, end_us, width_px),
        *_forks(cursor.lab, worlds, end_us),
        f'<line class="now" x1="{now}" x2="{now}" y1="{FLAGS - 4}" y2="{AXIS}"/>',
    ]
    if cursor.past:
        width = f"{100 * (now_us - cursor_us) / end_us:.2f}%"
        anchor, dx = ("start", 4) if now_us < 0.95 * end_us else ("end", -4)
        parts.append(f'<rect class="past" x="{here}" y="{FLAGS}" width="{width}" height="{AXIS - FLAGS}"/>')
        parts.append(f'<text x="{now}" dx="{dx}" y="{MIDDLE + 4}" text-anchor="{anchor}">now</text>')
    parts.append(
        f'<svg class="cursor" x="{here}" overflow="visible" data-key="cursor">'
        f'<line y1="{FLAGS - 5}" y2="{AXIS}"/><path d="M-5 {FLAGS - 9}h10l-5 7z"/></svg>'
    )
    return (
        f'<div class="mq-timeline" data-axis-us="{end_us}">{_slider(cursor, cursor_us, now_us, now)}'
        f'<svg width="100%" height="{HEIGHT}" aria-hidden="true">{"".join(parts)}</svg></div>'
    )


def axis_end(now_us: int) -> int:
    """The first round number that is not before now."""
    place = bisect.bisect_left(ENDS_US, max(now_us, 1))
    day = ENDS_US[-1]
    return int(ENDS_US[place]) if place < len(ENDS_US) else -(-now_us // day) * day


def _slider(cursor: Cursor, cursor_us: int, now_us: int, now: str) -> str:
    history = cursor.lab.history
    told = f"{clock(cursor_us)} of {clock(now_us)}, event {cursor.place():,} of {len(history):,}"
    return (
        f'<div role="slider" tabindex="0" class="range" style="width:{now}" aria-label="time line" title="{MEANING}" '
        f'aria-valuemin="0" '
        f'aria-valuemax="{now_us / 1_000:g}" aria-valuenow="{cursor_us / 1_000:g}" aria-valuetext="{told}" '
        f'data-from-us="0" data-to-us="{now_us}"></div>'
    )


# -- parts -----------------------------------------------------------------------------------------------------------


def _steps(heights: list[int], y: Callable[[int], float], ground: float) -> str:
    """A path of steps over a ground, a unit for each height."""
    tops = "".join(f"V{y(height):.3g}h1" for height in heights)
    return f"M0 {ground}{tops}V{ground}z" if heights else ""


def _bars(intervals: list[Interval], height: Callable[[Interval], float]) -> str:
    """A bar up or down from the middle for each interval in which anything happened."""
    middle = MIDDLE - FLAGS
    tall = ((place, height(at)) for place, at in enumerate(intervals))
    return "".join(f"M{place} {middle}h1v{at:.3g}h-1z" for place, at in tall if at)


def _ticks(end_us: int) -> list[str]:
    """Round times along the axis."""
    step = next(us for us in (10_000, 20_000, 50_000, *ENDS_US, end_us) if end_us / us <= MOST_TICKS)
    units = ((step, 3_600 * SECOND, "h"), (step, 60 * SECOND, "min"), (end_us, SECOND, "s"), (1_000, 1_000, "ms"))
    unit, name = next((us, name) for length, us, name in units if length >= us)
    parts = []
    for number in range(end_us // step + 1):
        x = 100 * number * step / end_us
        anchor = "start" if x < 2 else "end" if x > 98 else "middle"
        told = f"{number * step / unit:g}" + (f" {name}" if number else "")
        parts.append(f'<line class="tick" x1="{x:.2f}%" x2="{x:.2f}%" y1="{AXIS}" y2="{AXIS + 4}"/>')
        parts.append(f'<text class="axis" x="{x:.2f}%" y="{HEIGHT - 2}" text-anchor="{anchor}">{told}</text>')
    return parts


def _flags(flags: list[Flag], end_us: int, width: float) -> list[str]:
    """A flag where something broke; those that stand close together are one."""
    groups: list[list[Flag]] = []
    for flag in flags:
        if groups and (flag.at_us - groups[-1][0].at_us) / end_us * width < NEAR_PX:
            groups[-1].append(flag)
        else:
            groups.append([flag])
    begins_us = [*(group[0].at_us for group in groups), end_us]
    parts = []
    for group, until_us in zip(groups, begins_us[1:], strict=True):
        at_us, place, _ = group[0]
        words = [flag.words for flag in group]
        verbs = list(dict.fromkeys(told.partition(" ")[0] for told in words))
        room = ((until_us - at_us) / end_us * width - NEAR_PX) / LETTER_PX
        lengths = ("; ".join(words), ", ".join(verbs), f"{len(words)} faults" if len(words) > 1 else verbs[0])
        shown = next((told for told in lengths if len(told) <= room), "")
        parts.append(_flag(100 * at_us / end_us, place + 1, "; ".join(words), shown))
    return parts


def _flag(x: float, place: int, tip: str, shown: str) -> str:
    return (
        f'<svg class="flag" x="{x:.2f}%" overflow="visible" data-do="goto" data-place="{place}">'
        f'<title>{escape(tip)}</title><line y1="2" y2="{AXIS}"/><path d="M0 2l8 3.5l-8 3.5z"/>'
        f'<text x="10" y="10">{escape(shown)}</text></svg>'
    )


def _forks(lab: Lab, worlds: Worlds, end_us: int) -> list[str]:
    """A fork where another world left this one, and where this one left its parent."""
    parts = []
    for branch in worlds.branches[1:]:
        mine = branch.number == worlds.now
        if mine or branch.parent == worlds.now:
            history, slice_no = lab.history, branch.at_slice
            place = bisect.bisect_right(range(len(history)), slice_no, key=lambda n: history.row(n)[0])
            at_us = history.row(place - 1)[2] if place else 0
            other = branch.parent if mine else branch.number
            tip = f"from world {other}" if mine else f"world {other}: {branch.what}"
            parts.append(
                f'<svg class="fork" x="{100 * at_us / end_us:.2f}%" y="{MIDDLE}" overflow="visible" data-do="branch" '
                f'data-number="{other}"><title>{escape(tip)}</title><path d="M0 0v{AXIS - MIDDLE}M0 0l7 -8M0 0l-7 -8"/>'
                f'<circle r="4"/></svg>'
            )
    return parts
