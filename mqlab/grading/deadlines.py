"""By when a lab is to come in, who has longer, and what being late costs.

A deadline belongs to a lab and is kept beside the marks (`deadlines.json`), so that whoever marks again has said it
once. What a person has longer stands in the roster: `extension` and `time_factor`.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from mqlab.errors import LearnerError
from mqlab.grading.roster import Member
from mqlab.grading.table import read_columns
from mqlab.grading.times import moment, shown, shown_span, span

KEPT_DEADLINES = "deadlines.json"
NO_DEADLINE = "none"
DAY_S = 86_400
MOST_FACTOR = 10
_OF_A_LAB = re.compile(r"(?P<lab>\d\d)(?:_\w+)?\s*:\s*(?P<longer>.+)")
_COLUMNS = {"lab": ("lab", "assignment"), "due": ("due", "deadline", "due at"), "begin": ("begin", "start", "opens")}

Number = Callable[[str], str]
"""The number of a lab ("05") of what somebody calls it; LearnerError when there is none."""


class Deadline(NamedTuple):
    """When a lab is due for everybody, and when its time began, where that is said (for an exam)."""

    due: datetime
    begin: datetime | None = None


class Arrival(NamedTuple):
    """When a notebook came in, as far as anybody knows."""

    at: datetime
    """When it came in, as the platform says; when it was first seen here, as the marker's log says."""
    by_platform: bool
    not_before: datetime | None = None
    """When the log's marker had last looked and it was not there."""


class Lateness(NamedTuple):
    """A notebook beside its deadline."""

    due: datetime
    seconds: float | None
    """By how much it is late; at least so much where the log alone knows; None where nobody knows whether it is."""
    least: bool
    """Whether `seconds` is the least that it can be."""
    grace_s: float

    @property
    def days(self) -> int:
        """The days that are counted: each that has begun after the grace period, which moves all of them."""
        return max(0, math.ceil(((self.seconds or 0) - self.grace_s) / DAY_S))

    def in_words(self, arrival: Arrival) -> str:
        """How late, for a table: "" for what came in time."""
        if self.seconds is None:
            return f"not known (first seen {shown_span((arrival.at - self.due).total_seconds())} after the deadline)"
        if not self.seconds:
            return ""
        at_least = "at least " if self.least else ""
        return f"{at_least}{shown_span(self.seconds)}{'' if self.days else ', in the grace period'}"


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The deadlines of a course's labs, and the rule for what comes late."""

    of_labs: Mapping[str, Deadline] = field(default_factory=dict)
    """A lab's number -> its deadline."""
    percent: float = 0
    """What each day that has begun takes of the points that were reached; 0: lateness is only told."""
    floor: float = 0
    """The percentage of them that is left, however late."""
    grace_min: float = 0
    zone: str = ""
    """The zone of times that name none."""

    def lateness(self, lab: str, member: Member, arrival: Arrival) -> Lateness | None:
        """How late a member's notebook of a lab is; None where the lab has no deadline."""
        due = self.due_for(lab, member)
        if due is None:
            return None
        late_s = (arrival.at - due).total_seconds()
        grace_s = 60 * self.grace_min
        if late_s <= 0 or arrival.by_platform:
            return Lateness(due, max(0.0, late_s), False, grace_s)
        # Only what was not there when somebody looked after the deadline is late for sure.
        least_s = (arrival.not_before - due).total_seconds() if arrival.not_before else 0
        return Lateness(due, least_s if least_s > 0 else None, True, grace_s)

    def due_for(self, lab: str, member: Member) -> datetime | None:
        """The deadline of a lab (its number) for this member, with the time that was given to nobody else."""
        deadline = self.of_labs.get(lab)
        if deadline is None:
            return None
        due, factor = deadline.due, factor_of(member)
        if deadline.begin is not None:
            due = deadline.begin + (due - deadline.begin) * factor
        longer = _extensions(member, self.zone)
        longer_here = longer.get(lab, longer.get(""))
        if longer_here is None:
            return due
        # A day that was named before the deadline was moved takes nothing away.
        return due + longer_here if isinstance(longer_here, timedelta) else max(due, longer_here)

    def taken(self, points: float, late: Lateness) -> float:
        """What lateness takes of these points, to a hundredth."""
        left = max(self.floor, 100 - self.percent * late.days) / 100
        return round(points * (1 - left), 2) if self.percent and late.days else 0

    def check_members(self, members: Iterable[Member], number: Number) -> None:
        """LearnerError for an extension or a factor of the roster that can't be used."""
        for member in members:
            try:
                factor_of(member)
                for lab in _extensions(member, self.zone):
                    if lab:
                        number(lab)
            except LearnerError as problem:
                raise LearnerError(f"{member.id} in the roster: {problem.message}", problem.hint) from None

    def as_json(self) -> dict[str, Any]:
        """The deadline as it is written to `deadlines.json`."""
        due = {
            lab: {"due": shown(each.due), "begin": shown(each.begin) if each.begin else ""}
            for lab, each in sorted(self.of_labs.items())
        }
        return {"labs": due, "percent": self.percent, "floor": self.floor, "grace_min": self.grace_min,
                "zone": self.zone}  # fmt: skip


