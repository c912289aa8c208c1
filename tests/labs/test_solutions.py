"""Every check of every lab accepts its reference solution and catches plausible wrong ones.

The wrong solutions of a lab are kept in wrong/<lab>.py: `WRONG` maps the name of a check to functions (or tuples of
them, where a check is given several).
"""

from __future__ import annotations

import runpy
from collections import Counter
from collections.abc import Callable, Sequence
from inspect import iscoroutinefunction, isfunction
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from mqlab.check import PUBLIC_SEEDS, checks_of, find_check
from mqlab.grading.judging import LEAST_SHARE, hidden_seeds
from mqlab.labs import many_worlds
from mqlab.labs.build import read_lab
from mqlab.labs.reference import reference_answers, unsolved_answers
from mqlab.labs.slides_page import needs_spark
from mqlab.labs.source import LabSource

HERE = Path(__file__).parent
SOURCES = sorted((HERE.parents[1] / "labs" / "sources").glob("*.py"))
WRONG_OF = {path: HERE / "wrong" / path.name for path in SOURCES}
WRONG_OF[HERE / "examples" / "source" / "90_batches.py"] = HERE / "examples" / "wrong" / "90_batches.py"


def of_lab(source: Path, *values: Any, name: str = "") -> Any:
    """A parameter of a test; of a Spark lab it is left to `make spark-slow-test`."""
    marks = [pytest.mark.slow] if needs_spark(source) else []
    return pytest.param(*(values or (source,)), id=name or source.stem, marks=marks)


def wrong_solutions(source: Path) -> dict[str, list[Any]]:
    """The wrong solutions that are kept for a lab, by check."""
    wrong: dict[str, list[Any]] = runpy.run_path(str(WRONG_OF[source]))["WRONG"]
    return wrong


def every_wrong_solution() -> list[Any]:
    """One parameter for each wrong solution of each lab: check, answers."""
    return [
        of_lab(source, name, answer if isinstance(answer, tuple) else (answer,), name=f"{name}-{label(answer)}")
        for source in WRONG_OF
        for name, answers in wrong_solutions(source).items()
        for answer in answers
    ]


def label(answer: Any) -> str:
    """The name of a wrong solution."""
    return "+".join(part.__name__ for part in answer) if isinstance(answer, tuple) else str(answer.__name__)


