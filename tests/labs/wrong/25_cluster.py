"""Plausible wrong solutions of lab 25_cluster, each of which its check catches."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
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


def shared_fairly(tasks: list[int], cores: int) -> int:
    """Divides the work; a task cannot be divided."""
    return -(-sum(tasks) // cores)


def one_after_the_other(tasks: list[int], cores: int) -> int:
    """Deals the tasks out in turn, also to a core that is still busy."""
    return max(sum(tasks[core::cores]) for core in range(cores))


def the_largest(tasks: list[int], cores: int) -> int:
    """Waits for the largest task alone."""
    return max(tasks)


def all_of_a_world(events: DataFrame, slice_us: int) -> DataFrame:
    """Is right, and gives all rows of the largest world to one task."""
    gap = F.col("ts_us") - F.lag("ts_us").over(Window.partitionBy("world").orderBy("ts_us"))
    gaps = events.withColumn("gap", gap)
    return gaps.groupBy("world").agg(F.count("*").alias("events"), F.max("gap").alias("silence_us"))


def _inside(events: DataFrame, *keys: str) -> DataFrame:
    window = Window.partitionBy(*keys).orderBy("ts_us")
    return events.withColumn("gap", F.col("ts_us") - F.lag("ts_us").over(window))


def inside_slices_only(events: DataFrame, slice_us: int) -> DataFrame:
    """Forgets the silence from one slice to the next."""
    gaps = _inside(events.withColumn("slice", F.floor(F.col("ts_us") / slice_us)), "world", "slice")
    return gaps.groupBy("world").agg(F.count("*").alias("events"), F.max("gap").alias("silence_us"))


def salted_by_chance(events: DataFrame, slice_us: int) -> DataFrame:
    """Spreads rows with a salt that tears neighbours apart."""
    gaps = _inside(events.withColumn("salt", F.pmod(F.hash("ts_us"), F.lit(16))), "world", "salt")
    return gaps.groupBy("world").agg(F.count("*").alias("events"), F.max("gap").alias("silence_us"))


def worlds_mixed_up(events: DataFrame, slice_us: int) -> DataFrame:
    """Slices the time of all worlds together."""
    gaps = _inside(events.withColumn("slice", F.floor(F.col("ts_us") / slice_us)), "slice")
    return gaps.groupBy("world").agg(F.count("*").alias("events"), F.max("gap").alias("silence_us"))


def slices_counted(events: DataFrame, slice_us: int) -> DataFrame:
    """Counts the slices in place of the events when it puts them together."""
    gaps = _inside(events.withColumn("slice", F.floor(F.col("ts_us") / slice_us)), "world", "slice")
    slices = gaps.groupBy("world", "slice").agg(
        F.max("gap").alias("gap"), F.min("ts_us").alias("first_us"), F.max("ts_us").alias("last_us")
    )
    across = F.col("first_us") - F.lag("last_us").over(Window.partitionBy("world").orderBy("slice"))
    longest = F.max(F.greatest("gap", "across"))
    return slices.withColumn("across", across).groupBy("world").agg(
        F.count("*").alias("events"), longest.alias("silence_us")
    )


WRONG = {
    "25/read": [only_blocks_inside, without_the_ends, one_end_inside],
    "25/crossing": [every_row, every_kind_once],
    "25/stage": [shared_fairly, one_after_the_other, the_largest],
    "25/longest-silence": [
        all_of_a_world,
        inside_slices_only,
        salted_by_chance,
        worlds_mixed_up,
        slices_counted,
    ],
}
