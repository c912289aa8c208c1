"""An HDFS and an S3 for all tests of this directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.storage import servers
from tests.worlds import one_trace


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an HDFS."""
    with servers.hdfs(tmp_path_factory.mktemp("hdfs")) as address:
        yield address


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """Where an S3 is, in the variables that this process and those that it starts have."""
    with servers.s3(tmp_path_factory.mktemp("s3")) as variables, pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        from s3fs import S3FileSystem

        S3FileSystem().mkdir("lake")
        yield variables


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the trace of one world, async-send with seed 3."""
    return one_trace(tmp_path_factory.mktemp("traces"))
