"""The marks as learning platforms take them, with what the roster says of each student."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from mqlab.grading.course import nothing
from mqlab.grading.gradebook import write_gradebook
from mqlab.grading.roster import Member, keep_roster, kept_members, members_in

ADA = Member("ada", "Ada", "Lovelace", "ada@example.org", "Tuesday", "0042", "1001", "alove")
ROSTER = (
    "ID;Last name;First name;Email address;Section;ID number;canvas_id;SIS Login ID;Birthday\n"
    "ada;Lovelace;Ada;ada@example.org;Tuesday;0042;1001;alove;10.12.\n"
    "bob;;;;;;;;\n"
)


def a_result(student: str, lab: str, *points: float) -> dict[str, Any]:
    marks = [
        {"check": f"{lab[:2]}/{name}", "points": got, "most": 2, "reason": "", "public": [50, 50], "hidden": [20, 20]}
        for name, got in zip("abc", points, strict=False)
    ]
    return {**nothing(student, lab, 2 * len(points), ""), "marks": marks, "points": sum(points)}


RESULTS = [
    a_result("ada", "02_store", 2, 1.5),
    a_result("ADA", "12_check_points", 2),
    a_result("eve", "02_store", 0, 0),
    nothing("bob", "02_store", 4, "nothing was handed in"),
]


def table(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as source:
        return list(csv.reader(source))


def test_a_roster_says_what_platforms_want_to_know(tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text(ROSTER)
    assert members_in(tmp_path / "roster.csv") == [ADA, Member("bob")]
    keep_roster([ADA, Member("b;c")], tmp_path)
    assert kept_members(tmp_path) == [ADA, Member("b;c")]


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [("Ada King Lovelace", "Ada King", "Lovelace"), ('"Lovelace, Ada"', "Ada", "Lovelace"), ("Ada", "", "Ada")],
)
def test_a_name_in_one_column_is_both(name: str, first: str, last: str, tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text(f"name,id\n{name},ada\n")
    assert members_in(tmp_path / "roster.csv") == [Member("ada", first, last)]


def test_canvas_takes_a_row_for_each_student_below_the_points_possible(tmp_path: Path) -> None:
    write_gradebook(RESULTS, tmp_path, [ADA, Member("bob")])
    assert table(tmp_path / "canvas.csv") == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "02_store", "12_check_points"],
        ["    Points Possible", "", "", "", "", "4", "2"],
        ["Lovelace, Ada", "1001", "0042", "alove", "Tuesday", "3.5", "2"],
        ["bob", "", "", "bob", "", "0", ""],
        ["eve", "", "", "eve", "", "0", ""],
    ]


def test_moodle_takes_a_grade_and_its_feedback_for_each_lab(tmp_path: Path) -> None:
    write_gradebook(RESULTS, tmp_path, [ADA, Member("bob")])
    head, ada, bob, eve = table(tmp_path / "moodle.csv")
    assert head[:5] == ["First name", "Last name", "ID number", "Email address", "Username"]
    assert head[5:] == ["02_store", "02_store (Feedback)", "12_check_points", "12_check_points (Feedback)"]
    assert ada[:5] == ["Ada", "Lovelace", "0042", "ada@example.org", "alove"]
    assert ada[5:] == ["3.5", "02/a: 2 of 2; 02/b: 1.5 of 2", "2", "12/a: 2 of 2"]
    assert bob[4:] == ["bob", "0", "nothing was handed in", "", ""]
    assert eve[4:7] == ["eve", "0", "02/a: 0 of 2; 02/b: 0 of 2"]


def test_nbgrader_and_otter_have_their_own_columns_in_their_order(tmp_path: Path) -> None:
    write_gradebook(RESULTS, tmp_path, [ADA])
    head, ada, *_ = table(tmp_path / "nbgrader.csv")
    assert head == [
        "assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email", "raw_score",
        "late_submission_penalty", "score", "max_score",
    ]  # fmt: skip
    assert ada == ["02_store", "", "", "ada", "Lovelace", "Ada", "ada@example.org", "3.5", "0", "3.5", "4"]
    head, ada, *_ = table(tmp_path / "otter.csv")
    assert head == ["file", "02/a", "02/b", "12/a", "percent_correct"]
    assert ada == ["ada/02_store.ipynb", "2", "1.5", "", "0.875"]
