"""Marks that are set by hand, and what a result says of them."""

from __future__ import annotations

import csv
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mqlab.commands.cli import main
from mqlab.errors import LearnerError
from mqlab.grading.arrivals import Arrivals
from mqlab.grading.by_hand import BY_HAND, SetMark, add_by_hand, read_by_hand
from mqlab.grading.course import nothing
from mqlab.grading.deadlines import Arrival, Deadline, Deadlines
from mqlab.grading.gradebook import write_gradebook
from mqlab.grading.marking import read_result, write_result
from mqlab.grading.pseudonyms import pseudonym
from mqlab.grading.report import report
from mqlab.grading.roster import Member, keep_roster
from mqlab.grading.settling import Settling
from mqlab.grading.signing import verified
from mqlab.grading.times import moment

KEY = b"a key of more than sixteen bytes"
DUE = moment("2026-06-01T22:00Z")
LAB = "02_store"


def a_result(student: str = "ada", *points: float) -> dict[str, Any]:
    marks = [
        {
            "check": f"02/{name}", "points": got, "most": 2, "reason": "wrong", "public": [50, 50], "hidden": [20, 20],
            "functions": [name], "failing_seed": None, "story": "",
        }
        for name, got in zip("abc", points or (2, 0.5), strict=False)
    ]  # fmt: skip
    made = {"made_of": {"notebook": "1" * 64, "mqlab": "1"}, "marks": marks, "points": sum(m["points"] for m in marks)}
    return {**nothing(student, LAB, 2 * len(marks), ""), **made}


def settling(marks: Path, late_h: float | None = None, **rule: float) -> Settling:
    arrivals = Arrivals(KEY)
    if late_h is not None:
        own = pseudonym(KEY, "ada"), "02", "1" * 64
        arrivals.by_platform[own] = Arrival(DUE + timedelta(hours=late_h), by_platform=True)
    deadlines = Deadlines({"02": Deadline(DUE)}, **rule) if late_h is not None else Deadlines()
    return Settling(KEY, deadlines, arrivals, read_by_hand(marks, KEY))


def set_by_hand(marks: Path, points: float | None, check: str = "02/b", student: str = "ada") -> None:
    add_by_hand(marks, KEY, SetMark(student, LAB, check, points, "it was =explained aloud", "N. N."))


def test_a_mark_by_hand_counts_survives_and_can_be_taken_back(tmp_path: Path) -> None:
    judged = settling(tmp_path).settled(a_result())
    set_by_hand(tmp_path, 1.5)
    by_hand = settling(tmp_path).settled(judged)
    assert (by_hand["points"], by_hand["marks"][1]["points"], by_hand["marks"][1]["judged"]) == (3.5, 1.5, 0.5)
    # Marked again, and settled again: the same.
    assert settling(tmp_path).settled(a_result()) == settling(tmp_path).settled(by_hand) == by_hand
    assert verified(KEY, by_hand["signed"]) == {
        "lab": LAB, "student": "ada", "points": "3.5", "most": "4", "exam": "",
    }  # fmt: skip
    set_by_hand(tmp_path, None)
    assert settling(tmp_path).settled(by_hand) == judged


def test_a_mark_of_all_of_the_lab_is_the_last_word_and_can_be_of_who_handed_in_nothing(tmp_path: Path) -> None:
    set_by_hand(tmp_path, 1, check="")
    late = settling(tmp_path, 30, percent=50).settled(a_result())
    assert (late["points"], late["late"]["told"], late["late"]["taken"]) == (1, "1 day 6 h", 0)
    absent = settling(tmp_path).settled(nothing("ada", LAB, 4, "nothing was handed in"))
    assert (absent["points"], absent["by_hand"][0]["judged"]) == (1, 0)


def test_being_late_is_told_and_takes_what_the_rule_says(tmp_path: Path) -> None:
    assert settling(tmp_path, 30).settled(a_result())["points"] == 2.5
    late = settling(tmp_path, 30, percent=20).settled(a_result())
    assert (late["before_late"], late["late"]["taken"], late["points"]) == (2.5, 1.0, 1.5)
    assert settling(tmp_path).settled(late)["points"] == 2.5
    assert settling(tmp_path, -1, percent=20).settled(late)["late"]["told"] == ""


