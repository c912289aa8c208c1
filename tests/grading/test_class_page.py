"""The page of a class: what was bet wrongly, which check was hardest, for one student and for many."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqlab.commands.cli import main
from mqlab.errors import LearnerError
from mqlab.grading.class_page import write_page
from mqlab.grading.class_tables import class_tables
from mqlab.grading.roster import Member, keep_roster

ROOT = Path(__file__).parents[2]
EVIL = "<script>alert(1)</script>"


def a_bet(said: Any, told: str | None, truth: str | None) -> dict[str, Any]:
    return {"bet": "left", "question": f"How many are left? {EVIL}", "said": said, "told": told, "truth": truth}


def write(place: Path, student: str, lab: str = "05_push_is_pull", **changed: Any) -> None:
    """A result of `mqlab grade`, as far as the class is concerned."""
    own: dict[str, Any] = {
        "student": student, "lab": lab, "points": 3.0, "most": 4, "unreadable": "", "seconds": 9.0,
        "run": {"verdict": "ok", "seconds": 5.5, "peak_mib": 200.0},
        "marks": [
            {"check": "05/wakes", "points": 1.0, "most": 1}, {"check": "05/hold", "points": 2.0, "most": 3},
        ],
        "bets": [a_bet(3, "3 messages", "3 messages")], "end": True,
    }  # fmt: skip
    out = place / student / lab
    out.mkdir(parents=True)
    (out / "result.json").write_text(json.dumps({**own, **changed}))


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """Four students (right, wrong, no bet, not run); of a fifth there is half a result, of a sixth none."""
    place = tmp_path / "marks"
    write(place, "ada")
    write(place, "bob", bets=[a_bet(7, "7 messages", "4 messages")], points=4.0)
    nothing = [{"check": name, "points": 0.0, "most": most} for name, most in (("05/wakes", 1), ("05/hold", 3))]
    unbet = [a_bet(None, "no prediction yet", "3 messages")]
    write(place, "eve", bets=unbet, marks=nothing, points=0.0, run={"verdict": EVIL, "seconds": 1.0, "peak_mib": 9.0})
    write(place, "joe", bets=[a_bet("b", None, None)], run=None)
    write(place, "kim")
    half = place / "kim" / "05_push_is_pull" / "result.json"
    half.write_text(half.read_text()[:90])
    (place / "lea" / "05_push_is_pull").mkdir(parents=True)
    return place


def test_the_tables_of_a_class(marks: Path) -> None:
    notebooks, checks, bets = class_tables(marks)
    assert [(row.student, row.points, row.run_s) for row in notebooks] == [
        ("ada", 3.0, 5.5), ("bob", 4.0, 5.5), ("eve", 0.0, 1.0), ("joe", 3.0, None),
    ]  # fmt: skip
    hold, wakes = checks
    assert (hold.check, hold.students, hold.all_points, hold.some_points, hold.no_points) == ("05/hold", 4, 0, 3, 1)
    assert (wakes.check, wakes.all_points, wakes.no_points, wakes.share) == ("05/wakes", 3, 1, 0.75)
    (bet,) = bets
    assert (bet.students, bet.right, bet.wrong, bet.unknown, bet.not_made) == (4, 1, 1, 1, 1)
    assert bet.truths == [("3 messages", 2), ("4 messages", 1)]
    assert {text for text, _ in bet.answers} == {"3 messages", "7 messages", "b"}


def test_the_page_of_a_class_needs_nothing_beside_it(marks: Path, tmp_path: Path) -> None:
    assert write_page(marks, tmp_path / "page") == "4 notebooks of 1 lab"
    page = (tmp_path / "page" / "class.html").read_text()
    assert EVIL not in page
    assert "05_push_is_pull: 4 students, 4 points at most" in page
    assert "Without a result, and so not in what follows:</b> kim/05_push_is_pull, lea/05_push_is_pull." in page
    assert "Who has handed in nothing is not known" in page
    assert "<script src" not in page
    assert "<link" not in page
    assert "Runs that did not come to their end" in page


def test_the_page_names_who_on_the_roster_has_handed_in_nothing(marks: Path, tmp_path: Path) -> None:
    write(marks, "ada", "02_store")
    keep_roster([Member(name) for name in ("Ada", "bob", "eve", "kim", "lea", "zoe&b")], marks)
    assert write_page(marks, tmp_path / "page") == "5 notebooks of 2 labs, 6 not handed in"
    page = (tmp_path / "page" / "class.html").read_text()
    nothing = "<td class=n>1 of 6</td><td class=n>5</td><td>bob, eve, kim, lea, zoe&amp;b</td>"
    assert f"<tr><td>02_store</td>{nothing}</tr>" in page
    nothing = "<td class=n>5 of 6</td><td class=n>1</td><td>zoe&amp;b</td>"
    assert f"<tr><td>05_push_is_pull</td>{nothing}</tr>" in page
    assert "Not on the roster: joe." in page


def test_the_page_of_one_who_handed_in_what_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path / "marks", "ada", marks=[], bets=[], run=None, points=0, most=0, unreadable="this is no notebook")
    assert write_page(tmp_path / "marks", tmp_path) == "1 notebook of 1 lab"
    page = (tmp_path / "class.html").read_text()
    assert "<td>ada</td><td>05_push_is_pull</td><td>this is no notebook</td>" in page
    assert "Nothing was checked." in page
    assert "05_push_is_pull was not run." in page


def test_what_was_late_and_what_was_set_by_hand_is_named(tmp_path: Path) -> None:
    mine = {"check": "05/hold", "points": 3, "judged": 2.0, "reason": f"seen at the desk {EVIL}", "by": "kim", "at": ""}
    write(tmp_path / "marks", "ada", late={"told": "2 d 3 h", "taken": 0.5}, by_hand=[mine])
    write(tmp_path / "marks", "bob", late={"told": "", "taken": 0})
    write_page(tmp_path / "marks", tmp_path)
    page = (tmp_path / "class.html").read_text()
    assert "<td>ada</td><td>05_push_is_pull</td><td>2 d 3 h</td>" in page
    assert "<td>bob</td>" not in page.partition("<h2>Late</h2>")[2]
    assert "seen at the desk &lt;script" in page.partition("<h2>Set by hand</h2>")[2]


def test_a_bet_is_the_same_whenever_and_however_it_was_written(tmp_path: Path) -> None:
    after = "15.0 messages (written after the truth was shown)"
    write(tmp_path, "ada", bets=[a_bet(15.0, after, "15 messages")])
    write(tmp_path, "bob", bets=[a_bet(15, "15 messages", "15 messages")])
    write(tmp_path, "eve", bets=[a_bet(15, "15 messages", "told in your report")])
    (bet,) = class_tables(tmp_path).bets
    assert (bet.answers, bet.right, bet.wrong, bet.unknown) == ([("15 messages", 3)], 2, 0, 1)
    assert bet.truths == [("15 messages", 2)]


def test_an_id_is_no_pattern(tmp_path: Path) -> None:
    ids = ["b{1,2}", "m%20\u00fcller[1]", "mueller1", "o'neil #3", "_x"]
    for student in ids:
        write(tmp_path / "marks", student)
    assert sorted(row.student for row in class_tables(tmp_path / "marks").notebooks) == sorted(ids)
    assert write_page(tmp_path / "marks", tmp_path) == "5 notebooks of 1 lab"


def test_without_results_there_is_no_page(tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match="there is no result"):
        write_page(tmp_path, tmp_path / "page")
    assert not (tmp_path / "page").exists()


def test_a_class_from_release_to_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    roster, whole = str(tmp_path / "roster.csv"), str(tmp_path / "whole.csv")
    Path(roster).write_text("id\nada\nbob\n")
    Path(whole).write_text("id\nada\nbob\nzoe\n")
    key, handed_in, marks = (str(tmp_path / name) for name in ("key", "in", "marks"))
    root = ["--root", str(ROOT)]
    assert main(["course", "key", key]) == 0
    assert main(["course", "release", handed_in, "--students", roster, "--lab", "12", *root]) == 0
    (tmp_path / "in" / "bob" / "12_check_points.ipynb").write_text("no json")
    betting = tmp_path / "in" / "ada" / "12_check_points.ipynb"
    text = betting.read_text()
    dots = '\\"messages\\", prediction=...'
    assert dots in text
    betting.write_text(text.replace(dots, dots.replace("...", "1")))
    given = ["--key", key, "--students", whole, "--out", marks, "--no-run", "--hidden", "1"]
    assert main(["grade", handed_in, *given, *root]) == 0
    assert main(["course", "report", marks, "--out", str(tmp_path / "page")]) == 0
    assert "2 notebooks of 1 lab, 1 not handed in" in capsys.readouterr().out
    page = (tmp_path / "page" / "class.html").read_text()
    assert "12/settle" in page
    assert "<td class=n>2 of 3</td><td class=n>1</td><td>zoe</td>" in page
    # In the words of the reveal, although nothing was run.
    assert "<td>1 message (1)</td>" in page
