"""Exploration on Spark against the command line: the same outcomes for two thousand seeds, and how fast.

`python -m benchmarks.spark_explore SEEDS` is one measurement: so many seeds of each scenario.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from benchmarks.harness import Figure, figure
from benchmarks.spark_data import Wanted
from benchmarks.spark_run import in_a_process, spark_on, tell
from mqlab.explore import play_seeds
from mqlab_spark.exploring import outcomes, results

SCENARIOS = ("async-send", "push-clustering", "power-cuts", "pop-plain")
SEEDS = 500
CORES = 2


def measure(seeds: int) -> dict[str, Any]:
    """Seconds of both, failed seeds, and how many seeds have another outcome."""
    different, failed = 0, 0
    seconds = {"spark": 0.0, "command": 0.0}
    with spark_on(CORES) as spark:
        # So that importing is no part of it.
        outcomes(spark, SCENARIOS[0], range(2 * CORES)).count()
        for scenario in SCENARIOS:
            began = time.perf_counter()
            ours = list(results(outcomes(spark, scenario, range(seeds))))
            middle = time.perf_counter()
            theirs = list(play_seeds(scenario, range(seeds), jobs=CORES))
            seconds["spark"] += middle - began
            seconds["command"] += time.perf_counter() - middle
            assert len(ours) == len(theirs) == seeds
            different += sum(one != other for one, other in zip(ours, theirs, strict=True))
            failed += sum(not each.outcome.passed for each in theirs)
    return {"different": different, "failed": failed, "seeds": seeds * len(SCENARIOS), **seconds}


def against_the_command_line(wanted: Wanted) -> list[Figure]:
    """Outcomes that differ, and seeds per second beside the command line's."""
    told = in_a_process("spark_explore", SEEDS)
    seeds = told["seeds"]
    return [
        figure(f"exploring {seeds:,} seeds on Spark: other outcomes", told["different"], "seeds", aim=0,
               better="lower"),
        figure("exploring on Spark / mqlab explore, 2 cores", seeds / told["spark"], "seeds/s",
               versus=seeds / told["command"], aim=0.8, better="higher"),
    ]  # fmt: skip


if __name__ == "__main__":
    tell(measure(int(sys.argv[1])))
