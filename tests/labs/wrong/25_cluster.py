"""Plausible wrong solutions of lab 25_cluster, each of which its check catches."""

from __future__ import annotations

import heapq

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses


def only_blocks_inside(blocks: list[tuple[int, int]], first: int, last: int) -> list[int]:
    """Leaves out blocks that reach beyond the stretch on one side."""
    return [n for n, (low, high) in enumerate(blocks) if first <= low and high <= last]


def without_the_ends(blocks: list[tuple[int, int]], first: int, last: int) -> list[int]:
    """Leaves out a block whose last event is the first that is wanted."""
    return [n for n, (low, high) in enumerate(blocks) if low < last and high > first]


def one_end_inside(blocks: list[tuple[int, int]], first: int, last: int) -> list[int]:
    """Forgets a block that holds the whole stretch and more."""
    return [n for n, (low, high) in enumerate(blocks) if first <= low <= last or first <= high <= last]


def every_row(tasks: list[list[str]]) -> int:
    """Counts without the first half of the work being done where the rows are."""
    return sum(len(rows) for rows in tasks)


def every_kind_once(tasks: list[list[str]]) -> int:
    """Counts the rows of the answer; two tasks do not know of each other."""
    return len({kind for rows in tasks for kind in rows})


def shared_fairly(tasks: list[int], ms_per_row: list[int]) -> int:
    """Divides the work; a task cannot be divided."""
    return -(-sum(tasks) // len(ms_per_row))


def one_after_the_other(tasks: list[int], ms_per_row: list[int]) -> int:
    """Deals the tasks out in turn, also to a core that is still busy."""
    return max(sum(tasks[core :: len(ms_per_row)]) * ms for core, ms in enumerate(ms_per_row))


def the_largest(tasks: list[int], ms_per_row: list[int]) -> int:
    """Waits for the largest task alone."""
    return max(tasks) * max(ms_per_row)


def all_alike(tasks: list[int], ms_per_row: list[int]) -> int:
    """Takes the lab's own function, in which all cores are as fast as the first one."""
    busy = [0] * len(ms_per_row)
    for rows in tasks:
        heapq.heappush(busy, heapq.heappop(busy) + rows)
    return max(busy) * ms_per_row[0]


def to_the_fastest(tasks: list[int], ms_per_row: list[int]) -> int:
    """Gives a task to the core that would be done with it first; nobody asks how fast a core is."""
    ends = [0] * len(ms_per_row)
    for rows in tasks:
        core = min(range(len(ends)), key=lambda n: ends[n] + rows * ms_per_row[n])
        ends[core] += rows * ms_per_row[core]
    return max(ends)


def _cut(events: DataFrame, slice_us: int) -> DataFrame:
    return events.withColumn("slice", F.floor(F.col("ts_us") / slice_us))


def _summed_up(sliced: DataFrame, *keys: str) -> DataFrame:
    gap = F.col("ts_us") - F.lag("ts_us").over(Window.partitionBy(*keys).orderBy("ts_us"))
    return sliced.withColumn("gap", gap).groupBy("world", "slice").agg(
        F.count("*").alias("events"),
        F.min("ts_us").alias("first_us"),
        F.max("ts_us").alias("last_us"),
        F.max("gap").alias("inside_us"),
    )  # fmt: skip


def all_of_a_world(events: DataFrame, slice_us: int) -> DataFrame:
    """Is right, and gives all rows of the largest world to one task."""
    by_world = Window.partitionBy("world").orderBy("ts_us")
    gap = F.col("ts_us") - F.lag("ts_us").over(by_world)
    sliced = _cut(events, slice_us)
    inside = sliced.withColumn("gap", F.when(F.lag("slice").over(by_world) == F.col("slice"), gap))
    return inside.groupBy("world", "slice").agg(
        F.count("*").alias("events"),
        F.min("ts_us").alias("first_us"),
        F.max("ts_us").alias("last_us"),
        F.max("gap").alias("inside_us"),
    )


def with_the_gap_before(events: DataFrame, slice_us: int) -> DataFrame:
    """Counts the time since the last slice as inside of this one."""
    return _summed_up(_cut(events, slice_us), "world")


def salted_by_chance(events: DataFrame, slice_us: int) -> DataFrame:
    """Spreads rows with a salt that tears neighbours apart."""
    return _summed_up(events.withColumn("slice", F.pmod(F.hash("ts_us"), F.lit(16))), "world", "slice")


def worlds_mixed_up(events: DataFrame, slice_us: int) -> DataFrame:
    """Looks at the time of all worlds together."""
    return _summed_up(_cut(events, slice_us), "slice")


def rounded(events: DataFrame, slice_us: int) -> DataFrame:
    """Cuts in the middle of each slice."""
    return _summed_up(events.withColumn("slice", F.round(F.col("ts_us") / slice_us)), "world", "slice")


def first_to_last(events: DataFrame, slice_us: int) -> DataFrame:
    """Takes the whole time from the first event of a slice to the last for a gap."""
    return _summed_up(_cut(events, slice_us), "world", "slice").withColumn("inside_us", F.expr("last_us - first_us"))


def _together(cut: DataFrame, silence: Column, events: Column | None = None) -> DataFrame:
    counted = F.sum("events") if events is None else events
    return cut.groupBy("world").agg(counted.alias("events"), F.max(silence).alias("silence_us"))


def _across(cut: DataFrame, before: Column) -> DataFrame:
    return cut.withColumn("across_us", F.col("first_us") - before)


BEFORE = "lag(last_us) over (partition by world order by slice)"
EITHER = "greatest(inside_us, across_us)"


def inside_slices_only(cut: DataFrame) -> DataFrame:
    """Forgets the silence from one slice to the next."""
    return _together(cut, F.col("inside_us"))


def between_slices_only(cut: DataFrame) -> DataFrame:
    """Forgets the silence inside of a slice."""
    return _together(_across(cut, F.expr(BEFORE)), F.col("across_us"))


def neighbours_by_number(cut: DataFrame) -> DataFrame:
    """Looks at the slice before by its number, where there may be nothing."""
    next_door = "case when slice - lag(slice) over (partition by world order by slice) = 1 then " + BEFORE + " end"
    return _together(_across(cut, F.expr(next_door)), F.expr(EITHER))


def from_world_to_world(cut: DataFrame) -> DataFrame:
    """Takes the last event of another world for the one before."""
    return _together(_across(cut, F.expr("lag(last_us) over (order by world, slice)")), F.expr(EITHER))


def slices_counted(cut: DataFrame) -> DataFrame:
    """Counts the slices in place of the events."""
    return _together(_across(cut, F.expr(BEFORE)), F.expr(EITHER), F.count("*"))


def added_up(cut: DataFrame) -> DataFrame:
    """Adds the two kinds of silence in place of taking the longer one."""
    return _together(_across(cut, F.expr(BEFORE)), F.expr("coalesce(inside_us, 0) + coalesce(across_us, 0)"))


WRONG = {
    "25/read": [only_blocks_inside, without_the_ends, one_end_inside],
    "25/crossing": [every_row, every_kind_once],
    "25/stage": [shared_fairly, one_after_the_other, the_largest, all_alike, to_the_fastest],
    "25/slices": [
        all_of_a_world,
        with_the_gap_before,
        salted_by_chance,
        worlds_mixed_up,
        rounded,
        first_to_last,
    ],
    "25/longest-silence": [
        inside_slices_only,
        between_slices_only,
        neighbours_by_number,
        from_world_to_world,
        slices_counted,
        added_up,
    ],
}
