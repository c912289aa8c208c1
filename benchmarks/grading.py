"""Marking a class: 200 notebooks of two labs (150 honest, 25 wrong or blank, 25 hostile) on two cores.

The marker is killed in the middle and started again. The table of the hostile ones goes to out/hostile.md.
"""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copy, copytree
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import psutil

from benchmarks.harness import Figure, figure, shown
from benchmarks.hostile import CELLS, FILES, Notebook
from benchmarks.spark_data import Wanted
from mqlab.check import find_check
from mqlab.grading.marking import RESULT, read_result
from mqlab.grading.release import make_key, release
from mqlab.grading.submission import exercises_of
from mqlab.labs.build import read_lab
from mqlab.labs.reference import reference_answers
from mqlab.labs.run_labs import run_lab
from mqlab.labs.source import LabSource

ROOT = Path(__file__).parents[1]
LABS = ("02_store", "12_check_points")
JOBS = 2
HONEST, WRONG = 150, 25
HOSTILE = [*CELLS, *FILES]
LIMITS = ("--wall", "90", "--memory", "1", "--jobs", str(JOBS))
AT_MOST_S = 25 * 60
AT_MOST_MIB = 4096
SEEDS = range(1, 71)
"""As many as a check is judged with."""
_LOOK_S = 0.2
SMALL = ("honest-000", "honest-001", "honest-002", "wrong-000", "wrong-001", "wrong-002", "no-JSON", "a-link")
"""Those who are marked twice more, with and without kills, and compared to the byte."""


class Marking(NamedTuple):
    """One or more runs of `mqlab grade`, until all was marked."""

    seconds: float
    peak_mib: float
    """The most memory that the marker and all that it has started held at once; shared pages count for each."""
    kills: int


def make_class(place: Path, labs: dict[str, LabSource]) -> None:
    """What 200 students hand in, to PLACE/in/STUDENT/LAB.ipynb, and the key of the course."""
    make_key(place / "key")
    release([ROOT / "labs" / f"{name}.ipynb" for name in LABS], place / "out")
    given = {name: (place / "out" / f"{name}.ipynb").read_text(encoding="utf-8") for name in LABS}
    ids = [f"honest-{n:03}" for n in range(HONEST)] + [f"wrong-{n:03}" for n in range(WRONG)]
    for number, student in enumerate([*ids, *(name.replace(" ", "-") for name in HOSTILE)]):
        name = LABS[number % len(LABS)]
        path = place / "in" / student / f"{name}.ipynb"
        path.parent.mkdir(parents=True)
        notebook = json.loads(given[name].replace('student_id = \\"\\"', f'student_id = \\"{student}\\"'))
        cells = _solution(labs[name])
        last = exercises_of(labs[name])[-1]
        if number < HONEST:
            _write(notebook, cells, path)
        elif number < len(ids):
            _write(notebook, _wrong(number, cells), path)
        else:
            attack = HOSTILE[number - len(ids)]
            if attack in FILES:
                FILES[attack](notebook, path)
            else:
                function = labs[name].tagged("exercise")[-1].definitions[-1]
                _write(notebook, {last: CELLS[attack].format(name=function)}, path)


def _solution(lab: LabSource) -> dict[str, str]:
    return dict(zip(exercises_of(lab), (cell.source for cell in lab.tagged("exercise")), strict=True))


def _wrong(number: int, cells: dict[str, str]) -> dict[str, str]:
    """In turns: nothing is solved, the first two are, or each function gives a wrong answer."""
    if number % 3 == 0:
        return {}
    if number % 3 == 1:
        return dict(list(cells.items())[:2])
    return {name: f"{source}\n{_last_name(source)} = lambda *a: None" for name, source in cells.items()}


def _last_name(source: str) -> str:
    return next(
        line.split()[1].partition("(")[0]
        for line in reversed(source.splitlines())
        if line.startswith(("def ", "class "))
    )


def _write(notebook: Notebook, cells: dict[str, str], path: Path) -> None:
    for cell in notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        cell["source"] = cells.get(name, cell["source"])
    path.write_text(json.dumps(notebook), encoding="utf-8")


def mark(place: Path, submissions: str, out: str, kill_at: tuple[int, ...] = ()) -> Marking:
    """Mark what is in PLACE/SUBMISSIONS; when so many results are there, SIGKILL hits the marker."""
    command = [sys.executable, "-m", "mqlab", "grade", submissions, "--key", "key", "--out", out]
    began, peak, kills = time.monotonic(), 0, 0
    for stop_at in [*kill_at, None]:
        with (place / f"{out}.log").open("ab") as log:
            marker = subprocess.Popen([*command, "--root", str(ROOT), *LIMITS], cwd=place, stdout=log, stderr=log)
        while marker.poll() is None:
            peak = max(peak, _held(marker.pid))
            if stop_at is not None and len(list((place / out).glob(f"*/*/{RESULT}"))) >= stop_at:
                marker.send_signal(signal.SIGKILL)
                kills += 1
            try:
                marker.wait(_LOOK_S)
            except subprocess.TimeoutExpired:
                continue
    return Marking(time.monotonic() - began, peak / 2**20, kills)


