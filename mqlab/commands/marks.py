"""`mqlab course look` and `set-mark`: what a teacher notes beside the marks."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqlab.errors import LearnerError
from mqlab.material import add_root

if TYPE_CHECKING:
    from mqlab.grading.by_hand import SetMark

Result = Mapping[str, Any]


def add_marks_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add both to the commands of `mqlab course`."""
    look = commands.add_parser("look", help="note what was handed in so far, and when it was seen first; marks nothing")
    look.add_argument("submissions", type=Path, help="a directory with a directory for each student, named by the id")
    look.add_argument("--key", type=Path, required=True, help="the course's key")
    look.add_argument("--out", type=Path, required=True, metavar="MARKS", help="where the marks are, or will be")
    look.add_argument("--lab", action="append", default=[], metavar="NAME", help="only this lab: 05 (repeatable)")
    add_root(look)
    by_hand = commands.add_parser("set-mark", help="set a mark by hand; mqlab grade takes it up")
    by_hand.add_argument("marks", type=Path, help="where mqlab grade has put its results")
    by_hand.add_argument("--key", type=Path, required=True, help="the course's key, which signs it")
    by_hand.add_argument("--student", required=True, metavar="ID", help="the id, or the pseudonym")
    by_hand.add_argument("--lab", default="", metavar="NAME", help="all of this lab: 05")
    by_hand.add_argument("--check", default="", metavar="NAME", help="this check alone: 05/hold")
    what = by_hand.add_mutually_exclusive_group(required=True)
    what.add_argument("--points", metavar="N", help="the points that count from now on")
    what.add_argument("--take-back", action="store_true", help="what the judge gave counts again")
    by_hand.add_argument("--reason", required=True, help="why: the student reads it in the report")
    by_hand.add_argument("--by", required=True, metavar="NAME", help="who has decided it")
    by_hand.add_argument("--above", action="store_true", help="more points than it has are meant")


def look_at(options: argparse.Namespace) -> int:
    """Note which notebooks are there, in the log of arrivals."""
    from mqlab.grading.arrivals import look, read_arrivals
    from mqlab.grading.class_rules import seen
    from mqlab.grading.course import Settings, handed_in, nothing_in
    from mqlab.grading.marking import read_key
    from mqlab.grading.pseudonyms import KEPT_NAMES, Names, names_of, real_members
    from mqlab.grading.times import now

    key = read_key(str(options.key))
    hidden = (options.out / KEPT_NAMES).exists()
    names = names_of(real_members(options.out), key) if hidden else Names()
    sources = options.root / "labs" / "sources"
    work, left = handed_in(options.submissions, Settings(options.key, options.out, sources, options.lab, names=names))
    for each in left:
        print(f"left out: {each}")
    if not work:
        raise nothing_in(options.submissions)
    arrivals = read_arrivals(options.out, key)
    options.out.mkdir(parents=True, exist_ok=True)
    there = [seen(each) for each in work]
    new = look(options.out, arrivals, there, sorted({each.lab for each in there}), names, now())
    print(f"{len(work)} notebooks are there, {new} of them seen for the first time; {options.out / 'arrivals.csv'}")
    return 0


def set_mark(options: argparse.Namespace) -> int:
    """Note a mark that is set by hand, or taken back. LearnerError for what can't be set; nothing is noted then."""
    from mqlab.grading.by_hand import add_by_hand, read_by_hand
    from mqlab.grading.marking import read_key

    key = read_key(str(options.key))
    by_hand = read_by_hand(options.marks, key)
    mark, most, judged = _mark(options, key)
    if options.take_back and by_hand.of(mark.student, mark.lab, mark.check) is None:
        raise LearnerError(f"nothing was set by hand for {_what(mark)}", "see the column by_hand of gradebook.csv")
    add_by_hand(options.marks, key, mark)
    again = f"what the judge gave counts again, {judged:g}"
    now = again if mark.points is None else f"{mark.points:g} of {most:g} points"
    print(f"{_what(mark)}: {now}; give mqlab grade again, and report and gradebook have it")
    return 0


def _what(mark: SetMark) -> str:
    return f"{mark.student}, {mark.check or mark.lab}"


def _mark(options: argparse.Namespace, key: bytes) -> tuple[SetMark, float, float]:
    """The mark that is meant, how much it could be, and what the judge gave."""
    from mqlab.grading.by_hand import MOST_TEXT, SetMark

    for name, text in (("--reason", options.reason), ("--by", options.by)):
        if not text.strip() or len(text) > MOST_TEXT:
            raise LearnerError(f"{name} has {len(text)} characters", f"write it in 1 to {MOST_TEXT}")
    if bool(options.lab) == bool(options.check):
        raise LearnerError("say what the mark is of", "give --check 05/hold, or --lab 05 for all of the lab")
    student, result, of_others = _result(options.marks, options.student, options.lab or options.check[:2], key)
    most, judged = float(of_others["most"]), 0.0
    if options.check:
        most, judged = _of_check(options.check, student, result)
    elif result is not None:
        from mqlab.grading.settling import judged_points

        judged = round(sum(map(judged_points, result["marks"])), 2)
    points = None if options.take_back else _points(options.points, most, above=options.above)
    said = SetMark(student, of_others["lab"], options.check, points, options.reason.strip(), options.by.strip())
    return said, most, judged


def _of_check(check: str, student: str, result: Result | None) -> tuple[float, float]:
    from mqlab.grading.settling import judged_points

    if result is None:
        raise LearnerError(f"{student} has handed in nothing of this lab", "set all of the lab, with --lab")
    for mark in result["marks"]:
        if mark["check"] == check:
            return mark["most"], judged_points(mark)
    there = ", ".join(mark["check"] for mark in result["marks"])
    raise LearnerError(f"there is no check {check!r}", f"checks that there are: {there}")


def _result(marks: Path, student: str, lab: str, key: bytes) -> tuple[str, Result | None, Result]:
    """Who is meant, as the marks have the name; the result (None when nothing was handed in); one of that lab."""
    from mqlab.grading.pseudonyms import pseudonym
    from mqlab.grading.roster import kept_roster
    from mqlab.grading.settling import results_below

    results = results_below(marks)
    of_lab = [each for each in results if lab in (each["lab"], each["lab"][:2])]
    if not of_lab:
        labs = ", ".join(sorted({each["lab"] for each in results})) or "none"
        raise LearnerError(f"no lab {lab!r} is marked in {marks}", f"labs that are marked there: {labs}")
    wanted = pseudonym(key, student)
    for each in of_lab:
        if pseudonym(key, each["student"]) == wanted:
            return each["student"], each, each
    for known in [*kept_roster(marks), *(each["student"] for each in results)]:
        if pseudonym(key, known) == wanted:
            return known, None, of_lab[0]
    raise LearnerError(f"{student!r} is nobody of the class", f"students: {_some(each['student'] for each in of_lab)}")


def _some(students: Any) -> str:
    names: Sequence[str] = sorted(students)
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")


def _points(text: str, most: float, *, above: bool) -> float:
    from mqlab.grading.by_hand import MOST_POINTS

    try:
        points = float(text.replace(",", "."))
    except ValueError:
        points = float("nan")
    if not isfinite(points) or not 0 <= points <= MOST_POINTS:
        raise LearnerError(f"{text!r} are no points", f"give a number from 0 to {MOST_POINTS}, such as 2.5")
    if points > most and not above:
        raise LearnerError(f"{points:g} is more than the {most:g} points that there are", "if it is meant: --above")
    return round(points, 2)
