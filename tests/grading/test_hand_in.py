"""What `hand_in` has made is marked as the notebook would be; what was changed, or is of something else, is refused."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mqlab.check import check, hand_in, notebook_bets, predict, reveal
from mqlab.check.hand_in import read_settings, seal_of
from mqlab.check.registry import noted_checks
from mqlab.commands.cli import main
from mqlab.grading.bets import BetsReader, question
from mqlab.grading.confine import Limits
from mqlab.grading.course import NO_NOTEBOOK, NOBODYS, Settings, handed_in
from mqlab.grading.hand_in_file import MOST_BYTES, code_of, notebook_of, read_hand_in
from mqlab.grading.marking import read_key
from mqlab.grading.release import Exam, release
from mqlab.grading.report import report
from mqlab.grading.submission import read_submission
from mqlab.labs.build import read_lab
from mqlab.labs.notebook import given_name, make_notebook
from mqlab.labs.rules import answers_of
from mqlab.labs.source import LabSource, text_argument
from tests.grading.conftest import EXERCISE, HONEST, MarkIt, Notebook
from tests.labs.conftest import EXAMPLES, cell

ROOT = Path(__file__).parents[2]
WRONG = "def pull(queue, limit):\n    return queue, []\n"
IN_A_LOOP = """\
def pull(queue, limit):
    taken, left = [], []
    for at, message in enumerate(queue):
        if at < limit:
            taken.append(message)
        else:
            left.append(message)
    return taken, left
"""
Content = dict[str, Any]
Make = Callable[..., Path]


@pytest.fixture
def make(example: LabSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Hands in lab 90 with that solution, as a notebook does; the file."""
    monkeypatch.chdir(tmp_path)
    asked = notebook_bets.take_all()

    def made(text: str = HONEST, student: str = "ada", code: str = "") -> Path:
        check("90/pull", cell(text, "pull"))
        return tmp_path / hand_in(student, "90", bets=2, done=True, code=code).name

    noted = dict(noted_checks)
    yield made
    notebook_bets.put_back(asked)
    noted_checks.clear()
    noted_checks.update(noted)


def changed(path: Path, change: Callable[[Content], Any], *, sealed: bool) -> Path:
    """The file with a change in it, and with a seal that fits or with the one that it had."""
    content = json.loads(path.read_text())
    change(content)
    if sealed:
        content["seal"] = seal_of(content)
    path.write_text(json.dumps(content))
    return path


# -- the same as the notebook --------------------------------------------------------------------------------------


@pytest.mark.parametrize("solution", [HONEST, WRONG, "def pull(queue, limit):\n    raise NotSolvedYet\n"])
def test_it_is_marked_as_the_notebook_is(solution: str, make: Make, mark_it: MarkIt, handed_out: Notebook) -> None:
    path = make(f"from mqlab.check import NotSolvedYet\n{solution}")
    as_notebook = mark_it(f"from mqlab.check import NotSolvedYet\n{solution}")
    as_file = mark_it(path=path)
    assert as_file["marks"] == as_notebook["marks"]
    assert (as_file["points"], as_file["remarks"]) == (as_notebook["points"], as_notebook["remarks"])


def test_it_is_run_as_the_notebook_is(make: Make, mark_it: MarkIt, tmp_path: Path) -> None:
    as_notebook = mark_it(HONEST, run=True)
    as_file = mark_it(path=make(), run=True)
    assert as_file["run"]["verdict"] == as_notebook["run"]["verdict"]
    executed = json.loads((tmp_path / "out" / "executed.ipynb").read_text())
    (own,) = [found for found in executed["cells"] if found.get("id") == EXERCISE]
    assert "".join(own["source"]) == HONEST.rstrip()


def test_its_certificate_holds_and_its_report_says_how_it_was_handed_in(make: Make, mark_it: MarkIt) -> None:
    result = mark_it(path=make())
    assert result["certificate"]["holds"] is True
    assert result["hand_in"]["signed"] == "no"
    assert result["hints"] == {}
    told = report(result)
    assert "Handed in as a file of hand_in, begun 20" in told
    assert "Hints" not in told


def test_its_bets_are_told_as_the_notebook_s(make: Make, example: LabSource, mark_it: MarkIt) -> None:
    first, second = (found.calls("predict")[0] for found in example.tagged("prediction"))
    for call, answer in ((first, "b"), (second, 3)):
        name = call.args[0].value  # type: ignore[attr-defined]
        choices = ("one", "two") if answer == "b" else ()
        predict(name, "How many?", answer, choices=choices, unit="" if choices else "messages")
        reveal(name, answer)
        # Written once more when the truth was known.
        predict(name, "How many?", "a" if choices else 4, choices=choices, unit="" if choices else "messages")
    result = mark_it(path=make())
    assert [(bet["said"], bet["afterwards"]) for bet in result["bets"]] == [("one", True), (4, True)]


