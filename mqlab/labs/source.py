"""The text source of a lab: a head and cells, read from jupytext's py:percent format."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from mqlab.errors import LearnerError
from mqlab.labs.errors import LabError
from mqlab.labs.extra import extra
from mqlab.labs.head import Head, head_problems, make_head

NAME = re.compile(r"(?P<number>\d\d)_[a-z0-9_]+")
TAGS = frozenset(
    {"parameters", "prediction", "exercise", "check", "hints", "teacher", "raises-exception", "nbval-ignore-output"}
)
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


@dataclass(frozen=True)
class Cell:
    """One cell as its author wrote it. `place` says where it stands, for messages."""

    place: str
    kind: Literal["code", "markdown"]
    source: str
    tags: tuple[str, ...]

    @cached_property
    def tree(self) -> ast.Module:
        """The cell's code, parsed; lines with IPython magic count as empty."""
        if self.kind == "markdown" or self.source.startswith("%%"):
            return ast.Module([], [])
        return ast.parse(re.sub(r"(?m)^(\s*)[%!].*$", r"\1pass", self.source))

    def calls(self, function: str) -> list[ast.Call]:
        """All calls of that plain name in the cell, as in `check(...)`."""
        return [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function
        ]

    @property
    def definitions(self) -> tuple[str, ...]:
        """The functions and classes that the cell defines at its top level."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        return tuple(node.name for node in self.tree.body if isinstance(node, kinds))


@dataclass(frozen=True)
class LabSource:
    """A lab as written: `name` is the file's ("02_store"), `number` its first part."""

    name: str
    head: Head
    cells: tuple[Cell, ...]

    @property
    def number(self) -> str:
        """The lab's two digits."""
        return self.name[:2]

    @property
    def needs_spark(self) -> bool:
        """Whether its cells use Spark."""
        return any("mqlab_spark" in cell.source for cell in self.cells if cell.kind == "code")

    @property
    def parameters(self) -> dict[str, Any]:
        """The lab's parameters with the values of its source, among them `student_id`."""
        cells = self.tagged("parameters")
        return {name: value for cell in cells for name, value in plain_lines(cell.tree).items()}

    def tagged(self, tag: str) -> list[Cell]:
        """The cells that carry the tag, in order."""
        return [cell for cell in self.cells if tag in cell.tags]


def plain_lines(tree: ast.Module) -> dict[str, Any]:
    """What a cell's lines `name = value` say, where the value is plain; other lines say nothing."""
    said = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
                said[name] = value
    return said


def place_of(at: int, source: str) -> str:
    """How a message names a cell: by its number and how it begins."""
    return f"cell {at} ({' '.join(source.split())[:50]!r})"


def text_argument(call: ast.Call, position: int = 0) -> str | None:
    """The text that stands literally at that position of a call; None when it is something else."""
    if len(call.args) <= position:
        return None
    argument = call.args[position]
    return argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else None


def read_source(path: Path) -> LabSource:
    """Read the source file of a lab. Raises LabError for what is no head, no cell or no Python; rules come later."""
    if not NAME.fullmatch(path.stem):
        raise LearnerError(f"{path.name} is no name of a lab", "name it NN_name.py, for example 02_store.py")
    notebook = _parse(path)
    problems = _metadata_problems(notebook.metadata) + head_problems(notebook.metadata.get("mqlab"))
    cells = []
    for at, raw in enumerate(notebook.cells, 1):
        cell, wrong = _read_cell(at, raw)
        problems += wrong
        cells.append(cell)
    if problems:
        raise _refused(path, problems)
    return LabSource(path.stem, make_head(notebook.metadata["mqlab"]), tuple(cells))


def _parse(path: Path) -> Any:
    try:
        return extra("jupytext").reads(path.read_text(encoding="utf-8"), fmt="py:percent")
    except (extra("yaml").YAMLError, extra("nbformat").ValidationError) as unreadable:
        reason = " ".join(str(unreadable).split())
        raise _refused(path, [f"its header cannot be read: {reason}"]) from unreadable


def _refused(path: Path, problems: list[str]) -> LabError:
    return LabError(path.stem, problems, f"correct labs/sources/{path.name}; docs/labs.md describes the format")


def _metadata_problems(metadata: Any) -> list[str]:
    if dict(metadata.get("kernelspec", {})) == KERNEL:
        return []
    return [f"the header's kernelspec must be {KERNEL}"]


def _read_cell(at: int, raw: Any) -> tuple[Cell, list[str]]:
    source = raw.source.strip("\n")
    tags = tuple(raw.metadata.get("tags", ()))
    cell = Cell(place_of(at, source), raw.cell_type, source, tags)
    problems = [
        f"{cell.place}: the tag `{tag}` is none of {', '.join(sorted(TAGS))}" for tag in tags if tag not in TAGS
    ]
    others = sorted(set(raw.metadata) - {"tags", "lines_to_next_cell", "lines_to_end_of_cell_marker", "cell_marker"})
    problems += [f"{cell.place}: `{key}` is not known on a cell; only tags are" for key in others]
    if raw.cell_type not in ("code", "markdown"):
        problems.append(f"{cell.place}: a {raw.cell_type} cell; write code or [markdown]")
    if not source:
        problems.append(f"cell {at} is empty")
    if raw.cell_type == "code":
        try:
            _ = cell.tree
        except SyntaxError as wrong:
            problems.append(f"{cell.place}: line {wrong.lineno}: {wrong.msg}")
    return cell, problems
