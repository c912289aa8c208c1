"""Plausible wrong solutions of lab 22_slow_consumer, each of which its check catches."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark import of_kind

Row = tuple[int, int, int]

QUEUE = ("world", "node", "queue_id")


def at_least_the_gap(times: list[int], gap: int) -> list[Row]:
    """Begins a new episode when the pause is just the gap."""
    found: list[list[int]] = []
    for time in times:
        if found and time - found[-1][1] < gap:
            found[-1][1:] = [time, found[-1][2] + 1]
        else:
            found.append([time, time, 1])
    return [(a, b, n) for a, b, n in found]


def from_its_beginning(times: list[int], gap: int) -> list[Row]:
    """Measures the pause from the episode's beginning: a long one is cut to pieces."""
    found: list[list[int]] = []
    for time in times:
        if found and time - found[-1][0] <= gap:
            found[-1][1:] = [time, found[-1][2] + 1]
        else:
            found.append([time, time, 1])
    return [(a, b, n) for a, b, n in found]


def last_one_forgotten(times: list[int], gap: int) -> list[Row]:
    """Writes an episode down when the next one begins; after the last one none does."""
    found, current = [], [times[0], times[0], 0] if times else [0, 0, 0]
    for time in times:
        if time - current[1] > gap:
            found.append((current[0], current[1], current[2]))
            current = [time, time, 0]
        current[1:] = [time, current[2] + 1]
    return found


def the_fastest(rows: list[Row], percent: int) -> int:
    """Takes the fastest limit, however little it is better."""
    return min((took, limit) for limit, took, _ in rows)[1]


def beside_the_largest(rows: list[Row], percent: int) -> int:
    """Compares with the largest limit, which is not always the fastest."""
    _, took_largest, _ = max(rows)
    return min(limit for limit, took, _ in rows if took * 100 <= took_largest * (100 + percent))


def the_first_row(rows: list[Row], percent: int) -> int:
    """Takes the first row that is good, in the order in which they stand."""
    fastest = min(took for _, took, _ in rows)
    return next(limit for limit, took, _ in rows if took * 100 <= fastest * (100 + percent))


def one_too_many(ms_each: int) -> int:
    """Forgets that a packer is refused at one more than the limit."""
    return -(-50 // ms_each)


def rounded_down(ms_each: int) -> int:
    """Rounds down: the last few ms there is nothing to do."""
    return max(1, 50 // ms_each - 1)


def none_at_all(ms_each: int) -> int:
    """A limit of 0, which RocketMQ refuses to start with."""
    return -(-50 // ms_each) - 1


def _episodes(trace: DataFrame, queue: tuple[str, ...] = QUEUE, keep: tuple[str, ...] = QUEUE) -> DataFrame:
    window = Window.partitionBy(*queue).orderBy("ts_us", "slice", "i")
    gap = F.col("ts_us") - F.lag("ts_us").over(window)
    begins = of_kind(trace, "FlowControlled").withColumn("begins", F.when(gap <= 500_000, 0).otherwise(1))
    return _rows(begins.withColumn("episode", F.sum("begins").over(window)), keep)


def _rows(numbered: DataFrame, keep: tuple[str, ...] = QUEUE) -> DataFrame:
    return numbered.groupBy(*keep, "episode").agg(
        F.min("ts_us").alias("began_us"),
        F.max("ts_us").alias("ended_us"),
        F.count("*").alias("refusals"),
        F.max("cached").alias("most_cached"),
    )


def queues_run_together(trace: DataFrame) -> DataFrame:
    """Leaves the queue out of the window: while one is full, another one's pause is none."""
    return _episodes(trace, ("world", "node"))


def worlds_run_together(trace: DataFrame) -> DataFrame:
    """Leaves the world out of the window: machines and queues have the same names in all of them."""
    return _episodes(trace, ("node", "queue_id"))


def pieces_of_time(trace: DataFrame) -> DataFrame:
    """Cuts time into halves of a second, and takes each piece for an episode."""
    return _rows(of_kind(trace, "FlowControlled").withColumn("episode", F.floor(F.col("ts_us") / 500_000)))


def in_milliseconds(trace: DataFrame) -> DataFrame:
    """Takes microseconds for milliseconds: every refusal is an episode of its own."""
    window = Window.partitionBy(*QUEUE).orderBy("ts_us", "slice", "i")
    gap = F.col("ts_us") - F.lag("ts_us").over(window)
    begins = of_kind(trace, "FlowControlled").withColumn("begins", F.when(gap <= 500, 0).otherwise(1))
    return _rows(begins.withColumn("episode", F.sum("begins").over(window)))


WRONG = {
    "22/episodes-of": [at_least_the_gap, from_its_beginning, last_one_forgotten],
    "22/smallest-good-limit": [the_fastest, beside_the_largest, the_first_row],
    "22/least-limit": [one_too_many, rounded_down, none_at_all],
    "22/flow-episodes": [queues_run_together, worlds_run_together, pieces_of_time, in_milliseconds],
}
