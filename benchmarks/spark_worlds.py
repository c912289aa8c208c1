"""Worlds on Spark: how fast they are played while they are read, beside the same worlds without Spark.

A rate per core is events for each CPU second of everything that is busy: driver, JVM and workers, so work that Spark
does beside the playing counts. `python -m benchmarks.spark_worlds CORES` is one measurement.
"""

from __future__ import annotations

import sys
import time
from functools import cache
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Figure, figure
from benchmarks.spark_run import Meter, in_a_process, on_cores, spark_on, tell
from mqlab.data_sets.named_worlds import WorldSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCENARIO = "steady-load"
WORLDS = 320
"""About 1.8 million events, twenty worlds for each task: starting a query and its tasks is little beside them."""
WARMING = 32
ROUNDS = 2
FEW_COLUMNS = ("world", "kind", "ts_us", "topic", "queue_id")
"""What most questions ask of an event."""
ALL, FEW, ALONE, CLOCK = "all", "few", "alone", "clock"


def alone() -> tuple[int, float]:
    """The events of the worlds played one after the other in this process, and the CPU seconds of that."""
    events, began = 0, time.process_time()
    for seed in range(WORLDS):
        events += len(WorldSpec(SCENARIO, seed).play().history)
    return events, time.process_time() - began


def measure(cores: int) -> dict[str, Any]:
    """On so many cores: events for each CPU second (all columns, few columns, without Spark), and worlds by the clock.

    The rates per CPU second are the medians of the rounds; by the clock it is the best round, for whatever else the
    machine does can only take time away. On one core only the clock is looked at.
    """
    on_cores(cores)
    from mqlab_spark import worlds

    rates: dict[str, list[float]] = {}

    def note(name: str, rate: float) -> None:
        rates.setdefault(name, []).append(rate)

    with spark_on(cores) as spark:

        def frames(last: int) -> dict[str, DataFrame]:
            few = {FEW: worlds(spark, SCENARIO, f"0-{last}", columns=FEW_COLUMNS)}
            return few if cores == 1 else {**few, ALL: worlds(spark, SCENARIO, f"0-{last}")}

        # The JVM compiles and the workers import: once, so it is no part of a rate.
        for frame in frames(WARMING - 1).values():
            frame.write.format("noop").mode("overwrite").save()
        measured = frames(WORLDS - 1)
        for _ in range(ROUNDS):
            if cores > 1:
                events, seconds = alone()
                note(ALONE, events / seconds)
            for name, frame in measured.items():
                with Meter() as meter:
                    frame.write.format("noop").mode("overwrite").save()
                if cores > 1:
                    note(name, events / meter.cost.cpu_seconds)
                if name == FEW:
                    note(CLOCK, WORLDS / meter.cost.seconds)
    told = {name: median(values) for name, values in rates.items()}
    return {**told, CLOCK: max(rates[CLOCK])}


@cache
def _measured(cores: int) -> dict[str, Any]:
    return dict(in_a_process("spark_worlds", cores))


def per_core() -> list[Figure]:
    """Events per CPU second, of a question that asks five columns of each event and of all 187."""
    rates, unit = _measured(2), "events/s/core"
    return [
        figure("worlds on Spark, 5 columns / without Spark", rates[FEW], unit, versus=rates[ALONE], aim=0.8,
               better="higher"),
        figure("worlds on Spark, all columns / without", rates[ALL], unit, versus=rates[ALONE], aim=0.8,
               better="higher"),
    ]  # fmt: skip


def two_cores() -> Figure:
    """Worlds per second by the clock: on two processors against one."""
    one, two = _measured(1)[CLOCK], _measured(2)[CLOCK]
    return figure("worlds on Spark, two cores / one", two, "worlds/s", versus=one, aim=1.8, better="higher")


if __name__ == "__main__":
    tell(measure(int(sys.argv[1])))
