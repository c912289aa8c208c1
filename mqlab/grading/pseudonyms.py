"""Anonymous marking: whoever reads marks sees pseudonyms, and one file, for the marker alone, says whose they are.

A pseudonym comes from the course's key and the id: it is always the same, and nobody without the key can make it of an
id. Whatever the marker keeps about a student it finds by the pseudonym, so records that were made with names and
without fit together.
"""

from __future__ import annotations

import csv
import hmac
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from mqlab.errors import LearnerError
from mqlab.grading.roster import KEPT, Member, keep_roster, kept_members
from mqlab.grading.table import write_csv

KEPT_NAMES = "names.csv"
"""The file for the marker alone."""
_PSEUDONYM = re.compile(r"anon-[0-9a-f]{10}")
_ANYWHERE = re.compile(rf"\b{_PSEUDONYM.pattern}\b")
_HIDDEN_IN = ("unreadable", "remarks", "marks", "run", "bets", "certificate", "by_hand")
"""The parts of a result in which a name may stand."""
_SHORTEST_NAME = 3


def pseudonym(key: bytes, student: str) -> str:
    """How a student is called where nobody is to know who it is; of a pseudonym itself it is the same one."""
    own = student.strip().lower()
    if _PSEUDONYM.fullmatch(own):
        return own
    return f"anon-{hmac.new(key, f'mqlab-anonymous/{own}'.encode(), sha256).hexdigest()[:10]}"


@dataclass(frozen=True, slots=True)
class Names:
    """How the students of a class are called in what is written and printed."""

    key: bytes = b""
    """The course's key, for pseudonyms; empty for ids."""
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """An id, in small letters -> what else tells who it is."""

    @property
    def hidden(self) -> bool:
        """Whether pseudonyms are shown."""
        return bool(self.key)

    def shown(self, student: str) -> str:
        """The name that is shown."""
        return pseudonym(self.key, student) if self.hidden else student

    def member(self, member: Member) -> Member:
        """A member as tables show it; without names it keeps nothing but the pseudonym."""
        return Member(self.shown(member.id)) if self.hidden else member

    def told(self, file: Path) -> Path:
        """The path of a file in the directory of the hand-ins, as it may be told: file names have names in them."""
        if not self.hidden:
            return file
        return Path(self.shown(file.parts[0]), "...") if len(file.parts) > 1 else Path("(a file)")

    def words_of(self, student: str) -> list[str]:
        """What would tell who it is, in a text: the id, names, address and numbers; nothing where names are shown."""
        return [student, *self.words.get(student.lower(), ())] if self.hidden else []


def names_of(members: Iterable[Member], key: bytes) -> Names:
    """Pseudonyms for a class."""
    words = {
        member.id.lower(): [
            each
            for each in (member.email, member.login, member.id_number, member.canvas_id, member.name, *_parts(member))
            if len(each) >= _SHORTEST_NAME and each != member.id
        ]
        for member in members
    }
    return Names(key, words)


def _parts(member: Member) -> list[str]:
    return [*member.first_name.split(), *member.last_name.split()]


def without_names(result: dict[str, Any], words: Sequence[str], instead: str) -> dict[str, Any]:
    """A result in whose texts each of these words, as a whole word, is replaced by the pseudonym.

    The first one is the id. What begins with a capital letter is a name, and counts so written alone: May is not may.
    """
    found = sorted({word for word in words if word}, key=len, reverse=True)
    if not found:
        return result
    forms = [
        re.escape(word) if word[:1].isupper() and word != words[0] else f"(?i:{re.escape(word)})" for word in found
    ]
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(forms)})(?!\w)")
    return {name: _replaced(value, pattern, instead) if name in _HIDDEN_IN else value for name, value in result.items()}


def _replaced(value: Any, pattern: re.Pattern[str], instead: str) -> Any:
    if isinstance(value, str):
        return pattern.sub(lambda _: instead, value)
    if isinstance(value, dict):
        return {name: _replaced(each, pattern, instead) for name, each in value.items()}
    return [_replaced(each, pattern, instead) for each in value] if isinstance(value, list) else value


def keep_names(marks: Path, names: Names, members: Sequence[Member], others: Iterable[str]) -> None:
    """Write names.csv, which only its owner can read, and the roster without names.

    `others` are ids that have handed in and are not on the roster.
    """
    place = marks / KEPT_NAMES
    known = {member.id.lower() for member in members}
    strangers = [Member(student) for student in others if student.lower() not in known]
    rows = [
        {"pseudonym": names.shown(member.id), "on_roster": "yes" if member.id.lower() in known else "no"}
        | member._asdict()
        for member in [*members, *strangers]
    ]
    os.close(os.open(place.with_name(f".{KEPT_NAMES}.unfinished"), os.O_WRONLY | os.O_CREAT, 0o600))
    write_csv(place, ["pseudonym", "on_roster", *Member._fields], sorted(rows, key=lambda row: str(row["pseudonym"])))
    if members:
        keep_roster(sorted(map(names.member, members)), marks)


def real_members(marks: Path) -> list[Member]:
    """Who is on the kept roster, with names where only names.csv has them."""
    place = marks / KEPT_NAMES
    if not place.exists():
        return kept_members(marks)
    with place.open(encoding="utf-8", newline="") as source:
        rows = [row for row in csv.DictReader(source) if row.get("on_roster") == "yes"]
    return [Member(**{name: (row.get(name) or "").removeprefix("'") for name in Member._fields}) for row in rows]


def has_names(marks: Path) -> bool:
    """Whether there are results under ids in that directory."""
    owners = {path.parts[-3] for path in marks.glob("*/*/result.json")}
    return any(not _PSEUDONYM.fullmatch(owner) for owner in owners)


def refuse_names(marks: Path) -> None:
    """LearnerError where names are to be hidden, and the marks that are there show them."""
    if has_names(marks):
        raise LearnerError(
            f"{marks} has results that show who it is",
            "give --anonymous a directory of its own: --out anonymous-marks/",
        )


def give_names_back(marks: Path, key: bytes, students: Iterable[str]) -> None:
    """Put what was marked under a pseudonym under the id that it stands for, with the id in its texts."""
    place = marks / KEPT_NAMES
    if not place.exists():
        return
    members = real_members(marks)
    ids = {pseudonym(key, student): student for student in [*students, *(member.id for member in members)]}
    for path in sorted(marks.glob("*/*/result.json")):
        # An id may have characters that JSON writes in its own way.
        text = _ANYWHERE.sub(
            lambda found: json.dumps(ids.get(found[0], found[0]), ensure_ascii=False)[1:-1],
            path.read_text(encoding="utf-8"),
        )
        path.write_text(text, encoding="utf-8")
        path.with_name("report.html").unlink(missing_ok=True)
    for hidden, student in ids.items():
        if (marks / hidden).is_dir() and not (marks / student).exists():
            (marks / hidden).rename(marks / student)
    if members:
        keep_roster(sorted(members, key=lambda member: member.id.lower()), marks)
    else:
        (marks / KEPT).unlink(missing_ok=True)
    place.unlink()
