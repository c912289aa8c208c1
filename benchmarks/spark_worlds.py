"""Worlds on Spark: how fast they are played while they are read, beside the same worlds without Spark.

A rate per core is events for each CPU second of everything that is busy: driver, JVM and workers, so work that Spark
does beside the playing counts. `python -m benchmarks.spark_worlds CORES` is one measurement.
"""

from __future__ import annotations

import sys
import time
from functools import cache
from statistics import median
from typing import Any

from benchmarks.harness import Figure, figure
from benchmarks.spark_run import Meter, in_a_process, on_cores, spark_on, tell
from mqlab_spark.played import WorldSpec

SCENARIO = "steady-load"
WORLDS = 200
ROUNDS = 3
FEW_COLUMNS = ("world", "kind", "ts_us", "topic", "queue_id")
"""What most questions ask of an event."""


def alone() -> tuple[int, float]:
    """The events of the worlds played one after the other in this process, and the CPU seconds of that."""
    events, began = 0, time.process_time()
    for seed in range(WORLDS):
        events += len(WorldSpec(SCENARIO, seed).play().history)
    return events, time.process_time() - began


def measure(cores: int) -> dict[str, Any]:
    """On so many cores: rates per CPU second (with all columns, with few, without Spark) and events per second."""
    on_cores(cores)
    seeds = f"0-{WORLDS - 1}"
    rates: dict[str, list[float]] = {"alone": [], "all": [], "few": [], "clock": []}
    from mqlab_spark import worlds

    with spark_on(cores) as spark:
        frames = {"all": worlds(spark, SCENARIO, seeds), "few": worlds(spark, SCENARIO, seeds, columns=FEW_COLUMNS)}
        # The JVM compiles and the workers import: once, so it is no part of a rate.
        for frame in frames.values():
            frame.write.format("noop").mode("overwrite").save()
        for _ in range(ROUNDS):
            events, seconds = alone()
            rates["alone"].append(events / seconds)
            for name, frame in frames.items():
                with Meter() as meter:
                    frame.write.format("noop").mode("overwrite").save()
                rates[name].append(events / meter.cost.cpu_seconds)
                if name == "few":
                    rates["clock"].append(events / meter.cost.seconds)
    return {name: median(values) for name, values in rates.items()}


@cache
def _measured(cores: int) -> dict[str, Any]:
    return dict(in_a_process("spark_worlds", cores))


def per_core() -> list[Figure]:
    """Events per CPU second, of a question that asks five columns of each event and of all 187."""
    rates, unit = _measured(2), "events/s/core"
    return [
        figure("worlds on Spark, 5 columns / without Spark", rates["few"], unit, versus=rates["alone"], aim=0.8,
               better="higher"),
        figure("worlds on Spark, all columns / without", rates["all"], unit, versus=rates["alone"], aim=0.8,
               better="higher"),
    ]  # fmt: skip


def two_cores() -> Figure:
    """Events per second by the clock: on two processors against one."""
    one, two = _measured(1)["clock"], _measured(2)["clock"]
    return figure("worlds on Spark, two cores / one", two, "events/s", versus=one, aim=1.8, better="higher")


if __name__ == "__main__":
    tell(measure(int(sys.argv[1])))
