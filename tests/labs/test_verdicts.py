"""A check plays a function over many seeds and says what it tried, what went wrong and with which seed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import pytest

from mqlab import Lab, Message
from mqlab.check import (
    VERDICT_MIME,
    CheckFailed,
    LabCheck,
    NotSolvedYet,
    Right,
    Wrong,
    check,
    checks_of,
    find_check,
    lab_check,
)
from mqlab.errors import LearnerError
from tests.worlds import started_producer


@pytest.fixture
def twice() -> LabCheck:
    @lab_check("95/twice", points=2)
    def judge(answer: Callable[[int], int], *, seed: int) -> Wrong | None:
        """A number comes back doubled."""
        got = answer(seed)
        return None if got == 2 * seed else Wrong(f"twice {seed} is {2 * seed}, not {got}", "step\n" * (60 - seed))

    return judge


def test_a_right_function_passes_every_public_seed(twice: LabCheck) -> None:
    assert repr(twice.play(lambda n: 2 * n)) == (
        "95/twice: passed (2 points)\n  what is tried: A number comes back doubled.\n  50 seeds played, all went well"
    )


def test_a_wrong_function_is_shown_its_shortest_trace(twice: LabCheck) -> None:
    verdict = twice.play(lambda n: 2 * n if n % 10 else 0, seeds=range(1, 51))
    assert (verdict.state, verdict.tried, verdict.failed, verdict.failed_seed) == ("wrong", 50, 5, 50)
    assert repr(verdict).splitlines()[0] == "95/twice: not right yet (45 of 50 seeds went well)"
    assert repr(verdict).splitlines()[2:4] == ["  seed 50: twice 50 is 100, not 0", "    step"]


def test_an_unsolved_exercise_is_not_solved_yet(twice: LabCheck) -> None:
    def unsolved(_: int) -> int:
        raise NotSolvedYet

    assert repr(check("95/twice", unsolved)) == (
        "95/twice: not solved yet (2 points)\n  what is tried: A number comes back doubled."
    )


def test_an_unsolved_exercise_that_stopped_a_world_is_still_not_solved_yet(twice: LabCheck) -> None:
    def stopped(_: int) -> int:
        try:
            raise NotSolvedYet
        except NotSolvedYet as inner:
            raise RuntimeError("the world stopped") from inner

    assert twice.play(stopped).state == "not solved yet"


def test_an_exception_is_a_finding_that_names_the_line_and_no_file(twice: LabCheck) -> None:
    def divides(n: int) -> int:
        return n // 0

    verdict = twice.play(divides)
    assert verdict.explanation.startswith("your code raised ZeroDivisionError: ")
    assert "in divides, line " in verdict.trace
    assert ".py" not in repr(verdict)


def test_an_exception_that_stopped_a_world_names_the_line_where_it_began(twice: LabCheck) -> None:
    def stopped(n: int) -> int:
        try:
            return divides(n)
        except ZeroDivisionError as inner:
            raise RuntimeError("the world stopped") from inner

    def divides(n: int) -> int:
        return n // 0

    verdict = twice.play(stopped)
    assert verdict.explanation == "your code raised RuntimeError: the world stopped"
    assert "in divides, line " in verdict.trace


def test_an_exception_in_a_task_of_a_world_is_told_without_the_task(in_a_world: LabCheck) -> None:
    def divides(n: int) -> int:
        return n // 0

    verdict = in_a_world.play(divides)
    assert verdict.explanation.startswith("your code raised ZeroDivisionError: ")
    assert "in divides, line " in verdict.trace


def test_what_the_function_prints_does_not_flood_the_notebook(
    twice: LabCheck, capsys: pytest.CaptureFixture[str]
) -> None:
    twice.play(lambda n: print("called with", n) or 2 * n)  # type: ignore[func-returns-value]
    assert capsys.readouterr().out == ""


def test_the_notebook_keeps_text_html_and_facts(twice: LabCheck) -> None:
    bundle = twice.play(lambda n: "<b>")._repr_mimebundle_()  # type: ignore[arg-type, return-value]
    assert "&lt;b&gt;" in bundle["text/html"]
    assert bundle[VERDICT_MIME] == {
        "check": "95/twice",
        "state": "wrong",
        "points": 2,
        "tried": 50,
        "failed": 50,
        "failed_seed": 50,
    }


def test_hidden_seeds_are_played_by_the_same_judge(twice: LabCheck) -> None:
    assert find_check("95/twice").play(lambda n: 2 * n, seeds=[1_000_003]).tried == 1


def test_a_call_instead_of_the_function_is_explained(twice: LabCheck) -> None:
    with pytest.raises(LearnerError, match=r"wants your function itself, and got int\n.*without brackets"):
        check("95/twice", 4)


def test_an_unknown_check_names_those_that_there_are(twice: LabCheck) -> None:
    assert checks_of("95") == [twice]
    with pytest.raises(LearnerError, match=r"there is no check '95/zzzzzzzzzz'\n.*: 95/twice"):
        find_check("95/zzzzzzzzzz")


@pytest.mark.parametrize(("name", "message"), [("twice", "no name of a check"), ("95/mute", "does not say what it")])
def test_a_check_has_a_name_and_says_what_it_tries(name: str, message: str) -> None:
    with pytest.raises(LearnerError, match=message):

        @lab_check(name, points=1)
        def judge(answer: Callable[[int], int], *, seed: int) -> Wrong | None:
            return None


def test_a_notebook_pays_nothing_for_the_builder() -> None:
    heavy = ("nbformat", "jupytext", "IPython", "asyncio")
    probe = f"import sys, mqlab.check; print([name for name in {heavy} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_a_passed_check_says_the_figures_that_could_be_beaten() -> None:
    @lab_check("96/moves", points=1)
    def judge(answer: Callable[[int], int], *, seed: int) -> Right | Wrong:
        """A number is as small as can be."""
        return Right({"moves": {"yours": answer(seed), "the reference": 2 * seed}})

    verdict = judge.play(lambda n: 3 * n, seeds=[1, 2, 3])
    assert repr(verdict).splitlines()[-1] == "  moves: yours 18, the reference 12"
    assert "moves: yours 18, the reference 12" in verdict._repr_html_()
    assert verdict._repr_mimebundle_()[VERDICT_MIME]["figures"] == {"moves": {"yours": 18, "the reference": 12}}


def test_code_that_does_not_come_to_an_end_is_broken_off_and_told(twice: LabCheck) -> None:
    def endless(_: int) -> int:
        n = 0
        while True:
            with suppress(Exception):
                n += 1

    verdict = twice.play(endless, patience_s=0.05)
    assert (verdict.state, verdict.tried, verdict.failed_seed) == ("wrong", 1, 1)
    assert verdict.explanation.startswith("your code does not come to an end")
    assert "in endless" in verdict.trace


def test_a_loop_inside_a_world_is_broken_off_too(in_a_world: LabCheck) -> None:
    def endless(_: int) -> int:
        while True:
            pass

    verdict = in_a_world.play(endless, patience_s=0.05)
    assert verdict.explanation.startswith("your code does not come to an end")


def test_a_failed_check_opens_the_world_in_which_it_failed() -> None:
    @lab_check("98/shop", points=1)
    def judge(answer: Callable[[int], int], *, seed: int) -> Wrong | None:
        """An order is sent."""
        lab = Lab(seed, history=False)
        lab.name_server()
        lab.broker()
        producer = started_producer(lab)
        lab.run(producer.send(Message("Orders", bytes(answer(seed)))))
        return Wrong("too small", "x" * seed) if answer(seed) < 5 else None

    verdict = judge.play(lambda n: n, seeds=[7, 3])
    assert repr(verdict).endswith("Stepper(_.open()) in the next cell")
    lab = verdict.open()
    assert (lab.seed, lab.history.last("MessageStored").topic) == (3, "Orders")
    with pytest.raises(LearnerError, match="has no failure to open"):
        judge.play(lambda n: 10, seeds=[1]).open()


def test_a_judge_without_a_world_may_name_one_that_is_played_when_it_is_opened() -> None:
    played: list[int] = []

    @lab_check("99/share", points=1)
    def judge(answer: Callable[[int], int], *, seed: int) -> Wrong | None:
        """A share is as large as it should be."""

        def world() -> Lab:
            played.append(seed)
            lab = Lab(seed, history=False)
            lab.name_server()
            return lab

        return Wrong("too small", world=world) if answer(seed) < 5 else None

    verdict = judge.play(lambda n: n, seeds=[7, 3])
    assert (verdict.has_world, played) == (True, [])
    lab = verdict.open()
    assert (lab.seed, played) == (3, [3])
    assert lab.history.last("NodeStarted").target == "namesrv-1"


def test_a_check_without_a_world_has_none_to_open(twice: LabCheck) -> None:
    with pytest.raises(LearnerError, match="plays no world"):
        twice.play(lambda n: n).open()


def test_a_play_may_end_with_the_first_failure(twice: LabCheck) -> None:
    assert twice.play(lambda n: n, failures_wanted=1).tried == 1


def test_a_name_that_is_almost_right_is_told() -> None:
    with pytest.raises(LearnerError, match="did you mean '02/read-entry'"):
        check("2/read_entry", int)
    with pytest.raises(LearnerError, match="is no name of a check"):
        check(int)  # type: ignore[arg-type]
    with pytest.raises(LearnerError, match="there is no check 'nothing like it'"):
        check("nothing like it", 3)


@pytest.mark.usefixtures("twice")
def test_in_a_graded_notebook_a_check_that_does_not_pass_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check("95/twice", lambda n: n).state == "wrong"
    monkeypatch.setenv("MQLAB_GRADED", "1")
    assert check("95/twice", lambda n: 2 * n).passed
    with pytest.raises(CheckFailed, match="95/twice: not right yet") as failed:
        check("95/twice", lambda n: n)
    assert failed.value.verdict.state == "wrong"
