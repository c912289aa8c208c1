"""The example lab, for tests that read its source; a check that asks from inside a world; one Spark session for
labs and for the tests of Spark.
"""

from __future__ import annotations

import linecache
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlab import Lab
from mqlab.check import LabCheck, lab_check
from mqlab.labs.build import read_lab
from mqlab.labs.source import LabSource

EXAMPLES = Path(__file__).parent / "examples"


@pytest.fixture(scope="package", autouse=True)
def one_thread_for_spark() -> Iterator[None]:
    """A lab that needs Spark gets the session that the tests of Spark have, too: on one thread of this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MQLAB_SPARK_MASTER", "local[1]")
        yield


@pytest.fixture
def in_a_world() -> LabCheck:
    """A check that a task of a world asks: whatever it is answered, nothing is wrong."""

    @lab_check("97/listener", points=1)
    def judge(answer: Callable[[int], int], *, seed: int) -> None:
        """A listener of a world."""
        lab = Lab(seed)
        node = lab.node("reader")

        async def ask() -> None:
            answer(seed)

        node.spawn(ask(), "ask")
        lab.run_for(ms=1)

    return judge


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


def cell(text: str, name: str) -> Any:
    """What a cell with that text defines, as IPython runs it."""
    file = f"<cell {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, file, "exec"), names)
    return names[name]
