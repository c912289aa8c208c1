"""A Spark session that fits on a small machine, and that a cluster can take over by being named from outside."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from mqlab.errors import LearnerError
from mqlab_spark.java_home import java_home
from mqlab_spark.progress import watch_cells
from mqlab_spark.remote import MODE_VARIABLE, SCHEME, address, connect, connected, is_remote
from mqlab_spark.store_source import StoreSource
from mqlab_spark.world_source import WorldSource

MASTER_VARIABLE = "MQLAB_SPARK_MASTER"

QUIET_LOG4J = """rootLogger.level = error
rootLogger.appenderRef.errors.ref = errors
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = error
appender.errors.name = errors
appender.errors.layout.type = PatternLayout
appender.errors.layout.pattern = %p %c{1}: %m%n%ex
"""
TO_STDERR = """appender.errors.type = Console
appender.errors.target = SYSTEM_ERR
"""
TO_FILE = """appender.errors.type = File
appender.errors.fileName = {}
"""

SETTINGS = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.sources.fileCompressionFactor": "30",
    "spark.sql.autoBroadcastJoinThreshold": "64m",
}
"""On any master. An event takes three bytes in a file of its kind and about a hundred as a row: who takes the one for
the other keeps a table of millions of rows in memory, to spare a shuffle, until there is no room.
"""

TALKATIVE_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""PySpark logs each query that Spark refuses, with all of Java's stack, beside the exception that says the same."""

LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
}
"""On this machine: nothing listens on a network, and 200 shuffle partitions would be 200 tiny tasks."""


def session(
    app_name: str = "mqlab",
    master: str | None = None,
    *,
    driver_memory: str = "1g",
    short: bool = False,
    ui: bool = False,
    reuse_workers: bool = True,
    errors: Path | None = None,
) -> SparkSession:
    """The Spark session of this Python process; it is started when there is none yet (4 to 6 seconds).

    The master is the argument, else what the variable MQLAB_SPARK_MASTER says, else what spark-submit,
    PYSPARK_SUBMIT_ARGS or Spark's own configuration say, else `local[*]`; `sc://host:15002` is a server of Spark
    Connect (`mqlab_spark.remote`). Settings given from outside win over the ones made here. With less than 1 GiB for
    the driver ("512m") the JVM itself is made small, too; a `short` session is one of a minute, whose JVM compiles once
    what it runs and not twice. Without `reuse_workers` each process of Python is started
    for one task or one planning and ends with it: a quarter less memory where worlds are read, half as much time
    again, and more than twice the time of a stream. `errors` is the file in which Spark logs errors with Java's stacks,
    if a JVM is started here (default: stderr).
    LearnerError if there is no Java to run on, or if a session on another master runs already.
    """
    wanted = master or os.environ.get(MASTER_VARIABLE)
    for name in TALKATIVE_LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
    remote = connected()
    running = remote or SparkSession.getActiveSession()
    if running is not None:
        return _with_formats(_same_master(running, wanted))
    # A session of Spark Connect that has ended leaves it, and PySpark would build no other.
    os.environ.pop(MODE_VARIABLE, None)
    if (wanted or "").startswith(SCHEME):
        assert wanted is not None
        spark = connect(app_name, wanted)
        for key, value in SETTINGS.items():
            spark.conf.set(key, value)
        return _with_formats(spark)
    small = _SMALL.fullmatch(driver_memory) is not None
    _prepare_environment(wanted, SMALL_ENVIRONMENT if small else {})
    # A JVM takes these only when it starts; one that spark-submit has started has its own already.
    own = SparkConf(loadDefaults=False).setAll(_jvm_settings(driver_memory, short, errors))
    SparkContext._ensure_initialized(conf=own)
    outside = SparkConf()
    chosen = wanted or outside.get("spark.master", "local[*]")
    assert chosen is not None
    builder = SparkSession.builder.appName(app_name).master(chosen).config("spark.ui.enabled", str(ui).lower())
    settings = SETTINGS | dict.fromkeys(LASTING_WORKERS, str(reuse_workers).lower()) | ({} if ui else WITHOUT_UI)
    of_this_machine = LOCAL_SETTINGS if chosen.startswith("local") else {}
    for key, value in {**settings, **of_this_machine, **(SMALL_SETTINGS if small else {})}.items():
        if not outside.contains(key):
            builder = builder.config(key, value)
    return _with_formats(builder.getOrCreate())


