"""The checks of lab 31: counts of the three, words that come too late, what a new leader gives out, and the window."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from mqlab import Lab
from mqlab.check import Cases, NotSolvedYet, Wrong, lab_check
from mqlab.errors import LearnerError
from mqlab.exercises.share_day import ShareDay
from mqlab.scenarios.cousins import SYSTEMS, Counter, Hand, System, open_counter

LOCK_S = 20
KILL_S = 16
"""So long behind the pop a broker has written the group's offset: it does so 10 s behind its start, then every 5 s."""
LIMIT = 9


def _opened(
    seed: int, system: System, *, orders: int = 1, history: bool = False
) -> tuple[Lab, Counter, Hand, Hand]:
    """A queue with orders in it, and two workers who have taken none."""
    lab = Lab(seed, history=history)
    counter = open_counter(lab, system, orders=orders, seconds=LOCK_S, limit=LIMIT)
    return lab, counter, counter.worker("worker-1"), counter.worker("worker-2")


# -- counts ---------------------------------------------------------------------------------------------------------


@lab_check("31/counts", points=1)
def counts(answer: Callable[[list[str]], tuple[int, int, int]], *, seed: int) -> Wrong | None:
    """Deliveries that end in silence, and deliveries during which the broker dies: what is told with the next one."""
    random = Random(f"31/counts/{seed}")
    ends = random.choices(("silence", "broker dies"), k=random.randint(4, 7))
    want = tuple(_played(seed, system, ends)[1] for system in SYSTEMS)
    got = answer(list(ends))
    if isinstance(got, tuple | list) and tuple(got) == want:
        return None
    told = f"counts({ends}) is {want} for Pop, the share group and SQS, and yours says {got!r}"
    return Wrong(told, world=partial(_world, seed, ends))


def _world(seed: int, ends: list[str]) -> Lab:
    return _played(seed, "share-group", ends, history=True)[0]


def _played(seed: int, system: System, ends: list[str], *, history: bool = False) -> tuple[Lab, int]:
    """A world with deliveries that end so, and the count that is told with the one behind them."""
    lab, counter, first, _ = _opened(seed, system, history=history)
    told_count = 0
    for end in [*ends, "silence"]:
        while not (taken := lab.run(first.take(1, LOCK_S))):
            lab.run_for(seconds=1)
        told_count = taken[0].told_count
        if end == "broker dies":
            lab.run_for(seconds=KILL_S)
            lab.crash(counter.server.name)
            lab.restart(counter.server.name)
            lab.run_for(seconds=1)
    return lab, told_count


# -- words that come late -------------------------------------------------------------------------------------------


@lab_check("31/is-done", points=1)
def is_done(answer: Callable[[str, float, bool], bool], *, seed: int) -> Wrong | None:
    """Words that come in time, a second late, and long behind it, with a queue for one worker and for two."""
    random, cases = Random(f"31/is-done/{seed}"), Cases()
    asked = [(system, zone, others) for system in SYSTEMS for zone in range(3) for others in (False, True)]
    for system, zone, others in random.sample(asked, 6):
        late_s = round(random.uniform(*((-18, -2), (1, 1.4), (7, 20))[zone]), 2)
        want = not _comes_again(seed, system, late_s, others)
        got = answer(system, late_s, others)
        told = f"is_done({system!r}, {late_s}, {others}) is {want}, and yours says {got!r}"
        cases.note(want, got is want or Wrong(told))
    return cases.result


def _comes_again(seed: int, system: System, late_s: float, others: bool) -> bool:
    """Whether the order is given out again behind the word that it is done, whoever has it just then."""
    lab, _, first, second = _opened(seed, system)
    (held,) = lab.run(first.take(1, LOCK_S))
    began_ms = lab.now_ms
    while lab.now_ms < began_ms + (LOCK_S + late_s) * 1_000 - 300:
        lab.run_for(ms=200)
        if others:
            lab.run(second.take(1, LOCK_S))
    lab.run_for(ms=round(began_ms + (LOCK_S + late_s) * 1_000 - lab.now_ms))
    lab.run(first.done(held))
    for _ in range(50):
        lab.run_for(seconds=1)
        if lab.run(second.take(1, LOCK_S)):
            return True
    return False


# -- a new leader ---------------------------------------------------------------------------------------------------


@lab_check("31/given-out", points=1)
def given_out(answer: Callable[[list[tuple[str, int]]], list[tuple[int, int]]], *, seed: int) -> Wrong | None:
    """Share groups that have come to some point when their broker is killed: what is given out behind it."""
    random = Random(f"31/given-out/{seed}")
    lab, counter, first, _ = _opened(seed, "share-group", orders=random.randint(4, 7))
    for _ in range(random.randint(1, 3)):
        for one in lab.run(first.take(random.randint(2, 7), LOCK_S)):
            if random.random() < 0.3:
                lab.run(first.done(one))
        lab.run_for(seconds=LOCK_S + 1)
    lab.run(first.take(random.randint(1, 4), LOCK_S))
    partition = counter.server.node.life.program.partition
    states = dict(partition.in_flight())
    records = [
        (states[offset].state.name, states[offset].delivery_count)
        if offset in states
        else ("ARCHIVED" if offset < partition.start_offset else "AVAILABLE", 0)
        for offset in range(len(counter.server.node.life.program.records))
    ]
    lab.crash(counter.server.name)
    lab.restart(counter.server.name)
    lab.run_for(seconds=1)
    want = [(one.held, one.told_count) for one in lab.run(first.take(10, LOCK_S))]
    got = answer(list(records))
    if isinstance(got, list | tuple) and [tuple(one) if isinstance(one, list) else one for one in got] == want:
        return None
    return Wrong(f"given_out({records}) is {want}, and yours says {got!r}")


# -- the window -----------------------------------------------------------------------------------------------------


@lab_check("31/share-partition", points=4)
def share_partition(answer: Callable[[int, int, int], Any], *, seed: int) -> Wrong | None:
    """Three members who finish, fail, dawdle, ask for more time and say too much, with short windows and long ones."""
    day = ShareDay(answer, seed)
    try:
        day.play()
    except NotSolvedYet:
        raise
    except LearnerError as error:
        return Wrong(str(error), day.written(*day.lines[-day.LINES :]))
    if day.wrong:
        return Wrong(day.wrong, day.story_to(day.now_ms, day.wrong))
    return None