# -- what is refused, with its reason ------------------------------------------------------------------------------


def other_text(content: Content) -> None:
    content["answers"]["90/pull"] = ["def pull(queue, limit): return 1"]


REFUSED: list[tuple[Callable[[Content], Any], bool, str]] = [
    (other_text, False, "its seal does not fit"),
    (lambda content: content.pop("seal"), False, "its seal does not fit"),
    (lambda content: content.update(seal="?"), False, "its seal does not fit"),
    (lambda content: content.update(format="mqlab-hand-in 2"), True, "has the form 'mqlab-hand-in 2'"),
    (lambda content: content.update(lab="05_push_is_pull"), True, "is of the lab '05_push_is_pull'"),
    (lambda content: content.update(answers=[]), True, "its answers has another form"),
    (lambda content: content.update(answers={"90/pull": [7]}), True, "its answers has another form"),
    (lambda content: content.update(bets=7), True, "its bets has another form"),
    (lambda content: content.update(bets=[{"bet": "one"}]), True, "a bet has another form"),
    (lambda content: content.update(checks=7), True, "what its checks have said has another form"),
    (lambda content: content.update(student=7), True, "what it says of itself has another form"),
    (lambda content: content.update(times="now"), True, "what it says of itself has another form"),
]


@pytest.mark.parametrize(("change", "sealed", "said"), REFUSED, ids=[str(at) for at in range(len(REFUSED))])
def test_what_hand_in_has_not_made_so_is_refused(
    change: Callable[[Content], Any], sealed: bool, said: str, make: Make, mark_it: MarkIt
) -> None:
    result = mark_it(path=changed(make(), change, sealed=sealed))
    assert result["points"] == 0
    assert said in result["unreadable"]


def test_a_bet_that_is_no_number_and_no_text_is_refused(make: Make, mark_it: MarkIt) -> None:
    for answer in ("NaN", "Infinity", "[1]", "null"):
        path = make()
        bet = {"bet": "one", "question": "", "said": "", "truth": "", "answer": json.loads(answer)}
        changed(path, lambda content, bet=bet: content.update(bets=[bet]), sealed=True)  # type: ignore[misc]
        assert "a bet has another form" in mark_it(path=path)["unreadable"]


TORN = '{"format": "mqlab-hand-in 1", "a": '


@pytest.mark.parametrize("text", [TORN, TORN + "[" * 100_000], ids=["torn", "deep"])
def test_what_was_torn_or_is_deep_is_refused(text: str, mark_it: MarkIt, tmp_path: Path) -> None:
    (tmp_path / "90.json").write_text(text)
    assert "it is no JSON" in mark_it(path=tmp_path / "90.json")["unreadable"]


def test_a_mark_that_was_written_by_hand_counts_for_nothing_and_is_told(make: Make, mark_it: MarkIt) -> None:
    def forge(content: Content) -> None:
        content["checks"]["90/pull"] = "90/pull: passed (2 points)\n"
        content["public_mark"] = "2 of 2 points"

    result = mark_it(path=changed(make(WRONG), forge, sealed=True))
    assert result["points"] < 2
    assert any("shows 90/pull as passed" in remark for remark in result["remarks"])


def test_code_that_reaches_out_is_confined_as_a_notebook_s(make: Make, mark_it: MarkIt, tmp_path: Path) -> None:
    target = tmp_path / "got-out"
    escape = f"import os\nif not os.environ.get('HARMLESS'):\n    open({str(target)!r}, 'w').write('x')\n"
    os.environ["HARMLESS"] = "1"
    try:
        path = make(escape + HONEST)
    finally:
        del os.environ["HARMLESS"]
    limits = Limits(wall_s=20, memory_bytes=300 * 2**20, processes=40)
    assert mark_it(path=path, run=True, limits=limits)["points"] == 0
    assert not target.exists()


def test_another_student_s_and_another_version_s_are_told(make: Make, mark_it: MarkIt) -> None:
    path = changed(make(student="bob"), lambda content: content.update(mqlab="0.0.9"), sealed=True)
    remarks = mark_it(path=path)["remarks"]
    assert "the notebook says that it is of 'bob', and it was handed in by 'ada'" in remarks
    assert any(remark.startswith("made with mqlab 0.0.9; marked with ") for remark in remarks)


def test_a_quotation_mark_in_an_id_is_text(make: Make, example: LabSource) -> None:
    content = json.loads(make(student="a'); print(1); ('").read_text())
    cells = notebook_of(read_hand_in(content), example)["cells"]
    (parameters,) = [found for found in cells if "parameters" in found["metadata"].get("tags", ())]
    names: dict[str, Any] = {}
    exec(parameters["source"], names)
    assert names["student_id"] == "a'); print(1); ('"


