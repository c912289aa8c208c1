"""What a student has handed in, read as text: a notebook that nobody here runs.

The exercises are the cells that carry their names (nbgrader's `grade_id`). Everything else in the notebook may be
changed, moved or missing.
"""

from __future__ import annotations

import ast
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from mqlab.errors import LearnerError
from mqlab.grading.claims import Claims, read_claims
from mqlab.grading.hand_in_file import HandedInFile, is_hand_in, notebook_of, read_hand_in, version_remark
from mqlab.grading.outside import Unreadable, read_file, read_json
from mqlab.grading.printable import printable
from mqlab.labs.notebook import given_name
from mqlab.labs.source import LabSource, plain_lines, text_argument

MOST_BYTES = 50 * 1024 * 1024
"""A notebook with all its pictures has less than 2 MB."""
MOST_CELL = 100_000
"""The characters of an exercise; the longest reference solution has less than 3,000."""


@dataclass(slots=True)
class Submission:
    """One notebook of one student."""

    path: Path
    student: str
    lab: str
    """The lab's number: "05"."""
    digest: str = ""
    """SHA-256 of the file."""
    cells: dict[str, str] = field(default_factory=dict)
    """grade_id of an exercise -> its text."""
    bets: dict[str, Any] = field(default_factory=dict)
    """name of a bet -> what was bet, where it can be read without running anything."""
    said_id: str = ""
    """The student's id as the notebook itself says it."""
    claims: Claims = field(default_factory=Claims)
    """What it says of itself."""
    remarks: list[str] = field(default_factory=list)
    """What is odd, and takes no points by itself."""
    hand_in: HandedInFile | None = None
    """What it was read from, where that was no notebook but the file that `hand_in` makes."""
    unreadable: str = ""
    """Why nothing of it can be marked; "" when it can."""


def read_submission(path: Path, student: str, lab: LabSource) -> Submission:
    """Read a notebook. What is wrong with it is said in the submission; nothing is raised."""
    submission = Submission(path, student, lab.name[:2])
    try:
        _read(submission, lab)
    except LearnerError as problem:
        submission.unreadable = str(problem).partition("\n")[0]
    except Exception as error:  # noqa: BLE001  one notebook that nobody has thought of shall not end a class's marking
        submission.unreadable = printable(f"this notebook can't be read: {type(error).__name__}: {error}", most=300)
    return submission


def _read(submission: Submission, lab: LabSource) -> None:
    path, student = submission.path, submission.student
    notebook = _notebook(path, submission, lab)
    wanted = exercises_of(lab)
    parameters = other_parameters(lab)
    values: dict[str, Any] = {}
    cells = list(_code_cells(notebook))
    for name, source in cells:
        if name in wanted:
            _take(submission, name, source)
        _note_bets(submission, source)
        values |= {each: value for each, value in _plain(source).items() if each in parameters}
        if "student_id" in source and not submission.said_id:
            submission.said_id = _said_id(source)
    _take_by_definition(submission, lab, [source for name, source in cells if name not in wanted])
    for name in wanted:
        if name not in submission.cells:
            submission.remarks.append(f"the exercise {name} is not in the notebook")
    for name, value in values.items():
        if value != parameters[name]:
            was = f"{name} = {value!r}"[:80]
            submission.remarks.append(f"it was handed in with {was}; marking takes {name} = {parameters[name]!r}")
    submission.claims = read_claims(notebook, wanted)
    if submission.hand_in is not None:
        # Of hints it knows nothing.
        submission.claims.hints = {}
    for how, said in (("is of", submission.said_id), ("was handed out to", submission.claims.made_for)):
        if said and said.strip().lower() != student.strip().lower():
            submission.remarks.append(f"the notebook says that it {how} {said!r}, and it was handed in by {student!r}")