def factor_of(member: Member) -> float:
    """By what a member's time is multiplied. LearnerError for what is no number from 1 to 10."""
    try:
        factor = float(member.time_factor.replace(",", ".") or 1)
    except ValueError:
        factor = math.nan
    if not 1 <= factor <= MOST_FACTOR:
        raise LearnerError(f"the time_factor {member.time_factor!r} is no number from 1 to {MOST_FACTOR}", "write 1.5")
    return factor


def _extensions(member: Member, zone: str) -> dict[str, timedelta | datetime]:
    """A lab's number, or "" for all others, -> a length of time, or until when: `2 days; 06: 2026-06-08T12:00Z`."""
    found: dict[str, timedelta | datetime] = {}
    for piece in filter(None, (each.strip() for each in member.extension.split(";"))):
        of_lab = _OF_A_LAB.fullmatch(piece)
        lab, longer = (of_lab["lab"], of_lab["longer"]) if of_lab else ("", piece)
        length = span(longer)
        if length is None:
            try:
                found[lab] = moment(longer, zone)
            except LearnerError as problem:
                hint = f"write `48 h`, `2 days`, `06: 2 days`, or until when: {problem.hint}"
                raise LearnerError(f"the extension {problem.message}", hint) from None
        else:
            found[lab] = length
    return found


def given_deadlines(
    text: str, begin: str, zone: str, labs: Iterable[str], number: Number
) -> dict[str, Deadline | None]:
    """What `--due` says: a time for all these labs, or the path of a CSV file with columns lab, due (and begin).

    None for a lab whose deadline is taken away. LearnerError for bad times, and for labs that there are not.
    """
    if text.strip().lower() == NO_DEADLINE:
        return dict.fromkeys(labs)
    path = Path(text)
    if path.suffix.lower() in (".csv", ".tsv", ".txt") or os.path.isfile(text):
        if begin:
            raise LearnerError("--begin goes with one time", f"give {path} a column `begin`")
        return _in_file(path, zone, number)
    try:
        deadline = _deadline(text, begin, zone)
    except LearnerError as problem:
        raise LearnerError(f"--due: {problem.message}", f"{problem.hint}; or give a CSV file: lab,due") from None
    return dict.fromkeys(labs, deadline)


def _in_file(path: Path, zone: str, number: Number) -> dict[str, Deadline | None]:
    found: dict[str, Deadline | None] = {}
    for line, row in read_columns(path, _COLUMNS, ("lab", "due"), "give it the columns lab,due"):
        try:
            lab = number(row.get("lab", ""))
            if lab in found:
                raise LearnerError(f"lab {lab} stands there twice", "name every lab once")
            due = row.get("due", "")
            gone = due.lower() == NO_DEADLINE
            found[lab] = None if gone else _deadline(due, row.get("begin", ""), zone)
        except LearnerError as problem:
            raise LearnerError(f"{path}, row {line}: {problem.message}", problem.hint) from None
    return found


def _deadline(due: str, begin: str, zone: str) -> Deadline:
    deadline = Deadline(moment(due, zone), moment(begin, zone) if begin else None)
    if deadline.begin is not None and deadline.begin >= deadline.due:
        raise LearnerError(f"the time begins at {shown(deadline.begin)}, and ends before", "--begin is before --due")
    return deadline


def with_given(
    kept: Deadlines,
    given: Mapping[str, Deadline | None],
    *,
    percent: float | None = None,
    floor: float | None = None,
    grace_min: float | None = None,
    zone: str | None = None,
) -> Deadlines:
    """The deadlines that were kept, with what is said now in its place; what is None stays."""
    of_labs = {lab: deadline for lab, deadline in {**kept.of_labs, **given}.items() if deadline is not None}
    return Deadlines(
        of_labs,
        kept.percent if percent is None else percent,
        kept.floor if floor is None else floor,
        kept.grace_min if grace_min is None else grace_min,
        kept.zone if zone is None else zone,
    )


def kept_deadlines(marks: Path) -> Deadlines:
    """Those beside the marks; none where nobody has said any. LearnerError when the file was damaged."""
    place = marks / KEPT_DEADLINES
    try:
        said = json.loads(place.read_text(encoding="utf-8"))
        of_labs = {
            lab: Deadline(moment(each["due"]), moment(each["begin"]) if each["begin"] else None)
            for lab, each in said["labs"].items()
        }
        percent, floor, grace_min = (float(said[name]) for name in ("percent", "floor", "grace_min"))
        return Deadlines(of_labs, percent, floor, grace_min, str(said["zone"]))
    except FileNotFoundError:
        return Deadlines()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, LearnerError) as error:
        raise LearnerError(f"{place} can't be read: {error}", "remove it, and give --due (and --late) again") from None


def keep_deadlines(deadlines: Deadlines, marks: Path) -> None:
    """Write them beside the marks, where there is something to keep."""
    place = marks / KEPT_DEADLINES
    if deadlines == Deadlines() and not place.exists():
        return
    unfinished = marks / f".{KEPT_DEADLINES}.unfinished"
    unfinished.write_text(json.dumps(deadlines.as_json(), indent=1) + "\n", encoding="utf-8")
    unfinished.replace(place)
