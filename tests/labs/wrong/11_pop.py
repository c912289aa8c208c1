"""Plausible wrong solutions of lab 11_pop, each of which its check catches."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any


def only_the_listener(case: Any) -> dict[str, int]:
    """Hides an order for as long as the listener may need; it forgets that the order waits for a thread first."""
    return {"pop_invisible_time": max(5_000, case.slowest_ms + 500)}


def the_default(case: Any) -> dict[str, int]:
    """Leaves all as it is: a minute, which is too long for whoever waits for a dead one's orders."""
    return {}


def as_long_as_allowed(case: Any) -> dict[str, int]:
    """Hides an order for as long as is legal: nothing comes twice, and nothing comes again in time."""
    return {"pop_invisible_time": 300_000, "pop_batch_nums": case.threads, "pop_threshold_for_queue": case.threads}


def by_the_usual_time(case: Any) -> dict[str, int]:
    """Goes by the usual time; some orders take much longer."""
    return {
        "pop_invisible_time": max(5_000, 4 * case.usual_ms),
        "pop_batch_nums": case.threads,
        "pop_threshold_for_queue": case.threads,
    }


def leaves_the_threshold(case: Any) -> dict[str, int]:
    """Takes few at a time, but up to 96 may be held all the same."""
    return {"pop_invisible_time": max(5_000, 2 * case.slowest_ms + 500), "pop_batch_nums": case.threads}


def leaves_the_batch(case: Any) -> dict[str, int]:
    """Sets the threshold, but 32 come on top of it."""
    return {"pop_invisible_time": max(5_000, 2 * case.slowest_ms + 500), "pop_threshold_for_queue": case.threads}


def one_number_for_all(case: Any) -> dict[str, int]:
    """Holds little, and hides every order for as long as the slowest shop needs: too long for the quick ones."""
    return {"pop_invisible_time": 12_500, "pop_batch_nums": case.threads, "pop_threshold_for_queue": case.threads}


def nobody_may_hold_any(case: Any) -> dict[str, int]:
    """A threshold below nothing, with which nobody ever takes an order."""
    return {"pop_invisible_time": 12_500, "pop_batch_nums": case.threads, "pop_threshold_for_queue": -1}


def one_at_a_time(case: Any) -> dict[str, int]:
    """Takes and holds one order at a time: most threads have nothing to do."""
    return {"pop_invisible_time": max(5_000, 2 * case.slowest_ms), "pop_batch_nums": 1, "pop_threshold_for_queue": 1}


def below_the_least(case: Any) -> dict[str, int]:
    """Forgets that no consumer starts with less than 5 s."""
    return {
        "pop_invisible_time": 2 * case.slowest_ms + 500,
        "pop_batch_nums": case.threads,
        "pop_threshold_for_queue": case.threads,
    }


def pays_for_all_that_may_be_held(case: Any) -> dict[str, int]:
    """Reckons with 96 and 32 on top, and hides each order for as long as all of them may take."""
    return {"pop_invisible_time": min(300_000, ceil(128 / case.threads) * case.slowest_ms)}


def one_round_only(case: Any) -> dict[str, int]:
    """Holds little, but forgets that an order may wait for one that is slow before it is slow itself."""
    return {
        "pop_invisible_time": max(5_000, case.slowest_ms + 200),
        "pop_batch_nums": case.threads,
        "pop_threshold_for_queue": case.threads,
    }


def all_that_were_never_taken(
    taken: dict[int, int], acked: set[int], end: int, now_ms: int, invisible_ms: int
) -> list[int]:
    """What was taken once is never handed out again."""
    return [offset for offset in range(end) if offset not in taken]


def forgets_what_is_done(taken: dict[int, int], acked: set[int], end: int, now_ms: int, invisible_ms: int) -> list[int]:
    """What was taken long ago comes again, though it is acknowledged."""
    return [o for o in range(end) if o not in taken or now_ms - taken[o] >= invisible_ms]


def behind_the_first_that_is_open(
    taken: dict[int, int], acked: set[int], end: int, now_ms: int, invisible_ms: int
) -> list[int]:
    """Goes on behind the last that was taken, as an owner with one offset would."""
    return list(range(max(taken, default=-1) + 1, end))


def a_moment_too_late(taken: dict[int, int], acked: set[int], end: int, now_ms: int, invisible_ms: int) -> list[int]:
    """At the end of the time exactly an order is still hidden for it."""
    return [o for o in range(end) if o not in acked and (o not in taken or now_ms - taken[o] > invisible_ms)]


def as_with_push(members: int, queues: int, pops: bool) -> int:
    """Whoever has no queue idles, also with Pop."""
    return min(members, queues)


def everybody(members: int, queues: int, pops: bool) -> int:
    """All work, also with push."""
    return members


def swapped(members: int, queues: int, pops: bool) -> int:
    """Confuses the two."""
    return min(members, queues) if pops else members


def as_soon_as_it_is_due(pop_ms: int, invisible_ms: int, newest_ms: int) -> bool:
    """Judges as soon as the time is over; acknowledgements of the same moment may not have been read."""
    return newest_ms > pop_ms + invisible_ms


def two_seconds_are_enough(pop_ms: int, invisible_ms: int, newest_ms: int) -> bool:
    """Judges at exactly two seconds."""
    return newest_ms - (pop_ms + invisible_ms) >= 2_000


def counts_from_the_pop(pop_ms: int, invisible_ms: int, newest_ms: int) -> bool:
    """Forgets the invisible time."""
    return newest_ms - pop_ms > 2_000


def without_an_end(tries: int, delays_s: Sequence[int]) -> int:
    """Has no answer behind the end of the table."""
    return delays_s[tries] if tries < len(delays_s) else 0


def one_further(tries: int, delays_s: Sequence[int]) -> int:
    """Counts the first failure as one try before."""
    return delays_s[min(tries + 1, len(delays_s) - 1)]


def from_the_first_again(tries: int, delays_s: Sequence[int]) -> int:
    """Begins anew behind the end of the table."""
    return delays_s[tries % len(delays_s)]


WRONG = {
    "11/may-take": [
        all_that_were_never_taken,
        forgets_what_is_done,
        behind_the_first_that_is_open,
        a_moment_too_late,
    ],
    "11/at-work": [as_with_push, everybody, swapped],
    "11/may-judge": [as_soon_as_it_is_due, two_seconds_are_enough, counts_from_the_pop],
    "11/again-in": [without_an_end, one_further, from_the_first_again],
    "11/settings": [
        only_the_listener,
        the_default,
        as_long_as_allowed,
        by_the_usual_time,
        leaves_the_threshold,
        leaves_the_batch,
        one_number_for_all,
        nobody_may_hold_any,
        one_at_a_time,
        below_the_least,
        pays_for_all_that_may_be_held,
        one_round_only,
    ],
}
