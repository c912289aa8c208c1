"""Every lab, executed by papermill for ten other students: solved, and once as it is handed out.

`make labs-all-ways` runs this; it takes an hour, half of it for the labs with Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlab.check.verdict import VERDICT_MIME
from mqlab.labs.build import read_lab
from mqlab.labs.execute import jupyter_apart
from mqlab.labs.notebook import Version, make_notebook, write_notebook
from mqlab.labs.run_one_lab import run
from mqlab.labs.source import LabSource

SOURCES = sorted((Path(__file__).parents[2] / "labs" / "sources").glob("*.py"))
IDS = ("ada", "Bob", "c0ffee", "2026-11-22", "d.knuth", "Žofia", "山田", "x", "student-199", "o'neill")
TIMEOUT_S = 300


@pytest.fixture(scope="module", params=SOURCES, ids=[path.stem for path in SOURCES])
def lab(request: pytest.FixtureRequest) -> LabSource:
    return read_lab(request.param)


def executed(lab: LabSource, version: Version, student: str, place: Path) -> dict[str, Any]:
    """The lab's notebook as papermill leaves it, run with that student's id."""
    path, out = place / f"{lab.name}.ipynb", place / "out.ipynb"
    path.write_text(write_notebook(make_notebook(lab, version)), encoding="utf-8")
    with jupyter_apart():
        assert run(path, out, TIMEOUT_S, {"student_id": student}) == "ok"
    notebook: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return notebook


def states(notebook: dict[str, Any]) -> Iterator[str]:
    """What each check of a notebook has said."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            facts = output.get("data", {}).get(VERDICT_MIME)
            if facts is not None:
                yield facts["state"]


@pytest.fixture(autouse=True)
def small_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread for those that have Spark."""
    monkeypatch.setenv("MQLAB_SPARK_MASTER", "local[1]")


def test_there_are_all_labs() -> None:
    assert [int(path.stem[:2]) for path in SOURCES] == [*range(26)]


@pytest.mark.parametrize("student", IDS)
def test_solutions_pass_for_every_student(lab: LabSource, student: str, tmp_path: Path) -> None:
    notebook = executed(lab, "solution", student, tmp_path)
    checks = lab.tagged("check")
    assert list(states(notebook)) == ["passed"] * len(checks)
    counts = [cell["execution_count"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))


def test_a_blank_notebook_runs_and_passes_nothing(lab: LabSource, tmp_path: Path) -> None:
    notebook = executed(lab, "student", IDS[0], tmp_path)
    assert set(states(notebook)) <= {"not solved yet"}
    assert len(list(states(notebook))) == len(lab.tagged("check"))
