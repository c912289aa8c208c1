"""Tables on HDFS and on S3: a build that is killed five times there has the rows of one on this machine.

It is a build of the tables that an audit needs, since there are a dozen builds.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyarrow import dataset

from mqlab_spark.place import Place
from tests.storage.servers import jars

KILLS = 5
PATIENCE_S = 600

BUILD = """
import sys
from mqlab_spark import build, session
from mqlab_spark.auditing import NEEDED
build(session(master="local[2]"), *sys.argv[1:], only=NEEDED)
"""


def building(traces: Path, out: str) -> subprocess.Popen[bytes]:
    """A build, begun, in a process group of its own; Spark has what it takes to reach S3."""
    reach_s3 = os.pathsep.join(map(str, jars("hadoop-aws", "bundle", "analyticsaccelerator")))
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, str(traces), out],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"--driver-class-path {reach_s3} pyspark-shell"},
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def build(traces: Path, out: str) -> float:
    """Build to the end; returns how many seconds it took."""
    began = time.monotonic()
    job = building(traces, out)
    _, printed = job.communicate(timeout=PATIENCE_S)
    assert job.returncode == 0, printed.decode()
    return time.monotonic() - began


def rows(out: str) -> dict[str, list[str]]:
    """All rows of all tables at a place, in an order of their own."""
    place = Place(out)
    found = {}
    for name, entry in place.entries().items():
        table = dataset.dataset(f"{place.root}/{entry.path}", filesystem=place.files, format="parquet").to_table()
        found[name] = sorted(map(str, table.to_pylist()))
        assert len(found[name]) == entry.rows
    return found


@pytest.fixture(scope="module")
def local(traces: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, list[str]], float]:
    """The rows of a build on this machine, and how long it took."""
    out = str(tmp_path_factory.mktemp("local"))
    seconds = build(traces, out)
    return rows(out), seconds


def killed_and_ended(traces: Path, out: str, local: tuple[dict[str, list[str]], float]) -> dict[str, list[str]]:
    """Build, killed with its JVM at five random moments, as power cuts would do it, and then to the end; its rows."""
    tables, seconds = local
    moments = random.Random(out)
    for _ in range(KILLS):
        job = building(traces, out)
        try:
            job.wait(moments.uniform(0.2, 0.6) * seconds)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            job.communicate()
        assert Place(out).entries().keys() in (set(), tables.keys()), "nobody reads what is not whole"
    build(traces, out)
    return rows(out)


def test_a_build_on_hdfs_that_was_killed_five_times_has_the_rows_of_one_here(
    hdfs: str, traces: Path, local: tuple[dict[str, list[str]], float]
) -> None:
    assert killed_and_ended(traces, f"{hdfs}/tables", local) == local[0]


def test_a_build_on_s3_that_was_killed_five_times_has_the_rows_of_one_here(
    s3: Mapping[str, str], traces: Path, local: tuple[dict[str, list[str]], float]
) -> None:
    assert killed_and_ended(traces, "s3a://lake/tables", local) == local[0]
