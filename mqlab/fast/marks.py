"""What plain sources need before they are compiled well: constants are Final, and classes that interpreted ones inherit
from are marked. It is done to a copy, so that nobody has to think of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

MARK = "@mypyc_attr(allow_interpreted_subclasses=True)"
IMPORTS = "\nfrom typing import Final\nfrom mypy_extensions import mypyc_attr\n"


class Class(NamedTuple):
    """A class of the sources: where it stands, whom it inherits from, and the values that it gives in its body."""

    module: str
    name: str
    line: int
    bases: tuple[str, ...]
    values: tuple[str, ...]


class NotCompilable(Exception):
    """A compiled class cannot know what an interpreted subclass says: a defect of the sources or of the list."""


def classes_of(module: str, text: str) -> Iterator[Class]:
    """The classes of a module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            bases = tuple(name for base in node.bases if (name := _last_name(base)))
            line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield Class(module, node.name, line, bases, tuple(_values_in(node)))


def _last_name(base: ast.expr) -> str:
    if isinstance(base, ast.Subscript):
        base = base.value
    return base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else ""


def _values_in(node: ast.ClassDef) -> Iterator[str]:
    """The names that the body of a class gives a value, other than constants and what belongs to the class alone."""
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            yield from (target.id for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, ast.AnnAssign) and statement.value and isinstance(statement.target, ast.Name):
            yield statement.target.id


def classes_to_mark(classes: list[Class], compiled: frozenset[str]) -> frozenset[tuple[str, str]]:
    """The compiled classes, as (module, name), that an interpreted class inherits from, near or far.

    NotCompilable when such a subclass gives another value to a name in the body of a compiled class: the compiled code
    would not see it.
    """
    by_name: dict[str, list[Class]] = {}
    for known in classes:
        by_name.setdefault(known.name, []).append(known)
    marked: set[tuple[str, str]] = set()

    def mark_bases(of: Class, heir: Class) -> None:
        for base in (known for name in of.bases for known in by_name.get(name, [])):
            if base.module in compiled:
                lost = (set(heir.values) & set(base.values)) - {"__slots__"}
                if lost:
                    raise NotCompilable(
                        f"{heir.module}.{heir.name} is interpreted and says {', '.join(sorted(lost))} anew, which the "
                        f"compiled {base.module}.{base.name} would not see: give it to the constructor"
                    )
                marked.add((base.module, base.name))
            mark_bases(base, heir)

    for heir in classes:
        if heir.module not in compiled:
            mark_bases(heir, heir)
    return frozenset(marked)


def constants(text: str) -> list[int]:
    """The lines (from 1) in which a module, or a class without bases, gives a name in capitals a plain value."""
    lines = []
    tree = ast.parse(text)
    for body in [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef) and not node.bases)]:
        for statement in body:
            match statement:
                case ast.Assign([ast.Name(name)], ast.Constant() | ast.UnaryOp() | ast.BinOp()) if name.isupper():
                    lines.append(statement.lineno)
    return lines


def mark(text: str, lines: Iterable[int]) -> str:
    """The text of a module that is compiled, with a mark before the classes that begin in these lines (from 1)."""
    parts = text.splitlines(keepends=True)
    for line in constants(text):
        parts[line - 1] = parts[line - 1].replace(" = ", ": Final = ", 1)
    for line in sorted(lines, reverse=True):
        parts.insert(line - 1, f"{MARK}\n")
    future = next(number for number, part in enumerate(parts) if part.startswith("from __future__ import"))
    parts.insert(future + 1, IMPORTS)
    return "".join(parts)


def mark_tree(root: Path, compiled: frozenset[str]) -> int:
    """Mark what must be marked in a copy of the sources; how many classes that were."""
    texts = {_module_of(root, path): path for path in sorted(root.rglob("*.py"))}
    classes = [found for module, path in texts.items() for found in classes_of(module, path.read_text("utf-8"))]
    marked = classes_to_mark(classes, compiled)
    lines: Mapping[str, list[int]] = {module: [] for module in texts}
    for found in classes:
        if (found.module, found.name) in marked:
            lines[found.module].append(found.line)
    for module, path in texts.items():
        if module in compiled:
            path.write_text(mark(path.read_text("utf-8"), lines[module]), "utf-8")
    return len(marked)


def _module_of(root: Path, path: Path) -> str:
    return ".".join(path.relative_to(root.parent).with_suffix("").parts)
