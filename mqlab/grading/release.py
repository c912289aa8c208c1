"""What a class is given: a copy of the labs for each student, with the id in its parameters cell."""

from __future__ import annotations

import csv
import json
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from mqlab.errors import LearnerError

KEY_BYTES = 32
_ID_COLUMNS = ("id", "student", "student_id", "username")
_FORBIDDEN = set('/\\:*?"<>|\0')


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


def students_in(roster: Path) -> list[str]:
    """The ids in a roster: a CSV file with a column `id` (or student, student_id, username), or one id on each line.

    LearnerError for an id that stands there twice, that is no name of a directory, or when there is none.
    """
    try:
        lines = roster.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LearnerError(f"{roster} can't be read: {error}", "give a CSV file in UTF-8") from None
    rows = [row for row in csv.reader(lines) if any(field.strip() for field in row)]
    head = [field.strip().lower() for field in rows[0]] if rows else []
    column = next((head.index(name) for name in _ID_COLUMNS if name in head), None)
    if column is None and len(head) > 1:
        raise LearnerError(f"{roster} has no column `id`; it has {', '.join(head)}", "name the column of the ids `id`")
    ids = [row[column or 0].strip() for row in (rows if column is None else rows[1:]) if len(row) > (column or 0)]
    _check_ids(roster, ids)
    return ids


def _check_ids(roster: Path, ids: Sequence[str]) -> None:
    if not ids:
        raise LearnerError(f"{roster} names nobody", "write an id on each line")
    seen: dict[str, str] = {}
    for student in ids:
        if not student or student.startswith(".") or set(student) & _FORBIDDEN or not student.isprintable():
            raise LearnerError(f"{student!r} can't be the name of a directory", "use letters, digits, - and _")
        if student.lower() in seen:
            raise LearnerError(f"{student!r} and {seen[student.lower()]!r} are the same id", "name everybody once")
        seen[student.lower()] = student


def release(labs: Iterable[Path], out: Path, students: Sequence[str] = (), *, exam: bool = False) -> int:
    """Write the labs for each student into OUT/STUDENT/, or once into OUT/ when nobody is named; how many notebooks.

    A notebook that is there is not written over: somebody may have worked in it. `exam` leaves the hints out.
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
    for student, place in targets.items():
        place.mkdir(parents=True, exist_ok=True)
        for name, notebook in notebooks.items():
            text = json.dumps(_for(student, notebook, exam), indent=1, ensure_ascii=False) + "\n"
            (place / name).write_text(text, encoding="utf-8")
    return len(targets) * len(notebooks)


def _for(student: str, notebook: dict[str, Any], exam: bool) -> dict[str, Any]:
    """A copy without outputs, with the id in the parameters cell."""
    cells = []
    for cell in notebook["cells"]:
        tags = cell["metadata"].get("tags", ())
        if exam and "hints" in tags:
            continue
        copied = dict(cell)
        if cell["cell_type"] == "code":
            copied |= {"outputs": [], "execution_count": None}
        if "parameters" in tags:
            copied["source"] = _with_id("".join(cell["source"]), student)
        cells.append(copied)
    return {**notebook, "cells": cells}


def _with_id(source: str, student: str) -> str:
    lines = [f"student_id = {student!r}" if line.startswith("student_id =") else line for line in source.splitlines()]
    return "\n".join(lines)
