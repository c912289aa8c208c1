"""The example lab, with one exercise, as a class would hand it in; the check that asks from inside a world."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.grading.confine import Limits
from mqlab.grading.marking import Job, mark
from mqlab.grading.release import KEY_BYTES
from mqlab.labs.notebook import make_notebook
from mqlab.labs.source import LabSource
from tests.labs.conftest import EXAMPLES, example, example_text, in_a_world

__all__ = ["example", "example_text", "in_a_world"]

HONEST = "def pull(queue, limit):\n    return queue[:limit], queue[limit:]\n"
EXERCISE = "90-pull"


Notebook = dict[str, Any]
MarkIt = Callable[..., dict[str, Any]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The file that takes longest comes first: else one of two workers has nothing to do while it is played."""
    items.sort(key=lambda item: item.path.name != "test_spark_labs.py")


def exercise_of(notebook: Notebook) -> dict[str, Any]:
    """The cell of the exercise."""
    cell: dict[str, Any]
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == EXERCISE:
            return cell
    raise AssertionError(EXERCISE)


@pytest.fixture
def handed_out(example: LabSource) -> Notebook:
    """The student's notebook, with the exercise to be solved."""
    return make_notebook(example, "student")


@pytest.fixture
def mark_it(example: LabSource, handed_out: Notebook, tmp_path: Path) -> MarkIt:
    """Marks a notebook, or the handed-out one with that text in place of the exercise."""
    key = tmp_path / "key"
    # Always the same hidden seeds: with those of a key of chance a wrong solution has sometimes luck in all three.
    key.write_text("07" * KEY_BYTES + "\n", encoding="ascii")

    def marked(
        solution: str | None = None, *, path: Path | None = None, run: bool = False, limits: Limits | None = None
    ) -> dict[str, Any]:
        if solution is not None:
            exercise_of(handed_out)["source"] = solution
        if path is None:
            path = tmp_path / "90_batches.ipynb"
            path.write_text(json.dumps(handed_out), encoding="utf-8")
        source = EXAMPLES / "source" / "90_batches.py"
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        own = Limits(wall_s=20, memory_bytes=300 * 2**20, processes=40) if limits is None else limits
        return mark(Job(str(path), "ada", str(source), str(out), str(key), 3, run, own), example)

    return marked
