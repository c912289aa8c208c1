"""From one source come the student's notebook and the solution's, always the same, with nbgrader's metadata."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mqlab.check.bets import Reveal
from mqlab.labs.bets import told_too_early
from mqlab.labs.errors import LabError
from mqlab.labs.head import HOW_TO_WORK
from mqlab.labs.notebook import make_notebook, read_notebook, without_outputs, write_notebook
from mqlab.labs.source import Cell, LabSource


def by_id(lab: LabSource, version: Any) -> dict[str, Any]:
    return {cell["id"]: cell for cell in make_notebook(lab, version)["cells"]}


def test_the_student_gets_a_stub_that_runs(example: LabSource) -> None:
    assert by_id(example, "student")["90-pull"]["source"] == (
        "def pull(queue: list[int], limit: int) -> tuple[list[int], list[int]]:\n"
        '    """At most `limit` messages, oldest first, and those that are left."""\n'
        "    # your code here\n"
        "    raise NotSolvedYet"
    )


def test_the_teacher_gets_the_solution_and_what_students_expect(example: LabSource) -> None:
    student, solution = by_id(example, "student"), by_id(example, "solution")
    assert "return queue[:limit]" in solution["90-pull"]["source"]
    assert "first-out: the newest" in solution["90-head"]["source"]
    assert "first-out: the newest" not in student["90-head"]["source"]
    assert len(solution) == len(student) + 1


def test_the_head_says_what_to_expect(example: LabSource) -> None:
    assert by_id(example, "student")["90-head"]["source"] == (
        "# 90 · Taking in batches\n\n"
        "**In which order do messages leave a queue?**\n\n"
        "5 minutes. Needed before: none.\n\n"
        "After this lab you can\n\n"
        "- say which message leaves first\n- say how many are left after a pull\n- write the pull\n\n"
        f"{HOW_TO_WORK}"
    )


def test_every_notebook_loads_the_extension_first(example: LabSource) -> None:
    for version in ("student", "solution"):
        cell = make_notebook(example, version)["cells"][1]
        assert (cell["cell_type"], cell["source"]) == ("code", "%load_ext mqlab")


def test_what_comes_of_a_bet_is_not_shown_before_its_cell_runs(example: LabSource) -> None:
    cells = make_notebook(example, "student")["cells"]
    hidden = [cell["source"] for cell in cells if cell["metadata"].get("jupyter") == {"outputs_hidden": True}]
    assert [source.partition("(")[0] for source in hidden] == ["queue = list", "reveal", "reveal", "reveal"]
    assert all(cell["metadata"]["collapsed"] for cell in cells if "jupyter" in cell["metadata"])
    assert not [cell for cell in make_notebook(example, "solution")["cells"] if "jupyter" in cell["metadata"]]


def test_a_picture_directly_below_a_reveal_is_not_shown_either(example: LabSource) -> None:
    at = next(n for n, cell in enumerate(example.cells) if cell.source == 'reveal("left", len(queue))')
    below = [replace(example.cells[at], source=source) for source in ("queue", "sorted(queue)")]
    lab = replace(example, cells=(*example.cells[: at + 1], *below, *example.cells[at + 1 :]))
    cells = make_notebook(lab, "student")["cells"]
    hidden = [cell["source"] for cell in cells if "jupyter" in cell["metadata"]]
    assert hidden[3:] == ["queue", "sorted(queue)", "reveal()"]


def test_three_hints_are_folded_away(example: LabSource) -> None:
    cells = make_notebook(example, "student")["cells"]
    source = next(cell["source"] for cell in cells if "hints" in cell["metadata"].get("tags", ()))
    assert source.splitlines()[0] == "<details><summary>Hint 1 of 3</summary>"
    assert source.count("<details>") == source.count("</details>") == 3
    assert "What stands in front of place 2 is `queue[:2]`,\nand what is left begins there." in source


def test_a_text_that_tells_the_answer_before_the_reveal_is_refused(example: LabSource) -> None:
    def executed(truth: str) -> dict[str, Any]:
        made = make_notebook(lab, "student")
        for cell in made["cells"]:
            if cell["source"] == 'reveal("left", len(queue))':
                shown = Reveal("left", "?", "", truth, "")._repr_mimebundle_()
                cell["outputs"] = [{"output_type": "execute_result", "data": shown}]
        return made

    bet = next(at for at, cell in enumerate(example.cells) if cell.calls("predict")) + 2
    said = Cell("said", "markdown", "In the end 348 were there, in 107.0 s.", ())
    lab = replace(example, cells=(*example.cells[:bet], said, *example.cells[bet:]))
    assert told_too_early(lab, executed("348 messages"))
    assert told_too_early(lab, executed("107.0 s"))
    assert not told_too_early(lab, executed("349 messages"))
    assert not told_too_early(lab, executed("10 messages"))
    told = replace(example, cells=(said, *lab.cells))
    assert not told_too_early(told, executed("348 messages"))


def test_nbgrader_finds_the_exercise_and_its_check(example: LabSource) -> None:
    cells = by_id(example, "student")
    common = {"schema_version": 3, "task": False}
    assert cells["90-pull"]["metadata"] == {
        "tags": ["exercise"],
        "deletable": False,
        "nbgrader": common | {"grade_id": "90-pull", "grade": False, "solution": True, "locked": False},
    }
    assert cells["90-check-pull"]["metadata"] == {
        "tags": ["check"],
        "deletable": False,
        "editable": False,
        "nbgrader": common
        | {"grade_id": "90-check-pull", "grade": True, "solution": False, "locked": True, "points": 2},
    }
    assert [name for name, cell in cells.items() if "nbgrader" in cell["metadata"]] == ["90-pull", "90-check-pull"]


def test_the_same_source_gives_the_same_bytes(example: LabSource) -> None:
    text = write_notebook(make_notebook(example, "student"))
    assert text == write_notebook(make_notebook(example, "student"))
    assert text == write_notebook(without_outputs(read_notebook(text)))


def test_the_notebook_does_not_say_on_which_python_it_was_built(example: LabSource) -> None:
    assert make_notebook(example, "student")["metadata"] == {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "mqlab": {"lab": "90_batches", "minutes": 5, "version": "student"},
    }


def test_a_cell_put_between_others_renames_none(example: LabSource) -> None:
    more = replace(example, cells=(*example.cells[:3], Cell("new", "markdown", "more", ()), *example.cells[3:]))
    before = list(by_id(example, "student"))
    assert [name for name in by_id(more, "student") if name in before] == before


def test_equal_cells_have_different_ids(example: LabSource) -> None:
    cell = Cell("twin", "code", "1 + 1", ())
    ids = list(by_id(replace(example, cells=(cell, cell)), "student"))
    assert ids[3] == f"{ids[2]}-2"


def test_two_exercises_of_one_name_are_refused(example: LabSource) -> None:
    exercise = example.tagged("exercise")[0]
    with pytest.raises(LabError, match="the name '90-pull' stands there 2 times"):
        make_notebook(replace(example, cells=(exercise, exercise)), "student")
