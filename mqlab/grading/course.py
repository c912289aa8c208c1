"""A whole class: finds what was handed in, marks it in parallel, and goes on where an interruption left it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

from mqlab.errors import LearnerError
from mqlab.grading.confine import Limits
from mqlab.grading.hand_in_file import says_it_is_one, signed_by
from mqlab.grading.judging import HIDDEN_SEEDS, nothing_for
from mqlab.grading.marking import RESULT, Job, checks_left, made_of, read_result
from mqlab.grading.printable import printable
from mqlab.grading.pseudonyms import Names
from mqlab.labs.build import read_lab

BESIDES_S = 300
"""A marking process that has not ended this long after its two walls, of the run and of the checks, is ended."""
_LOOK_S = 0.2


class HandedIn(NamedTuple):
    """A notebook, whose it is, and which lab it is of."""

    notebook: Path
    student: str
    source: Path


class LeftOut(NamedTuple):
    """A file that was handed in and is not marked, inside of the directory, and why."""

    file: Path
    why: str

    def __str__(self) -> str:
        return printable(f"{self.file}: {self.why}")


LINKED = "is a link to a directory, which is not followed: put the directory itself here"
NOBODYS = "lies beside the students' directories, so nobody knows whose it is"
NO_NOTEBOOK = "is no notebook (.ipynb) and no hand-in (.json)"
TOO_DEEP = "has directories so deep below it, or with so long names, that they are not looked at: move the notebook up"

GRADEBOOKS_NAME = "lies in a directory whose name the gradebook's files need: rename the directory to the student's id"
_OF_THE_GRADEBOOK = (".csv", ".parquet")


@dataclass(frozen=True, slots=True)
class Settings:
    """How a class is marked."""

    key_file: Path
    out: Path
    sources: Path
    """The directory with the labs' sources."""
    labs: Sequence[str] = ()
    """Numbers or names of the labs that are marked; none: all."""
    hidden: int = HIDDEN_SEEDS
    run: bool = True
    jobs: int = 0
    """How many at once; 0: as many as there are processors."""
    limits: Limits = field(default_factory=Limits)
    exam: str = ""
    """The exam's name; "" for labs as usual."""
    names: Names = field(default_factory=Names)
    """How students are called in what is written."""
    again: Mapping[str, int] = field(default_factory=dict)
    """What was asked to be marked again: `again.py`."""

    def place_of(self, each: HandedIn) -> Path:
        """The directory of a result."""
        return self.out / self.names.shown(each.student) / each.source.stem


def handed_in(directory: Path, settings: Settings) -> tuple[list[HandedIn], list[LeftOut]]:
    """What is to be marked in DIRECTORY/STUDENT/.../NN_lab.ipynb, and what there is besides, with the reason.

    What `hand_in` has made counts as a notebook; signed with its student's code it may lie beside the directories, too.

    A name that is a link is not followed. Of two notebooks of one lab by one student the newer one counts.
    LearnerError when there is no such directory, or no lab of a name that the settings have.
    """
    if not directory.is_dir():
        raise LearnerError(f"{directory} is no directory", "give the one with a directory for each student")
    sources = sources_in(settings.sources)
    for name in settings.labs:
        number_of(name, sources)
    wanted = {number for number, path in sources.items() if not settings.labs or _is_one_of(path, settings.labs)}
    found: dict[tuple[str, str], HandedIn] = {}
    left: list[LeftOut] = []
    for path in _files(directory):
        inside = path.relative_to(directory)
        number = path.name[:2]
        if path.is_dir():
            if path.is_symlink():
                left.append(LeftOut(inside, LINKED))
            else:
                left.append(LeftOut(Path(*inside.parts[:2]), TOO_DEEP))
        elif not (student := _whose(path, inside, settings.key_file)):
            left.append(LeftOut(inside, NOBODYS))
        elif len(inside.parts) > 1 and inside.parts[0].lower().endswith(_OF_THE_GRADEBOOK):
            left.append(LeftOut(inside, GRADEBOOKS_NAME))
        elif path.suffix != ".ipynb" and not says_it_is_one(path):
            left.append(LeftOut(inside, NO_NOTEBOOK))
        elif number not in sources:
            left.append(LeftOut(inside, "does not begin with the number of a lab, as 02_store.ipynb does: rename it"))
        elif number in wanted:
            this = HandedIn(path, student, sources[number])
            other = found.get((this.student, number))
            if other is not None:
                this, older = (this, other) if _modified(path) >= _modified(other.notebook) else (other, this)
                left.append(
                    LeftOut(older.notebook.relative_to(directory), "there is a newer one, by the files' own times")
                )
            found[this.student, number] = this
    told = [LeftOut(settings.names.told(file), why) for file, why in _at_most(_TOLD_OF_EACH, left)]
    if settings.names.hidden:
        told.sort()  # the order of ids would say whose each pseudonym is
    return sorted(found.values(), key=lambda each: (settings.names.shown(each.student), each.source.stem)), told


