"""An exercise is found by its name, else by what its cell defines; and what is missing is told with what is there."""

from __future__ import annotations

from pathlib import Path

from mqlab.check.progress import Played, certificate
from mqlab.grading.report import report
from tests.grading.conftest import EXERCISE, HONEST, MarkIt, Notebook, example, example_text, exercise_of

__all__ = ["example", "example_text"]


def test_a_cell_that_has_lost_its_metadata_is_found_by_its_function(mark_it: MarkIt, handed_out: Notebook) -> None:
    exercise_of(handed_out)["source"] = HONEST
    for cell in handed_out["cells"]:
        cell["metadata"] = {}
    result = mark_it()
    assert result["points"] == result["most"]
    assert result["remarks"] == [
        f"the cell of the exercise {EXERCISE} has lost its name (an editor does that); it was found by pull"
    ]


def test_a_named_cell_comes_before_one_that_was_found(mark_it: MarkIt, handed_out: Notebook) -> None:
    other = {"cell_type": "code", "metadata": {}, "source": "def pull(queue, limit):\n    return 1\n", "outputs": []}
    handed_out["cells"].append(other)
    result = mark_it(HONEST)
    assert result["points"] == result["most"]
    assert result["remarks"] == []


def test_a_renamed_function_is_told_with_the_name_that_is_there(mark_it: MarkIt) -> None:
    result = mark_it(HONEST.replace("pull(", "my_pull("))
    assert result["points"] == 0
    assert result["marks"][0]["reason"] == "your cell defines my_pull; pull is wanted"


def test_an_output_that_says_passed_and_is_not_is_told(mark_it: MarkIt, handed_out: Notebook) -> None:
    data = {"text/plain": ["90/pull: passed (2 points)\n", "  what is tried: ..."]}
    handed_out["cells"][-1]["outputs"] = [{"output_type": "execute_result", "data": data}]
    assert mark_it(HONEST)["remarks"] == []
    told = mark_it("def pull(queue, limit):\n    return [], queue\n")["remarks"]
    assert [line.partition(",")[0] for line in told] == ["the notebook shows 90/pull as passed"]


def test_a_certificate_of_a_check_that_ended_early_holds(mark_it: MarkIt, handed_out: Notebook) -> None:
    wrong = "def pull(queue, limit):\n    return [], queue\n"
    claimed = str(certificate("90", "ada", 0, 2, {"pull": Played(0, 3)}, [wrong]))
    data = {"text/plain": ["lab 90: ...\n", claimed]}
    handed_out["cells"][-1]["outputs"] = [{"output_type": "execute_result", "data": data}]
    assert mark_it(wrong)["certificate"]["holds"] is True


def test_a_notebook_that_names_no_kernel_is_run(mark_it: MarkIt, handed_out: Notebook) -> None:
    as_handed_out = mark_it(HONEST, run=True)["run"]["verdict"]
    del handed_out["metadata"]["kernelspec"]
    assert mark_it(HONEST, run=True)["run"]["verdict"] == as_handed_out
    assert "In [" in as_handed_out  # the example's last cell fails, with that kernel too


def test_the_report_offers_no_world_where_there_is_none(mark_it: MarkIt, tmp_path: Path) -> None:
    result = mark_it("def pull(queue, limit):\n    return [], queue\n")
    assert not result["marks"][0]["has_world"]
    assert "Stepper(" not in report(result)
    result["marks"][0]["has_world"] = True
    assert "Stepper(" in report(result)
