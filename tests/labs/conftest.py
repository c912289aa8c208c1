"""The example lab, for tests that read its source; one Spark session for labs and for the tests of Spark."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqlab.labs.build import read_lab
from mqlab.labs.source import LabSource

EXAMPLES = Path(__file__).parent / "examples"


@pytest.fixture(scope="package", autouse=True)
def one_thread_for_spark() -> Iterator[None]:
    """A lab that needs Spark gets the session that the tests of Spark have, too: on one thread of this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MQLAB_SPARK_MASTER", "local[1]")
        yield


@pytest.fixture(scope="session")
def example_text() -> str:
    """The example lab as its author wrote it; its checks are registered."""
    runpy.run_path(str(EXAMPLES / "checks" / "90_batches.py"), run_name="mqlab.labs.checks.90_batches")
    return (EXAMPLES / "source" / "90_batches.py").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def example(example_text: str, tmp_path_factory: pytest.TempPathFactory) -> LabSource:
    """The example lab, read."""
    path = tmp_path_factory.mktemp("example") / "90_batches.py"
    path.write_text(example_text, encoding="utf-8")
    return read_lab(path)
