"""When a notebook came in: the learning platform's word, else the marker's own log, and never the file's own time."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from mqlab.commands.cli import main
from mqlab.errors import LearnerError
from mqlab.grading import arrivals
from mqlab.grading.arrivals import LOG, Arrivals, Seen, look, note_platform, platform_says, read_arrivals
from mqlab.grading.course import number_of
from mqlab.grading.deadlines import Arrival
from mqlab.grading.pseudonyms import Names, pseudonym
from mqlab.grading.roster import Member
from mqlab.grading.times import moment

KEY = b"a key of more than sixteen bytes"
NUMBER = partial(number_of, sources={"05": Path("05_push_is_pull.py"), "06": Path("06_flow_control.py")})
MONDAY = moment("2026-06-01T08:00Z")
DAY = timedelta(days=1)
FIRST, SECOND = Seen("ada", "05", "1" * 64), Seen("ada", "05", "2" * 64)


def log(marks: Path) -> Arrivals:
    return read_arrivals(marks, KEY)


def test_a_text_came_in_when_it_was_seen_first_and_another_text_is_another_arrival(tmp_path: Path) -> None:
    assert look(tmp_path, log(tmp_path), [FIRST], ["05"], Names(), MONDAY) == 1
    before = (tmp_path / LOG).read_text()
    assert look(tmp_path, log(tmp_path), [FIRST], ["05"], Names(), MONDAY + DAY) == 0
    assert look(tmp_path, log(tmp_path), [SECOND, Seen("bob", "06", "3")], ["05", "06"], Names(), MONDAY + 2 * DAY) == 2
    found = log(tmp_path)
    assert found.of(*FIRST) == found.of("ADA", *FIRST[1:]) == Arrival(MONDAY, by_platform=False)
    assert found.of(*SECOND) == Arrival(MONDAY + 2 * DAY, by_platform=False, not_before=MONDAY + DAY)
    assert found.of("bob", "06", "3") == Arrival(MONDAY + 2 * DAY, by_platform=False)
    assert (tmp_path / LOG).read_text().startswith(before)


def test_a_clock_that_was_put_back_changes_no_order(tmp_path: Path) -> None:
    look(tmp_path, log(tmp_path), [FIRST], ["05"], Names(), MONDAY)
    look(tmp_path, log(tmp_path), [SECOND], ["05"], Names(), MONDAY - DAY)
    assert log(tmp_path).of(*SECOND) == Arrival(MONDAY, by_platform=False, not_before=MONDAY)


def said(tmp_path: Path, rows: str, *, only: str = "", zone: str = "") -> list[arrivals.Said]:
    (tmp_path / "list.csv").write_text(rows)
    members = [Member("ada", email="ada@example.org", id_number="0042"), Member("bob")]
    return platform_says(tmp_path / "list.csv", members, ["zoe"], NUMBER, only, zone)


def test_a_platforms_list_knows_students_and_labs_by_what_it_calls_them(tmp_path: Path) -> None:
    rows = "student,file,submitted_at\nada,05_push_is_pull (1).ipynb,2026-06-01T08:00Z\nZOE,06,2026-06-02T08:00Z\n"
    assert said(tmp_path, rows) == [("ada", "05", MONDAY), ("zoe", "06", MONDAY + DAY)]
    moodle = (
        "Identifier,Full name,Email address,Status,Last modified (submission)\n"
        'Participant 1,Ada,ADA@example.org,Submitted,"Monday, 1 June 2026, 10:00 AM"\n'
        "Participant 2,Bob,,No submission,-\n"
    )
    assert said(tmp_path, moodle, only="05", zone="Europe/Berlin") == [("ada", "05", MONDAY)]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("student,lab,arrived\neve,05,2026-06-01T08:00Z\n", "row 2: 'eve' is nobody of the class"),
        ("student,lab,arrived\nada,77,2026-06-01T08:00Z\n", "row 2: there is no lab '77'"),
        ("student,lab,arrived\nada,05,2026-06-01T08:00Z\nada,05,soon\n", "row 3: 'soon' is no time"),
        ("student,lab,arrived\nada,05,2026-06-01 08:00\n", "row 2: .* does not say in which zone"),
        ("student,arrived\nada,2026-06-01T08:00Z\n", "has no column `lab`"),
        ("lab,arrived\n05,2026-06-01T08:00Z\n", "has no column `student`"),
    ],
)
def test_a_list_that_cannot_be_used_is_refused(rows: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match=why):
        said(tmp_path, rows)


def test_the_platforms_word_is_above_the_log_and_its_last_word_counts(tmp_path: Path) -> None:
    look(tmp_path, log(tmp_path), [FIRST], ["05"], Names(), MONDAY)
    rows = "student,lab,arrived\nada,05,2026-05-30T08:00Z\nada,05,2026-05-31T08:00Z\n"
    assert note_platform(tmp_path, log(tmp_path), [FIRST], said(tmp_path, rows), Names()) == []
    assert log(tmp_path).of(*FIRST) == Arrival(MONDAY - DAY, by_platform=True)
    before = (tmp_path / LOG).read_text()
    note_platform(tmp_path, log(tmp_path), [FIRST], said(tmp_path, rows), Names())
    assert (tmp_path / LOG).read_text() == before
    # A list that was put right counts from then on, and what was said before stays in the log.
    rows = rows.replace("05-31", "05-29").replace("05-30", "05-28")
    note_platform(tmp_path, log(tmp_path), [FIRST], said(tmp_path, rows), Names())
    assert log(tmp_path).of(*FIRST) == Arrival(MONDAY - 3 * DAY, by_platform=True)
    assert (tmp_path / LOG).read_text().startswith(before)


def test_an_old_list_says_nothing_of_a_notebook_that_was_handed_in_again(tmp_path: Path) -> None:
    rows = "student,lab,arrived\nada,05,2026-05-31T08:00Z\nbob,05,2026-05-31T08:00Z\n"
    look(tmp_path, log(tmp_path), [FIRST], ["05"], Names(), MONDAY)
    left = note_platform(tmp_path, log(tmp_path), [FIRST], said(tmp_path, rows), Names())
    assert left == ["bob 05: the platform's list has a hand-in that is not here"]
    now_there = [SECOND, Seen("zoe", "05", "3"), Seen("zoe", "06", "4")]
    look(tmp_path, log(tmp_path), now_there, ["05", "06"], Names(), MONDAY + DAY)
    left = note_platform(tmp_path, log(tmp_path), now_there, said(tmp_path, rows), Names())
    assert left[:2] == [
        "ada 05: the platform's list is of an earlier notebook; export it again",
        "zoe 05: the platform's list says nothing of it",
    ]
    assert log(tmp_path).of(*SECOND) == Arrival(MONDAY + DAY, by_platform=False, not_before=MONDAY)


def test_a_log_of_pseudonyms_is_found_by_the_id_too(tmp_path: Path) -> None:
    look(tmp_path, log(tmp_path), [FIRST], ["05"], Names(KEY), MONDAY)
    assert "ada" not in (tmp_path / LOG).read_text()
    assert log(tmp_path).of(*FIRST) == log(tmp_path).of(pseudonym(KEY, "ada"), *FIRST[1:])
    assert log(tmp_path).of(*FIRST) is not None


def test_a_damaged_log_is_told_with_its_line(tmp_path: Path) -> None:
    look(tmp_path, log(tmp_path), [FIRST], ["05"], Names(), MONDAY)
    with (tmp_path / LOG).open("a") as sink:
        sink.write("yesterday,seen,05,ada,1\n")
    with pytest.raises(LearnerError, match="line 4, is no line of the log"):
        log(tmp_path)


def test_somebody_can_look_without_marking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "key").write_bytes(KEY)
    command = ["course", "look", str(tmp_path / "in"), "--key", str(tmp_path / "key"), "--out", str(tmp_path / "marks")]
    command += ["--root", str(Path(__file__).parents[2])]
    (tmp_path / "in" / "ada").mkdir(parents=True)
    assert main(command) == 2
    assert not (tmp_path / "marks").exists()
    (tmp_path / "in" / "ada" / "05_push_is_pull.ipynb").write_text("{}")
    for new in (1, 0):
        assert main(command) == 0
        assert f"1 notebooks are there, {new} of them seen for the first time" in capsys.readouterr().out
    found = log(tmp_path / "marks")
    assert [own[1:] for own in found.first_seen] == [("05", sha256(b"{}").hexdigest())]
