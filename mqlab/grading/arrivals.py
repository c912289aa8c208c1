"""When each notebook came in: as the learning platform says, else as the marker's own log has seen it.

The log, `arrivals.csv` beside the marks, is only ever added to. Each look at what was handed in notes which text (by
its digest) was seen for the first time, and that somebody has looked: a text that was there at one look and not at the
one before came in between. A file's own time is never asked: a student or a program that copies can set it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from mqlab.errors import LearnerError
from mqlab.grading.deadlines import Arrival, Number
from mqlab.grading.printable import printable
from mqlab.grading.pseudonyms import Names, pseudonym
from mqlab.grading.roster import Member
from mqlab.grading.table import read_columns
from mqlab.grading.times import moment, shown

LOG = "arrivals.csv"
_LOG_COLUMNS = ("at", "said_by", "lab", "student", "notebook")
LOOK, SEEN, PLATFORM = "look", "seen", "platform"
"""What a row is: somebody looked at a lab; this text was there for the first time; the platform has said it."""
_COLUMNS = {
    "student": ("student", "id", "student_id", "student id", "username", "login", "sis login id", "id number",
                "id_number", "sis user id", "email address", "email"),
    "lab": ("lab", "assignment", "assignment name", "file", "file name", "filename", "path"),
    "at": ("arrived", "arrived at", "submitted", "submitted at", "submitted_at", "submission time",
           "last modified (submission)", "timestamp", "time"),
}  # fmt: skip


class Seen(NamedTuple):
    """A notebook that is there: whose, of which lab (its number), and its digest."""

    student: str
    lab: str
    digest: str


class Said(NamedTuple):
    """What the platform says of one hand-in."""

    student: str
    lab: str
    at: datetime


@dataclass(slots=True)
class Arrivals:
    """The log of a directory of marks. `key` finds a student again by the pseudonym, whatever name a row has."""

    key: bytes
    first_seen: dict[tuple[str, str, str], Arrival] = field(default_factory=dict)
    by_platform: dict[tuple[str, str, str], Arrival] = field(default_factory=dict)
    looked: dict[str, datetime] = field(default_factory=dict)
    """A lab's number -> when somebody has looked at it last."""

    def of(self, student: str, lab: str, digest: str) -> Arrival | None:
        """When this text came in: the platform's word is above the log."""
        own = pseudonym(self.key, student), lab, digest
        return self.by_platform.get(own) or self.first_seen.get(own)

    def take(self, row: dict[str, str]) -> None:
        """Take up a row of the log."""
        at, lab = moment(row["at"]), row["lab"]
        if row["said_by"] == LOOK:
            self.looked[lab] = at
            return
        own = pseudonym(self.key, row["student"]), lab, row["notebook"]
        if row["said_by"] == PLATFORM:
            self.by_platform[own] = Arrival(at, by_platform=True)
        else:
            self.first_seen.setdefault(own, Arrival(at, by_platform=False, not_before=self.looked.get(lab)))


def read_arrivals(marks: Path, key: bytes) -> Arrivals:
    """The log beside the marks; an empty one where there is none. LearnerError when it was damaged."""
    found, place = Arrivals(key), marks / LOG
    with suppress(FileNotFoundError), place.open(encoding="utf-8", newline="") as source:
        for number, row in enumerate(csv.DictReader(source), 2):
            try:
                found.take(row)
            except (LearnerError, KeyError, TypeError, AttributeError):
                hint = "put the line right, or take it out: the lines before it were written whole"
                raise LearnerError(f"{place}, line {number}, is no line of the log", hint) from None
    return found


def look(
    marks: Path, arrivals: Arrivals, there: Iterable[Seen], labs: Iterable[str], names: Names, at: datetime
) -> int:
    """Note what is there of these labs (their numbers), and that somebody has looked at that time; how much is new."""
    seen = [each for each in there if (pseudonym(arrivals.key, each.student), *each[1:]) not in arrivals.first_seen]
    # The log knows one order of time, also where the machine's clock was put back.
    when = shown(max([at, *arrivals.looked.values()]))
    rows = [_row(when, SEEN, each.lab, names.shown(each.student), each.digest) for each in seen]
    _add(marks, arrivals, [*rows, *(_row(when, LOOK, lab) for lab in labs)])
    return len(seen)


