"""What a class is given: a copy of the labs for each student, with the id in its parameters cell."""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from shutil import copyfile
from typing import Any, NamedTuple

from mqlab.check.hand_in import SETTINGS, read_settings
from mqlab.errors import LearnerError
from mqlab.labs.notebook import HAND_IN
from mqlab.progress import counted

KEY_BYTES = 32
_SEED = re.compile(r"(\bseed_for\(student_id, \"\d\d\")\)")


def make_key(path: Path) -> None:
    """Write a new course key, which only its owner can read. LearnerError when a file is there."""
    try:
        with path.open("x", encoding="ascii") as sink:
            path.chmod(0o600)
            sink.write(secrets.token_hex(KEY_BYTES) + "\n")
    except FileExistsError:
        raise LearnerError(
            f"{path} is there already", "marks depend on it: keep it, or give the new key another name"
        ) from None


class Exam(NamedTuple):
    """A release as an exam."""

    name: str
    code: str
    """What makes everybody's seeds other ones: `exam_code`."""
    released: str
    """When it was handed out, as text."""


def exam_code(key: bytes, name: str) -> str:
    """The code of the exam of that name: nobody without the course's key knows it before the exam is handed out."""
    return hmac.new(key, f"mqlab-exam/{name}".encode(), sha256).hexdigest()[:16]


def release(labs: Iterable[Path], out: Path, students: Sequence[str] = (), *, exam: Exam | None = None,
            hand_in: Path | None = None) -> int:  # fmt: skip
    """Write the labs for each student into OUT/STUDENT/, or once into OUT/ when nobody is named; how many notebooks.

    A notebook that is there is not written over: somebody may have worked in it. An exam has no hints, other seeds, and
    keeps the truths for the report. `hand_in` is a file of settings that each gets beside the notebooks.
    LearnerError before anything is written.
    """
    notebooks = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in labs}
    if not notebooks:
        raise LearnerError("there is no lab to hand out", "name labs that there are, or build them: make labs")
    targets = {student: out / student for student in students} or {"": out}
    for place in targets.values():
        for name in notebooks:
            if (place / name).exists():
                raise LearnerError(f"{place / name} is there already", "give another directory, or take it away")
    if hand_in is not None:
        if not hand_in.is_file():
            raise LearnerError(f"there is no file {hand_in}", "docs/grading.md says what stands in it")
        read_settings(hand_in)
    for student, place in counted("students", targets.items(), len(targets)):
        place.mkdir(parents=True, exist_ok=True)
        if hand_in is not None:
            copyfile(hand_in, place / SETTINGS)
        for name, notebook in notebooks.items():
            text = json.dumps(_for(student, notebook, exam), indent=1, ensure_ascii=False) + "\n"
            (place / name).write_text(text, encoding="utf-8")
    return len(targets) * len(notebooks)


def _for(student: str, notebook: dict[str, Any], exam: Exam | None) -> dict[str, Any]:
    """A copy without outputs, with the id in the parameters cell."""
    cells = []
    for cell in notebook["cells"]:
        tags = cell["metadata"].get("tags", ())
        # An exam is handed in as its notebook, in which its name and its times stand.
        if exam and ("hints" in tags or cell.get("id", "").endswith(HAND_IN)):
            continue
        copied = dict(cell)
        if cell["cell_type"] == "code":
            copied |= {"outputs": [], "execution_count": None}
            if exam:
                copied["source"] = _SEED.sub(rf'\1, exam="{exam.code}")', "".join(cell["source"]))
        if "parameters" in tags:
            copied["source"] = with_id("".join(cell["source"]), student)
        cells.append(copied)
    ours = {**notebook["metadata"].get("mqlab", {}), **({"student": student} if student else {})}
    if exam:
        cells.insert(_behind_the_extension(cells), _begin(exam))
        ours["exam"] = exam._asdict()
    return {**notebook, "metadata": {**notebook["metadata"], "mqlab": ours}, "cells": cells}


def _behind_the_extension(cells: Sequence[dict[str, Any]]) -> int:
    """The place behind the first code cell, which loads the extension."""
    return 1 + next(at for at, cell in enumerate(cells) if cell["cell_type"] == "code")


def _begin(exam: Exam) -> dict[str, Any]:
    source = f"from mqlab.check import begin_exam\n\nbegin_exam({exam.name!r}, released={exam.released!r})"
    made = {"cell_type": "code", "metadata": {"deletable": False, "editable": False}, "id": "begin-exam"}
    return {**made, "source": source, "execution_count": None, "outputs": []}


def with_id(source: str, student: str) -> str:
    """The text of a parameters cell with that id."""
    lines = [f"student_id = {student!r}" if line.startswith("student_id =") else line for line in source.splitlines()]
    return "\n".join(lines)