def _whose(path: Path, inside: Path, key_file: Path) -> str:
    """Whose a file is: its directory says so, or the code with which it was signed; "" where nobody knows."""
    if len(inside.parts) > 1:
        return inside.parts[0]
    # Whoever only compares or looks has no key.
    return signed_by(path, key_file.read_bytes().strip()) if key_file.is_file() and says_it_is_one(path) else ""


def _at_most(most: int, left: Sequence[LeftOut]) -> list[LeftOut]:
    """So many of each student, and how many more there are: nobody shall bury what is told of others."""
    of_each: dict[str, list[LeftOut]] = {}
    for each in left:
        of_each.setdefault(each.file.parts[0] if len(each.file.parts) > 1 else "", []).append(each)
    told: list[LeftOut] = []
    for student, theirs in of_each.items():
        told += theirs[:most]
        if len(theirs) > most:
            told.append(LeftOut(Path(student, "..."), f"{len(theirs) - most:,} more are not marked"))
    return told


def sources_in(directory: Path) -> dict[str, Path]:
    """The number of each lab and its source. LearnerError when there is none."""
    sources = {path.stem[:2]: path for path in sorted(directory.glob("*.py"))}
    if not sources:
        raise LearnerError(f"there is no lab source in {directory}", "run this in a clone, or give --root")
    return sources


def number_of(lab: str, sources: Mapping[str, Path]) -> str:
    """The number of a lab that somebody calls 05, 05_push_is_pull or 05_push_is_pull.ipynb. LearnerError if none is."""
    for number, path in sources.items():
        if _is_one_of(path, (lab.removesuffix(".ipynb"),)):
            return number
    labs = ", ".join(path.stem for path in sources.values())
    raise LearnerError(f"there is no lab {lab!r}", f"labs that there are: {labs}")


def nothing_in(directory: Path) -> LearnerError:
    """What is said where there is no notebook at all, so that nobody takes it for a class that was marked."""
    return LearnerError(
        f"there is no notebook of a lab that is asked for in {directory}",
        f"put what was handed in into {directory / 'ID'}, with the student's id as ID; --lab limits to a lab",
    )


_TOLD_OF_EACH = 20
_DEEPEST, _LONGEST = 20, 3_000
"""Directories below the first one, and bytes of a path: what is handed in may be deeper than the system can name."""


def _files(directory: Path) -> Iterator[Path]:
    for place, directories, names in os.walk(directory, followlinks=False):
        deep = len(Path(place).relative_to(directory).parts) >= _DEEPEST
        if deep or len(os.fsencode(os.path.abspath(place))) > _LONGEST:
            directories.clear()
            yield Path(place)
            continue
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        # Links to directories are not followed, and are told: somebody may have meant them.
        links = [name for name in directories if (Path(place) / name).is_symlink()]
        yield from (Path(place) / name for name in sorted([*links, *names]) if not name.startswith("."))


def _modified(path: Path) -> float:
    return path.lstat().st_mtime


def _is_one_of(path: Path, labs: Sequence[str]) -> bool:
    return path.stem in labs or path.stem[:2] in labs


Told = Callable[[HandedIn, dict[str, Any], bool], dict[str, Any]]
"""Told of each result: whose, what, and whether it was there already. It gives the result that counts."""


