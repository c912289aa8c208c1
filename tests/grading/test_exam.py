"""A lab as an exam: no hints, other seeds, truths in the report alone, and times with their sources."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mqlab.check import begin_exam, notebook_bets, predict, reveal, seed_for
from mqlab.check.bets import REVEAL_MIME
from mqlab.check.exam import OVER
from mqlab.commands.cli import main
from mqlab.errors import LearnerError
from mqlab.grading.confine import Limits
from mqlab.grading.marking import EXECUTED, Job, mark, read_key
from mqlab.grading.release import Exam, exam_code, make_key, release
from mqlab.grading.report import report
from mqlab.grading.truths import foreign_truths, truths_in
from mqlab.labs.build import read_lab

ROOT = Path(__file__).parents[2]
LAB = "08_where_to_begin"
SOURCE = ROOT / "labs" / "sources" / f"{LAB}.py"
RELEASED = "2026-06-01 08:00 UTC"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A course's key."""
    make_key(tmp_path / "key")
    return tmp_path / "key"


def handed_out(place: Path, key: Path, name: str = "june") -> dict[str, Any]:
    """Ada's notebook of the exam."""
    exam = Exam(name, exam_code(read_key(str(key)), name), RELEASED)
    release([ROOT / "labs" / f"{LAB}.ipynb"], place, ["ada"], exam=exam)
    notebook: dict[str, Any] = json.loads((place / "ada" / f"{LAB}.ipynb").read_text())
    return notebook


def marked(
    notebook: dict[str, Any], key: Path, place: Path, exam: str = "june", *, run: bool = False
) -> dict[str, Any]:
    """The result of a notebook of Ada's."""
    path = place / f"{LAB}.ipynb"
    path.write_text(json.dumps(notebook))
    (place / "out").mkdir(exist_ok=True)
    limits = Limits(wall_s=200, memory_bytes=2**30)
    job = Job(str(path), "ada", str(SOURCE), str(place / "out"), str(key), 1, run, limits, exam)
    return mark(job, read_lab(SOURCE))


def test_an_exam_has_no_hints_other_seeds_and_says_when_it_was_handed_out(tmp_path: Path, key: Path) -> None:
    usual = (ROOT / "labs" / f"{LAB}.ipynb").read_text()
    notebook = handed_out(tmp_path / "exam", key)
    sources = ["".join(cell["source"]) for cell in notebook["cells"]]
    assert "Hint 1 of 3" in usual
    assert not any("Hint 1 of 3" in source for source in sources)
    code = exam_code(read_key(str(key)), "june")
    assert any(f'seed_for(student_id, "08", exam="{code}")' in source for source in sources)
    assert f"begin_exam('june', released='{RELEASED}')" in sources[2]
    assert notebook["metadata"]["mqlab"]["exam"] == {"name": "june", "code": code, "released": RELEASED}


def test_seeds_of_an_exam_are_others_for_each_student_and_each_exam() -> None:
    seeds = [seed_for(who, "08", code) for who in ("ada", "bob", "") for code in ("", "a", "b")]
    assert len(set(seeds)) == 9
    assert seed_for(" ADA ", "08", "a") == seed_for("ada", "08", "a")


def test_an_exam_needs_the_key(tmp_path: Path, key: Path) -> None:
    command = ["course", "release", str(tmp_path / "out"), "--lab", "08", "--root", str(ROOT), "--exam", "june"]
    assert main(command) == 2 or pytest.fail("an exam without a key was handed out")
    assert not (tmp_path / "out").exists()
    assert main([*command, "--key", str(key)]) == 0
    notebook = json.loads((tmp_path / "out" / f"{LAB}.ipynb").read_text())
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", notebook["metadata"]["mqlab"]["exam"]["released"])


def test_truths_are_kept_until_the_exam_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = notebook_bets.take_all()
    monkeypatch.setattr(notebook_bets, "sealed", False)
    monkeypatch.delenv(OVER, raising=False)
    assert f"handed out at {RELEASED}; this notebook was opened at 20" in repr(begin_exam("june", released=RELEASED))
    predict("held", "How long?", 15, unit="s")
    for shown in (reveal("held", 20.1, why="every 5 s"), reveal()):
        assert "20.1" not in str(shown._repr_mimebundle_())
        assert "every 5 s" not in str(shown._repr_mimebundle_())
        assert "told in your report" in repr(shown)
    monkeypatch.setenv(OVER, "1")
    begin_exam("june", released=RELEASED)
    assert "20.1" in repr(reveal("held", 20.1))
    notebook_bets.put_back(asked)