def test_what_was_reached_and_what_is_taken_stand_side_by_side(tmp_path: Path) -> None:
    set_by_hand(tmp_path, 1.5)
    result = settling(tmp_path, 30, percent=20).settled(a_result())
    page = report(result)
    assert "late: 1 day 6 h</b>. Of the 3.5 points that were reached this takes 1.4" in page
    assert "1.5 of 2, set by hand; the judge gave 0.5" in page
    assert "it was =explained aloud" in page
    assert "N. N., 20" in page
    write_gradebook([result], tmp_path, [Member("ada")])
    tables = {
        name: next(csv.DictReader((tmp_path / name).open())) for name in ("gradebook.csv", "nbgrader.csv", "moodle.csv")
    }
    row = tables["gradebook.csv"]
    assert [row[name] for name in ("points", "before_late", "arrived", "late", "02/b")] == [
        "2.1", "3.5", "2026-06-03 04:00:00 UTC", "1 day 6 h", "1.5",
    ]  # fmt: skip
    assert row["by_hand"] == "02/b set by hand to 1.5 (judged 0.5): it was =explained aloud"
    row = tables["nbgrader.csv"]
    assert [row[name] for name in ("duedate", "timestamp", "raw_score", "late_submission_penalty", "score")] == [
        "2026-06-01 22:00:00 UTC", "2026-06-03 04:00:00 UTC", "3.5", "1.4", "2.1",
    ]  # fmt: skip
    assert tables["moodle.csv"][f"{LAB} (Feedback)"].startswith(
        "late: 1 day 6 h, which takes 1.4 of 3.5 points; 02/b set by hand to 1.5 (judged 0.5): it was =explained aloud"
    )


@pytest.mark.parametrize("line", [0, 1])
def test_a_line_that_was_changed_or_taken_out_is_told(line: int, tmp_path: Path) -> None:
    for points in (1, 1.5, 2):
        set_by_hand(tmp_path, points)
    place = tmp_path / BY_HAND
    lines = place.read_text().splitlines(keepends=True)
    place.write_text("".join([*lines[:line], *lines[line + 1 :]]))
    with pytest.raises(LearnerError, match=rf"line {line + 1} of .* was not written with this key"):
        read_by_hand(tmp_path, KEY)
    place.write_text("".join(lines).replace("N. N.", "M. M.", 1))
    with pytest.raises(LearnerError, match="line 1 of"):
        read_by_hand(tmp_path, KEY)
    place.write_text("".join(lines))
    with pytest.raises(LearnerError, match="line 1 of"):
        read_by_hand(tmp_path, KEY + b"!")


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """Marks of two, with a roster of three."""
    (tmp_path / "key").write_bytes(KEY)
    for student in ("ada", "bob"):
        (tmp_path / "marks" / student / LAB).mkdir(parents=True)
        write_result(tmp_path / "marks" / student / LAB, a_result(student))
    keep_roster([Member("ada"), Member("bob"), Member("zoe")], tmp_path / "marks")
    return tmp_path / "marks"


def command(marks: Path, *more: str, student: str = "ADA") -> int:
    given = [str(marks), "--key", str(marks.parent / "key"), "--student", student, "--by", "N. N."]
    return main(["course", "set-mark", *given, "--reason", "explained", *more])


def test_a_mark_is_set_by_a_command(marks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(marks, "--check", "02/b", "--points", "2") == 0
    assert "ada, 02/b: 2 of 2 points; give mqlab grade again" in capsys.readouterr().out
    assert command(marks, "--lab", "02", "--points", "4.5", "--above") == 0
    assert command(marks, "--lab", LAB, "--points", "1", student="zoe") == 0
    by_hand = read_by_hand(marks, KEY)
    assert [each.points for each in by_hand.marks.values()] == [2, 4.5, 1]
    assert command(marks, "--check", "02/b", "--take-back") == 0
    assert "what the judge gave counts again, 0.5" in capsys.readouterr().out
    assert read_by_hand(marks, KEY).of("ada", LAB, "02/b") is None
    assert read_result(marks / "ada" / LAB) == {**a_result("ada"), "end": True}


@pytest.mark.parametrize(
    ("more", "student", "said"),
    [
        (["--check", "02/b", "--points", "1"], "eve", "'eve' is nobody of the class"),
        (["--check", "02/b", "--points", "1"], "zoe", "zoe has handed in nothing of this lab"),
        (["--check", "02/z", "--points", "1"], "ada", "there is no check '02/z'"),
        (["--check", "05/b", "--points", "1"], "ada", "no lab '05' is marked"),
        (["--lab", "77", "--points", "1"], "ada", "no lab '77' is marked"),
        (["--check", "02/b", "--points", "2.5"], "ada", "2.5 is more than the 2 points that there are"),
        (["--lab", "02", "--points", "4.5"], "ada", "4.5 is more than the 4 points that there are"),
        (["--check", "02/b", "--points", "-1"], "ada", "'-1' are no points"),
        (["--check", "02/b", "--points", "nan"], "ada", "'nan' are no points"),
        (["--check", "02/b", "--points", "inf", "--above"], "ada", "'inf' are no points"),
        (["--check", "02/b", "--points", "all"], "ada", "'all' are no points"),
        (["--check", "02/b", "--take-back"], "ada", "nothing was set by hand for ada, 02/b"),
        (["--points", "1"], "ada", "say what the mark is of"),
        (["--lab", "02", "--check", "02/b", "--points", "1"], "ada", "say what the mark is of"),
        (["--lab", "02", "--points", "1", "--reason", " "], "ada", "--reason has 1 characters"),
    ],
)
def test_what_cannot_be_set_is_refused(
    more: list[str], student: str, said: str, marks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(marks, *more, student=student) == 2
    assert said in capsys.readouterr().err
    assert not (marks / BY_HAND).exists()
