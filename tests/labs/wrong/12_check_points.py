"""Plausible wrong solutions of lab 12_check_points, each of which its check catches."""

from __future__ import annotations

from typing import Any

Settled = tuple[list[tuple[str, int]], int]


def _newest(read: list[Any], now_ms: int, timer_behind: bool) -> int:
    newest_ms = max((record.due_ms for record in read), default=0)
    return now_ms if now_ms - newest_ms > 3_000 and not timer_behind else newest_ms


def _done(read: list[Any]) -> dict[str, set[int]]:
    done: dict[str, set[int]] = {}
    for record in read:
        if record.kind == "ck":
            done[record.key] = set()
        elif record.key in done:
            done[record.key].update(record.offsets)
    return done


def _missing(point: Any, done: set[int]) -> list[tuple[str, int]]:
    offsets = [point.start + distance for distance in point.distances]
    return [(point.key, offset) for offset in offsets if offset not in done]


def _settled(read: list[Any], newest_ms: int, done: dict[str, set[int]], ripe_ms: int = 2_000) -> Settled:
    back, dealt_with = [], 0
    for place, record in enumerate(read, 1):
        if record.kind == "ck":
            if newest_ms - record.revive_ms <= ripe_ms:
                break
            back += _missing(record, done[record.key])
        dealt_with = place
    return back, dealt_with


def at_once(read: list[Any], now_ms: int, timer_behind: bool) -> Settled:
    """Settles a check point when it is read; its acknowledgements come a second later."""
    return _settled(read, 1 << 60, _done(read))


def when_the_time_is_over(read: list[Any], now_ms: int, timer_behind: bool) -> Settled:
    """Waits for the end of the invisible time alone; at that moment the acknowledgements are just on their way."""
    return _settled(read, now_ms, _done(read), ripe_ms=0)


def only_what_was_read(read: list[Any], now_ms: int, timer_behind: bool) -> Settled:
    """Trusts only what it has read; the last check point of a quiet queue is never settled."""
    return _settled(read, max((record.due_ms for record in read), default=0), _done(read))


def by_the_clock(read: list[Any], now_ms: int, timer_behind: bool) -> Settled:
    """Trusts the clock; when the timer is behind the acknowledgements are not there yet."""
    return _settled(read, now_ms, _done(read))


def trusts_a_late_timer(read: list[Any], now_ms: int, timer_behind: bool) -> Settled:
    """Knows both ways to tell the time, and forgets that the timer may be behind."""
    return _settled(read, _newest(read, now_ms, False), _done(read))


def never_with_a_late_ack(read: list[Any], now_ms: int, timer_behind: bool) -> Settled:
    """Takes a quiet second as a sign that nothing more comes."""
    newest_ms = max((record.due_ms for record in read), default=0)
    return _settled(read, now_ms if now_ms - newest_ms > 1_000 else newest_ms, _done(read), ripe_ms=500)


def without_the_ruler(read: list[Any], now_ms: int, timer_behind: bool) -> Settled:
    """Settles as soon as it has read beyond the end of the invisible time; an ack on its way is not waited for."""
    return _settled(read, _newest(read, now_ms, timer_behind), _done(read), ripe_ms=0)


def past_the_unripe(read: list[Any], now_ms: int, timer_behind: bool) -> Settled:
    """Leaves an unripe check point out and goes on behind it; what it was about is forgotten."""
    newest_ms, done = _newest(read, now_ms, timer_behind), _done(read)
    back: list[tuple[str, int]] = []
    for record in read:
        if record.kind == "ck" and newest_ms - record.revive_ms > 2_000:
            back += _missing(record, done[record.key])
    return back, len(read)


def keeps_what_is_settled(read: list[Any], now_ms: int, timer_behind: bool) -> Settled:
    """Never says that anything is dealt with, so that messages come back again and again."""
    return _settled(read, _newest(read, now_ms, timer_behind), _done(read))[0], 0


def by_offset_alone(read: list[Any], now_ms: int, timer_behind: bool) -> Settled:
    """Looks at the offsets of acknowledgements and not at the batch; other queues and groups have the same offsets."""
    acked = {offset for record in read if record.kind == "ack" for offset in record.offsets}
    done = {record.key: acked for record in read if record.kind == "ck"}
    return _settled(read, _newest(read, now_ms, timer_behind), done)


def without_gaps(read: list[Any], now_ms: int, timer_behind: bool) -> Settled:
    """Counts the messages of a batch up from its first; a filter leaves gaps."""
    flat = [record._replace(distances=tuple(range(len(record.distances)))) for record in read]
    return _settled(flat, _newest(read, now_ms, timer_behind), _done(flat))


