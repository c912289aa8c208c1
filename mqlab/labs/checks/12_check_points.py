"""The checks of lab 12: when check points and acks are due, bitmaps, which check points are ripe, a whole reviver."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from mqlab.check import Cases, NotSolvedYet, Wrong, lab_check
from mqlab.errors import LearnerError, SimulationError
from mqlab.protocol.extra_info import ReceiptHandle
from mqlab.protocol.pop_check_point import ACK_TIME_INTERVAL_MS, PopCheckPoint
from mqlab.scenarios.revive_day import ReviveDay, Settle

RIPE_MS = 2_000


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


@lab_check("12/ripe", points=1)
def ripe(answer: Callable[[list[int], int], int], *, seed: int) -> Wrong | None:
    """Check points in the order of a revive queue, most of them in the order of their times."""
    random, cases = Random(f"12/ripe/{seed}"), Cases()
    newest_ms = random.randrange(100_000, 200_000)
    for _ in range(6):
        revive_ms = sorted(newest_ms - random.randrange(-1_000, 6_000) for _ in range(random.randint(0, 6)))
        if random.random() < 0.5:
            random.shuffle(revive_ms)
        if revive_ms and random.random() < 0.4:
            revive_ms[random.randrange(len(revive_ms))] = newest_ms - RIPE_MS
        want = next((n for n, ms in enumerate(revive_ms) if newest_ms - ms <= RIPE_MS), len(revive_ms))
        got = answer(list(revive_ms), newest_ms)
        ages = ", ".join(f"{newest_ms - ms:+}" for ms in revive_ms)
        told = f"the newest record was due these many ms behind the check points' times: {ages or 'no check points'}. "
        cases.note(want, got == want or Wrong(f"{told}{want} of them can be settled, and yours says {got!r}"))
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
