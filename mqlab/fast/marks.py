"""What plain sources need before they are compiled well: constants are Final, and classes that interpreted ones inherit
from are marked. It is done to a copy, so that nobody has to think of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

MARK = "@mypyc_attr(allow_interpreted_subclasses=True)"
IMPORTS = "\nfrom typing import TYPE_CHECKING, Final\nif TYPE_CHECKING: from mypy_extensions import mypyc_attr"
"""The marks are for mypyc alone: where the compiled modules run, nothing else needs to be installed."""
_ENUMS = ("Enum", "IntEnum", "StrEnum")


class Class(NamedTuple):
    """A class of the sources: where it stands, whom it inherits from, and the values that it gives in its body."""

    module: str
    name: str
    line: int
    bases: tuple[str, ...]
    values: tuple[str, ...]
    declared: tuple[str, ...]
    """The attributes to which it gives a type."""
    is_open: bool
    """Whether it has a method that is left to those who inherit from it."""


class NotCompilable(Exception):
    """A compiled class cannot know what an interpreted subclass says: a defect of the sources or of the list."""


def classes_of(module: str, text: str) -> Iterator[Class]:
    """The classes of a module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            bases = tuple(name for base in node.bases if (name := _last_name(base)))
            line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            values, declared = tuple(_values_in(node)), tuple(_declared_in(node))
            yield Class(module, node.name, line, bases, values, declared, _is_open(node))


def _last_name(base: ast.expr) -> str:
    if isinstance(base, ast.Subscript):
        base = base.value
    return base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else ""


def _is_open(node: ast.ClassDef) -> bool:
    raised = [inner.exc for inner in ast.walk(node) if isinstance(inner, ast.Raise)]
    return any(isinstance(error, ast.Call) and _last_name(error.func) == "NotImplementedError" for error in raised)


def _values_in(node: ast.ClassDef) -> Iterator[str]:
    """The names that the body of a class gives a value, other than constants and what belongs to the class alone."""
    for statement in node.body:
        if isinstance(statement, ast.Assign):
            yield from (target.id for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, ast.AnnAssign) and statement.value and isinstance(statement.target, ast.Name):
            yield statement.target.id


def _declared_in(node: ast.ClassDef) -> Iterator[str]:
    """The names that a class gives a type, in its body or to its `self`, other than what belongs to the class alone."""
    for inner in ast.walk(node):
        match inner:
            case ast.AnnAssign(ast.Attribute(ast.Name("self"), name)):
                yield name
    for statement in node.body:
        match statement:
            case ast.AnnAssign(ast.Name(name), annotation) if "ClassVar" not in ast.dump(annotation):
                yield name


def check_attributes(classes: list[Class], compiled: frozenset[str]) -> None:
    """NotCompilable when a compiled class gives a type to an attribute that a class above it has a type for.

    mypyc takes it for two attributes in one place, and counts what lies there twice when Python looks for cycles of
    objects that nobody needs: it never finds one that leads through there, and the objects stay in memory.
    """
    by_name = {known.name: known for known in classes if known.module in compiled}

    def above(of: Class) -> Iterator[Class]:
        for base in (by_name[name] for name in of.bases if name in by_name):
            yield base
            yield from above(base)

    for heir in by_name.values():
        for base in above(heir):
            twice = sorted(set(heir.declared) & set(base.declared))
            if twice:
                raise NotCompilable(
                    f"{heir.module}.{heir.name} gives a type to {', '.join(twice)}, and so does "
                    f"{base.module}.{base.name}: compiled worlds would stay in memory. Leave the type to {base.name}"
                )