def the_first_of_several(read: list[Any], now_ms: int, timer_behind: bool) -> Settled:
    """Takes an acknowledgement for one of one message; it can be about several."""
    single = [record._replace(offsets=record.offsets[:1]) for record in read]
    return _settled(single, _newest(read, now_ms, timer_behind), _done(single))


def one_ack_for_all(read: list[Any], now_ms: int, timer_behind: bool) -> Settled:
    """Takes a check point with any acknowledgement for settled."""
    acked = {record.key for record in read if record.kind == "ack"}
    rest = [record for record in read if record.kind != "ck" or record.key not in acked]
    back, _ = _settled(rest, _newest(read, now_ms, timer_behind), _done(rest))
    _, dealt_with = _settled(read, _newest(read, now_ms, timer_behind), _done(read))
    return back, dealt_with


def both_at_the_end(handle: str) -> tuple[int, int, int]:
    """Lets the check point come with its acknowledgements."""
    _, pop_ms, invisible_ms, revive_queue, *_ = handle.split(" ")
    end_ms = int(pop_ms) + int(invisible_ms)
    return int(revive_queue), end_ms, end_ms


def ack_when_sent(handle: str) -> tuple[int, int, int]:
    """Counts from the pop alone, as if an acknowledgement came when it was sent."""
    _, pop_ms, invisible_ms, revive_queue, *_ = handle.split(" ")
    return int(revive_queue), int(pop_ms) + int(invisible_ms) - 1_000, int(pop_ms)


def the_queue_of_the_message(handle: str) -> tuple[int, int, int]:
    """Takes the queue of the message for the revive queue."""
    fields = handle.split(" ")
    end_ms = int(fields[1]) + int(fields[2])
    return int(fields[6]), end_ms - 1_000, end_ms


def bits_by_distance(start: int, distances: list[int], done: list[int]) -> int:
    """Takes the distance for the place; with gaps they differ."""
    value = 0
    for offset in done:
        if offset - start in distances:
            value |= 1 << (offset - start)
    return value


def adds_the_bits(start: int, distances: list[int], done: list[int]) -> int:
    """Adds, so that an acknowledgement that came twice sets the next bit."""
    return sum(1 << distances.index(offset - start) for offset in done if offset - start in distances)


def any_offset(start: int, distances: list[int], done: list[int]) -> int:
    """Takes acknowledgements of other messages for those of the last place."""
    value = 0
    for offset in done:
        place = distances.index(offset - start) if offset - start in distances else -1
        value |= 1 << max(place, 0)
    return value


def the_last_one(due_ms: list[int], now_ms: int, timer_behind: bool) -> int:
    """Takes the last record for the newest; one that was written late is due before it."""
    newest_ms = due_ms[-1] if due_ms else 0
    return now_ms if due_ms and now_ms - newest_ms > 3_000 and not timer_behind else newest_ms


def trusts_the_clock(due_ms: list[int], now_ms: int, timer_behind: bool) -> int:
    """Goes by the clock though the timer is behind it."""
    newest_ms = max(due_ms, default=0)
    return now_ms if due_ms and now_ms - newest_ms > 3_000 else newest_ms


def three_seconds_are_enough(due_ms: list[int], now_ms: int, timer_behind: bool) -> int:
    """Takes exactly 3 s for more than 3 s."""
    newest_ms = max(due_ms, default=0)
    return now_ms if due_ms and now_ms - newest_ms >= 3_000 and not timer_behind else newest_ms


def the_clock_for_nothing(due_ms: list[int], now_ms: int, timer_behind: bool) -> int:
    """Goes by the clock, too, when nothing was read."""
    newest_ms = max(due_ms, default=0)
    return now_ms if now_ms - newest_ms > 3_000 and not timer_behind else newest_ms


def says_nothing(read: list[Any], now_ms: int, timer_behind: bool) -> None:
    """Forgets to return anything."""


def deals_with_more_than_there_is(read: list[Any], now_ms: int, timer_behind: bool) -> tuple[list[Any], int]:
    """Counts records that it was never shown."""
    return [], len(read) + 1


WRONG = {
    "12/dues": [both_at_the_end, ack_when_sent, the_queue_of_the_message],
    "12/bitmap": [bits_by_distance, adds_the_bits, any_offset],
    "12/end-time": [the_last_one, trusts_the_clock, three_seconds_are_enough, the_clock_for_nothing],
    "12/settle": [
        at_once,
        when_the_time_is_over,
        only_what_was_read,
        by_the_clock,
        trusts_a_late_timer,
        never_with_a_late_ack,
        without_the_ruler,
        past_the_unripe,
        keeps_what_is_settled,
        by_offset_alone,
        without_gaps,
        the_first_of_several,
        one_ack_for_all,
        says_nothing,
        deals_with_more_than_there_is,
    ],
}