def test_what_one_exercise_asks_for_and_was_written_in_two_cells_comes_one_after_the_other() -> None:
    lab = read_lab(ROOT / "labs" / "sources" / "15_order.py")
    content: Content = {"lab": lab.name, "student": "ada", "mqlab": "", "public_mark": "", "certificate": ""}
    content |= {"format": "mqlab-hand-in 1", "times": {}, "bets": [], "checks": {}}
    content["answers"] = {"15/in-turn": ["class Shards:\n    pass\n", "class Clerk:\n    pass\n"]}
    content["seal"] = seal_of(content)
    sources = [found["source"] for found in notebook_of(read_hand_in(content), lab)["cells"]]
    assert "class Shards:\n    pass\n\nclass Clerk:\n    pass" in sources


# -- signed with a code --------------------------------------------------------------------------------------------


def test_a_student_s_code_comes_from_the_course_s_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, roster = tmp_path / "key", tmp_path / "roster.csv"
    key.write_text("07" * 32)
    roster.write_text("id,name\nada,Ada\nBob,Bob\n")
    assert main(["course", "codes", "--key", str(key), "--students", str(roster)]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    secret = read_key(str(key))
    assert rows == [{"id": "ada", "code": code_of(secret, "ada")}, {"id": "Bob", "code": code_of(secret, "bob")}]
    assert rows[0]["code"] != rows[1]["code"]
    assert [len(part) for part in rows[0]["code"].split("-")] == [4, 4, 4, 4]


def test_it_is_told_with_whose_code_it_was_signed(make: Make, mark_it: MarkIt) -> None:
    key = b"07" * 32
    result = mark_it(path=make(code=code_of(key, "ada").upper()))
    assert (result["hand_in"]["signed"], result["remarks"]) == ("with the student's code", [])
    result = mark_it(path=make(code=code_of(key, "bob")))
    assert result["hand_in"]["signed"] == "with another code"
    assert result["remarks"] == ["it was signed with another code than this student's"]


# -- in a directory with others ------------------------------------------------------------------------------------


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "key").write_text("07" * 32 + "\n")
    return Settings(tmp_path / "key", tmp_path / "marks", EXAMPLES / "source")


def put(place: Path, made: Path, name: str = "") -> Path:
    place.mkdir(parents=True, exist_ok=True)
    return made.replace(place / (name or made.name))


def test_of_a_notebook_and_a_hand_in_the_newer_one_counts_and_the_other_is_told(
    make: Make, settings: Settings, tmp_path: Path
) -> None:
    place = tmp_path / "class"
    old = put(place / "ada", make(WRONG))
    new = put(place / "ada", make())
    notebook = place / "ada" / "90_batches.ipynb"
    notebook.write_text("{}")
    for seconds, path in enumerate((old, notebook, new)):
        os.utime(path, (seconds, seconds))
    work, left = handed_in(place, settings)
    assert [each.notebook for each in work] == [new]
    assert {each.file.name for each in left} == {old.name, notebook.name}
    assert {each.why for each in left} == {"there is a newer one, by the files' own times"}


def test_what_is_no_hand_in_hides_no_notebook(make: Make, settings: Settings, tmp_path: Path) -> None:
    place = tmp_path / "class" / "ada"
    renamed = put(place, make(), "90 Batches (1).JSON")
    (place / "90_data.json").write_text('{"mine": 1}')
    (place / "90_huge.json").write_bytes(b'"mqlab-hand-in ' + bytes(MOST_BYTES))
    (place / "90_link.json").symlink_to(renamed)
    work, left = handed_in(tmp_path / "class", settings)
    assert [each.notebook for each in work] == [renamed]
    assert [(each.file.name, each.why) for each in left] == [
        (name, NO_NOTEBOOK) for name in ("90_data.json", "90_huge.json", "90_link.json")
    ]


def test_without_a_directory_only_its_owner_s_code_says_whose_it_is(
    make: Make, settings: Settings, tmp_path: Path
) -> None:
    key, place = b"07" * 32, tmp_path / "class"
    own = put(place, make(code=code_of(key, "ada")))
    plain = put(place, make(student="bob"))
    forged = put(place, make(student="eve", code=code_of(key, "ada")))
    work, left = handed_in(place, settings)
    assert [(each.notebook, each.student) for each in work] == [(own, "ada")]
    assert {(each.file.name, each.why) for each in left} == {(plain.name, NOBODYS), (forged.name, NOBODYS)}


