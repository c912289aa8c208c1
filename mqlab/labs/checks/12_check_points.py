"""The checks of lab 12: when check points and acks are due, bitmaps, how far has been read, a whole reviver."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from mqlab.check import Cases, NotSolvedYet, Wrong, lab_check
from mqlab.errors import LearnerError, SimulationError
from mqlab.exercises.revive_day import ReviveDay, Settle
from mqlab.protocol.extra_info import ReceiptHandle
from mqlab.protocol.pop_check_point import ACK_TIME_INTERVAL_MS, PopCheckPoint

QUIET_MS = 3_000
"""When what was read is more than so far behind the clock, the clock has to do (PopReviveService)."""


@lab_check("12/dues", points=1)
def dues(answer: Callable[[str], tuple[int, int, int]], *, seed: int) -> Wrong | None:
    """Receipt handles of all kinds: where their acknowledgement is written, and when it can be read there."""
    random, cases = Random(f"12/dues/{seed}"), Cases()
    for _ in range(4):
        pop_ms, invisible_ms = random.randrange(10**12, 2 * 10**12), random.randrange(1_000, 600_000)
        revive_queue, start = random.randrange(8), random.randrange(500)
        handle = ReceiptHandle(
            start, pop_ms, invisible_ms, revive_queue, random.choice("012"), "broker-a", random.randrange(4), start + 3
        ).encode()
        end_ms = pop_ms + invisible_ms
        want = (revive_queue, end_ms - ACK_TIME_INTERVAL_MS, end_ms)
        got = answer(handle)
        right = isinstance(got, tuple | list) and tuple(got) == want
        cases.note(want, right or Wrong(f"dues({handle!r}) is {want}, and yours says {got!r}"))
    return cases.result


@lab_check("12/bitmap", points=1)
def bitmap(answer: Callable[[int, list[int], list[int]], int], *, seed: int) -> Wrong | None:
    """Batches with and without gaps, and acknowledgements in any order, twice, or of other messages."""
    random, cases = Random(f"12/bitmap/{seed}"), Cases()
    for _ in range(4):
        start, gap = random.randrange(100), random.choice((1, 1, 3))
        distances = [0]
        while len(distances) < random.randint(1, 9):
            distances.append(distances[-1] + random.randint(1, gap))
        near = range(max(0, start - 2), start + distances[-1] + 4)
        done = random.choices(near, k=random.randint(0, 8))
        point = PopCheckPoint(start_offset=start, num=len(distances), queue_offset_diff=list(distances))
        want = 0
        for offset in done:
            if (place := point.index_of_ack(offset)) >= 0:
                want |= 1 << place
        got = answer(start, list(distances), list(done))
        told = f"bitmap({start}, {distances}, {done}) is {want} (bits {_bits(want, len(distances))})"
        cases.note(want, got == want or Wrong(f"{told}, and yours says {got!r}"))
    return cases.result


def _bits(value: int, places: int) -> str:
    return ", ".join(str(place) for place in range(places) if value >> place & 1) or "none"


@lab_check("12/end-time", points=1)
def end_time(answer: Callable[[list[int], int, bool], int], *, seed: int) -> Wrong | None:
    """What was read a moment ago and long ago, in order and not, or nothing at all, with a timer that may be behind."""
    random, cases = Random(f"12/end-time/{seed}"), Cases()
    now_ms = random.randrange(100_000, 200_000)
    for quiet_ms in (
        random.randrange(0, QUIET_MS),
        QUIET_MS,
        QUIET_MS + 1,
        random.randrange(QUIET_MS + 1, 9_000),
        None,
    ):
        due_ms: list[int] = []
        if quiet_ms is not None:
            due_ms = [now_ms - quiet_ms - random.randrange(0, 5_000) for _ in range(random.randint(1, 5))]
            due_ms.insert(random.randint(0, len(due_ms)), now_ms - quiet_ms)
        for behind in (False, True):
            newest_ms = max(due_ms, default=0)
            by_clock = bool(due_ms) and now_ms - newest_ms > QUIET_MS and not behind
            want = now_ms if by_clock else newest_ms
            got = answer(list(due_ms), now_ms, behind)
            told = f"end_time({due_ms}, {now_ms}, {behind})"
            cases.note(want, got == want or Wrong(f"{told} is {want}, and yours says {got!r}"))
    return cases.result


@lab_check("12/settle", points=4)
def settle(answer: Settle, *, seed: int) -> Wrong | None:
    """Two groups whose workers acknowledge early, late, together or not at all; at times the timer stands still."""
    day = ReviveDay(answer, seed)
    try:
        day.play()
    except SimulationError as error:
        # What it returns is read in a task of the broker's, which dies of it.
        if not isinstance(error.__cause__, LearnerError) or isinstance(error.__cause__, NotSolvedYet):
            raise
        return Wrong(str(error.__cause__), trace=day.story())
    if day.wrong:
        return Wrong(day.wrong, trace=day.story())
    return None