def _notebook(path: Path, submission: Submission, lab: LabSource) -> dict[str, Any]:
    try:
        status = path.lstat()
    except OSError as error:
        raise LearnerError(f"the notebook can't be read: {error.strerror}", "hand it in again") from None
    if not stat.S_ISREG(status.st_mode):
        raise LearnerError("this is no file but a link or a device, which is not followed", "hand in the notebook")
    if status.st_size > MOST_BYTES:
        size = f"{status.st_size / 2**20:.0f} MiB"
        raise LearnerError(f"the notebook has {size}, and at most 50 MiB are read", "clear its outputs")
    try:
        data = read_file(path, MOST_BYTES)
        submission.digest = sha256(data).hexdigest()
        notebook = read_json(data)
    except Unreadable as why:
        raise LearnerError(f"this is no notebook: {why}", "hand in the .ipynb file") from None
    if is_hand_in(notebook):
        submission.hand_in = read_hand_in(notebook)
        submission.remarks += filter(None, [version_remark(submission.hand_in)])
        return notebook_of(submission.hand_in, lab)
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise LearnerError("this is no notebook: it has no cells", "hand in the .ipynb file")
    return notebook


def _code_cells(notebook: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The name (or "") and the text of each code cell."""
    for cell in notebook["cells"]:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source")
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if not isinstance(source, str):
            continue
        metadata = cell.get("metadata")
        graded = metadata.get("nbgrader") if isinstance(metadata, dict) else None
        name = graded.get("grade_id") if isinstance(graded, dict) else None
        # Half of a surrogate pair is no text that could be run, compared or shown.
        yield name if isinstance(name, str) else "", source.encode(errors="replace").decode()


def _take(submission: Submission, name: str, source: str) -> None:
    if len(source) > MOST_CELL:
        submission.remarks.append(f"the exercise {name} has {len(source):,} characters; at most {MOST_CELL:,} are read")
        return
    if name in submission.cells and submission.cells[name] != source:
        submission.remarks.append(f"the exercise {name} is there more than once; the last one counts")
    submission.cells[name] = source


def _take_by_definition(submission: Submission, lab: LabSource, sources: list[str]) -> None:
    """Find exercises whose cell has lost its name, as some editors strip it: by what the cell defines.

    That is sure only where the cell defines all that the exercise does, and nothing that another exercise does.
    """
    wanted = {given_name(lab, cell) or "": set(cell.definitions) for cell in lab.tagged("exercise")}
    everything = set().union(*wanted.values())
    for source in sources:
        defined = set(_definitions(source))
        if not defined & everything or len(source) > MOST_CELL:
            continue
        name = next((each for each, names in wanted.items() if defined & everything == names), "")
        if name and name not in submission.cells:
            submission.cells[name] = source
            names = ", ".join(sorted(wanted[name]))
            submission.remarks.append(
                f"the cell of the exercise {name} has lost its name (an editor does that); it was found by {names}"
            )


def _definitions(source: str) -> list[str]:
    """The functions and classes that a cell defines."""
    try:
        body = ast.parse(source[:MOST_CELL]).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]


def defined_instead(submission: Submission, lab: LabSource, wanted: str) -> str:
    """What the cell that is to define a name does define: a sentence, "" where there is no such cell."""
    for cell in lab.tagged("exercise"):
        text = submission.cells.get(given_name(lab, cell) or "")
        if wanted in cell.definitions and text is not None:
            names = [name for name in _definitions(text) if name not in cell.definitions]
            return f"your cell defines {', '.join(names) or 'no function and no class'}; {wanted} is wanted"
    return ""


def exercises_of(lab: LabSource) -> list[str]:
    """The names (nbgrader's grade_id) of a lab's exercises, in their order."""
    return [given_name(lab, cell) or "" for cell in lab.tagged("exercise")]


def other_parameters(lab: LabSource) -> dict[str, Any]:
    """A lab's parameters beside the id, with the values that the lab has: with these everybody's notebook is run."""
    return {name: value for name, value in lab.parameters.items() if name != "student_id"}


def _plain(source: str) -> dict[str, Any]:
    try:
        return plain_lines(ast.parse(source[:MOST_CELL]))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _calls(source: str, name: str) -> list[ast.Call]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]


def _note_bets(submission: Submission, source: str) -> None:
    if "predict(" not in source or len(source) > MOST_CELL:
        return
    for call in _calls(source, "predict"):
        name = text_argument(call)
        for keyword in call.keywords:
            if keyword.arg == "prediction" and name:
                value = _literal(keyword.value)
                if isinstance(value, str | int | float) and not isinstance(value, bool):
                    submission.bets[name] = value


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None


def _said_id(source: str) -> str:
    if len(source) > MOST_CELL:
        return ""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "student_id" for t in node.targets):
            value = _literal(node.value)
            return value if isinstance(value, str) else ""
    return ""
