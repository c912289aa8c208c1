"""One Spark session for the whole test run, and traces of a few rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqlab.trace.bus import Row
from mqlab.trace.recorder import JsonLinesRecorder
from mqlab_spark import read_trace, session
from mqlab_spark.session import SMALL_JVM, SMALL_SETTINGS

RETAINED = "spark.ui.retainedStages"
TraceOf = Callable[[list[Row]], DataFrame]


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """A session on one thread of this machine, which remembers as few stages as that of a lab.

    It serves for half an hour: with the usual 1 GiB the last of many tests finds no room to send a table around.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", SMALL_JVM)
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"--conf {RETAINED}={SMALL_SETTINGS[RETAINED]} pyspark-shell")
        return session("tests", "local[1]", driver_memory="1536m")


@pytest.fixture
def trace_of(spark: SparkSession, tmp_path: Path) -> TraceOf:
    """Record rows in a file and read it with Spark."""

    def trace_of(rows: list[Row]) -> DataFrame:
        path = tmp_path / "trace.jsonl"
        with JsonLinesRecorder(path, {"seed": 7}) as recorder:
            for row in rows:
                recorder(row)
        return read_trace(spark, path)

    return trace_of
