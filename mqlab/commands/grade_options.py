"""The options of `mqlab grade`."""

from __future__ import annotations

import argparse
from pathlib import Path

from mqlab.commands.numbers import number, whole
from mqlab.material import add_root


def parser_of_grade() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mqlab grade", description="Mark what students have handed in.")
    parser.add_argument("submissions", type=Path, help="a directory with a directory for each student, named by the id")
    parser.add_argument("--key", type=Path, required=True, help="the course's key (mqlab course key FILE makes one)")
    parser.add_argument("--out", type=Path, required=True, help="where results, reports and the gradebook go")
    parser.add_argument("--lab", action="append", default=[], metavar="NAME", help="only this lab: 05 (repeatable)")
    roster = "the class, as for mqlab course release: who has handed in nothing gets a row, too"
    parser.add_argument("--students", type=Path, metavar="ROSTER", help=roster)
    parser.add_argument(
        "--jobs", type=whole(0, 1_000), default=0, help="how many at once (default: one for each processor)"
    )
    parser.add_argument(
        "--hidden",
        type=whole(1, 10_000),
        default=20,
        metavar="N",
        help="hidden seeds of a check (%(default)s)",
    )
    again = "mark this lab (05), or this check of it alone (05/hold), again for everybody (repeatable)"
    parser.add_argument("--again", action="append", default=[], metavar="WHAT", help=again)
    parser.add_argument("--exam", default="", metavar="NAME", help="these are notebooks of the exam of that name")
    parser.add_argument("--no-run", action="store_true", help="only judge the solutions; execute no notebook")
    parser.add_argument(
        "--wall",
        type=number(0, above=True),
        default=300,
        metavar="S",
        help="how long a notebook, or a check, may run (%(default)s)",
    )
    parser.add_argument(
        "--memory",
        type=number(0, 1_024, above=True),
        default=2,
        metavar="GIB",
        help="what it may fill (%(default)s)",
    )
    _add_times(parser)
    anonymous = "show pseudonyms; OUT/names.csv, for you alone, says whose they are"
    parser.add_argument("--anonymous", action="store_true", help=anonymous)
    unconfined = "mark where nothing can be confined: students' code can then do whatever you can"
    parser.add_argument("--unconfined", action="store_true", help=unconfined)
    add_root(parser)
    return parser


def _add_times(parser: argparse.ArgumentParser) -> None:
    times = parser.add_argument_group("deadlines", "kept in OUT: they hold until another one is given")
    due = "by when these labs are due: 2026-06-01T23:59+02:00, or a CSV file with columns lab,due; none takes it away"
    times.add_argument("--due", metavar="WHEN", help=due)
    begin = "when the time began that --due ends (of an exam): the roster's time_factor multiplies what is between"
    times.add_argument("--begin", metavar="WHEN", default="", help=begin)
    arrivals = "the learning platform's list of when what came in: a CSV file with columns student,lab,arrived"
    times.add_argument("--arrivals", type=Path, metavar="FILE", help=arrivals)
    late = "what each day begun takes of the points that were reached; 0: being late is only told"
    times.add_argument("--late", type=number(0, 100), metavar="PERCENT", help=late)
    floor = "how much of them is left, however late"
    times.add_argument("--late-floor", type=number(0, 100), metavar="PERCENT", help=floor)
    times.add_argument("--grace", type=number(0, 10_080), metavar="MINUTES", help="so much later is not yet late")
    zone = "the zone of times that name none: Europe/Berlin"
    times.add_argument("--zone", metavar="NAME", help=zone)
