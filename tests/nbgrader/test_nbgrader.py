"""nbgrader itself takes a lab: it makes the release of it, validates, and autogrades what a class hands in.

`make nbgrader-test` runs this, in an environment of its own.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from mqlab.grading.course import nothing
from mqlab.grading.gradebook import write_gradebook
from mqlab.grading.release import release
from mqlab.grading.roster import Member
from mqlab.grading.submission import exercises_of
from mqlab.labs.build import read_lab
from mqlab.labs.notebook import make_notebook
from mqlab.labs.source import LabSource

ROOT = Path(__file__).parents[2]
LAB = "12_check_points"
CONFIG = r"""
c.CourseDirectory.course_id = "mq"
c.ClearSolutions.code_stub = {"python": "# your code here\nraise NotSolvedYet"}
"""
STUDENTS = {"ada": 4, "bob": 1, "eve": 0}
"""How many of the four exercises each has solved."""


def nbgrader(course: Path, *arguments: str, graded: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a command of nbgrader in the course's directory."""
    own = {name: str(course / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")}
    # nbgrader looks for alembic, a program that is installed with it.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, **own, "PATH": path, **({"MQLAB_GRADED": "1"} if graded else {})}
    command = [sys.executable, "-m", "nbgrader", *arguments]
    return subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def lab() -> LabSource:
    return read_lab(ROOT / "labs" / "sources" / f"{LAB}.py")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, lab: LabSource) -> Path:
    """A classroom of nbgrader, whose source is the lab with its solutions."""
    place = tmp_path_factory.mktemp("classroom")
    (place / "nbgrader_config.py").write_text(CONFIG)
    source = place / "source" / LAB / f"{LAB}.ipynb"
    source.parent.mkdir(parents=True)
    source.write_text(json.dumps(make_notebook(lab, "solution")))
    made = nbgrader(place, "generate_assignment", LAB, "--create")
    assert made.returncode == 0, made.stderr
    return place


def solved(notebook: dict[str, Any], lab: LabSource, count: int) -> dict[str, Any]:
    """The notebook with the first exercises solved."""
    solutions = dict(zip(exercises_of(lab)[:count], lab.tagged("exercise"), strict=False))
    for cell in notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if name in solutions:
            cell["source"] = solutions[name].source
    return notebook


def test_the_release_that_nbgrader_makes_is_ours(course: Path, tmp_path: Path) -> None:
    theirs = json.loads((course / "release" / LAB / f"{LAB}.ipynb").read_text())
    release([ROOT / "labs" / f"{LAB}.ipynb"], tmp_path)
    ours = json.loads((tmp_path / f"{LAB}.ipynb").read_text())
    assert _graded(theirs) == _graded(ours)
    assert len(_graded(ours)) == 8


def _graded(notebook: dict[str, Any]) -> dict[str, Any]:
    """Text and marks of each cell that nbgrader knows by name; the checksum is its own note."""
    found = {}
    for cell in notebook["cells"]:
        marks = dict(cell["metadata"].get("nbgrader", {}))
        marks.pop("checksum", None)
        marks.pop("cell_type", None)
        if "grade_id" in marks:
            found[marks["grade_id"]] = ("".join(cell["source"]), marks)
    return found


@pytest.mark.parametrize(("count", "said"), [(4, "Success! Your notebook passes all"), (0, "FAILED ON 4 CELL(S)")])
def test_a_notebook_is_validated(count: int, said: str, course: Path, lab: LabSource, tmp_path: Path) -> None:
    release([ROOT / "labs" / f"{LAB}.ipynb"], tmp_path)
    path = tmp_path / f"{LAB}.ipynb"
    path.write_text(json.dumps(solved(json.loads(path.read_text()), lab, count)))
    validated = nbgrader(course, "validate", str(path), graded=True)
    assert said in validated.stdout


def test_a_class_is_autograded(course: Path, lab: LabSource, tmp_path: Path) -> None:
    release([ROOT / "labs" / f"{LAB}.ipynb"], tmp_path, list(STUDENTS))
    for student, count in STUDENTS.items():
        handed_in = tmp_path / student / f"{LAB}.ipynb"
        notebook = solved(json.loads(handed_in.read_text()), lab, count)
        # What a student changes in a locked cell is put back.
        for cell in notebook["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("grade_id") == "12-check-settle":
                cell["source"] = "'passed'"
        path = course / "submitted" / student / LAB / f"{LAB}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook))
    marked = nbgrader(course, "autograde", LAB, "--create", graded=True)
    assert marked.returncode == 0, marked.stderr
    assert nbgrader(course, "export").returncode == 0
    rows = exported(course)
    assert {student: float(rows[student]["score"]) for student in STUDENTS} == {"ada": 7, "bob": 1, "eve": 0}
    assert {float(rows[student]["max_score"]) for student in STUDENTS} == {7}


def exported(course: Path) -> dict[str, dict[str, str]]:
    """What `nbgrader export` has written, by student."""
    with (course / "grades.csv").open() as grades:
        return {row["student_id"]: row for row in csv.DictReader(grades)}


def test_nbgrader_takes_our_marks_and_comes_to_the_same_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # nbgrader looks for alembic, a program that is installed with it.
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    lab, most = "02_store", 4
    marks = [{"check": "02/a", "points": 3.5, "most": most, "reason": "", "public": [50, 50], "hidden": [20, 20]}]
    late = {"due": "2026-06-01 22:00:00 UTC", "told": "1 day 6 h", "days": 2, "taken": 0.7}
    result = {**nothing("ada", lab, most, ""), "marks": marks, "points": 2.8, "before_late": 3.5, "late": late}
    result["arrival"] = {"at": "2026-06-03 04:00:00 UTC", "said_by": "learning platform"}
    write_gradebook([result], tmp_path, [Member("ada", "Ada", "Lovelace", "ada@example.org")])
    with (tmp_path / "nbgrader.csv").open() as source:
        (ours,) = csv.DictReader(source)
    (tmp_path / "nbgrader_config.py").write_text(CONFIG)
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as gradebook:
        own = {name: ours[name] for name in ("first_name", "last_name", "email")}
        gradebook.update_or_create_student(ours["student_id"], **own)
        gradebook.update_or_create_assignment(lab, duedate=ours["duedate"])
        gradebook.add_notebook(lab, lab)
        gradebook.add_grade_cell("all", lab, lab, max_score=float(ours["max_score"]), cell_type="code")
        gradebook.add_submission(lab, ours["student_id"], timestamp=ours["timestamp"])
        submitted = gradebook.find_submission_notebook(lab, lab, ours["student_id"])
        submitted.late_submission_penalty = float(ours["late_submission_penalty"])
        gradebook.find_grade("all", lab, lab, ours["student_id"]).manual_score = float(ours["raw_score"])
        gradebook.db.commit()
        assert gradebook.find_submission(lab, "ada").total_seconds_late == 30 * 3600
    assert nbgrader(tmp_path, "export").returncode == 0
    theirs = exported(tmp_path)["ada"]
    assert list(theirs) == list(ours)
    for name in ("raw_score", "late_submission_penalty", "score", "max_score"):
        assert float(theirs[name]) == float(ours[name]), name
    assert [theirs[name] for name in ("last_name", "email")] == [ours[name] for name in ("last_name", "email")]