def classes_to_mark(classes: list[Class], compiled: frozenset[str]) -> frozenset[tuple[str, str]]:
    """The compiled classes, as (module, name), that an interpreted class inherits from, near or far, or is meant to.

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
                if lost and heir.module not in compiled:
                    raise NotCompilable(
                        f"{heir.module}.{heir.name} is interpreted and says {', '.join(sorted(lost))} anew, which the "
                        f"compiled {base.module}.{base.name} would not see: give it to the constructor"
                    )
                marked.add((base.module, base.name))
            mark_bases(base, heir)

    for heir in classes:
        if heir.module not in compiled:
            mark_bases(heir, heir)
        elif heir.is_open:
            marked.add((heir.module, heir.name))
            mark_bases(heir, heir)
    return frozenset(marked)


class Edit(NamedTuple):
    """A change of a text: what stands from `start` to `end`, in bytes, becomes something else."""

    start: int
    end: int
    text: str


class Places:
    """Where the nodes of a syntax tree stand in their text, in bytes."""

    def __init__(self, text: str) -> None:
        self._lines = [0]
        for line in text.encode().splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def start(self, node: ast.expr) -> int:
        """Where a node begins."""
        return self._lines[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        """Where it has ended."""
        return self._lines[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)

    def line(self, number: int) -> int:
        """Where a line begins, counted from 1."""
        return self._lines[number - 1]


def constants(tree: ast.Module, places: Places) -> Iterator[Edit]:
    """Make names in capitals Final: those of the module, and those with a plain value in a class without bases.

    A name that is not Final is looked up in a dict each time it is used.
    """
    for statement in tree.body:
        match statement:
            case ast.Assign([ast.Name(name) as target], value) if name.isupper() and not _makes_a_type(value):
                yield Edit(places.end(target), places.end(target), ": Final")
            case ast.AnnAssign(ast.Name(name), annotation, ast.expr()) if name.isupper():
                yield Edit(places.start(annotation), places.start(annotation), "Final[")
                yield Edit(places.end(annotation), places.end(annotation), "]")
            case ast.ClassDef(bases=[], body=body):
                for inner in body:
                    match inner:
                        case ast.Assign([ast.Name(name) as target], ast.Constant() | ast.UnaryOp() | ast.BinOp()):
                            if name.isupper():
                                yield Edit(places.end(target), places.end(target), ": Final")


def _makes_a_type(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "TypeVar"


Enums = Mapping[str, Mapping[str, int | None]]
"""The enumerations of the sources by name, each with its members; what is no number counts as None."""


def enums_of(tree: ast.Module) -> dict[str, dict[str, int | None]]:
    """The enumerations that a module defines."""
    return {
        node.name: dict(_members_of(node))
        for node in tree.body
        if isinstance(node, ast.ClassDef) and any(_last_name(base) in _ENUMS for base in node.bases)
    }


def _members_of(enum: ast.ClassDef) -> Iterator[tuple[str, int | None]]:
    for statement in enum.body:
        match statement:
            case ast.Assign([ast.Name(name)], ast.Constant(int(number))):
                yield name, number
            case ast.Assign([ast.Name(name)], _):
                yield name, None


class Members(ast.NodeVisitor):
    """Gives each member of an enumeration that a function asks for a name of the module, as a constant.

    Asking the class for a member costs as much as a call of a function. A member that is a number and is compared with
    another becomes the number itself.
    """

    def __init__(self, tree: ast.Module, places: Places, enums: Enums) -> None:
        self.edits: list[Edit] = []
        self._places = places
        self._enums = enums
        self._known: dict[str, int] = {}
        self._named: set[str] = set()
        self._depth = 0
        imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        behind_imports = places.end(imports[-1]) if imports else 0
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom):
                self._known |= {alias.name: behind_imports for alias in statement.names if alias.name in enums}
            elif isinstance(statement, ast.ClassDef) and statement.name in enums:
                self._known[statement.name] = places.end(statement)
        self.visit(tree)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Look at the body of a function, which runs when the module is there."""
        self._depth += 1
        for statement in node.body:
            self.visit(statement)
        self._depth -= 1

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """Look at the body of a coroutine, too."""
        self.visit_FunctionDef(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Put numbers for the members that are compared."""
        for side in (node.left, *node.comparators):
            number = self._number(side)
            if number is None:
                self.visit(side)
            elif self._depth:
                self._edit(side, str(number))

    def _number(self, node: ast.expr) -> int | None:
        match node:
            case ast.Attribute(ast.Name(name), member) if name in self._known:
                return self._enums[name].get(member)
        return None

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Put its constant for a member."""
        match node:
            case ast.Attribute(ast.Name(name), member) if self._depth and member in self._members(name):
                constant = f"_{name}_{member}"
                self._edit(node, constant)
                if constant not in self._named:
                    self._named.add(constant)
                    place = self._known[name]
                    self.edits.append(Edit(place, place, f"\n{constant}: Final = {name}.{member}"))
            case _:
                self.generic_visit(node)

    def _members(self, name: str) -> Mapping[str, int | None]:
        return self._enums[name] if name in self._known else {}

    def _edit(self, node: ast.expr, text: str) -> None:
        self.edits.append(Edit(self._places.start(node), self._places.end(node), text))


def mark(text: str, lines: Iterable[int], enums: Enums) -> str:
    """The text of a module that is compiled, with a mark before the classes that begin in these lines (from 1)."""
    tree = ast.parse(text)
    places = Places(text)
    future = next(node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__")
    edits = [
        Edit(places.end(future), places.end(future), IMPORTS),
        *constants(tree, places),
        *Members(tree, places, enums).edits,
        *(Edit(places.line(line), places.line(line), f"{MARK}\n") for line in lines),
    ]
    edits.sort(key=lambda edit: edit.start)
    data = text.encode()
    for edit in reversed(edits):
        data = data[: edit.start] + edit.text.encode() + data[edit.end :]
    return data.decode()


def mark_tree(root: Path, compiled: frozenset[str]) -> int:
    """Mark what must be marked in a copy of the sources; how many classes that were."""
    texts = {_module_of(root, path): path.read_text("utf-8") for path in sorted(root.rglob("*.py"))}
    classes = [found for module, text in texts.items() for found in classes_of(module, text)]
    check_attributes(classes, compiled)
    marked = classes_to_mark(classes, compiled)
    lines: Mapping[str, list[int]] = {module: [] for module in texts}
    for found in classes:
        if (found.module, found.name) in marked:
            lines[found.module].append(found.line)
    enums = {name: members for text in texts.values() for name, members in enums_of(ast.parse(text)).items()}
    for module in sorted(compiled):
        path = root.parent / f"{module.replace('.', '/')}.py"
        path.write_text(mark(texts[module], lines[module], enums), "utf-8")
    return len(marked)


def _module_of(root: Path, path: Path) -> str:
    return ".".join(path.relative_to(root.parent).with_suffix("").parts)
