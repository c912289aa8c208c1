"""What a job of Spark came to: its stages, with their tasks and the rows and bytes that went between them.

    for stage in stages_of(spark, lambda: trace.groupBy("kind").count().collect()):
        print(stage.tasks, stage.rows_read, stage.rows_shuffled)

The numbers are Spark's own, those that its web page shows. Which rows a task gets depends on the data and the plan
alone, so unlike seconds they are the same on every machine with as many cores.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from itertools import count
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from mqlab.errors import LearnerError
from mqlab_spark.remote import is_remote

_numbers = count(1)


class Stage(NamedTuple):
    """One stage: tasks that need nothing of each other.

    `rows_read` came from files, `rows_fetched` from an earlier stage, `rows_shuffled` (in `bytes_shuffled` bytes, as
    they are packed) go to a later one. `of_tasks` says for each task how many rows it fetched or read.
    """

    tasks: int
    rows_read: int
    rows_fetched: int
    rows_shuffled: int
    bytes_shuffled: int
    of_tasks: tuple[int, ...]


def stages_of(spark: SparkSession, action: Callable[[], object]) -> list[Stage]:
    """Do something with Spark, and say in which stages it was done; those that were not needed are left out.

    LearnerError on Spark Connect, whose clients do not get to know it.
    """
    if is_remote(spark):
        raise LearnerError(
            "a client of Spark Connect is not told of its stages", "look at the web page of the server, port 4040"
        )
    context = spark.sparkContext
    group = f"mqlab-stages-{next(_numbers)}"
    context.setJobGroup(group, "counted")
    scala = context._jsc.sc()
    first = scala.dagScheduler().numTotalJobs()
    try:
        action()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    # Spark notes what has happened in a thread of its own.
    scala.listenerBus().waitUntilEmpty()
    tracker = context.statusTracker()
    done = sorted(tracker.getJobIdsForGroup(group))
    told = [job for job in map(tracker.getJobInfo, done) if job is not None]
    # Of a job that is forgotten nobody knows the group.
    if not all(map(tracker.getJobInfo, range(first, scala.dagScheduler().numTotalJobs()))):
        raise _forgotten()
    numbers = sorted({stage for job in told for stage in job.stageIds})
    store = scala.statusStore()
    # Spark remembers so many stages and no more, and forgets first those that were not needed.
    known = [store.lastStageAttempt(number) for number in numbers if tracker.getStageInfo(number) is not None]
    complete = [each for each in known if each.status().toString() == "COMPLETE"]
    if len(complete) < sum(store.job(job).numCompletedStages() for job in done):
        raise _forgotten()
    return [_stage(store, each) for each in complete]


def _forgotten() -> LearnerError:
    return LearnerError(
        "Spark remembers fewer jobs and stages than this took",
        "count less at a time, or start Spark with larger spark.ui.retainedJobs and spark.ui.retainedStages",
    )


def _stage(store: Any, data: Any) -> Stage:
    tasks = store.taskList(data.stageId(), data.attemptId(), data.numTasks())
    metrics = [tasks.apply(at).taskMetrics().get() for at in range(tasks.size())]
    rows = [each.shuffleReadMetrics().recordsRead() or each.inputMetrics().recordsRead() for each in metrics]
    return Stage(
        data.numTasks(), data.inputRecords(), data.shuffleReadRecords(), data.shuffleWriteRecords(),
        data.shuffleWriteBytes(), tuple(rows),
    )  # fmt: skip


def columns_read(frame: DataFrame) -> list[str]:
    """The columns that Spark will read from Parquet files for this table, as its plan says, in the order of the names.

    Those of a nested type are not among them, nor what Spark itself adds for the names of files.
    """
    with redirect_stdout(StringIO()) as plan:
        frame.explain(mode="formatted")
    read = re.findall(r"ReadSchema: struct<(.*)>", plan.getvalue())
    names = {column.partition(":")[0] for schema in read for column in schema.split(",") if column}
    return sorted(name for name in names if not name.startswith("_tmp_metadata"))
