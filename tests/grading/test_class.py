"""A class: what is handed out, found, marked, resumed and written down."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from mqlab.commands.cli import main
from mqlab.errors import LearnerError
from mqlab.grading.course import TOO_DEEP, Settings, handed_in
from mqlab.grading.gradebook import write_gradebook
from mqlab.grading.judging import hidden_seeds
from mqlab.grading.marking import RESULT, read_key, read_result, write_result
from mqlab.grading.outside import remove_tree
from mqlab.grading.release import make_key, release
from mqlab.grading.report import report, share_line
from mqlab.grading.roster import Member, keep_roster, kept_roster, students_in
from mqlab.labs.build import read_lab
from mqlab.labs.notebook import make_notebook

ROOT = Path(__file__).parents[2]
LAB = "12_check_points"
GRADEBOOK = ("gradebook.csv", "gradebook.parquet", "nbgrader.csv", "otter.csv", "canvas.csv", "moodle.csv")
NAMES = ["12-dues", "12-bitmap", "12-end_time", "12-settle"]


def solved(notebook: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The notebook with the reference solutions of those exercises."""
    lab = read_lab(ROOT / "labs" / "sources" / f"{LAB}.py")
    sources = {f"12-{cell.definitions[-1]}": cell.source for cell in lab.tagged("exercise")}
    for cell in notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if name in names:
            cell["source"] = sources[name]
    return notebook


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class of three: released, and handed in with all, one and none of the exercises."""
    place = tmp_path_factory.mktemp("course")
    (place / "roster.csv").write_text("name,id\nAda,ada\nBob,bob\nEve,eve\n")
    (place / "whole.csv").write_text("id\nADA\nbob\neve\nzoe\n")
    assert main(["course", "key", str(place / "key")]) == 0
    command = ["course", "release", str(place / "handed-in"), "--students", str(place / "roster.csv"), "--lab", "12"]
    assert main([*command, "--root", str(ROOT)]) == 0
    for student, names in (("ada", NAMES), ("bob", NAMES[:1])):
        path = place / "handed-in" / student / f"{LAB}.ipynb"
        path.write_text(json.dumps(solved(json.loads(path.read_text()), names)))
    (place / "handed-in" / "eve" / f"{LAB}.ipynb").write_text("{}")
    return place


def grade(course: Path, *more: str) -> int:
    """Mark the class without executing its notebooks."""
    command = ["grade", str(course / "handed-in"), "--key", str(course / "key"), "--out", str(course / "marks")]
    return main([*command, "--root", str(ROOT), "--no-run", "--hidden", "2", *more])


def test_a_class_from_release_to_gradebook(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert grade(course) == 0
    said = capsys.readouterr().out
    assert "3 notebooks marked" in said
    points = {row["student"]: row for row in csv.DictReader((course / "marks" / "gradebook.csv").open())}
    assert float(points["ada"]["points"]) == float(points["ada"]["most"]) > 0
    assert 0 < float(points["bob"]["points"]) < float(points["ada"]["points"])
    assert float(points["eve"]["points"]) == 0
    assert points["eve"]["remarks"] == "this is no notebook: it has no cells"
    rows = parquet.read_table(course / "marks" / "gradebook.parquet").to_pylist()
    assert len(rows) == 3 * len(NAMES)
    assert {row["hidden_passed"] for row in rows if row["student"] == "ada"} == {2}
    for student in ("ada", "bob", "eve"):
        assert (course / "marks" / student / LAB / "report.html").read_text().startswith("<!doctype html>")

    # Marked once more: nothing is made again but what has changed, or was cut off.
    kept = course / "marks" / "ada" / LAB / RESULT
    before = kept.stat().st_mtime_ns
    (course / "marks" / "bob" / LAB / RESULT).write_text((kept.read_text())[:200])
    assert grade(course) == 0
    said = capsys.readouterr().out
    assert said.count("was marked already") == 2
    assert kept.stat().st_mtime_ns == before
    again = {row["student"]: row for row in csv.DictReader((course / "marks" / "gradebook.csv").open())}
    assert again == points


def test_who_has_handed_in_nothing_has_a_row_when_the_class_is_named(course: Path) -> None:
    assert grade(course, "--students", str(course / "whole.csv")) == 0
    rows = {row["student"]: row for row in csv.DictReader((course / "marks" / "gradebook.csv").open())}
    assert list(rows) == ["ada", "bob", "eve", "zoe"]
    assert (rows["zoe"]["points"], rows["zoe"]["most"]) == ("0", rows["ada"]["most"])
    assert rows["zoe"]["remarks"] == "nothing was handed in"


def test_the_gradebook_says_who_is_nobody_of_the_class_and_what_was_left_out(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    strange = course / "handed-in" / "zoe" / f"zoe_{LAB}.ipynb"
    strange.parent.mkdir()
    strange.write_text("{}")
    (course / "few.csv").write_text("id\nbob\neve\nzoe\n")
    assert grade(course, "--students", str(course / "few.csv")) == 0
    said = capsys.readouterr().out
    shutil.rmtree(strange.parent)
    assert "ada: is not on the roster" in said
    assert "3 notebooks marked, 1 left out" in said
    rows = {row["student"]: row for row in csv.DictReader((course / "marks" / "gradebook.csv").open())}
    assert rows["ada"]["remarks"] == "this id is not on the roster"
    left = f"nothing was handed in that can be marked; left out: zoe/zoe_{LAB}.ipynb"
    assert rows["zoe"]["remarks"] == left


def test_labs_that_were_marked_before_stay_in_the_gradebook(course: Path) -> None:
    other, marks = "02_store", course / "both-marks"
    labs = {lab: read_lab(ROOT / "labs" / "sources" / f"{lab}.py") for lab in (LAB, other)}
    for student in ("ada", "bob"):
        for lab, source in labs.items():
            path = course / "both" / student / f"{lab}.ipynb"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(solved(make_notebook(source, "student"), NAMES)))
    (course / "pair.csv").write_text("id\nada\nbob\nzoe\n")
    command = ["grade", str(course / "both"), "--key", str(course / "key"), "--root", str(ROOT), "--no-run"]
    command += ["--hidden", "2", "--students", str(course / "pair.csv"), "--out"]

    def marked(out: Path, *more: str) -> dict[str, bytes]:
        assert main([*command, str(out), *more]) == 0
        return {name: (out / name).read_bytes() for name in GRADEBOOK}

    def rows() -> dict[tuple[str, str], dict[str, str]]:
        return {(row["student"], row["lab"]): row for row in csv.DictReader((marks / "gradebook.csv").open())}

    marked(marks, "--lab", "02")
    assert list(rows()) == [(student, other) for student in ("ada", "bob", "zoe")]
    both = marked(marks, "--lab", "12")
    assert list(rows()) == [(student, lab) for student in ("ada", "bob", "zoe") for lab in (other, LAB)]
    assert rows()["zoe", other]["remarks"] == "nothing was handed in"
    assert float(rows()["ada", LAB]["points"]) > 0
    assert len(both["nbgrader.csv"].splitlines()) == len(both["otter.csv"].splitlines()) == 7
    assert {row["lab"] for row in parquet.read_table(marks / "gradebook.parquet").to_pylist()} == {LAB, other}
    assert both == marked(marks, "--lab", "12") == marked(marks, "--lab", "02") == marked(marks)

    # What is not marked is told so, and what was taken away as well.
    (marks / "bob" / other / RESULT).unlink()
    (course / "both" / "ada" / f"{other}.ipynb").unlink()
    marked(marks, "--lab", "12")
    assert rows()["bob", other]["remarks"] == "this is not marked: give the command with this lab"
    assert rows()["ada", other]["remarks"] == "this notebook is no longer where it was handed in"


@pytest.mark.parametrize("command", ["grade", "compare"])
def test_where_nothing_can_be_marked_that_is_said_and_nothing_is_written(
    command: str, course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in" / "ada").mkdir(parents=True)
    (tmp_path / "in" / "ada" / "notes.txt").write_text("mine")
    words = {"grade": ["grade"], "compare": ["course", "compare"]}[command]
    more = ["--key", str(course / "key")] if command == "grade" else []
    given = [str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--root", str(ROOT), *more]
    assert main([*words, *given]) == 2
    told = capsys.readouterr()
    assert "left out: ada/notes.txt: is no notebook (.ipynb) and no hand-in (.json)" in told.out
    assert "there is no notebook of a lab that is asked for" in told.err
    assert main([*words, *given, "--lab", "55"]) == 2
    assert "there is no lab '55'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_marker_that_is_killed_goes_on_and_loses_nothing(course: Path) -> None:
    out = course / "killed"
    command = [sys.executable, "-m", "mqlab", "grade", str(course / "handed-in"), "--key", str(course / "key")]
    command += ["--out", str(out), "--root", str(ROOT), "--no-run", "--hidden", "2", "--jobs", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as marker:
        assert marker.stdout is not None
        assert marker.stdout.readline().startswith("ada")
        marker.kill()
    assert not (out / "gradebook.csv").exists()
    assert [path.parts[-3] for path in out.glob(f"*/*/{RESULT}")] == ["ada"]
    assert main(command[3:]) == 0
    # In a directory of its own, too: marks/ keeps the roster that another marking was given.
    unbroken = course / "unbroken"
    unbroken.mkdir()
    shutil.copy(out / "arrivals.csv", unbroken)
    assert main([str(unbroken) if each == str(out) else each for each in command[3:]]) == 0
    for name in GRADEBOOK:
        assert (out / name).read_bytes() == (unbroken / name).read_bytes()


def test_a_marker_that_is_interrupted_says_how_to_go_on(course: Path) -> None:
    out = course / "interrupted"
    # A shell lets what it starts in the background ignore the signal, and so do its children.
    command = ["env", "--default-signal=INT", sys.executable, "-m", "mqlab", "grade", str(course / "handed-in")]
    command += ["--key", str(course / "key"), "--out", str(out), "--root", str(ROOT)]
    command += ["--no-run", "--hidden", "2", "--jobs", "1"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as marker:
        assert marker.stdout is not None
        assert marker.stdout.readline().startswith("ada")
        marker.send_signal(signal.SIGINT)
        said = marker.communicate()[1]
    assert marker.returncode == 130
    assert "stopped: 1 of 3 are marked; the same command goes on from there" in said
    assert "Traceback" not in said
    assert not (out / "gradebook.csv").exists()


def test_without_a_key_nothing_is_written(course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [str(course / "handed-in"), "--key", str(tmp_path / "none"), "--out", str(tmp_path / "out")]
    assert main(["grade", *given, "--root", str(ROOT)]) == 2
    assert f"the key {tmp_path / 'none'} can't be read: No such file or directory" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_released_notebook_has_the_id_and_no_outputs(course: Path) -> None:
    notebook = json.loads((course / "handed-in" / "ada" / f"{LAB}.ipynb").read_text())
    (parameters,) = [cell for cell in notebook["cells"] if "parameters" in cell["metadata"].get("tags", ())]
    assert "student_id = 'ada'" in parameters["source"]
    assert not any(cell.get("outputs") for cell in notebook["cells"])


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    labs = [ROOT / "labs" / f"{LAB}.ipynb"]
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / f"{LAB}.ipynb").write_text("mine")
    with pytest.raises(LearnerError, match="is there already"):
        release(labs, tmp_path, ["ada", "bob"])
    assert not (tmp_path / "ada").exists()


@pytest.mark.parametrize(
    ("roster", "said"),
    [
        ("", "names nobody"),
        ("id\n", "names nobody"),
        ("id\nada\nADA\n", "are the same id"),
        ("id\n../ada\n", "can't be the name of a directory"),
        ("id\n.ada\n", "can't be the name of a directory"),
        ("name,mail\nada,a@b\n", "has no column `id`"),
        ("name;mail\nada;a@b\n", "has no column `id`"),
    ],
)
def test_a_roster_that_cannot_be_used_is_refused(roster: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text(roster)
    with pytest.raises(LearnerError, match=said):
        students_in(tmp_path / "roster.csv")


def test_rosters(tmp_path: Path) -> None:
    roster = tmp_path / "roster.csv"
    roster.write_text("ada\n\nbob\n")
    assert students_in(roster) == ["ada", "bob"]
    roster.write_bytes(b"\xef\xbb\xbfName,Student_ID\nAda,a1\nBob,b2\n")
    assert students_in(roster) == ["a1", "b2"]
    roster.write_text("name;id\nAda, Countess;a1\nBob;b2\n")
    assert students_in(roster) == ["a1", "b2"]
    roster.write_text("name\tid\nAda, Countess\ta1\n")
    assert students_in(roster) == ["a1"]


def test_a_roster_is_kept_as_it_was(tmp_path: Path) -> None:
    assert kept_roster(tmp_path) == []
    keep_roster([Member("ada"), Member("b,c"), Member("d;e")], tmp_path)
    assert kept_roster(tmp_path) == ["ada", "b,c", "d;e"]


def test_a_key_is_not_written_over_and_not_too_short(tmp_path: Path) -> None:
    make_key(tmp_path / "key")
    assert (tmp_path / "key").stat().st_mode & 0o077 == 0
    with pytest.raises(LearnerError, match="is there already"):
        make_key(tmp_path / "key")
    (tmp_path / "short").write_text("secret")
    with pytest.raises(LearnerError, match="fewer than 16 bytes"):
        read_key(str(tmp_path / "short"))
    with pytest.raises(LearnerError, match="can't be read"):
        read_key(str(tmp_path / "none"))


def test_hidden_seeds_belong_to_key_student_and_check() -> None:
    key = b"a key of more than sixteen bytes"
    seeds = hidden_seeds(key, "ada", "05/hold", 4)
    assert seeds == hidden_seeds(key, " ADA ", "05/hold", 4)
    assert len({*seeds, *hidden_seeds(key, "bob", "05/hold", 4), *hidden_seeds(key, "ada", "05/wakes", 4)}) == 12
    assert not set(seeds) & set(hidden_seeds(key + b"!", "ada", "05/hold", 4))
    assert min(seeds) >= 1_000


def test_what_is_handed_in_is_found_and_the_rest_is_told(tmp_path: Path) -> None:
    place = tmp_path / "in"
    for student, name in (("ada", f"first/{LAB}.ipynb"), ("ada", "12_again.ipynb"), ("bob", "notes.txt")):
        path = place / student / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    (place / "loose.ipynb").write_text("{}")
    (place / "bob" / "99_none.ipynb").write_text("{}")
    (place / "roster.csv").mkdir()
    (place / "roster.csv" / f"{LAB}.ipynb").write_text("{}")
    (place / "outside").symlink_to("/etc")
    found, left = handed_in(place, Settings(tmp_path / "key", tmp_path / "out", ROOT / "labs" / "sources"))
    assert [(each.student, each.source.stem) for each in found] == [("ada", LAB)]
    assert {each.why for each in left} == {
        "there is a newer one, by the files' own times",
        "is a link to a directory, which is not followed: put the directory itself here",
        "lies in a directory whose name the gradebook's files need: rename the directory to the student's id",
        "is no notebook (.ipynb) and no hand-in (.json)",
        "does not begin with the number of a lab, as 02_store.ipynb does: rename it",
        "lies beside the students' directories, so nobody knows whose it is",
    }


def test_who_hands_in_many_files_buries_nobody_elses(tmp_path: Path) -> None:
    place = tmp_path / "in"
    for student, many in (("ada", 3), ("eve", 200)):
        (place / student).mkdir(parents=True)
        for number in range(many):
            (place / student / f"{number}.txt").touch()
    _, left = handed_in(place, Settings(tmp_path / "key", tmp_path / "out", ROOT / "labs" / "sources"))
    assert [each.file.parts[0] for each in left] == ["ada"] * 3 + ["eve"] * 21
    assert str(left[-1]) == "eve/...: 180 more are not marked"


@pytest.mark.parametrize(("name", "deep"), [("d", 1_200), ("d" * 200, 40)])
def test_directories_that_are_too_deep_are_told_and_hold_up_nobody(name: str, deep: int, tmp_path: Path) -> None:
    place = tmp_path / "in"
    for student in ("ada", "eve"):
        (place / student).mkdir(parents=True)
        (place / student / f"{LAB}.ipynb").write_text("{}")
    at = os.open(place / "eve", os.O_RDONLY)
    for _ in range(deep):
        os.mkdir(name, dir_fd=at)
        inner = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
    try:
        found, left = handed_in(place, Settings(tmp_path / "key", tmp_path / "out", ROOT / "labs" / "sources"))
        assert [(each.student, each.source.stem) for each in found] == [("ada", LAB), ("eve", LAB)]
        assert [each.why for each in left] == [TOO_DEEP]
        assert len(str(left[0])) < 500
    finally:
        remove_tree(place)


def test_a_result_without_its_end_mark_is_none(tmp_path: Path) -> None:
    write_result(tmp_path, {"points": 3})
    assert read_result(tmp_path) == {"points": 3, "end": True}
    (tmp_path / RESULT).write_text('{"points": 3}')
    assert read_result(tmp_path) is None
    (tmp_path / RESULT).write_text('{"points": 3, "end": tr')
    assert read_result(tmp_path) is None


EVIL = "<script>alert(1)</script>"


def a_result(**changed: Any) -> dict[str, Any]:
    mark = {
        "check": "05/hold", "points": 1.5, "most": 3, "reason": EVIL, "public": [25, 50], "hidden": [9, 20],
        "functions": ["HoldService"], "failing_seed": 7, "story": EVIL, "has_world": True,
    }  # fmt: skip
    own = {"student": "=cmd()", "lab": "05_push_is_pull", "points": 1.5, "most": 3, "marks": [mark], "remarks": [EVIL]}
    bets = [{"bet": "held", "said": EVIL, "truth": None}]
    run = {"verdict": EVIL, "seconds": 3.0, "peak_mib": 200}
    claims = {
        "hints": {"05-Hold": [1, 2], "05-wakes": []},
        "certificate": {"line": EVIL, "holds": False, "why": EVIL},
        "exam": {"name": EVIL, "fits": True, "released": EVIL, "opened": ""},
        "signed": "",
    }
    return {**own, **claims, "unreadable": "", "bets": bets, "run": run, **changed}


def test_a_bet_stands_beside_the_truth_in_its_words() -> None:
    choice = {"bet": "who", "question": "Who filters?", "said": "b", "told": "the broker", "truth": "the consumer"}
    page = report(a_result(bets=[choice, {**choice, "said": None, "told": "no prediction yet"}]))
    assert "<td>Who filters?</td><td>the broker</td><td>the consumer</td>" in page
    assert "<td>Who filters?</td><td><i>nothing</i></td><td>the consumer</td>" in page


def test_of_what_cannot_be_read_the_report_says_so_once() -> None:
    reason = "this is no notebook: it has no cells"
    mark = {**a_result()["marks"][0], "reason": reason, "points": 0, "failing_seed": None}
    page = report(a_result(unreadable=reason, marks=[mark, mark], remarks=[]))
    assert page.count(reason) == 1
    assert "went well" not in page


def test_what_a_student_wrote_is_text_in_the_report() -> None:
    page = report(a_result())
    assert EVIL not in page
    assert page.count("&lt;script&gt;") == 9
    assert "<td>05-Hold</td><td>1, 2</td>" in page
    assert "<td>05-wakes</td><td>none</td>" in page
    assert "Public seeds: 25 of 50 went well. Hidden seeds: 9 of 20." in page
    assert "Stepper(check(&#34;05/hold&#34;, HoldService, seeds=[7]).open())" in page
    assert share_line(a_result()["marks"][0]) == 'Stepper(check("05/hold", HoldService, seeds=[7]).open())'


def test_names_from_outside_are_printable_in_tables_and_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = "\x1b[31mada\u202e"
    write_gradebook([a_result(student=odd)], tmp_path)
    for name in ("gradebook.csv", "nbgrader.csv", "otter.csv"):
        text = (tmp_path / name).read_text()
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert r"\x1b[31mada\u202e" in text
    place = tmp_path / "in" / odd
    place.mkdir(parents=True)
    (place / f"{LAB}.ipynb").write_text("{}")
    (place / "notes.txt").write_text("mine")
    make_key(tmp_path / "key")
    given = [str(tmp_path / "in"), "--key", str(tmp_path / "key"), "--out", str(tmp_path / "marks"), "--no-run"]
    assert main(["grade", *given, "--root", str(ROOT)]) == 0
    told = capsys.readouterr().out
    assert told.count(r"\x1b[31mada\u202e") == 2
    assert "\x1b" not in told
    assert "\u202e" not in told


def test_a_spreadsheet_takes_no_text_for_a_formula(tmp_path: Path) -> None:
    write_gradebook([a_result()], tmp_path)
    for name in ("gradebook.csv", "nbgrader.csv"):
        assert "'=cmd()" in (tmp_path / name).read_text()
    assert parquet.read_table(tmp_path / "gradebook.parquet").to_pylist()[0]["reason"] == EVIL
