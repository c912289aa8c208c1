"""`mqlab grade`: marks a class."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mqlab.command_numbers import number, whole
from mqlab.fast.choice import take_sources
from mqlab.material import add_root
from mqlab.progress import bar

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells give it."""
NOT_ON_ROSTER = "this id is not on the roster"


def main(argv: Sequence[str] | None = None) -> int:
    """Mark what was handed in; 0 when all of it could be marked, 1 when the marker failed with something.

    After Ctrl-C it says how to go on, and returns 130.
    LearnerError when there is nothing to mark, and for a key or a roster that can't be used.
    """
    options = _parser().parse_args(argv)
    take_sources()
    from mqlab.grading.confine import Limits, see_to_confinement
    from mqlab.grading.course import HandedIn, Settings, handed_in, mark_all, missing, nothing_in, strangers
    from mqlab.grading.gradebook import write_gradebook
    from mqlab.grading.marking import read_key
    from mqlab.grading.other_labs import results_of_other_labs
    from mqlab.grading.printable import printable
    from mqlab.grading.report import write_report
    from mqlab.grading.roster import keep_roster, kept_members, kept_roster, members_in

    limits = Limits(wall_s=options.wall, memory_bytes=int(options.memory * 2**30), confined=not options.unconfined)
    settings = Settings(
        options.key, options.out, options.root / "labs" / "sources", tuple(options.lab), options.hidden,
        not options.no_run, options.jobs, limits, options.exam,
    )  # fmt: skip
    members = members_in(options.students) if options.students else []
    students = [member.id for member in members]
    read_key(str(options.key))
    work, left = handed_in(options.submissions, settings)
    for each in left:
        print(f"left out: {each}")
    if not work:
        raise nothing_in(options.submissions)
    if options.unconfined:
        print("not confined, as you have said: code of students can read, change and remove what you can")
    else:
        see_to_confinement()
    options.out.mkdir(parents=True, exist_ok=True)
    if students:
        keep_roster(members, options.out)
    done = 0
    with bar("notebooks", len(work)) as shown:

        def told(each: HandedIn, result: dict[str, Any], known: bool) -> None:
            nonlocal done
            done += 1
            place = settings.out / each.student / each.source.stem
            if not known:
                write_report(result, place / "report.html")
            with shown.aside():
                print(f"{printable(each.student):<20} {each.source.stem:<20} "
                      f"{result['points']:>6g} of {result['most']}"
                      f"{'  (was marked already)' if known else ''}", flush=True)  # fmt: skip
            shown.to(done, f"{printable(each.student)} {each.source.stem}")

        try:
            results = mark_all(work, settings, told)
        except KeyboardInterrupt:
            print(f"\nstopped: {done} of {len(work)} are marked; the same command goes on from there", file=sys.stderr)
            return INTERRUPTED
    absent = missing(results, students, left)
    for result in absent:
        student, why = printable(result["student"]), printable(result["unreadable"])
        print(f"{student:<20} {result['lab']:<20} {why}")
    for student in strangers(results, students):
        other = "if it is somebody's id in other words, rename the directory"
        print(f"{printable(student)}: is not on the roster; {other}")
    others = results_of_other_labs(options.submissions, settings, work, kept_roster(options.out))
    every = [*results, *absent, *others]
    unknown = strangers(every, students)
    rows = [
        {**result, "remarks": [*result["remarks"], NOT_ON_ROSTER]} if result["student"] in unknown else result
        for result in every
    ]
    ordered = sorted(rows, key=lambda each: (each["student"].lower(), each["lab"]))
    write_gradebook(ordered, options.out, kept_members(options.out))
    failed = [result for result in results if result.get("failed")]
    for result in failed:
        print(printable(f"{result['student']} {result['lab']}: {result['unreadable']}"))
    besides = f", {len(left)} left out (named at the beginning)" if left else ""
    besides += f", {len(failed)} not, since the marker failed" if failed else ""
    print(f"{len(results) - len(failed)} notebooks marked{besides}; {options.out / 'gradebook.csv'}")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mqlab grade", description="Mark what students have handed in.")
    parser.add_argument("submissions", type=Path, help="a directory with a directory for each student, named by the id")
    parser.add_argument("--key", type=Path, required=True, help="the course's key (mqlab course key FILE makes one)")
    parser.add_argument("--out", type=Path, required=True, help="where results, reports and the gradebook go")
    parser.add_argument("--lab", action="append", default=[], metavar="NAME", help="only this lab: 05 (repeatable)")
    roster = "the class, as for mqlab course release: who has handed in nothing gets a row, too"
    parser.add_argument("--students", type=Path, metavar="ROSTER", help=roster)
    parser.add_argument(
        "--jobs", type=whole(0, 1_000), default=0,
        help="how many at once (default: one for each processor)"
    )
    parser.add_argument(
        "--hidden", type=whole(1, 10_000), default=20, metavar="N",
        help="hidden seeds of a check (%(default)s)",
    )
    parser.add_argument(
        "--exam", default="", metavar="NAME", help="these are notebooks of the exam of that name"
    )
    parser.add_argument("--no-run", action="store_true", help="only judge the solutions; execute no notebook")
    parser.add_argument(
        "--wall", type=number(0, above=True), default=300, metavar="S",
        help="how long a notebook, or a check, may run (%(default)s)",
    )
    parser.add_argument(
        "--memory", type=number(0, 1_024, above=True), default=2, metavar="GIB",
        help="what it may fill (%(default)s)",
    )
    unconfined = "mark where nothing can be confined: students' code can then do whatever you can"
    parser.add_argument("--unconfined", action="store_true", help=unconfined)
    add_root(parser)
    return parser
