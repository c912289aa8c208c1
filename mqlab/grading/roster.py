"""The class: who is in it, as a CSV file names them, and as the marker keeps them beside the marks."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mqlab.errors import LearnerError
from mqlab.grading.table import read_rows

KEPT = "roster.csv"
"""The name under which the marker keeps the ids of a class, in the directory of the marks."""

_FORBIDDEN = set('/\\:*?"<>|\0')


class Member(NamedTuple):
    """Somebody in the class: the id, and what learning platforms want to know besides, where the roster says it."""

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    section: str = ""
    id_number: str = ""
    """The number that the university gives (Moodle's ID number, Canvas's SIS User ID)."""
    canvas_id: str = ""
    """Canvas's own number of this person, as its exported gradebook has it in the column ID."""
    login: str = ""
    """What somebody signs in with at the learning platform; where the roster does not say it, the id."""
    extension: str = ""
    """More time for a hand-in, in the words of the roster: `deadlines.py` reads them."""
    time_factor: str = ""
    """By what the time of an exam is multiplied for this person: 1.5."""

    @property
    def name(self) -> str:
        """First and last name; the id where there is neither."""
        return f"{self.first_name} {self.last_name}".strip() or self.id


_COLUMNS = {
    "id": ("id", "student", "student_id", "username"),
    "first_name": ("first_name", "first name", "firstname"),
    "last_name": ("last_name", "last name", "lastname", "surname"),
    "email": ("email", "email address", "e-mail"),
    "section": ("section", "group"),
    "id_number": ("id_number", "id number", "sis user id", "sis_user_id"),
    "canvas_id": ("canvas_id", "canvas id"),
    "login": ("login", "sis login id", "sis_login_id"),
    "extension": ("extension", "extensions"),
    "time_factor": ("time_factor", "time factor"),
}
"""A member's field -> the heads of its column that are known, in small letters; the first one found counts."""


def students_in(roster: Path) -> list[str]:
    """The ids in a roster, as `members_in` reads it."""
    return [member.id for member in members_in(roster)]


def members_in(roster: Path) -> list[Member]:
    """Who is in a roster: a CSV file with a column `id` (or student, student_id, username), or one id on each line.

    Columns that may be there besides: first_name, last_name (or `name`, which is both), email, section, id_number,
    canvas_id, login, extension, time_factor; others are passed over. Between fields stand commas, semicolons (as some
    spreadsheets write them) or tabs: what the first line has most of.
    LearnerError for an id that stands there twice, that is no name of a directory, or when there is none.
    """
    rows = read_rows(roster, "give a CSV file with a column `id`")
    head = [field.strip().lower() for field in rows[0]] if rows else []
    places = {
        name: head.index(found)
        for name, heads in _COLUMNS.items()
        if (found := next((each for each in heads if each in head), None)) is not None
    }
    if "id" not in places and len(head) > 1:
        raise LearnerError(f"{roster} has no column `id`; it has {', '.join(head)}", "name the column of the ids `id`")
    if "id" not in places:
        members = [Member(row[0].strip()) for row in rows]
    else:
        full = head.index("name") if "name" in head else None
        members = [_member(row, places, full) for row in rows[1:] if len(row) > places["id"]]
    _check_ids(roster, [member.id for member in members])
    return members


def _member(row: Sequence[str], places: Mapping[str, int], full: int | None) -> Member:
    said = {name: row[place].strip() for name, place in places.items() if place < len(row)}
    if full is not None and full < len(row) and not said.get("first_name") and not said.get("last_name"):
        # "Lovelace, Ada" or "Ada Lovelace"; of one word alone it is the last name.
        last, comma, first = row[full].strip().partition(",")
        if not comma:
            first, _, last = row[full].strip().rpartition(" ")
        said |= {"first_name": first.strip(), "last_name": last.strip()}
    return Member(**said)


def _check_ids(roster: Path, ids: Sequence[str]) -> None:
    if not ids:
        raise LearnerError(f"{roster} names nobody", "write an id on each line")
    seen: dict[str, str] = {}
    for student in ids:
        if not student or student.startswith(".") or set(student) & _FORBIDDEN or not student.isprintable():
            raise LearnerError(f"{student!r} can't be the name of a directory", "use letters, digits, - and _")
        if student.lower() in seen:
            raise LearnerError(f"{student!r} and {seen[student.lower()]!r} are the same id", "name everybody once")
        seen[student.lower()] = student


def keep_roster(members: Sequence[Member], marks: Path) -> None:
    """Write who is in the class beside the marks, for what is made of the marks later."""
    with (marks / KEPT).open("w", encoding="utf-8", newline="") as sink:
        csv.writer(sink).writerows([Member._fields, *members])


def kept_members(marks: Path) -> list[Member]:
    """Who was kept there; nobody when the marker was not told who is in the class."""
    place = marks / KEPT
    return members_in(place) if place.exists() else []


def kept_roster(marks: Path) -> list[str]:
    """The ids that were kept there; none when the marker was not told who is in the class."""
    return [member.id for member in kept_members(marks)]
