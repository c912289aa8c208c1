"""Mistakes that are made with lab 14."""

from __future__ import annotations


def only_open_ones(offsets, acked):
    """What is done stays done, also behind an open one."""
    return [offset for offset in offsets if offset not in acked]


def nothing_when_all_are_done(offsets, acked):
    """Forgets to return an empty list."""
    return next((offsets[n:] for n, offset in enumerate(offsets) if offset not in acked), None)


def all_of_it(offsets, acked):
    """The batch begins anew."""
    return offsets if set(offsets) - set(acked) else []


def behind_the_last_ack(offsets, acked):
    """The newest ack moves the progress."""
    return [offset for offset in offsets if offset > max(acked, default=-1)]


def old_batch(handle, pop_time, invisible_ms):
    """The first offset of the old batch stays."""
    fields = handle.split(" ")
    fields[1:3] = [str(pop_time), str(invisible_ms)]
    return " ".join(fields)


def old_time(handle, pop_time, invisible_ms):
    """The invisible time counts from the old pop."""
    fields = handle.split(" ")
    fields[0], fields[2] = fields[7], str(invisible_ms)
    return " ".join(fields)


def once_each(orders, pops):
    """Notes are written once, as if they did not have to wait."""
    return orders + pops + orders


def no_acks(orders, pops):
    """Acks cost nothing."""
    return orders + 2 * pops


def takes_what_comes(asked, found, pop_time, stored, queue_end, reads):
    """Issue 7724: whatever the store gives is the message."""
    if not reads:
        return "later"
    return "gone" if found is None else "back"


def compares_times(asked, found, pop_time, stored, queue_end, reads):
    """Issue 7914: what was stored behind the pop time is from another time."""
    if not reads:
        return "later"
    return "back" if found == asked and stored <= pop_time else "gone"


def asks_again(asked, found, pop_time, stored, queue_end, reads):
    """Issue 8479: an answer without a message is a read that failed."""
    if found is None:
        return "later"
    return "back" if found == asked else "gone"


def asks_again_behind_the_end(asked, found, pop_time, stored, queue_end, reads):
    """Issue 8479: an offset behind the end may come yet."""
    if not reads or asked >= queue_end:
        return "later"
    return "back" if found == asked else "gone"


def asks_again_for_another(asked, found, pop_time, stored, queue_end, reads):
    """Another message is a reason to try again."""
    if not reads:
        return "later"
    return "gone" if found is None else "back" if found == asked else "later"


def not_now_is_gone(asked, found, pop_time, stored, queue_end, reads):
    """A store that does not read has lost the message."""
    return "back" if found == asked else "gone"


def near_enough(asked, found, pop_time, stored, queue_end, reads):
    """A later message will do."""
    if not reads:
        return "later"
    return "back" if found is not None and found >= asked else "gone"


def within_the_queue(asked, found, pop_time, stored, queue_end, reads):
    """Whatever the queue still counts comes back."""
    if not reads:
        return "later"
    return "back" if asked < queue_end else "gone"


def never_back(asked, found, pop_time, stored, queue_end, reads):
    """What was not acknowledged is the consumer's problem."""
    return "later" if not reads else "gone"


def both_at_the_end(kind, until_ms, now_ms, levels_ms, wheel, ck_ms):
    """Check point and ack come together: which is read first is luck."""
    return until_ms


def next_level(kind, until_ms, now_ms, levels_ms, wheel, ck_ms):
    """Issues 3787 and 4153: the next one of 18 lengths of waiting, wheel or not."""
    due_ms = until_ms - 1_000 if kind == "ck" else until_ms
    return now_ms + next((level for level in levels_ms if due_ms - now_ms < level), levels_ms[-1])


def always_a_wheel(kind, until_ms, now_ms, levels_ms, wheel, ck_ms):
    """Takes every broker for one of today."""
    return until_ms - 1_000 if kind == "ck" else until_ms


def acks_overtake(kind, until_ms, now_ms, levels_ms, wheel, ck_ms):
    """Knows the wheel, and lets an ack overtake its check point where there is none."""
    return (
        always_a_wheel(kind, until_ms, now_ms, levels_ms, wheel, ck_ms)
        if wheel
        else next_level(kind, until_ms, now_ms, levels_ms, wheel, ck_ms)
    )


