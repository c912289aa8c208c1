"""Judges for lab 25: what must be read, what crosses, how long a stage takes, and a query without one huge task."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab import scenarios
from mqlab.check import Wrong, draws_for, lab_check
from mqlab.labs.many_worlds import MEMORY
from mqlab.trace.bus import COMMON_FIELDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from mqlab.lab import Lab

CutAnswer = Callable[["DataFrame", int], "DataFrame"]
SilenceAnswer = Callable[["DataFrame"], "DataFrame"]
Found = dict[str, list[Any]]
"""An answer's rows for each world."""

TS_US = COMMON_FIELDS.index("ts_us")
SCENARIO = "steady-load"
WORLDS_IN_ONE_JOB = 50
LARGE_S, SMALL_S = 90, 3
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
def stage(answer: Callable[[list[int], list[int]], int], *, seed: int) -> Wrong | None:
    """Stages of a few tasks, one of them perhaps much larger, on one to six cores, of which some are slower."""
    draw = draws_for(seed)
    tasks = [draw.between(f"task {n}", 1, 9) for n in range(draw.between("tasks", 1, 12))]
    tasks = draw.shuffled("order", [*tasks, draw.one_of("large", [2, 30, 60])])
    ms_per_row = [draw.one_of(f"core {n}", [1, 1, 2, 3]) for n in range(draw.between("cores", 1, 6))]
    ends = [0] * len(ms_per_row)
    told = []
    for number, rows in enumerate(tasks):
        core = ends.index(min(ends))
        told.append(f"task {number} ({rows} rows) begins at {ends[core]} on core {core}")
        ends[core] += rows * ms_per_row[core]
    got = answer(list(tasks), list(ms_per_row))
    if got == max(ends):
        return None
    explanation = f"cores with {ms_per_row} ms per row are done at {max(ends)} ms, and yours says {got!r}"
    return Wrong(explanation, trace="\n".join(told))


@lab_check("25/slices", points=2, together=WORLDS_IN_ONE_JOB)
def slices(answer: CutAnswer, *, seed: int) -> Wrong | None:
    """The traces of fifty worlds, one of them far larger than the others, cut in one job with sixteen tasks."""
    return _verdict(_cutting, answer, seed)


@lab_check("25/longest-silence", points=1, together=WORLDS_IN_ONE_JOB)
def longest_silence(answer: SilenceAnswer, *, seed: int) -> Wrong | None:
    """The slices of fifty worlds in one job, rightly cut, each world's time in four widths."""
    return _verdict(_summing, answer, seed)


class Slice(NamedTuple):
    """A row of what `slices` gives, beside its world: times in us, and nothing inside where there is one event."""

    slice: Any
    events: Any
    first_us: Any
    last_us: Any
    inside_us: Any

    def __str__(self) -> str:
        events = "1 event" if self.events == 1 else f"{self.events} events"
        return f"{events} from {self.first_us} to {self.last_us} us, longest gap inside {self.inside_us or 'none'}"


class Silence(NamedTuple):
    """A row of what `silences` gives, beside its world."""

    events: Any
    silence_us: Any


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


class _Question(NamedTuple):
    """One of the two functions: what is asked for a block of worlds, and what is wrong in its rows for one of them.

    `names` are those under which a seed's world stands in the rows.
    """

    row: type[Slice | Silence]
    ask: Callable[[Any, SparkSession, int], DataFrame]
    names: Callable[[int], Iterable[str]]
    compare: Callable[[Found, int], Wrong | None]
    shared: bool
    """Whether the rows are so many that no task may have most of them."""


class _Job:
    """What an answer found in each world of a block: one job for all of them."""

    def __init__(self) -> None:
        self._asked: tuple[Any, int] | None = None
        self._found: Found | Wrong = {}

    def rows(self, question: _Question, answer: Any, block: int) -> Found | Wrong:
        if self._asked is None or self._asked[0] is not answer or self._asked[1] != block:
            self._found = _run(question, answer, block)
            self._asked = (answer, block)
        return self._found


_worlds, _job = _Worlds(), _Job()


def _verdict(question: _Question, answer: Any, seed: int) -> Wrong | None:
    block, place = divmod(seed - 1, WORLDS_IN_ONE_JOB)
    found = _job.rows(question, answer, block)
    if isinstance(found, Wrong):
        wrong: Wrong | None = found
    else:
        wrong = question.compare(found, seed)
        known = {name for each in _seeds(block) for name in question.names(each)}
        if wrong is None and not place and (unknown := sorted(map(str, found.keys() - known))):
            wrong = Wrong(f"yours has a row for {unknown[0]}, and there is no such world")
    return wrong and replace(wrong, world=partial(_play, seed))


