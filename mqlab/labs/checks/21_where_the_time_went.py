"""Judges for lab 21: a share, a percentile of many days, those who were not asked, and the stage that took the most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import isclose
from typing import NamedTuple

from mqlab.check import Wrong, draws_for, lab_check
from mqlab.data_sets.named_worlds import WorldSpec
from mqlab.lab import Lab
from mqlab.labs.many_worlds import WORLDS_IN_ONE_JOB, Answer, ManyWorlds
from mqlab.trace.history import History

COLUMNS = ("world", "msg_id", "total_us", "stage", "stage_us")
STAGES = ("sending", "waiting", "listening")
LINES_SHOWN = 10


class Life(NamedTuple):
    """How long an order took in all, the stage that took the most of it, and how long that stage took, in us."""

    total_us: int
    stage: str
    stage_us: int

    def __str__(self) -> str:
        return f"({self.total_us} us in all, {self.stage} took {self.stage_us} us)"


@lab_check("21/slowest-share", points=1)
def slowest_share(answer: Callable[[list[int], int], float], *, seed: int) -> Wrong | None:
    """Some dozens of times, in any order, and shares from the slowest one to all of them."""
    draw = draws_for(seed)
    times = [draw.between(f"time {n}", 1, 20) ** 3 for n in range(draw.between("times", 8, 60))]
    for share in (1, draw.between("share", 2, 60), 100):
        slowest = sorted(times, reverse=True)[: max(1, len(times) * share // 100)]
        want = 100 * sum(slowest) / sum(times)
        got = answer(list(times), share)
        if not isinstance(got, int | float) or not isclose(got, want, rel_tol=1e-6):
            told = f"the slowest {share} % of {len(times)} times have {want:.3f} % of the sum, and yours says {got!r}"
            return Wrong(told, f"sorted: {', '.join(map(str, sorted(times)))}")
    return None


@lab_check("21/percentile-of-days", points=1)
def percentile_of_days(answer: Callable[[list[dict[int, int]], int], int], *, seed: int) -> Wrong | None:
    """Two to six days with histograms of other bins and other numbers of orders."""
    draw = draws_for(seed)
    days = [
        {
            2 ** draw.between(f"bin {day} {n}", 0, 12): draw.between(f"count {day} {n}", 1, 400)
            for n in range(draw.between(f"bins {day}", 1, 6))
        }
        for day in range(draw.between("days", 2, 6))
    ]
    together: Counter[int] = Counter()
    for histogram in days:
        together.update(histogram)
    for percent in (50, draw.between("percent", 1, 98), 99, 100):
        enough = percent * together.total()
        want = min(end for end in together if 100 * sum(c for e, c in together.items() if e <= end) >= enough)
        got = answer([dict(histogram) for histogram in days], percent)
        if got != want:
            story = "\n".join(f"day {n}: {dict(sorted(histogram.items()))}" for n, histogram in enumerate(days, 1))
            return Wrong(f"p{percent} of all orders is in the bin up to {want} ms, and yours says {got!r}", story)
    return None


@lab_check("21/with-omitted", points=1)
def with_omitted(answer: Callable[[list[int], int], list[int]], *, seed: int) -> Wrong | None:
    """Short times, long ones, and some that are an exact multiple of the pause."""
    draw = draws_for(seed)
    every_ms = draw.one_of("every", [100, 250, 400])
    times = [draw.between(f"time {n}", 1, 4 * every_ms) for n in range(draw.between("times", 1, 8))]
    times.append(every_ms * draw.between("multiple", 1, 3))
    want = sorted(time - late for time in times for late in range(0, time, every_ms))
    got = answer(list(times), every_ms)
    if not isinstance(got, list) or sorted(got) != want:
        return Wrong(f"{times} with one every {every_ms} ms gives {want} (in any order), and yours says {got!r}")
    return None


def _play(seed: int) -> Lab:
    """Processes hang; in every second world there are two brokers, and what one refuses is sent to the other.

    Every fourth world ends while orders are on their way.
    """
    parameters = {"consumers": 2, "messages": 25, "every_ms": 400, "brokers": 1 if seed % 2 else 2}
    faults = ("freeze",) if seed % 2 else ("freeze", "crash", "disconnect")
    return WorldSpec(
        "push-clustering",
        seed,
        parameters,
        seconds=30 if seed % 4 else 6,
        faults=faults,
        settle_seconds=60 if seed % 4 else 0,
    ).play()


_worlds = ManyWorlds(_play, lambda lab: _lives(lab.history))


@lab_check("21/where-the-time-went", points=3, together=WORLDS_IN_ONE_JOB)
def where_the_time_went(answer: Answer, *, seed: int) -> Wrong | None:
    """Fifty hidden days on which processes hang and crash: each packed order has its row, and no other has."""
    rows = _worlds.rows(answer, seed, COLUMNS)
    if isinstance(rows, Wrong):
        return rows
    wanted = _worlds.truth(seed)
    found: dict[str, list[Life]] = {}
    for row in rows:
        found.setdefault(row.msg_id, []).append(Life(row.total_us, row.stage, row.stage_us))
    for key in sorted(wanted.keys() | found.keys()):
        mine = found.get(key, [])
        if mine == [wanted.get(key)]:
            continue
        if key not in wanted:
            told = f"order {key} was never packed, and yours has a row of it"
        elif len(mine) == 1:
            told = f"order {key}: {wanted[key]} is wanted, and yours says {mine[0]}"
        else:
            told = f"order {key}: one row is wanted, {wanted[key]}, and yours has {len(mine)}"
        return replace(Wrong(told, _steps(_worlds.lab(seed).history, key)), world=partial(_play, seed))
    return None


KINDS = ("SendAttempted", "MessageStored", "ConsumeStarted", "ConsumeFinished")


def _lives(history: History) -> dict[str, Life]:
    """Each order that was packed, read from the events one by one."""
    firsts: dict[str, dict[str, int]] = {}
    for event in history.find(KINDS):
        if event.kind == "ConsumeFinished" and event.status != "CONSUME_SUCCESS":
            continue
        key = event.unique_key if event.kind == "MessageStored" else event.msg_id
        firsts.setdefault(key, {}).setdefault(event.kind, event.ts_us)
    lives = {}
    for key, at in firsts.items():
        if len(at) == len(KINDS):
            took = {stage: at[to] - at[of] for stage, of, to in zip(STAGES, KINDS, KINDS[1:], strict=False)}
            stage = max(STAGES, key=lambda each: took[each])
            lives[key] = Life(at[KINDS[-1]] - at[KINDS[0]], stage, took[stage])
    return lives


def _steps(history: History, key: str) -> str:
    mine = [event for event in history.find(KINDS) if key == getattr(event, "msg_id", getattr(event, "unique_key", ""))]
    return "\n".join(
        f"{event.ts_us:>10} us  {event.kind:<15} {getattr(event, 'status', '')}".rstrip()
        for event in mine[:LINES_SHOWN]
    )
