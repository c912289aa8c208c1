"""For each exhibit the decision that holds, and mistakes that are made with it."""

from __future__ import annotations


def on_time(kind, until_ms, now_ms, levels_ms):
    """What the timer wheel does."""
    return until_ms - 1_000 if kind == "ck" else until_ms


def both_at_the_end(kind, until_ms, now_ms, levels_ms):
    """Check point and ack come together, so an ack that was written first is read first."""
    return until_ms


def shorter_level(kind, until_ms, now_ms, levels_ms):
    """Takes the level below instead of the one above: still one of 18 lengths."""
    due_ms = until_ms - 1_000 if kind == "ck" else until_ms
    return now_ms + max((level for level in levels_ms if level <= due_ms - now_ms), default=levels_ms[0])


def at_once(kind, until_ms, now_ms, levels_ms):
    """What comes at once is judged before anybody could acknowledge it."""
    return now_ms


def ack_first(kind, until_ms, now_ms, levels_ms):
    """The second is taken off the wrong one of the two."""
    return until_ms - 1_000 if kind == "ack" else until_ms


def when_it_came(deliver_ms, waited_ms):
    """Its time of delivery, as it is."""
    return deliver_ms


def when_it_was_written(deliver_ms, waited_ms):
    """Takes the wait off, as if the note had come when it was written."""
    return deliver_ms - waited_ms


def half_of_the_wait(deliver_ms, waited_ms):
    """A little less wrong is wrong, too."""
    return deliver_ms + waited_ms // 2


def after_its_patience(waited_ms, patience_ms):
    """It has waited for longer than a check point can take."""
    return waited_ms > patience_ms


def always(waited_ms, patience_ms):
    """Does not give the check point its time."""
    return True


def before_its_patience(waited_ms, patience_ms):
    """The wrong way round."""
    return waited_ms < patience_ms


def the_same(asked, found):
    """Offsets are compared."""
    return found == asked


def from_there_on(asked, found):
    """A later one will do."""
    return found is not None and found >= asked


def never(asked, found):
    """Who brings nothing back brings no neighbour back."""
    return False


def the_same_offset(asked, found, pop_time, stored):
    """Times tell nothing."""
    return found == asked


def with_some_grace(asked, found, pop_time, stored):
    """A pop may take so long, and not longer."""
    return found == asked and stored <= pop_time + 20


def anything_that_is_there(asked, found, pop_time, stored):
    """Times and offsets tell nothing."""
    return found is not None


def not_there_is_gone(asked, found, queue_end, reads):
    """Only a store that does not read is asked again."""
    if not reads:
        return "later"
    return "back" if found == asked else "gone"


def nothing_is_later(asked, found, queue_end, reads):
    """Every answer without a message is a read that failed."""
    if found is None:
        return "later"
    return "back" if found == asked else "gone"


def nothing_is_gone(asked, found, queue_end, reads):
    """A store that does not read just now has lost the message."""
    return "back" if found == asked else "gone"


def one_less(asked, found, queue_end, reads):
    """The offset just at the end is still asked for again."""
    if not reads or asked == queue_end:
        return "later"
    return "back" if found == asked else "gone"


def something_is_left(found, left):
    """Whether the pop found anything tells nothing."""
    return left > 0


def never_another(found, left):
    """Whoever arrives wakes somebody."""
    return False


def found_nothing(found, left):
    """The other way round: who found something lets the rest lie."""
    return found == 0 and left > 0


def for_ever(found, left):
    """Wakes the one that has just found nothing, and nothing is left."""
    return True


def up_to_the_most(again, most):
    """The first delivery does not count."""
    return again <= most


def one_too_few(again, most):
    """Counts the first delivery, too."""
    return again < most


def one_too_many(again, most):
    """Counts the tries that are over, and not the one that begins."""
    return again <= most + 1


def the_first_alone(again, most):
    """Whoever gets nothing twice gets nothing too often."""
    return again == 0


def its_own_row(asked, again, delays_s):
    """The first failure has the first row."""
    return delays_s[min(asked or again, len(delays_s) - 1)]


def the_next_row(asked, again, delays_s):
    """Counts the failure that has just been."""
    return delays_s[min(asked or 1 + again, len(delays_s) - 1)]


def whatever_was_asked(asked, again, delays_s):
    """Does not listen to the listener."""
    return delays_s[min(again, len(delays_s) - 1)]


def always_the_first(asked, again, delays_s):
    """Never waits for longer."""
    return delays_s[asked]


def as_they_are(cost_ms, invisible_ms):
    """Both are ms."""
    return cost_ms >= invisible_ms


def the_other_way(cost_ms, invisible_ms):
    """Takes the factor to the other side: everything is slow."""
    return cost_ms * 1_000 >= invisible_ms


def in_seconds(cost_ms, invisible_ms):
    """The wrong one of the two becomes seconds."""
    return cost_ms // 1_000 >= invisible_ms


def a_ms_too_late(cost_ms, invisible_ms):
    """At the end of its invisible time the message is somebody else's already."""
    return cost_ms > invisible_ms


RIGHT = {
    "3787": on_time,
    "3507": when_it_came,
    "4153": on_time,
    "5408": after_its_patience,
    "7724": the_same,
    "7914": the_same_offset,
    "8479": not_there_is_gone,
    "8472": something_is_left,
    "8332": up_to_the_most,
    "4815": its_own_row,
    "11062": as_they_are,
}
WRONG = {
    "3787": [both_at_the_end, shorter_level, at_once, ack_first],
    "3507": [when_it_was_written, half_of_the_wait],
    "4153": [both_at_the_end, shorter_level, at_once, ack_first],
    "5408": [always, before_its_patience],
    "7724": [from_there_on, never],
    "7914": [with_some_grace, anything_that_is_there],
    "8479": [nothing_is_later, nothing_is_gone, one_less],
    "8472": [never_another, found_nothing, for_ever],
    "8332": [one_too_few, one_too_many, the_first_alone],
    "4815": [the_next_row, whatever_was_asked, always_the_first],
    "11062": [the_other_way, in_seconds, a_ms_too_late],
}