def _with_formats(spark: SparkSession) -> SparkSession:
    """The same session, which knows the formats of mqlab, and in a notebook shows how far it is."""
    for source in (WorldSource, StoreSource):
        spark.dataSource.register(source)
    watch_cells(spark)
    return spark


def _same_master(running: SparkSession, wanted: str | None) -> SparkSession:
    master = address() if is_remote(running) else running.sparkContext.master
    if wanted is not None and wanted != master:
        raise LearnerError(f"a Spark session on {master} runs already, not on {wanted}", "end it first: spark.stop()")
    return running


def _prepare_environment(wanted: str | None, own: Mapping[str, str]) -> None:
    """Say which Java and which Python Spark starts: without it, workers take the first `python3` on PATH.

    `own` are other variables for both, where nobody has said otherwise.
    """
    for name, value in own.items():
        os.environ.setdefault(name, value)
    under_spark_submit = "PYSPARK_GATEWAY_PORT" in os.environ
    if not under_spark_submit:
        os.environ["JAVA_HOME"] = str(java_home())
    if wanted is None or wanted.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


SHORT_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=128m"
"""Queries over little data, each run once, are not worth a second compilation: less CPU time. Java would then keep 48
MB for what it has compiled, and Spark compiles each query: a session that serves long fills that, and ends ("Out of
space in CodeCache"). What is not used takes no memory.
"""

SMALL_JVM = f"{SHORT_JVM} -Xms32m -Xmn24m -XX:MinHeapFreeRatio=15 -XX:MaxHeapFreeRatio=30 -Xss512k"
"""The heap grows only with what lives in it: less memory."""

WITHOUT_UI = {
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "200",
    "spark.ui.retainedTasks": "5000",
    "spark.sql.ui.retainedExecutions": "10",
}
"""Spark remembers a thousand queries, each with its plan, for pages that nobody can see: a session that lives long
would lose its heap to them.
"""

SMALL_SETTINGS = {
    "spark.buffer.pageSize": "1m",
    "spark.ui.retainedJobs": "40",
    "spark.ui.retainedStages": "80",
    "spark.ui.retainedTasks": "500",
    "spark.sql.ui.retainedExecutions": "5",
    "spark.sql.broadcastExchange.maxThreadThreshold": "4",
    "spark.sql.shuffleExchange.maxThreadThreshold": "4",
}
"""What a small JVM takes less of: pages of memory for each sort and each join, what is remembered of jobs that are
over, and threads."""

LASTING_WORKERS = ("spark.python.worker.reuse", "spark.python.use.daemon")
"""Whether Spark keeps its processes of Python, and for each kind of them one more from which they are forked."""

SMALL_ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}
"""Else the C library keeps memory apart for each of Java's hundreds of threads."""

_SMALL = re.compile(r"\d{1,3}m", re.IGNORECASE)
"""Less than 1 GiB for the driver: a lab, not a job."""


def _jvm_settings(driver_memory: str, short: bool, errors: Path | None) -> list[tuple[str, str]]:
    options = f"-Dlog4j2.configurationFile=file:{_log4j_file(errors)}"
    own = SMALL_JVM if _SMALL.fullmatch(driver_memory) else SHORT_JVM if short else ""
    return [
        ("spark.driver.memory", driver_memory),
        ("spark.driver.extraJavaOptions", f"{options} {own}".rstrip()),
        ("spark.ui.showConsoleProgress", "false"),
    ]


def _log4j_file(errors: Path | None) -> Path:
    directory = Path(tempfile.mkdtemp(prefix="mqlab-spark-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    file = directory / "log4j2.properties"
    where = TO_STDERR if errors is None else TO_FILE.format(errors)
    file.write_text(QUIET_LOG4J + where, encoding="utf-8")
    return file