@pytest.fixture
def small_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Spark job for ten worlds in place of fifty: what is wrong shows in one of them."""
    monkeypatch.setattr(many_worlds, "WORLDS_IN_ONE_JOB", 10)


@pytest.fixture(params=[of_lab(path) for path in WRONG_OF])
def source(request: pytest.FixtureRequest, example: LabSource) -> Path:
    path: Path = request.param
    return path


def test_the_reference_solution_passes(source: Path) -> None:
    for name, answers in reference_answers(read_lab(source)).items():
        verdict = find_check(name).play(*answers)
        assert verdict.passed, verdict


@pytest.mark.slow
def test_one_job_of_spark_answers_for_all_of_its_worlds(small_jobs: None) -> None:
    asked = []

    def nobody(trace: Any) -> Any:
        asked.append(trace)
        return trace.where("false").select("world", "msg_id")

    verdict = find_check("23/never-packed").play(nobody, seeds=range(1, 11))
    assert verdict.tried == 10
    assert verdict.failed > 0
    assert len(asked) == 2, "one trace without rows, and one of all worlds"


def test_the_stub_is_not_solved_yet(source: Path) -> None:
    for name, answers in unsolved_answers(read_lab(source)).items():
        assert find_check(name).play(*answers).state == "not solved yet"


def test_copied_answers_get_no_points(source: Path) -> None:
    """What the public seeds show, copied: always the most frequent answer, or a table of all questions and answers."""
    for name, answers in reference_answers(read_lab(source)).items():
        if len(answers) != 1 or not isfunction(answers[0]) or iscoroutinefunction(answers[0]):
            continue
        table: dict[str, Any] = {}
        find_check(name).play(noting(answers[0], table))
        assert table, name
        if any(isinstance(value, DataFrame) for value in table.values()):
            continue  # no answer but a plan
        often = Counter(map(repr, table.values())).most_common(3)
        constants = [next(value for value in table.values() if repr(value) == text) for text, _ in often]
        for constant in constants:
            assert fails_too_often(name, lambda *_, known=constant: known, PUBLIC_SEEDS), (name, constant)
        hidden = hidden_seeds(b"a course", "ada", name, together=find_check(name).together)
        assert fails_too_often(name, lambda *asked, known=table: known[repr(asked)], hidden), name


def fails_too_often(name: str, answer: Callable[..., Any], seeds: Sequence[int]) -> bool:
    """Whether so much of the seeds goes wrong that the check gives nothing, although cases of them may be right."""
    check, lost = find_check(name), 0.0
    for seed in seeds:
        lost += 1 - check.play(answer, seeds=[seed]).well
        if lost > (1 - LEAST_SHARE) * len(seeds):
            return True
    return False


def noting(function: Callable[..., Any], table: dict[str, Any]) -> Callable[..., Any]:
    """The function; what it was asked, and has answered, is noted in the table."""

    def noted(*asked: Any) -> Any:
        told = repr(asked)
        table[told] = function(*asked)
        return table[told]

    return noted


def test_every_check_has_two_wrong_solutions(source: Path) -> None:
    wrong = wrong_solutions(source)
    names = [check.name for check in checks_of(source.stem[:2])]
    assert sorted(wrong) == sorted(names)
    assert [name for name in names if len(wrong[name]) < 2] == []


@pytest.mark.parametrize(("name", "answers"), every_wrong_solution())
@pytest.mark.usefixtures("example", "small_jobs")
def test_a_wrong_solution_is_caught_and_explained(name: str, answers: tuple[Any, ...]) -> None:
    verdict = find_check(name).play(*answers, failures_wanted=1)
    assert verdict.state == "wrong"
    assert verdict.explanation


WRONG_APPLICATIONS = [each for each in every_wrong_solution() if "30/application" in each.values]


@pytest.mark.parametrize(("name", "answers"), WRONG_APPLICATIONS)
def test_a_wrong_application_goes_well_in_few_worlds(name: str, answers: tuple[Any, ...]) -> None:
    """A share of the worlds is a share of the points, and a fault that comes in few worlds would cost none."""
    assert find_check(name).play(*answers, seeds=PUBLIC_SEEDS[:20]).well <= 2


@pytest.mark.parametrize("source", [of_lab(path) for path in SOURCES])
@pytest.mark.usefixtures("small_jobs")
def test_the_large_exercise_opens_the_world_in_which_it_failed(source: Path) -> None:
    large = max(checks_of(source.stem[:2]), key=lambda check: check.points)
    answer = wrong_solutions(source)[large.name][0]
    verdict = large.play(*(answer if isinstance(answer, tuple) else (answer,)), failures_wanted=1)
    assert verdict.has_world
    assert len(verdict.open().history) > 0


def test_every_failed_check_of_membership_opens_its_world() -> None:
    source = next(path for path in SOURCES if path.stem.startswith("07"))
    for name, answers in wrong_solutions(source).items():
        for answer in answers:
            lab = find_check(name).play(answer, failures_wanted=1).open()
            assert any(lab.history.find("QueueAllocated")), name


@pytest.mark.usefixtures("small_jobs")
def test_a_check_says_the_same_every_time(source: Path) -> None:
    for name, answers in wrong_solutions(source).items():
        first = answers[0] if isinstance(answers[0], tuple) else (answers[0],)
        once, again = (find_check(name).play(*first, failures_wanted=1) for _ in range(2))
        assert repr(once) == repr(again)