def waits_too_early(kind, until_ms, now_ms, levels_ms, wheel, ck_ms):
    """Asks for the check point before it asks for the wheel, which needs no such rule."""
    due_ms = until_ms - 1_000 if kind == "ck" else max(until_ms, ck_ms)
    return due_ms if wheel else now_ms + next((level for level in levels_ms if due_ms - now_ms < level), levels_ms[-1])


def in_the_same_ms(kind, until_ms, now_ms, levels_ms, wheel, ck_ms):
    """Takes a level that ends when the note is due, or when its check point comes, for one that ends behind that."""
    due_ms = until_ms - 1_000 if kind == "ck" else until_ms
    if wheel:
        return due_ms
    from_ms = max(due_ms, ck_ms or 0)
    return now_ms + next((level for level in levels_ms if now_ms + level >= from_ms), levels_ms[-1])


def _judged(newest_ms, ends_ms):
    return newest_ms, next((n for n, end in enumerate(ends_ms) if newest_ms - end <= 2_000), len(ends_ms))


def wait_once_more(notes, was_ms, ends_ms):
    """Issue 3507: what has waited waits again."""
    return _judged(max([was_ms, *(deliver_ms + waited_ms for deliver_ms, waited_ms in notes)]), ends_ms)


def when_written(notes, was_ms, ends_ms):
    """The reviver has read up to the time at which the note was written."""
    return _judged(max([was_ms, *(deliver_ms - waited_ms for deliver_ms, waited_ms in notes)]), ends_ms)


def the_last_note(notes, was_ms, ends_ms):
    """The last note is the newest, and what was known before is forgotten."""
    return _judged(notes[-1][0] if notes else was_ms, ends_ms)


def all_that_are_old(notes, was_ms, ends_ms):
    """Judges check points behind one that is too young."""
    newest_ms = max([was_ms, *(deliver_ms for deliver_ms, _ in notes)])
    return newest_ms, sum(newest_ms - end_ms > 2_000 for end_ms in ends_ms)


def two_seconds_are_enough(notes, was_ms, ends_ms):
    """Takes exactly two seconds for more."""
    newest_ms = max([was_ms, *(deliver_ms for deliver_ms, _ in notes)])
    return newest_ms, next((n for n, end_ms in enumerate(ends_ms) if newest_ms - end_ms < 2_000), len(ends_ms))


def waits_for_ever(records, now_ms, patience_ms):
    """Issue 5408: a check point may always come."""
    return next((n for n, (kind, _) in enumerate(records) if kind in ("waiting", "alone")), len(records))


def passes_at_once(records, now_ms, patience_ms):
    """What has no check point now will have none."""
    return next((n for n, (kind, _) in enumerate(records) if kind == "waiting"), len(records))


def all_are_alone(records, now_ms, patience_ms):
    """Keeps every young record, also what is settled."""
    return next(
        (n for n, (kind, due_ms) in enumerate(records) if kind == "waiting" or now_ms - due_ms <= patience_ms),
        len(records),
    )


def counts_behind(records, now_ms, patience_ms):
    """Counts what is done behind a record that is not."""
    return sum(
        kind in ("settled", "matched") or (kind == "alone" and now_ms - due_ms > patience_ms)
        for kind, due_ms in records
    )


def patience_is_enough(records, now_ms, patience_ms):
    """Passes an ack when its check point may still come."""
    held = (
        n
        for n, (kind, due) in enumerate(records)
        if kind == "waiting" or (kind == "alone" and now_ms - due < patience_ms)
    )
    return next(held, len(records))


WRONG = {
    "14/comes-again": [only_open_ones, nothing_when_all_are_done, all_of_it, behind_the_last_ack],
    "14/new-handle": [old_batch, old_time],
    "14/records": [once_each, no_acks],
    "14/decide": [
        takes_what_comes,
        compares_times,
        asks_again,
        asks_again_behind_the_end,
        asks_again_for_another,
        not_now_is_gone,
        near_enough,
        within_the_queue,
        never_back,
    ],
    "14/deliver-at": [both_at_the_end, next_level, always_a_wheel, acks_overtake, waits_too_early, in_the_same_ms],
    "14/read-up-to": [wait_once_more, when_written, the_last_note, all_that_are_old, two_seconds_are_enough],
    "14/passes": [waits_for_ever, passes_at_once, all_are_alone, counts_behind, patience_is_enough],
}