def note_platform(
    marks: Path, arrivals: Arrivals, there: Iterable[Seen], said: Sequence[Said], names: Names
) -> list[str]:
    """Note what the platform says of what is there; in words what it says of notebooks that are not these.

    A time that was the platform's word for another text of the same student does not fit this one: it is an older list.
    """
    taken = {(own[0], own[1], arrival.at): own[2] for own, arrival in arrivals.by_platform.items()}
    latest: dict[tuple[str, str], Said] = {}
    for one in said:
        own = pseudonym(arrivals.key, one.student), one.lab
        latest[own] = max(one, latest.get(own, one), key=lambda each: each.at)
    rows, left = [], []
    listed, here = {one.lab for one in said}, {(pseudonym(arrivals.key, each.student), each.lab) for each in there}
    for each in there:
        hidden = pseudonym(arrivals.key, each.student)
        word = latest.get((hidden, each.lab))
        known = arrivals.by_platform.get((hidden, each.lab, each.digest))
        if word is None:
            left += [f"{_who(names, each)}: the platform's list says nothing of it"] if each.lab in listed else []
        elif taken.get((hidden, each.lab, word.at), each.digest) != each.digest:
            left.append(f"{_who(names, each)}: the platform's list is of an earlier notebook; export it again")
        elif known is None or known.at != word.at:
            rows.append(_row(shown(word.at), PLATFORM, each.lab, names.shown(each.student), each.digest))
    labs = {each.lab for each in there}
    left += [
        f"{_who(names, word)}: the platform's list has a hand-in that is not here"
        for own, word in sorted(latest.items())
        if word.lab in labs and own not in here
    ]
    _add(marks, arrivals, rows)
    return left


def _who(names: Names, each: Seen | Said) -> str:
    return printable(f"{names.shown(each.student)} {each.lab}")


def _row(at: str, said_by: str, lab: str, student: str = "", digest: str = "") -> dict[str, str]:
    return dict(zip(_LOG_COLUMNS, (at, said_by, lab, student, digest), strict=True))


def _add(marks: Path, arrivals: Arrivals, rows: Sequence[dict[str, str]]) -> None:
    place = marks / LOG
    begins = not place.exists()
    with place.open("a", encoding="utf-8", newline="") as sink:
        writer = csv.DictWriter(sink, _LOG_COLUMNS)
        if begins:
            writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        arrivals.take(row)


def platform_says(path: Path, members: Sequence[Member], students: Iterable[str], number: Number, only_lab: str,
                  zone: str) -> list[Said]:  # fmt: skip
    """A learning platform's list of hand-ins: a student, a lab (or the file), and when it arrived, in each row.

    A student is known by the id, or by what else the roster has: login, numbers, email. Without a column of labs all is
    of `only_lab`. Rows without a time are of who has handed in nothing.
    LearnerError for students and labs that nobody knows, and for bad times.
    """
    needed = ("student", "at") if only_lab else ("student", "lab", "at")
    hint = "give it the columns student,lab,arrived; without lab it is of one lab, and --lab says of which"
    known = {student.lower(): student for student in students}
    for member in members:
        for name in (member.email, member.login, member.id_number, member.canvas_id, member.id):
            if name:
                known[name.lower()] = member.id
    found = []
    for line, row in read_columns(path, _COLUMNS, needed, hint):
        when = row.get("at", "-")
        if when in ("-", "n/a", "None"):
            continue
        try:
            who = row.get("student", "")
            if who.lower() not in known:
                raise LearnerError(f"{who!r} is nobody of the class", "give --students the roster, or mend the row")
            name = Path(row.get("lab", "")).name
            # Of a notebook's name the number counts, as where it was handed in: 05_push_is_pull (1).ipynb.
            lab = number(name[:2] if name.endswith((".ipynb", ".json")) else name) if name else only_lab
            if not lab:
                raise LearnerError("no lab is named", "write 05, or the notebook's name")
            found.append(Said(known[who.lower()], lab, moment(when, zone)))
        except LearnerError as problem:
            raise LearnerError(f"{path}, row {line}: {problem.message}", problem.hint) from None
    return found
