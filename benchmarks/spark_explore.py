"""Exploration on Spark against the command line: the same outcomes for two thousand seeds, and how fast.

`python -m benchmarks.spark_explore SEEDS` is one measurement: so many seeds of each scenario.
"""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.harness import Figure, figure, shown
from benchmarks.spark_data import Wanted
from benchmarks.spark_run import Cost, Meter, in_a_process, spark_on, tell
from mqlab.explore import play_seeds
from mqlab_spark.exploring import outcomes, results

SCENARIOS = ("async-send", "push-clustering", "power-cuts", "pop-plain")
SEEDS = 500
CORES = 2
SPARK, COMMAND = "spark", "command"


def measure(seeds: int) -> dict[str, Any]:
    """Seconds by the clock and of CPU of both, failed seeds, and how many seeds have another outcome."""
    different, failed = 0, 0
    costs: dict[str, list[Cost]] = {SPARK: [], COMMAND: []}
    with spark_on(CORES) as spark:
        # So that importing is no part of it.
        outcomes(spark, SCENARIOS[0], range(2 * CORES)).count()
        for scenario in SCENARIOS:
            with Meter() as ours_meter:
                ours = list(results(outcomes(spark, scenario, range(seeds))))
            with Meter() as their_meter:
                theirs = list(play_seeds(scenario, range(seeds), jobs=CORES))
            costs[SPARK].append(ours_meter.cost)
            costs[COMMAND].append(their_meter.cost)
            assert len(ours) == len(theirs) == seeds
            different += sum(one != other for one, other in zip(ours, theirs, strict=True))
            failed += sum(not each.outcome.passed for each in theirs)
            print(f"{scenario}: {seeds} seeds, {failed} failed so far, {different} other outcomes", flush=True)
    clock = {name: sum(cost.seconds for cost in each) for name, each in costs.items()}
    cpu = {name: sum(cost.cpu_seconds for cost in each) for name, each in costs.items()}
    return {"different": different, "failed": failed, "seeds": seeds * len(SCENARIOS), "clock": clock, "cpu": cpu}


def against_the_command_line(wanted: Wanted) -> list[Figure]:
    """Outcomes that differ, and seeds per second and per second of CPU beside the command line's."""
    told = in_a_process("spark_explore", SEEDS)
    seeds, clock, cpu = told["seeds"], told["clock"], told["cpu"]
    return [
        figure(f"exploring {seeds:,} seeds on Spark: other outcomes", told["different"], "seeds", aim=0,
               better="lower"),
        shown("of these seeds failed", told["failed"], "seeds"),
        figure("exploring on Spark / mqlab explore, 2 cores", seeds / clock[SPARK], "seeds/s",
               versus=seeds / clock[COMMAND], aim=0.8, better="higher"),
        figure("exploring on Spark / mqlab explore, per core", seeds / cpu[SPARK], "seeds/s/core",
               versus=seeds / cpu[COMMAND], aim=0.8, better="higher"),
    ]  # fmt: skip


if __name__ == "__main__":
    tell(measure(int(sys.argv[1])))
