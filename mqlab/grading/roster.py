"""The class: who is in it, as a CSV file names them, and as the marker keeps them beside the marks."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from mqlab.errors import LearnerError

KEPT = "roster.csv"
"""The name under which the marker keeps the ids of a class, in the directory of the marks."""

_ID_COLUMNS = ("id", "student", "student_id", "username")
_PARTED = ",;\t"
_FORBIDDEN = set('/\\:*?"<>|\0')


def students_in(roster: Path) -> list[str]:
    """The ids in a roster: a CSV file with a column `id` (or student, student_id, username), or one id on each line.

    Between fields stand commas, semicolons (as some spreadsheets write them) or tabs: what the first line has most of.
    LearnerError for an id that stands there twice, that is no name of a directory, or when there is none.
    """
    try:
        lines = roster.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise LearnerError(f"{roster} can't be read: {error.strerror}", "give a CSV file with a column `id`") from None
    except UnicodeDecodeError:
        raise LearnerError(f"{roster} is no text in UTF-8", "save it as CSV in UTF-8") from None
    parted = max(_PARTED, key=lines[0].count) if lines else _PARTED[0]
    rows = [row for row in csv.reader(lines, delimiter=parted) if any(field.strip() for field in row)]
    head = [field.strip().lower() for field in rows[0]] if rows else []
    column = next((head.index(name) for name in _ID_COLUMNS if name in head), None)
    if column is None and len(head) > 1:
        raise LearnerError(f"{roster} has no column `id`; it has {', '.join(head)}", "name the column of the ids `id`")
    ids = [row[column or 0].strip() for row in (rows if column is None else rows[1:]) if len(row) > (column or 0)]
    _check_ids(roster, ids)
    return ids


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


def keep_roster(students: Sequence[str], marks: Path) -> None:
    """Write the ids beside the marks, for what is made of the marks later."""
    with (marks / KEPT).open("w", encoding="utf-8", newline="") as sink:
        csv.writer(sink).writerows([["id"], *([student] for student in students)])


def kept_roster(marks: Path) -> list[str]:
    """The ids that were kept there; none when the marker was not told who is in the class."""
    place = marks / KEPT
    return students_in(place) if place.exists() else []