def _run(question: _Question, answer: Any, block: int) -> Found | Wrong:
    from pyspark.errors import PySparkException

    from mqlab_spark import session

    spark = session(driver_memory=MEMORY)
    settings = {"spark.sql.shuffle.partitions": str(TASKS), "spark.sql.adaptive.coalescePartitions.enabled": "false"}
    before = {name: spark.conf.get(name, None) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        return _judge(question, spark, answer, block)
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


def _judge(question: _Question, spark: SparkSession, answer: Any, block: int) -> Found | Wrong:
    from pyspark.sql import DataFrame

    from mqlab.labs.tasks import rows_of_tasks

    columns = ("world", *question.row._fields)
    result = question.ask(answer, spark, block)
    if not isinstance(result, DataFrame):
        return Wrong(f"a DataFrame is wanted, and yours gives {type(result).__name__}; return what you have built")
    missing = [column for column in columns if column not in result.columns]
    if missing:
        return Wrong(f"your table lacks {', '.join(missing)}; it has {', '.join(result.columns)}")
    rows: list[Any] = []
    tasks = rows_of_tasks(result, lambda each: rows.extend(each.select(*columns).collect()))
    found: Found = {}
    for row in rows:
        found.setdefault(row.world, []).append(question.row(*row[1:]))
    if not question.shared or any(question.compare(found, seed) for seed in _seeds(block)):
        return found
    number = sum(len(_worlds.of(seed)) for seed in _seeds(block))
    most = max(tasks, default=number)
    if most > MOST_OF_ONE_TASK * number:
        return Wrong(
            f"every row of yours is right, but one of your tasks got {most:,} of {number:,} rows, and all the other "
            "cores wait for it",
            trace=f"the largest world has {len(_worlds.of(_seeds(block)[0])):,} events; whose work is it to sort them?",
        )
    return found


def _cut(answer: CutAnswer, spark: SparkSession, block: int) -> DataFrame:
    """The events of a block's worlds, in no order, are cut."""
    import pandas as pd

    worlds = [pd.DataFrame({"world": _name(seed), "ts_us": _worlds.of(seed)}) for seed in _seeds(block)]
    together = pd.concat(worlds).sample(frac=1, random_state=7)
    return answer(spark.createDataFrame(together, "world string, ts_us long"), _slice_us(block))


def _sum_up(answer: SilenceAnswer, spark: SparkSession, block: int) -> DataFrame:
    """The slices of a block's worlds, in no order, are put together."""
    import pyarrow as pa

    rows = [
        (name, *each)
        for seed in _seeds(block)
        for name, slice_us in _widths(seed).items()
        for each in _slices(_opened(seed), slice_us)
    ]
    columns = zip(*draws_for(block).shuffled("rows", rows), strict=True)
    table = pa.table([pa.array(column) for column in columns], ("world", *Slice._fields))
    return answer(spark.createDataFrame(table))


def _slice_us(block: int) -> int:
    """How wide the slices of a block are."""
    return draws_for(block).one_of("slice", [150_000, 200_000, 250_000, 300_000])


def _widths(seed: int) -> dict[str, int]:
    """The names under which a world is summed up, each with its width of a slice: few events in each, or all in one."""
    return {f"{_name(seed)} in slices of {ms:,} ms": ms * 1000 for ms in (50, 400, 2_000, 1_000_000)}


def _opened(seed: int) -> list[int]:
    """The times of a world's events, when it is opened at an hour of its own."""
    opened_us = 1_000_000 * draws_for(seed).between("opened", 0, 900)
    return [opened_us + time for time in _worlds.of(seed)]


def _slices(events: list[int], slice_us: int) -> list[Slice]:
    """What is true of each slice in which something happens, for the times of events in order."""
    found = []
    for number, group in groupby(events, key=lambda time: time // slice_us):
        times = list(group)
        inside = max((later - earlier for earlier, later in pairwise(times)), default=None)
        found.append(Slice(number, len(times), times[0], times[-1], inside))
    return found


def _compare_slices(rows_of: Found, seed: int) -> Wrong | None:
    slice_us = _slice_us((seed - 1) // WORLDS_IN_ONE_JOB)
    wanted = {each.slice: each for each in _slices(_worlds.of(seed), slice_us)}
    found: dict[Any, list[Slice]] = {}
    for row in rows_of.get(_name(seed), []):
        found.setdefault(row.slice, []).append(row)
    told = f"a slice is {slice_us:,} us, and {_name(seed)} has events in {len(wanted)} of them"
    for number, want in wanted.items():
        got = found.pop(number, [])
        if len(got) != 1:
            return Wrong(f"{_name(seed)}, slice {number}: {want}; yours has {len(got)} rows for it", told)
        if got[0]._replace(inside_us=got[0].inside_us or None) != want:
            return Wrong(f"{_name(seed)}, slice {number}: {want}; yours says {got[0]}", told)
    if found:
        other = next(iter(found))
        return Wrong(f"yours has a row for slice {other!r} of {_name(seed)}, in which nothing happens", told)
    return None


def _compare_silences(rows_of: Found, seed: int) -> Wrong | None:
    times = _opened(seed)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    want = Silence(len(times), max(gaps))
    at = gaps.index(want.silence_us)
    for name, slice_us in _widths(seed).items():
        rows = rows_of.get(name, [])
        if rows == [want]:
            continue
        told = f"{name}: {want.events:,} events, and nothing happens for {want.silence_us:,} us"
        trace = (
            f"the silence lasts from {times[at]:,} us (slice {times[at] // slice_us}) to {times[at + 1]:,} us "
            f"(slice {times[at + 1] // slice_us})"
        )
        if len(rows) != 1:
            return Wrong(f"{told}; yours has {len(rows)} rows for it", trace)
        return Wrong(f"{told}; yours says {rows[0].events} events, {rows[0].silence_us} us", trace)
    return None


_cutting = _Question(Slice, _cut, lambda seed: [_name(seed)], _compare_slices, shared=True)
_summing = _Question(Silence, _sum_up, _widths, _compare_silences, shared=False)
