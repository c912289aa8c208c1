"""`mqlab explore` as a Spark job: many seeds of one scenario, judged by the rules on the workers.

    outcomes(spark, "async-bursts", range(100_000)).where("verdict = 'failed'").show()

One row is one seed; a seed has the same outcome wherever it is played, so the rows are those of the command line.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType

from mqlab import scenarios
from mqlab.explore import Outcome, Plan, Result, plan_from_text, plan_text
from mqlab.explore.many_seeds import Task, play_task
from mqlab.explore.trial import Breach
from mqlab_spark.played import spare_the_collector

PASSED, FAILED = "passed", "failed"
SEEDS_PER_TASK = 20
"""Few enough that all cores end at about the same time, and enough that starting a task is nothing beside it."""

OUTCOMES = StructType([
    StructField("scenario", StringType(), nullable=False),
    StructField("seed", LongType(), nullable=False),
    StructField("verdict", StringType(), nullable=False),
    StructField("rule", StringType()),
    StructField("reason", StringType()),
    StructField("plan", StringType(), nullable=False),
    StructField("shortest_plan", StringType()),
    StructField("excused", StringType(), nullable=False),
    StructField("judged", StringType(), nullable=False),
    StructField("goals", StringType(), nullable=False),
    StructField("now_ms", DoubleType(), nullable=False),
    StructField("result", StringType(), nullable=False),
    StructField("cpu_us", LongType(), nullable=False),
])  # fmt: skip
"""The table of outcomes. `rule` and `reason` are those of the first breach, `plan` is the fault schedule drawn,
`shortest_plan` the shortest that fails; `excused` counts exceptions by name, `judged` what each rule had to judge,
`goals` how often each goal was reached that was; `result` is all of it; all four are JSON.
`cpu_us` is what the seed cost, the only column that is not the same each time.
"""


def outcomes(
    spark: SparkSession,
    scenario: str,
    seeds: Sequence[int],
    parameters: Mapping[str, Any] | None = None,
    faults: str | None = None,
) -> DataFrame:
    """The outcomes of a scenario from these seeds, under faults drawn from each seed, or under a schedule.

    `faults` is a schedule as `mqlab explore --faults` takes it, "" for none. LearnerError for a scenario, a parameter
    or a schedule that cannot be.
    """
    checked = scenarios.get(scenario).check(dict(parameters or {}))
    given = {name: checked[name] for name in parameters or {}}
    plan = None if faults is None else plan_from_text(faults) if faults else ()
    tasks = max(1, -(-len(seeds) // SEEDS_PER_TASK))
    places = spark.range(0, len(seeds), 1, tasks)

    def play(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        spare_the_collector()
        schema = to_arrow_schema(OUTCOMES)
        for batch in batches:
            for place in batch.column("id").to_pylist():
                yield pa.RecordBatch.from_pylist([_row(scenario, seeds[place], given, plan)], schema=schema)

    return places.mapInArrow(play, OUTCOMES)


def results(frame: DataFrame) -> Iterator[Result]:
    """The outcomes as `mqlab.explore.play_seeds` gives them, in the order of the seeds, partition by partition."""
    for row in frame.toLocalIterator(prefetchPartitions=True):
        result = json.loads(row["result"])
        yield Result(_outcome(result["outcome"]), _outcome(result["shortest"]) if result["shortest"] else None)


def _row(scenario: str, seed: int, parameters: dict[str, Any], plan: Plan | None) -> dict[str, Any]:
    began = time.process_time_ns()
    outcome, shortest, _ = result = play_task(Task(scenario, seed, parameters, plan))
    first = None if outcome.passed else outcome.breaches[0]
    return {
        "scenario": scenario,
        "seed": seed,
        "verdict": PASSED if outcome.passed else FAILED,
        "rule": None if first is None else first.rule,
        "reason": None if first is None else first.reason,
        "plan": plan_text(outcome.plan),
        "shortest_plan": None if shortest is None else plan_text(shortest.plan),
        "excused": json.dumps(outcome.excused, sort_keys=True),
        "judged": json.dumps(outcome.judged, sort_keys=True),
        "goals": json.dumps(outcome.goals, sort_keys=True),
        "now_ms": outcome.now_ms,
        "result": json.dumps({"outcome": result.outcome, "shortest": result.shortest}),
        "cpu_us": (time.process_time_ns() - began) // 1_000,
    }


def _outcome(fields: list[Any]) -> Outcome:
    seed, plan, breaches, *rest = fields
    return Outcome(seed, tuple(plan), tuple(Breach(*breach) for breach in breaches), *rest)
