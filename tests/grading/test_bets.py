"""What a class has bet, read from the text of its notebooks before the truth is shown."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from mqlab.commands.cli import main
from mqlab.errors import LearnerError
from mqlab.grading import submission
from mqlab.grading.bets import Bets, BetsReader, Question, drawn, question
from mqlab.labs.build import read_lab

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "labs" / "sources"
LAB = "02_store"


@pytest.fixture
def handed_out() -> str:
    return (ROOT / "labs" / f"{LAB}.ipynb").read_text()


def hand_in(place: Path, student: str, notebook: str, bet: str, said: str) -> Path:
    """The notebook with that in place of the dots of a bet."""
    cells = json.loads(notebook)
    for cell in cells["cells"]:
        source = "".join(cell["source"])
        if f'predict("{bet}"' in source:
            assert "prediction=..." in source
            cell["source"] = source.replace("prediction=...", f"prediction={said}")
    path = place / student / f"{LAB}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(cells))
    return path


def test_the_histogram_of_choices(tmp_path: Path, handed_out: str, capsys: pytest.CaptureFixture[str]) -> None:
    for student, said in (("ada", '"a"'), ("bob", '"a"'), ("eve", '"c"'), ("joe", "..."), ("kim", "1 / 0")):
        hand_in(tmp_path, student, handed_out, "who-filters", said)
    (tmp_path / "lea").mkdir()
    (tmp_path / "lea" / f"{LAB}.ipynb").write_text("no json")
    (tmp_path / "lea" / "notes.txt").write_text("mine")
    asked = question(SOURCES, "who-filters")
    bets = BetsReader(tmp_path, asked, SOURCES).read()
    assert [count for _, count in bets.bars()][:1] == [2]
    assert sum(count for _, count in bets.bars()) == 3
    assert bets.not_made == ["joe", "kim"]
    assert main(["course", "bets", str(tmp_path), "--bet", "who-filters", "--root", str(ROOT)]) == 0
    said = capsys.readouterr().out
    asked_for = "02 who-filters: Now a message with the tag BB is sent. Who keeps it from the listener?"
    assert said.startswith(f"{asked_for}\n3 of 5 have bet\n")
    assert f"not counted: lea/{LAB}.ipynb: this is no notebook: it is no JSON" in said
    assert "not counted: lea/notes.txt: is no notebook (.ipynb)" in said


def test_a_bet_is_told_in_one_form_whether_or_not_its_run_has_shown_it() -> None:
    who = question(SOURCES, "who-filters")
    assert {who.told("b"), who.told(who.choices[1])} == {who.choices[1]}
    assert (who.told("z"), who.told(None)) == ("z", "")
    number = question(SOURCES, "written", "12")
    assert [number.told(said) for said in (1, 3, 2.5, "many")] == ["1 message", "3 messages", "2.5 messages", "many"]


def test_what_is_left_out_is_printable(tmp_path: Path, handed_out: str) -> None:
    path = hand_in(tmp_path, "ev\x1b[31mil", handed_out, "who-filters", '"a"')
    path.write_text("no json")
    assert "\x1b" not in drawn(BetsReader(tmp_path, question(SOURCES, "who-filters"), SOURCES).read())


def test_what_comes_later_is_seen_and_nothing_else_is_read_again(
    tmp_path: Path, handed_out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in(tmp_path, "ada", handed_out, "who-filters", '"a"')
    reader = BetsReader(tmp_path, question(SOURCES, "who-filters", "02"), SOURCES)
    assert reader.read().said == {"ada": "a"}
    (tmp_path / "ada" / f"{LAB}.ipynb").chmod(0)
    hand_in(tmp_path, "bob", handed_out, "who-filters", '"b"')
    read: list[Path] = []
    whole = submission.read_file
    monkeypatch.setattr(submission, "read_file", lambda path, most: (read.append(path), whole(path, most))[1])
    assert reader.read().said == {"ada": "a", "bob": "b"}
    assert [path.parent.name for path in read] == ["bob"]
    changed = hand_in(tmp_path, "bob", handed_out, "who-filters", '"cc"')
    assert reader.read().said["bob"] == "cc"
    changed.unlink()
    assert reader.read().said == {"ada": "a"}


def test_a_directory_that_goes_away_is_waited_for(
    tmp_path: Path, handed_out: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place, away = tmp_path / "shared", tmp_path / "away"
    hand_in(place, "ada", handed_out, "who-filters", '"a"')
    said: list[str] = []

    def between(_: float) -> None:
        said.append(capsys.readouterr().out)
        if len(said) == 1:
            place.rename(away)
        elif len(said) == 3:
            away.rename(place)
        elif len(said) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", between)
    command = ["course", "bets", str(place), "--bet", "who-filters", "--watch", "--root", str(ROOT)]
    assert main(command) == 0
    assert "1 of 1 have bet" in said[0]
    assert said[1:3] == [f"{place} is not there at the moment: this waits for it\n", ""]
    assert said[3] == said[0]
    # What was never there is a mistake in the command.
    assert main([*command[:2], str(tmp_path / "nowhere"), *command[3:]]) == 2


def test_nothing_that_was_handed_in_is_run(tmp_path: Path, handed_out: str) -> None:
    evil = f"__import__('pathlib').Path({str(tmp_path / 'owned')!r}).write_text('x')"
    hand_in(tmp_path / "in", "ada", handed_out, "who-filters", evil)
    bets = BetsReader(tmp_path / "in", question(SOURCES, "who-filters"), SOURCES).read()
    assert bets.not_made == ["ada"]
    assert not (tmp_path / "owned").exists()


def of_numbers(*said: float | str) -> Bets:
    asked = Question(read_lab(SOURCES / f"{LAB}.py"), "left-after-cut", (), "messages", False, "How many are left?")
    return Bets(asked, {str(place): number for place, number in enumerate(said)})


def test_numbers_stand_by_their_size_and_many_in_ranges() -> None:
    assert of_numbers(10, 2, 2, 2.5, "ten").bars() == [("2", 2), ("2.5", 1), ("10", 1), ("not a number", 1)]
    many = of_numbers(*range(100)).bars()
    assert len(many) == 12
    assert sum(count for _, count in many) == 100
    assert many[0][0] == "0 to 8.25"
    assert "02 left-after-cut: How many are left? (messages)\n100 of 100 have bet" in drawn(of_numbers(*range(100)))
    assert of_numbers().bars() == []


def test_what_a_notebook_puts_into_a_question_is_dots() -> None:
    title = "05 second-hold: The first empty answer came at ... s. At which second does the next one come? (s)"
    assert question(SOURCES, "second-hold").title == title


def test_a_bet_that_there_is_not() -> None:
    with pytest.raises(LearnerError, match="there is no bet 'who-wins'"):
        question(SOURCES, "who-wins", "02")
    with pytest.raises(LearnerError, match="there is no bet 'who-filters' in lab 05"):
        question(SOURCES, "who-filters", "05")
    with pytest.raises(LearnerError, match="there is no lab '2'"):
        question(SOURCES, "who-filters", "2")
    with pytest.raises(LearnerError, match="near it: 02 who-filters"):
        question(SOURCES, "who-filter")
    with pytest.raises(LearnerError, match="is no directory"):
        BetsReader(ROOT / "nowhere", question(SOURCES, "who-filters", "02"), SOURCES).read()


def test_what_is_no_answer_is_counted_and_never_shown() -> None:
    rude = of_numbers(3, "you are all stupid", "\ud800", 1e300, 10**400)
    assert rude.bars() == [("3", 1), ("not a number", 4)]
    asked = Question(rude.question.lab, "who", ("the broker", "the consumer"), "", True, "Who?")
    bets = Bets(asked, {"ada": "a", "bob": "you are all stupid", "eve": "\udcff", "kim": "z"})
    assert bets.bars() == [("a) the broker", 1), ("b) the consumer", 0), ("none of the choices", 3)]
    made = Question(rude.question.lab, "who", (), "", True, "Who?")
    assert Bets(made, {"ada": "a", "bob": "stupid"}).bars() == [("a", 1), ("none of the choices", 1)]
    assert "stupid" not in drawn(rude) + drawn(bets)
    (drawn(rude) + drawn(bets)).encode()


def test_a_student_can_be_left_out_of_the_picture(tmp_path: Path, handed_out: str) -> None:
    for student in ("ada", "bob"):
        hand_in(tmp_path, student, handed_out, "who-filters", '"a"')
    reader = BetsReader(tmp_path, question(SOURCES, "who-filters", "02"), SOURCES, hide=["Bob"])
    assert reader.read().said == {"ada": "a"}
