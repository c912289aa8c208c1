"""The marks as learning platforms import them: a row for each student, a column for each lab.

- canvas.csv, for "Import" in Canvas's gradebook. The first columns are Student, ID, SIS User ID, SIS Login ID and
  Section; a row "Points Possible" stands above the students. A lab whose name Canvas does not know becomes a new
  assignment. Canvas finds a student by its own ID, else by the SIS ids, else by the name:
  https://github.com/instructure/canvas-lms, lib/gradebook_importer.rb.
- moodle.csv, for "Import, CSV file" in Moodle's gradebook. One chooses there which column is what: `Email address` or
  `ID number` says who it is, each lab is a grade item, and `LAB (Feedback)` its feedback, which has to be imported
  together with the grade: https://docs.moodle.org/en/Grade_import.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mqlab.grading.roster import Member
from mqlab.grading.table import write_csv

Results = Sequence[dict[str, Any]]
_CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_MOODLE = ("First name", "Last name", "ID number", "Email address", "Username")
_MOST_FEEDBACK = 1_000
"""The characters of a lab's feedback; the whole report is for the student."""


def write_wide(results: Results, out: Path, members: Sequence[Member] = ()) -> None:
    """canvas.csv and moodle.csv in that directory; whoever is nobody of the members is known by the id alone."""
    labs = sorted({result["lab"] for result in results})
    everybody = {member.id.lower(): member for member in members}
    by_student: dict[str, dict[str, dict[str, Any]]] = {owner: {} for owner in everybody}
    for result in results:
        owner = result["student"].lower()
        everybody.setdefault(owner, Member(result["student"]))
        by_student.setdefault(owner, {})[result["lab"]] = result
    most = {lab: max(result["most"] for result in results if result["lab"] == lab) for lab in labs}
    rows = [(everybody[owner], by_student[owner]) for owner in sorted(everybody)]
    write_csv(out / "canvas.csv", [*_CANVAS, *labs], [_possible(most), *(_as_canvas(*row) for row in rows)])
    columns = [*_MOODLE, *(name for lab in labs for name in (lab, f"{lab} (Feedback)"))]
    write_csv(out / "moodle.csv", columns, [_as_moodle(*row) for row in rows])


def _possible(most: Mapping[str, float]) -> dict[str, Any]:
    return {"Student": "    Points Possible", **most}


def _as_canvas(member: Member, own: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    name = f"{member.last_name}, {member.first_name}" if member.first_name and member.last_name else member.name
    who = (name, member.canvas_id, member.id_number, member.login or member.id, member.section)
    return {**dict(zip(_CANVAS, who, strict=True)), **{lab: result["points"] for lab, result in own.items()}}


def _as_moodle(member: Member, own: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    number, username = member.id_number, member.login or member.id
    who = (member.first_name, member.last_name, number, member.email, username)
    row: dict[str, Any] = dict(zip(_MOODLE, who, strict=True))
    for lab, result in own.items():
        row |= {lab: result["points"], f"{lab} (Feedback)": _feedback(result)}
    return row


def _feedback(result: Mapping[str, Any]) -> str:
    """In a few words: why nothing could be marked, how late it was, what was set by hand, what was remarked, and the
    points of each check.
    """
    marks = [f"{mark['check']}: {mark['points']:g} of {mark['most']}" for mark in result["marks"]]
    by_hand = map(by_hand_in_words, result.get("by_hand", []))
    words = [result["unreadable"], late_in_words(result), *by_hand, *result["remarks"]]
    return "; ".join(word for word in [*words, *([] if result["unreadable"] else marks)] if word)[:_MOST_FEEDBACK]


def late_in_words(result: Mapping[str, Any]) -> str:
    """How late it was, and what that takes; "" for what came in time."""
    late = result.get("late") or {}
    if not late.get("told"):
        return ""
    takes = f", which takes {late['taken']:g} of {result['before_late']:g} points" if late["taken"] else ""
    return f"late: {late['told']}{takes}"


def by_hand_in_words(mark: Mapping[str, Any]) -> str:
    """A mark that was set by hand, with its reason."""
    what = mark["check"] or "all of the lab"
    return f"{what} set by hand to {mark['points']:g} (judged {mark['judged']:g}): {mark['reason']}"
