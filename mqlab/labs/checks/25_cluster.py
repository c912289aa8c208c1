"""Judges for lab 25: what must be read, what crosses, how long a stage takes, and a query without one huge task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab import scenarios
from mqlab.check import Wrong, draws_for, lab_check
from mqlab.labs.many_worlds import MEMORY
from mqlab.trace.bus import COMMON_FIELDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mqlab.lab import Lab

Answer = Callable[["DataFrame", int], "DataFrame"]

TS_US = COMMON_FIELDS.index("ts_us")
SCENARIO = "steady-load"
WORLDS_IN_ONE_JOB = 50
LARGE_S, SMALL_S = 90, 3
SLICE_US = 250_000
TASKS = 16
MOST_OF_ONE_TASK = 0.5
"""The part of all rows that one task may fetch. The largest world has more than half of them, in many slices."""


@lab_check("25/read", points=1)
def read(answer: Callable[[list[tuple[int, int]], int, int], list[int]], *, seed: int) -> Wrong | None:
    """Blocks of a file with the least and the greatest time in each, some of them touching the stretch at its ends."""
    draw = draws_for(seed)
    first = draw.between("first", 20, 60)
    last = first + draw.between("length", 0, 30)
    blocks = [(low := draw.between(f"low {n}", 0, 80), low + draw.between(f"span {n}", 0, 40)) for n in range(8)]
    blocks += [(first - 5, first), (last, last + 5), (first - 9, last + 9)]
    blocks += [(first - 3, first - 1), (last + 1, last + 2)]
    blocks = draw.shuffled("order", blocks)
    want = [n for n, (low, high) in enumerate(blocks) if set(range(low, high + 1)) & set(range(first, last + 1))]
    got = answer(list(blocks), first, last)
    if got == want:
        return None
    told = "\n".join(f"block {n}: {low} to {high}" + (" must be read" if n in want else "")
                     for n, (low, high) in enumerate(blocks))  # fmt: skip
    return Wrong(f"events from {first} to {last} can be in the blocks {want}, and yours says {got!r}", trace=told)


@lab_check("25/crossing", points=1)
def crossing(answer: Callable[[list[list[str]]], int], *, seed: int) -> Wrong | None:
    """Two to six tasks, each with some kinds of events, many of them in several tasks."""
    draw = draws_for(seed)
    kinds = ["PullReceived", "PullHeld", "PullAnswered", "MessageStored", "RequestSent"]
    tasks = [
        [draw.one_of(f"{task}, {n}", kinds) for n in range(draw.between(f"rows of {task}", 0 if task else 1, 25))]
        for task in range(draw.between("tasks", 2, 6))
    ]
    want = sum(len([kind for kind in kinds if kind in rows]) for rows in tasks)
    got = answer([list(rows) for rows in tasks])
    if got == want:
        return None
    told = "\n".join(f"task {n}: {', '.join(rows) or 'nothing'}" for n, rows in enumerate(tasks))
    return Wrong(f"{want} rows cross, and yours says {got!r}", trace=told)


@lab_check("25/stage", points=1)
def stage(answer: Callable[[list[int], int], int], *, seed: int) -> Wrong | None:
    """Stages of a few tasks, one of them perhaps much larger, on one to six cores."""
    draw = draws_for(seed)
    tasks = [draw.between(f"task {n}", 1, 9) for n in range(draw.between("tasks", 1, 12))]
    tasks = draw.shuffled("order", [*tasks, draw.one_of("large", [2, 30, 60])])
    cores = draw.between("cores", 1, 6)
    ends = [0] * cores
    told = []
    for number, rows in enumerate(tasks):
        core = ends.index(min(ends))
        told.append(f"task {number} ({rows} rows) begins at {ends[core]} on core {core}")
        ends[core] += rows
    got = answer(list(tasks), cores)
    if got == max(ends):
        return None
    return Wrong(f"{cores} cores are done at {max(ends)}, and yours says {got!r}", trace="\n".join(told))


@lab_check("25/longest-silence", points=3, together=WORLDS_IN_ONE_JOB)
def longest_silence(answer: Answer, *, seed: int) -> Wrong | None:
    """The traces of fifty worlds, one of them far larger than the others, in one job with sixteen tasks."""
    block, place = divmod(seed - 1, WORLDS_IN_ONE_JOB)
    found = _job.silences(answer, block)
    if isinstance(found, Wrong):
        wrong: Wrong | None = found
    else:
        wrong = _compare(found.get(_name(seed), []), seed)
        if wrong is None and not place and (unknown := sorted(set(found) - {_name(each) for each in _seeds(block)})):
            wrong = Wrong(f"yours has a row for {unknown[0]}, and there is no such world")
    return wrong and replace(wrong, world=partial(_play, seed))


class Silence(NamedTuple):
    """A row of an answer."""

    events: Any
    silence_us: Any


Found = dict[str, list[Silence]]


def _play(seed: int) -> Lab:
    """The world of a seed; every fiftieth is a large one."""
    large = seed % WORLDS_IN_ONE_JOB == 1
    messages = 900 if large else draws_for(seed).between("messages", 1, 5)
    return scenarios.get(SCENARIO).play(seed, seconds=LARGE_S if large else SMALL_S, parameters={"messages": messages})


def _name(seed: int) -> str:
    return f"shop-{seed}"


def _seeds(block: int) -> range:
    return range(block * WORLDS_IN_ONE_JOB + 1, (block + 1) * WORLDS_IN_ONE_JOB + 1)


class _Worlds:
    """The times of the events of worlds, each played once, in the order of the events."""

    def __init__(self) -> None:
        self._known: dict[int, list[int]] = {}

    def of(self, seed: int) -> list[int]:
        if seed not in self._known:
            self._known[seed] = [row[TS_US] for row in _play(seed).history.rows()]
        return self._known[seed]


class _Job:
    """What an answer found in each world of a block: one job for all of them."""

    def __init__(self) -> None:
        self._asked: tuple[Answer, int] | None = None
        self._found: Found | Wrong = {}

    def silences(self, answer: Answer, block: int) -> Found | Wrong:
        if self._asked is None or self._asked[0] is not answer or self._asked[1] != block:
            self._found = _run(answer, block)
            self._asked = (answer, block)
        return self._found


_worlds, _job = _Worlds(), _Job()


def _run(answer: Answer, block: int) -> Found | Wrong:
    from pyspark.errors import PySparkException

    from mqlab_spark import session

    spark = session(driver_memory=MEMORY)
    settings = {"spark.sql.shuffle.partitions": str(TASKS), "spark.sql.adaptive.coalescePartitions.enabled": "false"}
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        return _judge(spark, answer, block)
    except PySparkException as error:
        # The plan that follows has numbers that differ from run to run.
        told = str(error).strip().partition("\n")[0].partition(" SQLSTATE")[0]
        return Wrong(f"Spark refuses your query: {told}")
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def _judge(spark: SparkSession, answer: Answer, block: int) -> Found | Wrong:
    from pyspark.sql import DataFrame

    from mqlab.labs.tasks import rows_of_tasks

    events, number = _events(spark, block)
    result = answer(events, SLICE_US)
    if not isinstance(result, DataFrame):
        return Wrong(f"a DataFrame is wanted, and yours gives {type(result).__name__}; return what you have built")
    missing = [column for column in ("world", *Silence._fields) if column not in result.columns]
    if missing:
        return Wrong(f"your table lacks {', '.join(missing)}; it has {', '.join(result.columns)}")
    rows: list[Any] = []
    tasks = rows_of_tasks(result, lambda each: rows.extend(each.select("world", *Silence._fields).collect()))
    found: Found = {}
    for row in rows:
        found.setdefault(row.world, []).append(Silence(row.events, row.silence_us))
    if any(_compare(found.get(_name(seed), []), seed) for seed in _seeds(block)):
        return found
    most = max(tasks, default=number)
    if most > MOST_OF_ONE_TASK * number:
        return Wrong(
            f"every row of yours is right, but one of your tasks got {most:,} of {number:,} rows, and all the other "
            "cores wait for it",
            trace=f"the largest world has {len(_worlds.of(_seeds(block)[0])):,} events; whose work is it to sort them?",
        )
    return found


def _events(spark: SparkSession, block: int) -> tuple[DataFrame, int]:
    """The events of a block's worlds in no order, and how many there are."""
    import pandas as pd

    worlds = [pd.DataFrame({"world": _name(seed), "ts_us": _worlds.of(seed)}) for seed in _seeds(block)]
    together = pd.concat(worlds).sample(frac=1, random_state=7)
    return spark.createDataFrame(together, "world string, ts_us long"), len(together)


def _compare(rows: list[Silence], seed: int) -> Wrong | None:
    times = _worlds.of(seed)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    want = Silence(len(times), max(gaps))
    if rows == [want]:
        return None
    at = gaps.index(want.silence_us)
    told = f"{_name(seed)} has {want.events:,} events, and nothing happens in it for {want.silence_us:,} us"
    trace = (
        f"the silence lasts from {times[at]:,} us (slice {times[at] // SLICE_US}) to {times[at + 1]:,} us "
        f"(slice {times[at + 1] // SLICE_US})"
    )
    if len(rows) != 1:
        return Wrong(f"{told}; yours has {len(rows)} rows for it", trace)
    return Wrong(f"{told}; yours says {rows[0].events} events, {rows[0].silence_us} us", trace)