def test_the_marker_runs_an_exam_with_its_truths(tmp_path: Path, key: Path) -> None:
    notebook = handed_out(tmp_path / "exam", key)
    solutions = {f"08-{cell.definitions[-1]}": cell.source for cell in read_lab(SOURCE).tagged("exercise")}
    for cell in notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = solutions.get(name, cell["source"])
    result = marked(notebook, key, tmp_path, run=True)
    assert result["run"]["verdict"] == "ok"
    assert result["points"] == result["most"]
    assert result["bets"]
    assert all(bet["truth"] not in (None, "told in your report") for bet in result["bets"])
    exam = result["exam"]
    assert (exam["name"], exam["fits"], exam["released"]) == ("june", True, RELEASED)
    assert result["hints"] == {}
    assert "exam=june" in result["signed"]
    page = report(result)
    assert "<h2>Exam june</h2>" in page
    assert "<td>not known</td>" in page  # it was handed in without ever being opened

    assert not result["remarks"]

    # The notebook that was run, handed in: its own certificate, made by its kernel, holds.
    executed = (tmp_path / "out" / EXECUTED).rename(tmp_path / "ran.ipynb")
    again = marked(json.loads(executed.read_text()), key, tmp_path)
    assert again["certificate"]["holds"] is True, again["certificate"]
    assert again["exam"]["opened"].startswith("20")

    # What cannot be read has no truths: those of the run before are of another notebook.
    (tmp_path / "out" / EXECUTED).write_text(executed.read_text())
    assert {bet["truth"] for bet in marked({}, key, tmp_path, run=True)["bets"]} == {None}

    # What another id has shown is told, and what has shown the same is not.
    lab = read_lab(SOURCE)
    assert foreign_truths(lab, executed, executed) == []
    other = tmp_path / "other.ipynb"
    bet = result["bets"][0]
    for shows in (showing, showing_as_text):
        other.write_text(json.dumps(shows(json.loads(executed.read_text()), bet["bet"], "something else")))
        assert foreign_truths(lab, other, executed) == [bet["bet"]]
        other.write_text(json.dumps(shows(json.loads(executed.read_text()), bet["bet"], "told in your report")))
        assert foreign_truths(lab, other, executed) == []


def showing(notebook: Any, bet: str, truth: Any) -> Any:
    """The executed notebook with another truth in the facts of that reveal."""
    for data in shown_in(notebook):
        if data[REVEAL_MIME]["bet"] == bet:
            data[REVEAL_MIME]["truth"] = truth
    return notebook


def showing_as_text(notebook: Any, bet: str, truth: str) -> Any:
    """The same, as it was run when reveals had no facts: their text alone says something."""
    for data in shown_in(notebook):
        facts = data.pop(REVEAL_MIME)
        if facts["bet"] == bet:
            text = "".join(data["text/plain"])
            data["text/plain"] = text.replace(f"it is:    {facts['truth']}", f"it is:    {truth}")
    return notebook


def shown_in(notebook: Any) -> list[Any]:
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    shown = [output["data"] for output in outputs if REVEAL_MIME in output.get("data", {})]
    assert shown
    return shown


@pytest.mark.parametrize(
    "facts", [None, 1, [], "x", {"bet": 1}, {"bet": "held", "question": "?", "said": "1", "truth": "x" * 501}]
)
def test_facts_that_are_none_say_nothing(facts: Any, tmp_path: Path) -> None:
    path = tmp_path / "forged.ipynb"
    cell = {"cell_type": "code", "source": 'reveal("held", 1)', "outputs": [{"data": {REVEAL_MIME: facts}}]}
    path.write_text(json.dumps({"cells": [cell, cell | {"outputs": [{"data": facts}, facts]}]}))
    assert truths_in(path) == {}


@pytest.mark.parametrize(
    ("of", "as_of", "remark"),
    [
        ("june", "", "this is the notebook of an exam (june)"),
        ("june", "july", "this is no notebook of the exam 'july'"),
        (None, "june", "this is no notebook of the exam 'june'"),
    ],
)
def test_a_notebook_of_something_else_is_told(
    of: str | None, as_of: str, remark: str, tmp_path: Path, key: Path
) -> None:
    usual = json.loads((ROOT / "labs" / f"{LAB}.ipynb").read_text())
    notebook = handed_out(tmp_path / "exam", key, of) if of else usual
    result = marked(notebook, key, tmp_path, as_of)
    assert remark in result["remarks"]
    assert not result["exam"]["fits"]
    assert "exam=" not in result["signed"]


def test_a_code_that_was_made_up_is_told(tmp_path: Path, key: Path) -> None:
    notebook = handed_out(tmp_path / "exam", key)
    notebook["metadata"]["mqlab"]["exam"]["code"] = "0" * 16
    assert "this is no notebook of the exam 'june'" in marked(notebook, key, tmp_path)["remarks"]


def test_a_lab_without_an_exam_has_none(tmp_path: Path, key: Path) -> None:
    result = marked(json.loads((ROOT / "labs" / f"{LAB}.ipynb").read_text()), key, tmp_path, exam="")
    assert result["exam"] == {}
    assert "Exam" not in report(result)


def test_the_key_is_asked_for_before_anything_is_written() -> None:
    with pytest.raises(LearnerError, match="can't be read"):
        read_key("/nowhere/key")
