"""By when, who has longer, and what being late costs."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from mqlab.errors import LearnerError
from mqlab.grading.course import number_of
from mqlab.grading.deadlines import (
    Arrival,
    Deadline,
    Deadlines,
    factor_of,
    given_deadlines,
    keep_deadlines,
    kept_deadlines,
    with_given,
)
from mqlab.grading.roster import Member, keep_roster, kept_members, members_in
from mqlab.grading.times import moment, shown, shown_span, span

NUMBER = partial(number_of, sources={"05": Path("05_push_is_pull.py"), "06": Path("06_flow_control.py")})
DUE = moment("2026-06-01T22:00Z")
HOUR = timedelta(hours=1)
FIVE = Deadlines({"05": Deadline(DUE)})
ADA = Member("ada")


@pytest.mark.parametrize(
    "text",
    [
        "2026-06-02T00:00+02:00",
        "2026-06-02 00:00 Europe/Berlin",
        "2026-06-01 22:00:00 UTC",
        "2026-06-01T22:00Z",
    ],
)
def test_a_moment_is_read_in_every_usual_form(text: str) -> None:
    assert moment(text) == DUE
    assert moment(shown(DUE)) == DUE


def test_a_time_without_a_zone_needs_one_and_takes_its_summer_time() -> None:
    with pytest.raises(LearnerError, match="does not say in which zone"):
        moment("2026-06-02 00:00")
    assert moment("2026-06-02 00:00", "Europe/Berlin") == DUE
    assert moment("Tuesday, 2 June 2026, 12:00 AM", "Europe/Berlin") == DUE  # as Moodle exports it
    assert moment("2026-12-02 00:00", "Europe/Berlin") == moment("2026-12-01T23:00Z")
    assert moment("2026-06-01T22:00Z", "Europe/Berlin") == DUE  # its own zone is above


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tomorrow", "is no time"),
        ("2026-06-01", "is no time"),
        ("2026-06-31T10:00Z", "is no time"),
        ("0001-01-01T00:00+02:00", "is not in the years"),
        ("9999-12-31T23:59-02:00", "is not in the years"),
        ("2026-06-01 23:59 Mars/Olympus", "there is no time zone 'Mars/Olympus'"),
        ("2026-06-01 23:59 ../../etc/passwd", "is no time"),
        ("2026-06-01T23:59+02:00 Europe/Berlin", "names two zones"),
    ],
)
def test_what_is_no_moment_is_refused(text: str, said: str) -> None:
    with pytest.raises(LearnerError, match=said):
        moment(text)


def test_spans_have_units() -> None:
    assert [span(each) for each in ("48 h", "2 days", "90min", "1 Week", "2", "h", "-2 h", "2 years")] == [
        timedelta(hours=48), timedelta(days=2), timedelta(minutes=90), timedelta(weeks=1), None, None, None, None,
    ]  # fmt: skip
    said = [shown_span(each) for each in (0, 40, 61, 3_600, 7_800, 86_430, 97_200, 190_000)]
    assert said == ["0 s", "40 s", "1 min 1 s", "1 h", "2 h 10 min", "1 day", "1 day 3 h", "2 days 4 h"]


@pytest.mark.parametrize(
    ("extension", "due"),
    [
        ("", DUE),
        ("48 h", DUE + 48 * HOUR),
        ("06: 2 days", DUE),
        ("1 h; 05: 2 days", DUE + 48 * HOUR),
        ("2026-06-05T22:00Z", DUE + 96 * HOUR),
        ("05_push_is_pull: 2026-06-05 22:00 UTC", DUE + 96 * HOUR),
        ("2026-05-01T22:00Z", DUE),
    ],
)
def test_an_extension_is_a_length_or_a_day_for_all_labs_or_one(extension: str, due: object) -> None:
    assert FIVE.due_for("05", Member("ada", extension=extension)) == due
    assert FIVE.due_for("06", Member("ada", extension=extension)) is None


def test_a_time_factor_multiplies_an_exams_time_alone() -> None:
    exam = Deadlines({"05": Deadline(DUE, begin=DUE - 2 * HOUR)})
    assert exam.due_for("05", Member("ada", time_factor="1.5")) == DUE + HOUR
    assert exam.due_for("05", Member("ada", time_factor="1,25", extension="10 min")) == DUE + 40 * HOUR / 60
    assert FIVE.due_for("05", Member("ada", time_factor="1.5")) == DUE


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (Member("ada", time_factor="0.5"), "ada in the roster: the time_factor '0.5' is no number from 1 to 10"),
        (Member("ada", time_factor="nan"), "the time_factor 'nan' is no number"),
        (Member("ada", time_factor="half"), "the time_factor 'half' is no number"),
        (Member("ada", extension="2"), "ada in the roster: the extension '2' is no time"),
        (Member("ada", extension="07: 2 days"), "ada in the roster: there is no lab '07'"),
        (Member("ada", extension="2026-06-05 22:00"), "does not say in which zone"),
    ],
)
def test_what_the_roster_says_wrongly_is_refused_with_the_id(member: Member, said: str) -> None:
    with pytest.raises(LearnerError, match=said):
        FIVE.check_members([ADA, member], NUMBER)


def test_the_platforms_word_is_taken_as_it_is() -> None:
    assert FIVE.lateness("06", ADA, Arrival(DUE, by_platform=True)) is None
    for late_s, words in ((-60, ""), (0, ""), (30, "30 s"), (93_600, "1 day 2 h")):
        arrival = Arrival(DUE + timedelta(seconds=late_s), by_platform=True)
        late = FIVE.lateness("05", ADA, arrival)
        assert late is not None
        assert (late.seconds, late.in_words(arrival)) == (max(0, late_s), words)


def test_by_the_log_only_what_was_not_there_after_the_deadline_is_late_for_sure() -> None:
    for seen, before, seconds, words in (
        (-1, None, 0, ""),
        (9, None, None, "not known (first seen 9 h after the deadline)"),
        (9, -3, None, "not known (first seen 9 h after the deadline)"),
        (30, 9, 32_400, "at least 9 h"),
    ):
        looked = None if before is None else DUE + before * HOUR
        arrival = Arrival(DUE + seen * HOUR, by_platform=False, not_before=looked)
        late = FIVE.lateness("05", ADA, arrival)
        assert late is not None
        assert (late.seconds, late.in_words(arrival)) == (seconds, words)
        assert with_given(FIVE, {}, percent=10).taken(10, late) == (1 if seconds else 0)


def test_each_day_that_has_begun_takes_its_part_down_to_a_floor_and_grace_moves_all_days() -> None:
    rule = with_given(FIVE, {}, percent=20, floor=50, grace_min=15)
    taken = {}
    for minutes in (0, 15, 16, 24 * 60 + 15, 24 * 60 + 16, 30 * 24 * 60):
        late = rule.lateness("05", ADA, Arrival(DUE + timedelta(minutes=minutes), by_platform=True))
        assert late is not None
        taken[minutes] = rule.taken(7, late)
    assert taken == {0: 0, 15: 0, 16: 1.4, 1455: 1.4, 1456: 2.8, 43_200: 3.5}


def test_due_is_a_time_for_all_labs_or_a_file(tmp_path: Path) -> None:
    when = "2026-06-01T22:00Z"
    assert given_deadlines(when, "", "", ["05", "06"], NUMBER) == dict.fromkeys(["05", "06"], Deadline(DUE))
    begun = given_deadlines(when, "2026-06-01T20:00Z", "", ["05"], NUMBER)
    assert begun == {"05": Deadline(DUE, DUE - 2 * HOUR)}
    assert given_deadlines("none", "", "", ["05"], NUMBER) == {"05": None}
    place = tmp_path / "due.csv"
    place.write_text("Lab;Due;Begin\n05;2026-06-02 00:00;2026-06-01 22:00\n06_flow_control;none;\n")
    assert given_deadlines(str(place), "", "Europe/Berlin", [], NUMBER) == {"05": begun["05"], "06": None}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("lab,due\n05,tomorrow\n", "row 2: 'tomorrow' is no time"),
        ("lab,due\n77,2026-06-01T22:00Z\n", "row 2: there is no lab '77'"),
        ("lab,due\n05,2026-06-01T22:00Z\n05,2026-06-02T22:00Z\n", "row 3: lab 05 stands there twice"),
        ("lab,when\n05,2026-06-01T22:00Z\n", "has no column `due`; it has lab, when"),
        ("lab,due,begin\n05,2026-06-01T22:00Z,2026-06-01T23:00Z\n", "ends before"),
        ("", "has no column `lab`"),
    ],
)
def test_a_file_of_deadlines_that_cannot_be_used_is_refused(rows: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "due.csv").write_text(rows)
    with pytest.raises(LearnerError, match=said):
        given_deadlines(str(tmp_path / "due.csv"), "", "", ["05"], NUMBER)
    with pytest.raises(LearnerError, match="can't be read: No such file"):
        given_deadlines(str(tmp_path / "none.csv"), "", "", ["05"], NUMBER)


def test_deadlines_are_kept_and_the_last_word_counts(tmp_path: Path) -> None:
    assert kept_deadlines(tmp_path) == Deadlines()
    keep_deadlines(Deadlines(), tmp_path)
    assert not list(tmp_path.iterdir())
    said = with_given(FIVE, {"06": Deadline(DUE + HOUR, DUE)}, percent=10, floor=40, grace_min=5, zone="Europe/Berlin")
    keep_deadlines(said, tmp_path)
    assert kept_deadlines(tmp_path) == said
    assert with_given(said, {"05": None}).of_labs.keys() == {"06"}
    (tmp_path / "deadlines.json").write_text("{}")
    with pytest.raises(LearnerError, match="can't be read"):
        kept_deadlines(tmp_path)


def test_a_roster_says_and_keeps_who_has_longer(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,Extensions,Time factor\nada,05: 2 days; 06: 48 h,\nbob,,1.5\n")
    members = members_in(tmp_path / "in.csv")
    assert members == [Member("ada", extension="05: 2 days; 06: 48 h"), Member("bob", time_factor="1.5")]
    assert factor_of(members[1]) == 1.5
    keep_roster(members, tmp_path)
    assert kept_members(tmp_path) == members
