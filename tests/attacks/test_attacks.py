"""A class of hostile students is marked by the marker itself: nobody earns anything, nothing outside has changed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest

from mqlab.grading.confine import Limits
from mqlab.grading.course import HandedIn, Settings, handed_in, mark_all
from mqlab.grading.release import make_key
from mqlab.grading.sight import PLACE
from mqlab.labs.build import read_lab
from mqlab.labs.notebook import make_notebook
from tests.attacks import runs, solutions
from tests.attacks.machine import CLONE, Outside, processes, shared_memory, watched

LAB = "00_tour"
EXERCISE = "same_message"
HONEST = "def same_message(first, second): return first[1:] == second[1:]"
WALL_S, RUN_WALL_S = 10, 30
MEMORY = 512 * 2**20
SLACK_S = 30
"""Beside its walls: to start processes on a busy machine, and to end them."""
MOST_OF_THE_JUDGE = 900 * 2**20

IN_SOLUTIONS = {
    **{f"reaches: {name}": cell for name, cell in solutions.REACHES.items()},
    **{f"earns: {name}": cell for name, (cell, _) in solutions.EARNS.items()},
}
IN_RUNS = {f"run: {name}": cell for name, (cell, _) in runs.RUNS.items()}
IN_FILES = {f"file: {name}": make for name, (make, _) in runs.FILES.items()}


class Marked(NamedTuple):
    """What came of the class."""

    results: dict[str, dict[str, Any]]
    seconds: dict[str, float]
    before: list[Any]
    after: list[Any]
    largest_judge: int


def _exercise(notebook: dict[str, Any]) -> dict[str, Any]:
    cells = notebook["cells"]
    return next(cell for cell in cells if f"def {EXERCISE}" in cell["source"] and "nbgrader" in cell["metadata"])


def _write(path: Path, cells: list[dict[str, Any]], notebook: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**notebook, "cells": cells}), encoding="utf-8")


def _code(source: str) -> dict[str, Any]:
    cell = {"cell_type": "code", "id": "hostile", "metadata": {}, "source": source}
    return {**cell, "outputs": [], "execution_count": None}


def _student(number: int) -> str:
    return f"student-{number:03}"


@pytest.fixture(scope="module")
def marked() -> Iterator[Marked]:
    """The class, marked: solutions are judged without a run, notebooks that attack while they run are run."""
    with TemporaryDirectory(prefix="a", dir=_short()) as name, pytest.MonkeyPatch.context() as patch:
        place = Path(name)
        temporary = place / "tmp"
        temporary.mkdir()
        patch.setenv("TMPDIR", str(temporary))
        patch.setattr("tempfile.tempdir", None)
        patch.setenv("PYTHONDONTWRITEBYTECODE", "1")
        make_key(place / "key")
        notebook = make_notebook(read_lab(CLONE / "labs" / "sources" / f"{LAB}.py"), "student")
        exercise = _exercise(notebook)
        with Outside(place) as outside:
            for number, text in enumerate(IN_SOLUTIONS.values()):
                path = place / "solutions" / _student(number) / f"{LAB}.ipynb"
                tries = solutions.TRIES if text in solutions.REACHES.values() else ""
                _write(path, [{**exercise, "source": _aimed(tries + text, outside, path, place)}], notebook)
            for number, text in enumerate(IN_RUNS.values()):
                path = place / "runs" / _student(number) / f"{LAB}.ipynb"
                _write(path, [_code(_aimed(text, outside, path, place)), {**exercise, "source": HONEST}], notebook)
            for number, make in enumerate(IN_FILES.values()):
                path = place / "files" / _student(number) / f"{LAB}.ipynb"
                path.parent.mkdir(parents=True)
                make(path)
            handed = [place / kind for kind in ("solutions", "runs", "files", "key")]
            before = [watched(outside, *handed), shared_memory(), outside.connected, processes(), os.listdir(temporary)]
            results: dict[str, dict[str, Any]] = {}
            seconds: dict[str, float] = {}
            largest = 0
            for kind, names in (("solutions", IN_SOLUTIONS), ("runs", IN_RUNS), ("files", IN_FILES)):
                limits = Limits(RUN_WALL_S if kind == "runs" else WALL_S, memory_bytes=MEMORY, processes=60)
                marks, sources = place / f"marks-{kind}", CLONE / "labs" / "sources"
                settings = Settings(place / "key", marks, sources, (LAB,), 3, kind == "runs", 2, limits)
                work, _ = handed_in(place / kind, settings)
                began = time.monotonic()

                def told(each: HandedIn, result: dict[str, Any], known: bool, began: float = began) -> dict[str, Any]:
                    seconds[f"{each.notebook}"] = result.get("seconds", time.monotonic() - began)
                    return result

                found = mark_all(work, settings, told)
                by_student = {each.student: result for each, result in zip(work, found, strict=True)}
                for number, name in enumerate(names):
                    if _student(number) in by_student:
                        results[name] = by_student[_student(number)]
            largest = _largest_child()
            after = [watched(outside, *handed), shared_memory(), outside.connected, processes(), os.listdir(temporary)]
        yield Marked(results, seconds, before, after, largest)


def _short() -> str:
    """A directory in the clone, where a socket's name is short enough."""
    place = CLONE / "out"
    place.mkdir(exist_ok=True)
    return str(place)


