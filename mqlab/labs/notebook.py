"""From a lab's source to its two notebooks, not yet executed: the student's and the one with solutions.

Cells carry nbgrader's metadata (schema version 3), so that nbgrader, and whoever marks the lab, finds exercises and
checks.
"""

from __future__ import annotations

import re
from collections import Counter
from hashlib import blake2b
from typing import Any, Literal

from mqlab.check import find_check
from mqlab.labs.bets import hidden_cells
from mqlab.labs.errors import LabError
from mqlab.labs.extra import extra
from mqlab.labs.hints import HINTS_FOR, folded
from mqlab.labs.solution import remove_solutions
from mqlab.labs.source import KERNEL, Cell, LabSource, text_argument

HOW_FAR, HAND_IN, HOW_TO_HAND_IN = "how-far", "hand-in", "how-to-hand-in"
"""How the ids of the last cells of a lab end."""
LOAD_EXTENSION = "%load_ext mqlab"
"""In every lab: so that a mistake is told in a sentence, not in a traceback."""
_HIDDEN = {"collapsed": True, "jupyter": {"outputs_hidden": True}}
"""JupyterLab does not show the output of such a cell until the cell runs."""
Version = Literal["student", "solution"]
Notebook = dict[str, Any]
_HOW_TO_HAND_IN = (
    "To hand in, write `done=True` in place of the dots: what the checks have judged becomes one file for your "
    'teacher, with the public mark.\nIf you were given a code, write it behind that: `code="..."`.'
)
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def make_notebook(lab: LabSource, version: Version) -> Notebook:
    """The notebook of that version, without outputs. The same source always gives the same notebook."""
    for_teacher = version == "solution"
    head = {"cell_type": "markdown", "metadata": {}, "source": lab.head.markdown(lab.number, for_teacher=for_teacher)}
    extension: dict[str, Any] = {"cell_type": "code", "metadata": {}, "source": LOAD_EXTENSION}
    extension |= {"execution_count": None, "outputs": []}
    cells = [head | {"id": f"{lab.number}-head"}, extension | {"id": f"{lab.number}-extension"}]
    hidden = [] if for_teacher else [id(cell) for cell in hidden_cells(lab)]
    for cell, behind in zip(lab.cells, [*lab.cells[1:], None], strict=True):
        if for_teacher or "teacher" not in cell.tags:
            made = _make_cell(lab, cell, version)
            if "hints" in cell.tags and behind is not None:
                made["metadata"] |= {"mqlab": {HINTS_FOR: given_name(lab, behind)}}
            if id(cell) in hidden:
                made["metadata"] |= _HIDDEN
            cells.append(made)
    cells += _end(lab)
    _name_cells(lab, cells)
    return {
        "cells": cells,
        "metadata": {
            "kernelspec": dict(KERNEL),
            "language_info": {"name": "python"},
            "mqlab": {"lab": lab.name, "minutes": lab.head.minutes, "version": version},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _make_cell(lab: LabSource, cell: Cell, version: Version) -> dict[str, Any]:
    source = cell.source
    if version == "student" and "exercise" in cell.tags:
        source = remove_solutions(source)
    if "hints" in cell.tags:
        source = folded(source)
    metadata: dict[str, Any] = {"tags": list(cell.tags)} if cell.tags else {}
    metadata |= _grading(lab, cell)
    made: dict[str, Any] = {"cell_type": cell.kind, "metadata": metadata, "source": source}
    name = given_name(lab, cell)
    if name:
        made["id"] = name
    if cell.kind == "code":
        made |= {"execution_count": None, "outputs": []}
    return made


def _end(lab: LabSource) -> list[dict[str, Any]]:
    """The last cells of every lab: how far the student is, with the certificate, and handing in."""
    bets = sum(len(cell.calls("predict")) for cell in lab.tagged("prediction"))
    how_far = f'from mqlab.check import hand_in, how_far\n\nhow_far(student_id, "{lab.number}", bets={bets})'
    hand_in = f'hand_in(student_id, "{lab.number}", bets={bets}, done=...)'
    return [
        _last(lab, "code", HOW_FAR, how_far),
        _last(lab, "markdown", HOW_TO_HAND_IN, _HOW_TO_HAND_IN),
        _last(lab, "code", HAND_IN, hand_in),
    ]


def _last(lab: LabSource, kind: str, name: str, source: str) -> dict[str, Any]:
    made: dict[str, Any] = {"cell_type": kind, "metadata": {}, "id": f"{lab.number}-{name}", "source": source}
    return made | {"execution_count": None, "outputs": []} if kind == "code" else made


def given_name(lab: LabSource, cell: Cell) -> str | None:
    """The name of a cell that is found by it: an exercise, a check, a prediction."""
    if "check" in cell.tags:
        return _called(cell, "check").replace("/", "-check-")
    if "exercise" in cell.tags:
        return f"{lab.number}-{cell.definitions[-1]}"
    if "prediction" in cell.tags:
        return f"{lab.number}-predict-{_called(cell, 'predict')}"
    return None


def _called(cell: Cell, function: str) -> str:
    return text_argument(cell.calls(function)[0]) or ""


def _grading(lab: LabSource, cell: Cell) -> dict[str, Any]:
    """nbgrader's metadata of a cell, and Jupyter's own locks, which nbgrader sets too."""
    graded = {"schema_version": 3, "grade_id": given_name(lab, cell), "task": False}
    if "check" in cell.tags:
        graded |= {"grade": True, "solution": False, "locked": True}
        graded |= {"points": find_check(_called(cell, "check")).points}
        return {"nbgrader": graded, "deletable": False, "editable": False}
    if "exercise" in cell.tags:
        graded |= {"grade": False, "solution": True, "locked": False}
        return {"nbgrader": graded, "deletable": False}
    return {}


def _name_cells(lab: LabSource, cells: list[dict[str, Any]]) -> None:
    """Give every cell an id that follows from what it holds, so that moving one cell does not rename the others."""
    given = Counter(cell["id"] for cell in cells if "id" in cell)
    problems = [f"the name {name!r} stands there {count} times" for name, count in given.items() if count > 1]
    problems += [
        f"{name!r} is no name of a cell (letters, digits, - and _; at most 64)"
        for name in given
        if not _ID.fullmatch(name)
    ]
    if problems:
        raise LabError(lab.name, problems, "rename the exercise, check or prediction")
    seen: Counter[str] = Counter()
    for cell in cells:
        if "id" not in cell:
            name = _digest(cell)
            seen[name] += 1
            cell["id"] = name if seen[name] == 1 else f"{name}-{seen[name]}"


def _digest(cell: dict[str, Any]) -> str:
    return blake2b(f"{cell['cell_type']}\n{cell['source']}".encode(), digest_size=6).hexdigest()


def write_notebook(notebook: Notebook) -> str:
    """The notebook as the text of an .ipynb file, always the same for the same notebook; checked against its schema."""
    nbformat = extra("nbformat")
    node = nbformat.from_dict(notebook)
    nbformat.validate(node)
    return str(nbformat.writes(node)).rstrip("\n") + "\n"


def read_notebook(text: str) -> Notebook:
    """The notebook in the text of an .ipynb file."""
    notebook: Notebook = extra("nbformat").reads(text, as_version=4)
    return notebook


def code_cells(notebook: Notebook) -> list[dict[str, Any]]:
    """The notebook's code cells, in order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def without_outputs(notebook: Notebook) -> Notebook:
    """The notebook as it was before it was executed."""
    cells = [
        dict(cell) | {"outputs": [], "execution_count": None} if cell["cell_type"] == "code" else dict(cell)
        for cell in notebook["cells"]
    ]
    return dict(notebook) | {"cells": cells}
