"""The solutions of the Spark labs, right and wrong, as marking runs them: the same words as in one process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlab.check import checks_of, find_check
from mqlab.check.patience import MARKING_PATIENCE_S
from mqlab.grading.confine import Limits
from mqlab.grading.judging import JOB_TIMES, checks_in
from mqlab.grading.marking import Job, mark
from mqlab.grading.release import make_key
from mqlab.grading.students_process import ASLEEP_S, StudentsProcess
from mqlab.labs import many_worlds
from mqlab.labs.build import read_lab
from mqlab.labs.notebook import make_notebook
from mqlab.labs.reference import reference_answers
from mqlab.labs.source import LabSource
from tests.labs.test_solutions import SOURCES, label, wrong_solutions

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SPARK = [path for path in SOURCES if path.stem >= "20"]
SEEDS = range(1, 3)


@pytest.fixture(autouse=True)
def small_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread, and ten worlds in a job."""
    monkeypatch.setenv("MQLAB_SPARK_MASTER", "local[1]")
    monkeypatch.setattr(many_worlds, "WORLDS_IN_ONE_JOB", 10)


@pytest.fixture(params=SPARK, ids=[path.stem for path in SPARK])
def source(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def process(*cells: str) -> StudentsProcess:
    """A process as marking starts it for a lab that needs Spark."""
    return StudentsProcess(
        cells,
        module="solutions",
        limits=Limits().with_java(),
        patience_s=JOB_TIMES * MARKING_PATIENCE_S,
        asleep_s=JOB_TIMES * ASLEEP_S,
    )


@pytest.fixture
def lab(source: Path) -> LabSource:
    return read_lab(source)


@pytest.fixture
def solved(lab: LabSource) -> Iterator[StudentsProcess]:
    """A process with the lab's solutions: one Java for all of them."""
    with process(*(cell.source for cell in lab.tagged("exercise"))) as there:
        yield there


def test_solutions_pass_with_the_same_words(lab: LabSource, solved: StudentsProcess) -> None:
    here = reference_answers(lab)
    for name, functions in checks_in(lab):
        got = find_check(name).play(*solved.answers(functions), seeds=SEEDS)
        assert got.passed, got
        assert repr(got) == repr(find_check(name).play(*here[name], seeds=SEEDS))


def test_a_wrong_solution_of_each_check_is_told_with_the_same_words(source: Path) -> None:
    """All wrong ones are played in one process (tests/labs): what is looked at here is the way to another one."""
    wrong = {name: answers[0] for name, answers in wrong_solutions(source).items()}
    text = (ROOT / "tests" / "labs" / "wrong" / source.name).read_text(encoding="utf-8")
    with process(text) as there:
        for name, answer in wrong.items():
            here = answer if isinstance(answer, tuple) else (answer,)
            got = find_check(name).play(*there.answers([each.__name__ for each in here]), failures_wanted=1)
            assert got.state == "wrong", label(answer)
            assert repr(got) == repr(find_check(name).play(*here, failures_wanted=1))


def test_a_notebook_with_spark_is_marked_from_end_to_end(tmp_path: Path) -> None:
    source = next(path for path in SPARK if path.stem == "25_cluster")
    lab = read_lab(source)
    path, key, out = tmp_path / "25_cluster.ipynb", tmp_path / "key", tmp_path / "out"
    make_key(key)
    out.mkdir()
    path.write_text(json.dumps(make_notebook(lab, "solution")))
    result: dict[str, Any] = mark(Job(str(path), "ada", str(source), str(out), str(key), 3), lab)
    assert result["run"]["verdict"] == "ok"
    assert [found["reason"] for found in result["marks"]] == ["all seeds went well"] * len(checks_of("25"))
    assert result["points"] == result["most"]
    assert result["remarks"] == []
