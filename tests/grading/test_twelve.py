"""Twelve students as every term has them, marked once by the command, and what a fair teacher would give each."""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqlab.commands.cli import main
from mqlab.labs.build import read_lab

ROOT = Path(__file__).parents[2]
LAB = "00_tour"
CHECKS = ["00/most-early", "00/same-message", "00/lag", "00/visible"]
HARD = "müller[1]"
ROSTER = f"""id;last_name;first_name;email;canvas_id;extension
ada;Lovelace;Ada;ada@example.org;1;
bob;;;;2;
cyd;;;;3;
dan;;;;4;
eve;;;;5;
fay;;;;6;
gus;;;;7;2 days
hal;;;;8;
ida;;;;9;
{HARD};O'Neill, "Jr.";=Zoë-Łucja;mueller@example.org;10;
jim;;;;11;
zoe;;;;12;
"""
ARRIVED = f"""Email address,Username,Last modified (submission)
,ada,"Sunday, 31 May 2026, 9:12 AM"
,bob,2026-06-01 23:58
,cyd,2026-06-01T21:58:59Z
,dan,2026-06-01 10:00 UTC
,eve,2026-06-01 23:59:00
,fay,2026-06-03 01:59
,gus,2026-06-03 01:59
,hal,2026-06-02 00:04
,ida,2026-06-01 23:00
mueller@example.org,{HARD},2026-06-01 12:00
,jim,2026-05-30 08:00
,zoe,-
"""
NEAR_MISS = "def same_message(a, b):\n    return a.commit_log_offset == b.commit_log_offset\n"

Notebook = dict[str, Any]


def solved(path: Path) -> Notebook:
    """The notebook with the reference solutions."""
    lab = read_lab(ROOT / "labs" / "sources" / f"{LAB}.py")
    sources = {f"00-{cell.definitions[-1]}": cell.source for cell in lab.tagged("exercise")}
    notebook: Notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = sources.get(name_of(cell), cell["source"])
    return notebook


def name_of(cell: dict[str, Any]) -> str:
    name: str = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
    return name


def stripped(notebook: Notebook) -> None:
    """As an editor leaves it that knows no metadata."""
    for cell in notebook["cells"]:
        cell["metadata"] = {}


def as_colab_saves_it(notebook: Notebook) -> None:
    """Colab has its own ids, takes the cells' metadata away, and names the kernel without its specification."""
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"] = {"id": f"x{number}"}
        cell["source"] = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
        cell.pop("id", None)
    notebook["metadata"] = {"colab": {"provenance": []}, "language_info": {"name": "python"}}
    notebook["nbformat_minor"] = 0


def with_exercise(name: str, change: Callable[[str], str]) -> Callable[[Notebook], None]:
    def made(notebook: Notebook) -> None:
        for cell in notebook["cells"]:
            if name_of(cell) == name:
                cell["source"] = change(cell["source"])

    return made


CHANGES: dict[str, Callable[[Notebook], None]] = {
    "bob": stripped,
    "cyd": as_colab_saves_it,
    "dan": with_exercise("00-same_message", lambda text: text.replace("def same_message", "def my_same_message")),
    "hal": with_exercise("00-same_message", lambda _: NEAR_MISS),
}


def hand_in(place: Path) -> None:
    """What the twelve hand in, each from the copy that was released to that id."""
    for student in ("ada", "bob", "cyd", "dan", "eve", "fay", "gus", "hal", HARD, "jim"):
        path = place / "in" / student / f"{LAB}.ipynb"
        notebook = solved(path)
        CHANGES.get(student, lambda _: None)(notebook)
        if student == "jim":
            # The blank one lies beside the one that counts; a student may have any time in a file.
            os.utime(path, (1_700_000_000, 1_700_000_000))
            path = path.with_name(f"{LAB} (1).ipynb")
        path.write_text(json.dumps(notebook), encoding="utf-8")
    eve, fay = (place / "in" / student / f"{LAB}.ipynb" for student in ("eve", "fay"))
    eve.write_text(eve.read_text(encoding="utf-8")[:20_000], encoding="utf-8")
    os.utime(fay, (1_700_000_000, 1_700_000_000))
    shutil.copy(place / "in" / "ada" / f"{LAB}.ipynb", place / "in" / "ida" / f"{LAB}.ipynb")
    shutil.rmtree(place / "in" / "zoe")


def grade(place: Path, *more: str) -> int:
    given = ["grade", str(place / "in"), "--key", str(place / "key"), "--students", str(place / "roster.csv")]
    return main([*given, "--out", str(place / "marks"), "--root", str(ROOT), "--no-run", "--hidden", "3", *more])


