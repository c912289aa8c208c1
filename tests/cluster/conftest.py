"""A Spark standalone cluster on this machine: a master and two workers, each with one core, on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlab_spark.archive import write_archive
from mqlab_spark.local_cluster import LocalCluster
from tests.worlds import one_trace


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
    return one_trace(tmp_path_factory.mktemp("traces"))