def mark_all(work: Sequence[HandedIn], settings: Settings, told: Told) -> list[dict[str, Any]]:
    """Mark all of it, several at once; results in the order of the work. What is marked already is not marked again."""
    results: dict[HandedIn, dict[str, Any]] = {}
    jobs = settings.jobs or os.cpu_count() or 1
    stopped = Event()
    with ThreadPoolExecutor(jobs) as pool:
        begun = {}
        for each in work:
            job = job_of(each, settings)
            known = read_result(Path(job.out))
            left = checks_left(known, made_of(job))
            if known is not None and left == []:
                results[each] = told(each, known, True)
            else:
                begun[pool.submit(_mark_in_a_process, replace(job, only=left or ()), stopped)] = each
        try:
            for done in as_completed(begun):
                each = begun[done]
                results[each] = told(each, done.result(), False)
        except BaseException:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [results[each] for each in work]


def job_of(each: HandedIn, settings: Settings) -> Job:
    """The job of marking one notebook."""
    return Job(
        str(each.notebook.absolute()),
        each.student,
        str(each.source.absolute()),
        str(settings.place_of(each).absolute()),
        str(settings.key_file.absolute()),
        settings.hidden,
        settings.run,
        settings.limits,
        settings.exam,
        settings.names.shown(each.student) if settings.names.hidden else "",
        settings.names.words_of(each.student),
        {name: count for name, count in settings.again.items() if name[:2] == each.source.stem[:2]},
    )


def _mark_in_a_process(job: Job, stopped: Event) -> dict[str, Any]:
    """Its result; what it was doing is given up once `stopped` is set."""
    out = Path(job.out)
    out.mkdir(parents=True, exist_ok=True)
    if not job.only:
        (out / RESULT).unlink(missing_ok=True)
    with (out / "marker.log").open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "mqlab.grading.marking", job.as_text()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            end_s = time.monotonic() + 2 * job.limits.wall_s + BESIDES_S
            while child.poll() is None and not stopped.is_set() and time.monotonic() < end_s:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(_LOOK_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    result = read_result(out)
    if result is not None and (not job.only or result["made_of"].get("again") == job.again):
        (out / "marker.log").unlink()
        return result
    told = f"the marker could not mark it (status {child.returncode}), and tries again when the same command is given"
    told += f"; see {out / 'marker.log'}"
    most = sum(mark.most for mark in nothing_for(read_lab(Path(job.source)), told))
    return {**nothing(job.shown or job.student, Path(job.source).stem, most, told), "failed": True}


NOT_HANDED_IN = "nothing was handed in"


def missing(
    results: Sequence[Mapping[str, Any]], students: Sequence[str], left: Sequence[LeftOut] = ()
) -> list[dict[str, Any]]:
    """For each student who has handed in nothing of a lab that others have handed in: a result without points.

    Whose files were all left out is told so.
    """
    most = {result["lab"]: 0 for result in results}
    for result in results:
        most[result["lab"]] = max(most[result["lab"]], result["most"])
    there = {(result["student"].lower(), result["lab"]) for result in results}
    return [
        nothing(student, lab, most[lab], _why_nothing(student, left))
        for student in students
        for lab in most
        if (student.lower(), lab) not in there
    ]


def _why_nothing(student: str, left: Sequence[LeftOut]) -> str:
    files = [each.file for each in left if len(each.file.parts) > 1]
    own = [str(file) for file in files if file.parts[0].lower() == student.lower()]
    return f"{NOT_HANDED_IN} that can be marked; left out: {', '.join(own)}" if own else NOT_HANDED_IN


def strangers(results: Sequence[Mapping[str, Any]], students: Sequence[str]) -> list[str]:
    """The directories' names that are nobody's id in the roster; none when there is no roster."""
    known = {student.lower() for student in students}
    return sorted({result["student"] for result in results if known and result["student"].lower() not in known})


def nothing(student: str, lab: str, most: int, reason: str) -> dict[str, Any]:
    """A result without points, for the gradebook alone: there was nothing to judge, for that reason."""
    return {
        "student": student,
        "lab": lab,
        "points": 0,
        "most": most,
        "marks": [],
        "remarks": [],
        "bets": [],
        "hints": {},
        "certificate": {"line": "", "holds": None, "why": ""},
        "exam": {},
        "signed": "",
        "run": None,
        "unreadable": reason,
    }
