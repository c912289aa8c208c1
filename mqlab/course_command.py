"""`mqlab course key | release`: what a course needs before its first hour."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one of the commands."""
    options = _parser().parse_args(argv)
    from mqlab.grading.release import make_key, release, students_in
    from mqlab.run_labs import select_labs

    if options.what == "key":
        make_key(options.file)
        print(f"{options.file}: keep it where no student reads it; the hidden seeds come from it")
        return 0
    students = students_in(options.students) if options.students else []
    labs = select_labs(options.root / "labs", options.lab)
    count = release(labs, options.directory, students, exam=options.exam)
    whose = f" for {len(students)} students" if students else ""
    print(f"{count} notebooks{whose} in {options.directory}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mqlab course", description="Hand out a course.")
    commands = parser.add_subparsers(dest="what", required=True, metavar="COMMAND")
    key = commands.add_parser("key", help="make the course's secret key")
    key.add_argument("file", type=Path)
    hand_out = commands.add_parser("release", help="write a copy of the labs for each student")
    hand_out.add_argument("directory", type=Path)
    hand_out.add_argument("--students", type=Path, metavar="ROSTER", help="a CSV file with a column `id`")
    hand_out.add_argument("--lab", action="append", default=[], metavar="NAME", help="only this lab: 05 (repeatable)")
    hand_out.add_argument("--exam", action="store_true", help="without hints")
    hand_out.add_argument("--root", type=Path, default=Path(), help="the clone's root (default: here)")
    return parser
