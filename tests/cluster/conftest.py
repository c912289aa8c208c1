"""A Spark standalone cluster on this machine: a master and two workers, each with one core, on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlab import scenarios
from mqlab.trace.recorder import ParquetRecorder
from mqlab_spark.archive import write_archive
from mqlab_spark.local_cluster import LocalCluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[LocalCluster]:
    """The cluster, for all tests; the last file of tests kills one of its workers."""
    with LocalCluster(workers=2) as started:
        yield started


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code as one archive."""
    path = tmp_path_factory.mktemp("archive") / "mqlab-spark.zip"
    write_archive(path)
    return path


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the trace of one world, async-send with seed 3."""
    place = tmp_path_factory.mktemp("traces")
    with ParquetRecorder(place / "a.parquet") as recorder:
        for row in scenarios.get("async-send").play(3).history.rows():
            recorder(row)
    return place
