"""The life of popped messages: hidden from others for a while, then acknowledged, put off, or put into the retry topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from mqlab.protocol.topics import is_retry_topic
from mqlab.views.round_numbers import round_us
from mqlab_widgets.boards.pop_picture import BACK, IN_STORE, LOST, MARKS, legend, number, picture, seconds, text
from mqlab_widgets.boards.pop_state import (
    ACKED,
    CHANGED,
    DROPPED,
    FORGOTTEN,
    HIDDEN,
    REVIVED,
    Delivery,
    DeliveryKey,
    PopBoard,
)
from mqlab_widgets.words import clock

MOST_MESSAGES = 10
WIDTH, LEFT, RIGHT, LANE = 760, 128, 190, 32
"""px of the picture, left and right of its axis of time, and of a message's lane."""
MOST_TICKS = 8
SIGNS = {ACKED: IN_STORE, REVIVED: BACK, FORGOTTEN: LOST, DROPPED: LOST}
"""What became of a delivery -> how the end of its bar is marked."""
ILL = (REVIVED, FORGOTTEN, DROPPED, CHANGED)

Lane = list[tuple[DeliveryKey, Delivery]]
Across = Callable[[int], float]


class PoppedMessagesBoard(PopBoard):
    """Each message that was handed out by Pop, with its deliveries along the world's time.

    A bar is the time for which others do not see the message: full up to now, empty for what is left of it.
    """

    title: ClassVar[str] = "Popped messages"

    def _shown(self) -> dict[tuple[str, str], Lane]:
        """The deliveries of messages to groups: of those that did not simply end well, and of the newest ones."""
        found: dict[tuple[str, str], Lane] = {}
        for key, delivery in self.deliveries.items():
            message = delivery.unique_key or f"offset {key.queue_offset} of queue {key.queue_id}"
            found.setdefault((message, key.group), []).append((key, delivery))
        order = sorted(found, key=lambda message: max(one.end_us or one.at_us for _, one in found[message]))
        eventful = [message for message in order if len(found[message]) > 1 or found[message][0][1].state in ILL]
        chosen = {*eventful[-MOST_MESSAGES // 2 :]}
        chosen.update([message for message in order if message not in chosen][len(chosen) - MOST_MESSAGES :])
        return {message: lane for message, lane in found.items() if message in chosen}

    # -- the picture ------------------------------------------------------------------------------------------------

    def html(self) -> str:
        """A lane for each message, its deliveries as bars from left to right."""
        shown = self._shown()
        if not shown:
            return '<div class="mq-faint">No message has been popped yet.</div>'
        now_us = self.now_us
        every = [delivery for lane in shown.values() for _, delivery in lane]
        from_us = min(delivery.at_us for delivery in every)
        to_us = max(now_us, *(max(delivery.until_us, delivery.end_us) for delivery in every))
        room = WIDTH - LEFT - RIGHT

        def across(us: int) -> float:
            return LEFT + room * (us - from_us) / max(1, to_us - from_us)

        body: list[str] = []
        y = 20.0
        for (message, _), lane in shown.items():
            body += self._lane(message, lane, y, across, now_us)
            y += LANE
        x = across(now_us)
        body.append(f'<line class="now" x1="{x:.1f}" x2="{x:.1f}" y1="14" y2="{y + 4:g}"/>')
        body.append(f'<text class="warn" x="{x:.1f}" y="11" text-anchor="middle">now</text>')
        body += _axis(from_us, to_us, y + 4, across)
        shapes, below = legend(_LEGEND, y + 32, WIDTH)
        return picture("popped messages", WIDTH, y + 34 + below, [*body, *shapes])

    def _lane(self, message: str, lane: Lane, y: float, across: Across, now_us: int) -> Iterator[str]:
        label = self.label(message)
        newest = lane[-1][1]
        middle = y + LANE / 2
        yield number(6, middle - 10, label) if label else text(6, middle + 4, message, "faint")
        yield text(LEFT - 8, middle + 4, newest.consumer, "faint", end=True)
        yield f'<line class="tick" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{middle}" y2="{middle}" opacity=".3"/>'
        for key, delivery in lane:
            place = self.lab.history.index_of(delivery.event) + 1
            yield f'<g data-do="goto" data-place="{place}">{_bar(key, delivery, middle, across, now_us)}</g>'
        for _, delivery in lane:
            yield _end(delivery, middle, across)
        css = "warn" if newest.state in (FORGOTTEN, DROPPED) else ""
        words = self._words(newest, now_us)
        yield text(WIDTH - RIGHT + 14, middle + 4, words if len(lane) == 1 else f"{words} ({len(lane)}×)", css)

    def _words(self, delivery: Delivery, now_us: int) -> str:
        """What has become of a delivery, in few words."""
        left_us = delivery.until_us - now_us
        match delivery.state:
            case "hidden" if left_us > 0:
                return f"hidden, {seconds(left_us)} left"
            case "hidden":
                return "visible again" if delivery.in_order else f"its time is over since {seconds(-left_us)}"
            case "acked":
                return f"acked after {seconds(delivery.end_us - delivery.at_us)}"
            case "revived":
                return f"revived, {seconds(delivery.end_us - delivery.until_us)} later"
            case "changed":
                return "another time asked for"
            case "dropped":
                return f"not revived: {delivery.reason}"
        return "forgotten in the crash"

    # -- as text ----------------------------------------------------------------------------------------------------

    def text(self) -> list[str]:
        """A line for each message, with all its deliveries."""
        lines, now_us = [], self.now_us
        for (message, group), lane in self._shown().items():
            label = self.label(message)
            told = [
                f"{'popped again' if is_retry_topic(key.topic) else 'popped'} by {delivery.consumer} at "
                f"{clock(delivery.at_us)} until {clock(delivery.until_us)}, {self._words(delivery, now_us)}"
                for key, delivery in lane
            ]
            lines.append(f"{group}, {f'message {label}' if label else message}: {'; '.join(told)}")
        return lines or ["no message has been popped yet"]


def _bar(key: DeliveryKey, delivery: Delivery, middle: float, across: Across, now_us: int) -> str:
    """One delivery: what has passed of its time, what was asked for, and how long nothing came after it."""
    begin, until = across(delivery.at_us), across(delivery.until_us)
    end = across(delivery.end_us or min(now_us, delivery.until_us))
    tip = (
        f"offset {key.queue_offset} of queue {key.queue_id}, popped at {clock(delivery.at_us)}, hidden until "
        f"{clock(delivery.until_us)}, check point in revive queue {delivery.revive_qid}"
    )
    place = f'x="{begin:.1f}" y="{middle - 7:g}" height="14" rx="3"'
    late = f'<line class="late" x1="{until:.1f}" x2="{end:.1f}" y1="{middle}" y2="{middle}"/>' if end > until else ""
    return (
        f'<g><title>{tip}</title><rect class="rest" {place} width="{max(2, until - begin):.1f}"/>'
        f'<rect class="wait" {place} width="{max(2, min(end, until) - begin):.1f}"/>{late}</g>'
    )


def _end(delivery: Delivery, middle: float, across: Across) -> str:
    if delivery.state == HIDDEN:
        return ""
    end = across(delivery.end_us)
    if delivery.state == CHANGED:
        return f'<path class="read" d="M{end:.1f} {middle - 8:g}l8 8l-8 8z"/>'
    return _sign(end, middle, SIGNS[delivery.state])


def _sign(x: float, y: float, state: str) -> str:
    place = f'transform="translate({x:.1f} {y:g})"'
    return f'<circle class="{state}" r="8" {place}/><path class="mark {state}" {place} d="{MARKS[state]}"/>'


def _axis(from_us: int, to_us: int, y: float, across: Across) -> Iterator[str]:
    """Round times of the world."""
    step = round_us((to_us - from_us) / MOST_TICKS, finest=100_000)
    yield f'<line class="tick" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:g}" y2="{y:g}"/>'
    for us in range(-(-from_us // step) * step, to_us + 1, step):
        x = across(us)
        yield f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{y:g}" y2="{y + 4:g}"/>'
        yield f'<text class="faint" x="{x:.1f}" y="{y + 17:g}" text-anchor="middle">{us / 1_000_000:g} s</text>'


_BAR = 'x="0.5" y="1" width="25" height="13" rx="3"'
_LEGEND = (
    (f'<rect class="wait" {_BAR}/>', 26, "hidden from others"),
    (f'<rect class="rest" {_BAR}/>', 26, "as long as asked for"),
    (_sign(8, 8, IN_STORE), 16, "acknowledged"),
    ('<path class="read" d="M1 0l8 8l-8 8z"/>', 9, "another time asked for"),
    (_sign(8, 8, BACK), 16, "into the retry topic"),
)
