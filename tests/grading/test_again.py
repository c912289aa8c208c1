"""Marked again for everybody, and marked without names: what stays, what changes, what is hidden."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from mqlab.commands.cli import main
from mqlab.grading.again import asked_again, keep_again, with_again
from mqlab.grading.marking import checks_left, read_key, read_result, write_result
from mqlab.grading.pseudonyms import pseudonym, without_names
from mqlab.labs.build import read_lab

ROOT = Path(__file__).parents[2]
LAB = "03_sending"
BOBS = "def answer_arrived(table, opaque, answer):\n    raise ValueError('Robert Baker (bob) was here, maybe')\n"


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """Ada, who has solved the lab, and bob, whose notebook was hers and says his name."""
    (tmp_path / "roster.csv").write_text(
        "id,name,email\nada,Ada Lovelace,al@example.org\nbob,Robert Baker,\nzoe,Zoe,\n"
    )
    assert main(["course", "key", str(tmp_path / "key")]) == 0
    released = ["course", "release", str(tmp_path / "in"), "--students", str(tmp_path / "roster.csv"), "--lab", "03"]
    assert main([*released, "--root", str(ROOT)]) == 0
    path = tmp_path / "in" / "ada" / f"{LAB}.ipynb"
    notebook = json.loads(path.read_text())
    sources = {
        f"03-{cell.definitions[-1]}": cell.source
        for cell in read_lab(ROOT / f"labs/sources/{LAB}.py").tagged("exercise")
    }
    for cell in notebook["cells"]:
        cell["source"] = sources.get(cell["metadata"].get("nbgrader", {}).get("grade_id"), cell["source"])
    path.write_text(json.dumps(notebook))
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "03-answer_arrived":
            cell["source"] = BOBS
    (tmp_path / "in" / "bob" / f"{LAB}.ipynb").write_text(json.dumps(notebook))
    (tmp_path / "in" / "bob" / "notes of bob.txt").write_text("mine")
    (tmp_path / "in" / "zoe" / f"{LAB}.ipynb").unlink()
    return tmp_path


def grade(course: Path, *more: str, out: str = "marks") -> int:
    given = ["grade", str(course / "in"), "--key", str(course / "key"), "--out", str(course / out), "--root", str(ROOT)]
    return main([*given, "--no-run", "--hidden", "2", *more])


def points(course: Path, student: str, out: str = "marks") -> list[float]:
    result = read_result(course / out / student / LAB) or {}
    return [mark["points"] for mark in result["marks"]]


def test_one_check_is_marked_again_for_all_and_the_others_stay(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert grade(course) == 0
    right = read_result(course / "marks" / "ada" / LAB) or {}
    # As if an older mqlab had two checks that nobody could pass.
    wrong = {**right, "made_of": {**right["made_of"], "mqlab": "0.0"}}
    wrong["marks"] = [{**mark, "points": 0.0, "reason": "x"} for mark in right["marks"][:2]] + right["marks"][2:]
    write_result(course / "marks" / "ada" / LAB, wrong)
    capsys.readouterr()
    assert grade(course, "--again", "03/answer") == 0
    told = capsys.readouterr().out
    assert "already" not in told
    assert (points(course, "ada"), points(course, "bob")) == ([1, 0, 3], [0, 1, 3])
    assert (read_result(course / "marks" / "ada" / LAB) or {})["points"] == 4
    assert grade(course) == 0
    assert capsys.readouterr().out.count("was marked already") == 2
    # It was asked for, and the marker was killed: the same command without --again does it.
    keep_again(course / "marks", with_again(asked_again(course / "marks"), ["03"]))
    assert grade(course) == 0
    assert "already" not in capsys.readouterr().out
    again = read_result(course / "marks" / "ada" / LAB) or {}
    assert [again[name] for name in ("marks", "points", "remarks", "signed")] == [
        right[name] for name in ("marks", "points", "remarks", "signed")
    ]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--again", "03/none"], "there is no check '03/none'"),
        (["--again", "77"], "there is no lab '77'"),
        (["--again", "03", "--lab", "05"], "--again names a lab that --lab does not"),
        (["--due", "soon"], "--due: 'soon' is no time"),
        (["--due", "2026-06-01T22:00Z", "--zone", "Mars"], "there is no time zone 'Mars'"),
        (["--late", "10"], "nothing can be late without a deadline"),
        (["--begin", "2026-06-01T22:00Z"], "--begin says when the time began"),
        (["--arrivals", "none.csv"], "none.csv can't be read"),
        (
            ["--exam", "june", "--due", "2026-06-01T22:00Z", "--students", "longer.csv"],
            "nobody says when the exam began",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    more: list[str], said: str, course: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(course)
    (course / "longer.csv").write_text("id,time_factor\nada,1.5\nbob,\n")
    assert grade(course, *more) == 2
    assert said in capsys.readouterr().err
    assert not (course / "marks").exists()


def test_without_a_change_of_version_notebook_or_key_only_what_was_asked_for_is_left() -> None:
    made: dict[str, Any] = {"mqlab": "2", "lab": "b", "notebook": "n", "key": "k", "again": {"03/answer": 1}}
    marks = [{"check": "03/answer"}, {"check": "03/in-line"}]
    known = {"made_of": {**made, "mqlab": "1", "lab": "a"}, "marks": marks}
    del known["made_of"]["again"]
    assert checks_left(None, made) is None
    assert checks_left({**known, "made_of": made}, made) == []
    assert checks_left(known, made) == ["03/answer"]
    for other in ({**made, "notebook": "m"}, {**made, "key": "l"}, {**made, "again": {"03": 1}}):
        assert checks_left(known, other) is None
    assert checks_left({**known, "marks": marks[1:]}, made) is None


def test_nobodys_name_is_seen_until_the_names_are_given_back(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unseen, key = course / "unseen", read_key(str(course / "key"))
    capsys.readouterr()
    anonymous = ["--anonymous", "--students", str(course / "roster.csv")]
    assert grade(course, *anonymous, out="unseen") == 0
    hidden = {student: pseudonym(key, student) for student in ("ada", "bob", "zoe")}
    assert (unseen / "names.csv").stat().st_mode & 0o077 == 0
    with (unseen / "names.csv").open() as source:
        assert {row["id"]: row["pseudonym"] for row in csv.DictReader(source)} == hidden
    seen = capsys.readouterr().out
    files = [path for path in unseen.rglob("*") if path.is_file() and path.suffix != ".parquet"]
    students = {row["student"] for row in parquet.read_table(unseen / "gradebook.parquet").to_pylist()}
    assert students == {hidden["ada"], hidden["bob"]}
    seen += "".join(f"{path.relative_to(unseen)} {path.read_text()}" for path in files if path.name != "names.csv")
    for word in ("ada", "bob", "Lovelace", "Robert", "Baker", "al@example.org", "zoe"):
        assert not re.search(rf"\b{word}\b", seen, re.IGNORECASE), word
    assert seen.splitlines()[0] == f"left out: {hidden['bob']}/...: is no notebook (.ipynb) and no hand-in (.json)"
    # Whichever was marked first: what is begun first is the first pseudonym, and not the first id.
    assert {line.split()[0] for line in seen.splitlines()[1:3]} == {hidden["ada"], hidden["bob"]}
    assert f"ValueError: {hidden['bob']} ({hidden['bob']}) was here, maybe" in seen
    assert f"it is of '{hidden['ada']}', and it was handed in by '{hidden['bob']}'" in seen

    by_hand = ["course", "set-mark", str(unseen), "--key", str(course / "key"), "--student", hidden["bob"]]
    assert (
        main([*by_hand, "--check", "03/answer", "--points", "0.5", "--reason", "nearly, Robert", "--by", "N. N."]) == 0
    )
    assert grade(course, *anonymous, out="unseen") == 0
    page = (unseen / hidden["bob"] / LAB / "report.html").read_text()
    assert f"nearly, {hidden['bob']}" in page
    assert "Robert" not in page
    capsys.readouterr()
    assert grade(course, out="unseen") == 0
    assert capsys.readouterr().out.count("was marked already") == 2
    with (unseen / "gradebook.csv").open() as source:
        rows = {row["student"]: row for row in csv.DictReader(source)}
    assert {student: float(row["points"]) for student, row in rows.items()} == {"ada": 5, "bob": 4.5}
    assert rows["bob"]["remarks"].startswith("the notebook says that it is of 'ada', and it was handed in by 'bob'")
    assert not any("anon-" in str(path) for path in unseen.rglob("*"))
    assert "anon-" not in (unseen / "bob" / LAB / "report.html").read_text()
    assert not (unseen / "names.csv").exists()
    assert [line.split(",")[0] for line in (unseen / "roster.csv").read_text().splitlines()] == [
        "id",
        "ada",
        "bob",
        "zoe",
    ]
    assert grade(course, *anonymous, out="unseen") == 2
    assert "has results that show who it is" in capsys.readouterr().err


def test_a_name_is_a_whole_word_and_a_month_is_none() -> None:
    result = {"remarks": ["ADA and ada's nada; May may do", "anon"], "marks": [{"reason": "May, ada"}], "lab": "ada"}
    assert without_names(result, ["ada", "May"], "anon-1") == {
        "remarks": ["anon-1 and anon-1's nada; anon-1 may do", "anon"],
        "marks": [{"reason": "anon-1, anon-1"}],
        "lab": "ada",
    }
