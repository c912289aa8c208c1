"""`mqlab course key | release | verify`: what a course needs before its first hour, and after its last."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

from mqlab.errors import LearnerError

if TYPE_CHECKING:
    from mqlab.grading.release import Exam


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one of the commands."""
    options = _parser().parse_args(argv)
    if options.what == "verify":
        return _verify(options.line, options.key)
    from mqlab.grading.release import make_key, release, students_in
    from mqlab.run_labs import select_labs

    if options.what == "key":
        make_key(options.file)
        print(f"{options.file}: keep it where no student reads it; the hidden seeds come from it")
        return 0
    students = students_in(options.students) if options.students else []
    labs = select_labs(options.root / "labs", options.lab)
    count = release(labs, options.directory, students, exam=_exam(options.exam, options.key))
    whose = f" for {len(students)} students" if students else ""
    print(f"{count} notebooks{whose} in {options.directory}")
    return 0


def _exam(name: str, key: Path | None) -> Exam | None:
    from mqlab.check.exam import MINUTE
    from mqlab.grading.marking import read_key
    from mqlab.grading.release import Exam, exam_code

    if not name:
        return None
    if key is None:
        raise LearnerError("an exam's seeds come from the course's key", "add --key FILE, with which it will be marked")
    return Exam(name, exam_code(read_key(str(key)), name), datetime.now(UTC).strftime(MINUTE))


def _verify(line: str, key: Path) -> int:
    """0 when the marker has signed this line with the key, 1 when not."""
    from mqlab.grading.marking import read_key
    from mqlab.grading.signing import verified

    with suppress(OSError, UnicodeDecodeError):
        line = unescape(Path(line).read_text(encoding="utf-8"))
    said = verified(read_key(str(key)), line)
    if said is None:
        print("not signed with this key, or changed since")
        return 1
    exam = f", exam {said['exam']}" if said["exam"] else ""
    print(f"signed: {said['student']} has {said['points']} of {said['most']} points in {said['lab']}{exam}")
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
    exam = "as an exam: no hints, other seeds, truths in the report (needs --key)"
    hand_out.add_argument("--exam", default="", metavar="NAME", help=exam)
    hand_out.add_argument("--key", type=Path, help="the course's key; an exam's seeds come from it")
    hand_out.add_argument("--root", type=Path, default=Path(), help="the clone's root (default: here)")
    verify = commands.add_parser("verify", help="say whether the marker has signed a line of a report")
    verify.add_argument("line", help="the line that begins with mqlab-mark, or a file with it, such as report.html")
    verify.add_argument("--key", type=Path, required=True, help="the course's key")
    return parser
