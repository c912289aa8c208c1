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


def both_at_the_end(kind, until_ms, now_ms, levels_ms):
    """Check point and ack come together: which is read first is luck."""
    return until_ms


def next_level(kind, until_ms, now_ms, levels_ms):
    """Issues 3787 and 4153: the next one of 18 lengths of waiting."""
    due_ms = until_ms - 1_000 if kind == "ck" else until_ms
    return now_ms + next((level for level in levels_ms if due_ms - now_ms < level), levels_ms[-1])


def wait_once_more(deliver_ms, waited_ms):
    """Issue 3507: what has waited waits again."""
    return deliver_ms + waited_ms


def when_written(deliver_ms, waited_ms):
    """The reviver has read up to the time at which the note was written."""
    return deliver_ms - waited_ms


def waits_for_ever(waited_ms, patience_ms):
    """Issue 5408: a check point may always come."""
    return False


def passes_at_once(waited_ms, patience_ms):
    """What has no check point now will have none."""
    return True


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
    "14/deliver-at": [both_at_the_end, next_level],
    "14/read-up-to": [wait_once_more, when_written],
    "14/passes": [waits_for_ever, passes_at_once],
}