@pytest.fixture(scope="module")
def twelve(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The class, marked with a deadline."""
    place = tmp_path_factory.mktemp("twelve")
    (place / "roster.csv").write_text(ROSTER, encoding="utf-8")
    (place / "arrived.csv").write_text(ARRIVED, encoding="utf-8")
    assert main(["course", "key", str(place / "key")]) == 0
    released = ["course", "release", str(place / "in"), "--students", str(place / "roster.csv"), "--lab", "00"]
    assert main([*released, "--root", str(ROOT)]) == 0
    hand_in(place)
    due = ["--due", "2026-06-01 23:59", "--zone", "Europe/Berlin", "--arrivals", str(place / "arrived.csv")]
    assert grade(place, *due, "--late", "10", "--late-floor", "50", "--grace", "10") == 0
    return place


def rows(place: Path, name: str = "gradebook.csv", key: str = "student") -> dict[str, dict[str, str]]:
    with (place / "marks" / name).open(encoding="utf-8", newline="") as source:
        return {row[key]: row for row in csv.DictReader(source)}


def test_everybody_has_what_is_fair(twelve: Path) -> None:
    found = rows(twelve)
    assert list(found) == ["ada", "bob", "cyd", "dan", "eve", "fay", "gus", "hal", "ida", "jim", HARD, "zoe"]
    points = {student: float(row["points"]) for student, row in found.items()}
    near = points.pop("hal")
    assert 4 + 0.8 < near < 5
    assert points == {
        "ada": 5, "bob": 5, "cyd": 5, "dan": 4, "eve": 0, "fay": 4, "gus": 5, "ida": 5, "jim": 5, HARD: 5, "zoe": 0,
    }  # fmt: skip
    assert {row["most"] for row in found.values()} == {"5"}
    assert [found["dan"][check] for check in CHECKS] == ["1.0", "0", "1.0", "2.0"]


def test_lateness_is_the_platforms_word_with_the_rosters_extension(twelve: Path) -> None:
    found = rows(twelve)
    assert {student: row["late"] for student, row in found.items() if row["late"]} == {
        "fay": "1 day 2 h", "hal": "5 min, in the grace period",
    }  # fmt: skip
    assert (found["fay"]["before_late"], found["fay"]["arrived"]) == ("5.0", "2026-06-02 23:59:00 UTC")
    assert found["gus"]["arrived"] == found["fay"]["arrived"]
    page = (twelve / "marks" / "fay" / LAB / "report.html").read_text(encoding="utf-8")
    assert "late: 1 day 2 h</b>. Of the 5 points that were reached this takes 1." in page


def test_what_is_odd_is_said_and_nothing_else(twelve: Path) -> None:
    remarks = {student: row["remarks"] for student, row in rows(twelve).items()}
    for student in ("ada", "dan", "fay", "gus", "hal", "jim", HARD):
        assert remarks.pop(student) == ""
    for student in ("bob", "cyd"):
        assert remarks.pop(student).count("has lost its name (an editor does that); it was found by") == len(CHECKS)
    assert remarks.pop("ida") == (
        "the notebook says that it is of 'ada', and it was handed in by 'ida'; "
        "the notebook says that it was handed out to 'ada', and it was handed in by 'ida'"
    )
    assert remarks == {"eve": "this is no notebook: it is no JSON", "zoe": "nothing was handed in"}
    page = (twelve / "marks" / "dan" / LAB / "report.html").read_text(encoding="utf-8")
    assert "your cell defines my_same_message; same_message is wanted" in page


def test_platforms_take_the_class_as_it_is(twelve: Path) -> None:
    with (twelve / "marks" / "canvas.csv").open(encoding="utf-8", newline="") as source:
        head, possible, *students = csv.reader(source)
    assert (head[5:], possible[5:]) == ([LAB], ["5"])
    assert [row[:2] for row in students if row[1] in ("1", "10")] == [
        ["Lovelace, Ada", "1"], ["O'Neill, \"Jr.\", =Zoë-Łucja", "10"],
    ]  # fmt: skip
    assert {row[1]: row[5] for row in students if row[1] in ("4", "6", "12")} == {"4": "4.0", "6": "4.0", "12": "0"}
    moodle = rows(twelve, "moodle.csv", "Username")
    assert moodle[HARD]["First name"] == "'=Zoë-Łucja"
    assert moodle["fay"][f"{LAB} (Feedback)"].startswith("late: 1 day 2 h, which takes 1 of 5 points; 00/most-early: 1")
    assert moodle["eve"][f"{LAB} (Feedback)"] == "this is no notebook: it is no JSON"


def test_who_copied_the_file_is_told(twelve: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [str(twelve / "in"), "--out", str(twelve / "alike.html"), "--root", str(ROOT)]
    assert main(["course", "compare", *given]) == 1
    told = capsys.readouterr().out
    assert "there is a newer one, by the files' own times" in told
    assert [line for line in told.splitlines() if "same file" in line and "ada" in line and "ida" in line]


def test_a_mark_by_hand_and_a_longer_extension_are_taken_up_without_marking(
    twelve: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_hand = ["course", "set-mark", str(twelve / "marks"), "--key", str(twelve / "key"), "--student", "dan"]
    by_hand += ["--check", "00/same-message", "--points", "0.5", "--reason", "only the name was wrong", "--by", "N. N."]
    assert main(by_hand) == 0
    before = (twelve / "roster.csv").read_text(encoding="utf-8")
    (twelve / "roster.csv").write_text(before.replace("fay;;;;6;", "fay;;;;6;00: 2026-06-05 12:00"), encoding="utf-8")
    assert grade(twelve) == 0
    assert capsys.readouterr().out.count("(was marked already)") == 11
    found = rows(twelve)
    assert (found["dan"]["points"], found["dan"]["by_hand"]) == (
        "4.5", "00/same-message set by hand to 0.5 (judged 0): only the name was wrong",
    )  # fmt: skip
    assert (found["fay"]["points"], found["fay"]["late"]) == ("5.0", "")
    line = json.loads((twelve / "marks" / "dan" / LAB / "result.json").read_text(encoding="utf-8"))["signed"]
    assert "points=4.5/5" in line
    assert main(["course", "verify", line, "--key", str(twelve / "key")]) == 0