def test_solutions_and_bets_of_both_are_compared(
    make: Make, tmp_path: Path, handed_out: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    (root / "labs").mkdir(parents=True)
    (root / "labs" / "sources").symlink_to(EXAMPLES / "source")
    place = tmp_path / "class"
    put(place / "ada", make(IN_A_LOOP))
    put(place / "zoe", changed(make(student="zoe"), other_text, sealed=False))
    (place / "bob").mkdir()
    for found in handed_out["cells"]:
        if found.get("id") == EXERCISE:
            found["source"] = IN_A_LOOP.replace("taken", "mine")
    (place / "bob" / "90_batches.ipynb").write_text(json.dumps(handed_out))
    alike = ["--out", str(tmp_path / "alike.html"), "--root", str(root), "--shortest", "20"]
    assert main(["course", "compare", str(place), *alike]) == 1
    assert "ada and bob" in capsys.readouterr().out
    asked = BetsReader(place, question(root / "labs" / "sources", _first_bet(root)), root / "labs" / "sources")
    assert asked.read().not_made == ["ada", "bob"]


def test_a_class_with_both_has_the_same_marks_in_its_gradebook(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = read_lab(ROOT / "labs" / "sources" / "12_check_points.py")
    exercises = {given_name(lab, found) or "": found.source for found in lab.tagged("exercise")}
    notebook = make_notebook(lab, "student")
    written: dict[str, Any] = {}
    for found in notebook["cells"]:
        # All but the last one.
        if found["id"] in list(exercises)[:-1]:
            found["source"] = exercises[found["id"]]
        if found["id"] in exercises:
            names = next(one for one in lab.tagged("exercise") if given_name(lab, one) == found["id"]).definitions
            text = f"from mqlab.check import NotSolvedYet\n{found['source']}"
            written |= {name: cell(text, name) for name in names}
    for each in lab.tagged("check"):
        (call,) = each.calls("check")
        check(text_argument(call) or "", *(written[name] for name in answers_of(call)))
    place = tmp_path / "class"
    for student in ("ada", "eve"):
        put(place / student, tmp_path / hand_in(student, "12", bets=5, done=True).name)
    (damaged,) = (place / "eve").iterdir()
    damaged.write_text(damaged.read_text().replace("return", "yield"))
    told = ["--key", str(tmp_path / "key"), "--root", str(ROOT), "--no-run", "--hidden", "2"]
    (tmp_path / "key").write_text("07" * 32 + "\n")
    (tmp_path / "notebooks" / "ada").mkdir(parents=True)
    (tmp_path / "notebooks" / "ada" / "12_check_points.ipynb").write_text(json.dumps(notebook))
    assert main(["grade", str(place), "--out", str(tmp_path / "marks"), *told]) == 0
    assert "2 notebooks marked" in capsys.readouterr().out
    assert main(["grade", str(tmp_path / "notebooks"), "--out", str(tmp_path / "same"), *told]) == 0
    ada, eve = csv.DictReader((tmp_path / "marks" / "gradebook.csv").open())
    (as_a_notebook,) = csv.DictReader((tmp_path / "same" / "gradebook.csv").open())
    for row in (ada, eve, as_a_notebook):
        del row["arrived"]
    assert ada == as_a_notebook
    assert 0 < float(ada["points"]) < float(ada["most"])
    assert eve["points"] == "0"
    assert "its seal does not fit" in eve["remarks"]


def _first_bet(root: Path) -> str:
    lab = read_lab(root / "labs" / "sources" / "90_batches.py")
    return str(lab.tagged("prediction")[0].calls("predict")[0].args[0].value)  # type: ignore[attr-defined]


def test_an_exam_s_notebook_has_no_cell_that_hands_in(handed_out: Notebook, tmp_path: Path) -> None:
    path = tmp_path / "90_batches.ipynb"
    path.write_text(json.dumps(handed_out))
    release([path], tmp_path / "usual", ["ada"])
    release([path], tmp_path / "exam", ["ada"], exam=Exam("june", "code", "today"))
    usual, exam = ((tmp_path / name / "ada" / path.name).read_text() for name in ("usual", "exam"))
    assert "hand_in(student_id" in usual
    assert "hand_in(student_id" not in exam
    assert "To hand in" not in exam


def test_it_is_read_for_its_own_lab_alone(make: Make) -> None:
    lab = read_lab(ROOT / "labs" / "sources" / "05_push_is_pull.py")
    assert "is of the lab '90_batches'" in read_submission(make(), "ada", lab).unreadable


def test_the_settings_are_handed_out_beside_the_notebooks(
    handed_out: Notebook, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "mine.json"
    command = ["course", "release", str(tmp_path / "class"), "--lab", "12", "--root", str(ROOT), "--hand-in"]
    assert main([*command, str(settings)]) == 2
    settings.write_text('{"form": "here"}')
    assert main([*command, str(settings)]) == 2
    assert "has a form that is no address: 'here'" in capsys.readouterr().err
    assert not (tmp_path / "class").exists()
    settings.write_text('{"form": "https://forms.example"}')
    assert main([*command, str(settings)]) == 0
    assert read_settings(tmp_path / "class" / "hand_in.json").form == "https://forms.example"
