"""`mqlab course key | release | codes | slides | bets | compare | look | set-mark | report | verify`."""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from mqlab.commands.marks import add_marks_commands, look_at, set_mark
from mqlab.commands.numbers import share, whole
from mqlab.errors import LearnerError, MissingExtraError
from mqlab.grading.printable import printable
from mqlab.material import add_root
from mqlab.progress import bar, counted

if TYPE_CHECKING:
    from mqlab.grading.release import Exam


WATCH_EVERY_S = 2.0
_CLEAR = "\x1b[2J\x1b[H"
_WATCHING = "(looks again every two seconds; Ctrl-C ends it)"


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one of the commands."""
    options = _parser().parse_args(argv)
    if options.what == "verify":
        return _verify(options.line, options.key)
    if options.what == "compare":
        return _compare(options)
    if options.what == "bets":
        return _bets(options)
    if options.what == "report":
        return _report(options.marks, options.out)
    if options.what == "slides":
        return _slides(options)
    if options.what == "look":
        return look_at(options)
    if options.what == "set-mark":
        return set_mark(options)
    from mqlab.grading.release import make_key, release
    from mqlab.grading.roster import students_in
    from mqlab.labs.run_labs import select_labs

    if options.what == "key":
        make_key(options.file)
        print(f"{options.file}: keep it where no student reads it; the hidden seeds come from it")
        return 0
    students = students_in(options.students) if options.students else []
    if options.what == "codes":
        return _codes(students, options.key)
    labs = select_labs(options.root / "labs", options.lab)
    count = release(labs, options.directory, students, exam=_exam(options.exam, options.key),
                    hand_in=options.hand_in)  # fmt: skip
    whose = f" for {len(students)} students" if students else ""
    print(f"{count} notebook{'' if count == 1 else 's'}{whose} in {options.directory}")
    return 0


def _codes(students: Sequence[str], key: Path) -> int:
    from mqlab.grading.hand_in_file import code_of
    from mqlab.grading.marking import read_key

    secret, lines = read_key(str(key)), csv.writer(sys.stdout)
    lines.writerow(("id", "code"))
    lines.writerows((student, code_of(secret, student)) for student in students)
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


def _slides(options: argparse.Namespace) -> int:
    from mqlab.labs.project import Project
    from mqlab.labs.slides_page import needs_spark, write_slides

    project = Project(options.root)
    sources = [source for source in project.select(options.labs) if options.labs or not needs_spark(source)]
    with bar("labs", len(sources)) as shown:
        for done, source in enumerate(sources):
            shown.to(done, source.stem)
            written = write_slides(project, source, options.out)
            with shown.aside():
                print(written, flush=True)
    return 0


def _compare(options: argparse.Namespace) -> int:
    """0 when nobody is alike, 1 when somebody is."""
    from mqlab.grading.course import Settings, handed_in, nothing_in
    from mqlab.grading.likeness import compare
    from mqlab.grading.likeness_page import write_page
    from mqlab.grading.submission import Submission, read_submission
    from mqlab.labs.build import read_lab
    from mqlab.labs.source import LabSource

    work, left = handed_in(
        options.submissions, Settings(Path(), Path(), options.root / "labs" / "sources", tuple(options.lab))
    )
    told = list(map(str, left))
    if not work:
        _tell_left_out(told)
        raise nothing_in(options.submissions)
    read: dict[Path, tuple[LabSource, list[Submission]]] = {}
    for each in counted("notebooks", work, len(work)):
        if each.source not in read:
            read[each.source] = read_lab(each.source), []
        lab, submissions = read[each.source]
        submissions.append(read_submission(each.notebook, each.student, lab))
        if submissions[-1].unreadable:
            told.append(f"{each.student}/{each.notebook.name}: {submissions[-1].unreadable}")
    found = compare(read.values(), least=options.least, shortest=options.shortest)
    found.left += told
    options.out.parent.mkdir(parents=True, exist_ok=True)
    write_page(found, options.out)
    _tell_left_out(found.left)
    for line in found.same:
        print(line)
    for pair in found.pairs:
        alike = ", ".join(f"{alike.exercise} {alike.likeness:.0%}" for alike in pair.exercises)
        print(printable(f"{pair.one} and {pair.other}: {alike}"))
    print(f"{found.compared} solutions compared, pairs that are alike: {len(found.pairs)}; {options.out}")
    return 1 if found.pairs or found.same else 0


def _tell_left_out(lines: Sequence[str]) -> None:
    for line in lines:
        print(printable(f"left out: {line}"))


def _bets(options: argparse.Namespace) -> int:
    from mqlab.grading.bets import BetsReader, drawn, question

    sources = options.root / "labs" / "sources"
    shown, away = "", f"{options.submissions} is not there at the moment: this waits for it"
    with suppress(KeyboardInterrupt):
        reader = BetsReader(options.submissions, question(sources, options.bet, options.lab), sources, options.hide)
        if not options.watch:
            print(drawn(reader.read()))
            return 0
        while True:
            try:
                now = drawn(reader.read())
            except (LearnerError, OSError):
                # Only what was there once comes back: a network drive that is away for a moment.
                if not shown:
                    raise
                if shown != away:
                    print(away, flush=True)
                    shown = away
                time.sleep(WATCH_EVERY_S)
                continue
            if now != shown:
                # On a terminal each histogram takes the place of the one before.
                print(f"{_CLEAR}{now}\n{_WATCHING}" if sys.stdout.isatty() else now, flush=True)
                shown = now
            time.sleep(WATCH_EVERY_S)
    return 0


def _report(marks: Path, out: Path) -> int:
    if find_spec("bokeh") is None:
        raise MissingExtraError("bokeh", "labs")
    from mqlab.grading.class_page import write_page

    print(f"{write_page(marks, out)}; {out / 'class.html'}")
    return 0


def _verify(line: str, key: Path) -> int:
    """0 when the marker has signed this line with the key, 1 when not. LearnerError where there is no such line."""
    from mqlab.grading.marking import read_key
    from mqlab.grading.signing import verified

    if "mqlab-mark" not in line:
        hint = "give the line in quotes, or the path of a report.html"
        try:
            text = unescape(Path(line).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            raise LearnerError(f"{line} is no line that begins with mqlab-mark, and no file of text", hint) from None
        if "mqlab-mark" not in text:
            raise LearnerError(f"there is no line in {line} that begins with mqlab-mark", hint)
        line = text
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
    settings = "where it is handed in: a file with a folder or a form, which each gets beside the notebooks"
    hand_out.add_argument("--hand-in", type=Path, metavar="FILE", help=settings)
    add_root(hand_out)
    codes = commands.add_parser("codes", help="print the code with which each student signs what is handed in")
    codes.add_argument("--students", type=Path, metavar="ROSTER", required=True, help="a CSV file with a column `id`")
    codes.add_argument("--key", type=Path, required=True, help="the course's key, from which the codes come")
    bets = commands.add_parser("bets", help="the histogram of a bet, from what students have handed in so far")
    bets.add_argument("submissions", type=Path, help="a directory with a directory for each student, named by the id")
    bets.add_argument("--bet", required=True, metavar="NAME", help="the bet's name, as in predict(NAME, ...)")
    bets.add_argument("--lab", default="", metavar="NAME", help="the lab that has it: 05 (if more than one has)")
    bets.add_argument("--hide", action="append", default=[], metavar="ID", help="leave this student's bet out of it")
    bets.add_argument("--watch", action="store_true", help="draw it again when something has come, until Ctrl-C")
    add_root(bets)
    alike = commands.add_parser("compare", help="say which solutions are the same but for names and layout")
    alike.add_argument("submissions", type=Path, help="a directory with a directory for each student, named by the id")
    alike.add_argument("--out", type=Path, default=Path("alike.html"), help="the page with both sides (%(default)s)")
    alike.add_argument("--lab", action="append", default=[], metavar="NAME", help="only this lab: 05 (repeatable)")
    alike.add_argument("--least", type=share, default=0.95, metavar="L", help="from so much on (%(default)s)")
    alike.add_argument("--shortest", type=whole(1), default=40, metavar="N", help="tokens of a solution (%(default)s)")
    add_root(alike)
    add_marks_commands(commands)
    report = commands.add_parser("report", help="a page about the whole class")
    report.add_argument("marks", type=Path, help="where mqlab grade has put its results")
    report.add_argument("--out", type=Path, required=True, help="the directory of the page, class.html")
    verify = commands.add_parser("verify", help="say whether the marker has signed a line of a report")
    verify.add_argument("line", help="the line that begins with mqlab-mark, or a file with it, such as report.html")
    verify.add_argument("--key", type=Path, required=True, help="the course's key")
    show = commands.add_parser("slides", help="make slides of labs: one HTML file for each, which needs no network")
    show.add_argument("labs", nargs="*", metavar="LAB", help="a lab's number or name: 06 (default: all without Spark)")
    show.add_argument("--out", type=Path, default=Path("out/slides"), metavar="DIR", help="where to (%(default)s)")
    add_root(show)
    return parser
