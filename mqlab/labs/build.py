"""Builds a lab: the student's notebook, executed, and the one with solutions, in which every check has passed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mqlab.check import VERDICT_MIME
from mqlab.labs.bets import told_too_early
from mqlab.labs.errors import LabError
from mqlab.labs.execute import execute
from mqlab.labs.notebook import Notebook, Version, code_cells, make_notebook, write_notebook
from mqlab.labs.outputs import settle_outputs
from mqlab.labs.project import Project
from mqlab.labs.rules import require_rules
from mqlab.labs.source import LabSource, read_source

_EXPECTED_STATE = {"student": "not solved yet", "solution": "passed"}


@dataclass(frozen=True, slots=True)
class Built:
    """A built lab: the text of both notebooks."""

    name: str
    student: str
    solution: str


def read_lab(path: Path) -> LabSource:
    """The source of a lab, with every rule held."""
    lab = read_source(path)
    require_rules(lab)
    return lab


def build(lab: LabSource, directory: Path) -> Built:
    """Execute both notebooks of a lab in `directory`. Raises LabError when a cell fails, a check does not say what it
    must (passed with the solution, "not solved yet" without), or an output can not be committed."""
    solution = _build(lab, "solution", directory)
    return Built(lab.name, _build(lab, "student", directory), solution)


def _build(lab: LabSource, version: Version, directory: Path) -> str:
    notebook = execute(lab.name, make_notebook(lab, version), directory)
    _require_verdicts(lab, notebook, version)
    problems = told_too_early(lab, notebook) if version == "student" else []
    if problems:
        raise LabError(lab.name, problems, "the reader bets before the reveal; docs/labs.md says more")
    settle_outputs(lab.name, notebook)
    return write_notebook(notebook)


def _require_verdicts(lab: LabSource, notebook: Notebook, version: Version) -> None:
    problems = []
    for cell in code_cells(notebook):
        if not cell["metadata"].get("nbgrader", {}).get("grade"):
            continue
        shown = [output["data"] for output in cell["outputs"] if VERDICT_MIME in output.get("data", {})]
        states = [data[VERDICT_MIME]["state"] for data in shown]
        if states != [_EXPECTED_STATE[version]]:
            said = shown[0]["text/plain"] if shown else "nothing"
            problems.append(f"{version}: {cell['source']} should say `{_EXPECTED_STATE[version]}`, and says:\n{said}")
    if problems:
        raise LabError(lab.name, problems, "correct the exercise, its solution, or the check")


def save(built: Built, project: Project) -> None:
    """Write both notebooks to their places."""
    for path, text in ((project.student(built.name), built.student), (project.solution(built.name), built.solution)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