def _largest_child() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def _aimed(text: str, outside: Outside, notebook: Path, place: Path) -> str:
    words = {
        "$VICTIM": outside.victim, "$SOCKET": outside.socket, "$KEY": place / "key", "$NOTEBOOK": notebook,
        "$MQLAB": CLONE / "mqlab", "$CLONE": CLONE, "$MARKER": os.getpid(), "$TMP": PLACE,
    }  # fmt: skip
    for word, meant in words.items():
        text = text.replace(word, str(meant))
    return text


def _reason(result: dict[str, Any]) -> str:
    return next((mark["reason"] for mark in result["marks"] if mark["functions"] == [EXERCISE]), result["unreadable"])


@pytest.mark.parametrize("name", solutions.REACHES)
def test_what_reaches_outside_reaches_nothing(name: str, marked: Marked) -> None:
    result = marked.results[f"reaches: {name}"]
    assert "yours gives []" in _reason(result)
    assert (result["points"], result["most"]) == (0, 5)


@pytest.mark.parametrize("name", solutions.EARNS)
def test_what_gives_no_right_answer_earns_nothing(name: str, marked: Marked) -> None:
    result = marked.results[f"earns: {name}"]
    assert (result["points"], result["most"]) == (0, 5)
    assert solutions.EARNS[name][1] in _reason(result)
    assert len(result["marks"]) == 4
    assert not result.get("failed")
    assert result["seconds"] < WALL_S + SLACK_S


@pytest.mark.parametrize("name", runs.RUNS)
def test_a_hostile_run_is_told_and_costs_no_points(name: str, marked: Marked) -> None:
    result = marked.results[f"run: {name}"]
    assert (result["points"], result["most"]) == (1, 5)
    assert runs.RUNS[name][1] in result["run"]["verdict"]
    assert result["run"]["verdict"].isprintable()
    assert result["run"]["seconds"] < RUN_WALL_S + SLACK_S
    assert not result.get("failed")


@pytest.mark.parametrize("name", runs.FILES)
def test_what_is_no_notebook_is_told(name: str, marked: Marked) -> None:
    if name == "directory":
        assert "file: directory" not in marked.results
        return
    result = marked.results[f"file: {name}"]
    assert (result["points"], result["most"]) == (0, 5)
    assert runs.FILES[name][1] in result["unreadable"]
    assert len(result["marks"]) == 4
    assert not result.get("failed")


def test_after_all_attacks_nothing_outside_has_changed(marked: Marked) -> None:
    files, memory, connected, running, temporary = marked.before
    assert {path for path in {**files, **marked.after[0]} if files.get(path) != marked.after[0].get(path)} == set()
    assert marked.after[1] == memory
    assert marked.after[2] == connected == 0
    assert marked.after[3] == running
    assert marked.after[4] == temporary == []


def test_no_judge_became_large(marked: Marked) -> None:
    assert marked.largest_judge < MOST_OF_THE_JUDGE