def _held(pid: int) -> int:
    held = 0
    try:
        for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
            try:
                held += process.memory_info().rss
            except psutil.Error:
                continue
    except psutil.Error:
        return held
    return held


def bare(name: str, lab: LabSource, place: Path) -> float:
    """Seconds of the same without a marker: the notebook is run, and the checks are played in one process."""
    path = place / "in" / f"honest-00{LABS.index(name)}" / f"{name}.ipynb"
    answers = reference_answers(lab)
    began = time.monotonic()
    run_lab(path, place / "bare")
    for check, functions in answers.items():
        assert find_check(check).play(*functions, seeds=SEEDS).passed
    return time.monotonic() - began


def hostile_table(results: dict[str, dict[str, Any]]) -> str:
    """What each attack got, why, and how long it took, as a table of Markdown."""
    lines = ["| notebook | points | the last exercise | how its run ended | s |", "|---|---|---|---|---|"]
    for attack in HOSTILE:
        result = results[attack.replace(" ", "-")]
        reason = result["unreadable"] or result["marks"][-1]["reason"]
        run = result["run"]["verdict"] if result["run"] else "not run"
        row = (attack, f"{result['points']:g} of {result['most']}", reason, run, f"{result['seconds']:.0f}")
        lines.append("| " + " | ".join(" ".join(cell.split()).replace("|", "/")[:160] for cell in row) + " |")
    return "\n".join(lines) + "\n"


def marking(_wanted: Wanted) -> Iterator[Figure]:
    """Total time, time each, memory, what the hostile ones got, and what a kill costs."""
    labs = {name: read_lab(ROOT / "labs" / "sources" / f"{name}.py") for name in LABS}
    with TemporaryDirectory(prefix="mqlab-bench-grade-") as directory:
        place = Path(directory)
        make_class(place, labs)
        for student in SMALL:
            copytree(place / "in" / student, place / "few" / student, symlinks=True)
        mark(place, "few", "whole")
        # When they were first seen is no matter of marking: the second marking knows it from the first.
        (place / "killed").mkdir()
        copy(place / "whole" / "arrivals.csv", place / "killed")
        killed = mark(place, "few", "killed", (1, 4, 6))
        yield figure(f"{len(SMALL)} marked, {killed.kills} kills: other bytes", _differ(place), "files", aim=0,
                     better="lower")  # fmt: skip
        told = mark(place, "in", "marks", (100,))
        results = {
            path.parents[1].name: read_result(path.parent) or {} for path in (place / "marks").glob(f"*/*/{RESULT}")
        }
        rows = list(csv.DictReader((place / "marks" / "gradebook.csv").open(encoding="utf-8")))
        count = HONEST + WRONG + len(HOSTILE)
        yield figure(f"{count} notebooks, killed once: marks lost", count - len(rows), "marks", aim=0, better="lower")
        yield figure(f"{count} notebooks on {JOBS} cores", told.seconds, "s", versus=AT_MOST_S, aim=1, better="lower")
        yield figure("the marker and all under it: peak memory", told.peak_mib, "MiB", versus=AT_MOST_MIB, aim=1,
                     better="lower")  # fmt: skip
        yield from _each(results, place, labs)
        table = hostile_table(results)
    out = Path("out")
    out.mkdir(exist_ok=True)
    (out / "hostile.md").write_text(table, encoding="utf-8")
    print(table, file=sys.stderr)


def _differ(place: Path) -> int:
    """How many files of the gradebook have other bytes after kills."""
    names = ("gradebook.csv", "gradebook.parquet", "nbgrader.csv", "otter.csv")
    return sum((place / "whole" / name).read_bytes() != (place / "killed" / name).read_bytes() for name in names)


def _each(results: dict[str, dict[str, Any]], place: Path, labs: dict[str, LabSource]) -> Iterator[Figure]:
    kinds: dict[str, Callable[[str], bool]] = {
        "honest": lambda student: student.startswith("honest-"),
        "wrong or blank": lambda student: student.startswith("wrong-"),
        "hostile": lambda student: not student.startswith(("honest-", "wrong-")),
    }
    for kind, belongs in kinds.items():
        seconds = [result["seconds"] for student, result in results.items() if belongs(student)]
        yield shown(f"{kind}: one notebook, median", median(seconds), "s")
        yield shown(f"{kind}: one notebook, longest", max(seconds), "s")
    honest = [result for student, result in results.items() if kinds["honest"](student)]
    short = sum(result["points"] < result["most"] for result in honest)
    yield figure("honest ones without all points", short, "notebooks", aim=0, better="lower")
    unearned = sum(
        result["marks"][-1]["points"] == result["marks"][-1]["most"]
        for student, result in results.items()
        if kinds["hostile"](student) and result["marks"]
    )
    yield figure("hostile ones with a point for nothing", unearned, "notebooks", aim=0, better="lower")
    for name in LABS:
        taken = [result["seconds"] for result in honest if result["lab"] == name]
        yield figure(f"marking {name} / run and checks without a marker", median(taken), "s",
                     versus=bare(name, labs[name], place), aim=2, better="lower")  # fmt: skip


if __name__ == "__main__":
    for each in marking(Wanted()):
        print(each)
