"""A solution without what is quickly changed: names, comments, docstrings, annotations, texts, layout and imports, and
what `plain_code` takes out.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from mqlab.grading.plain_code import plain

_LEFT_OUT = (ast.Import, ast.ImportFrom, ast.Pass, ast.Global, ast.Nonlocal)
_NO_PART = ("ctx", "type_comment", "returns", "annotation", "kind", "type_params", "simple")
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_BUILTIN = frozenset(dir(builtins))
_OWN = ("self", "cls")


class Unit(NamedTuple):
    """A simple statement, or the head of a compound one: `if`, `for`, `def` and their like."""

    tokens: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class NormalForm:
    """What is left of a text: its statements in their order."""

    units: tuple[Unit, ...]

    @property
    def tokens(self) -> list[str]:
        """All tokens in the order of the text."""
        return [token for unit in self.units for token in unit.tokens]

    @property
    def sorted_tokens(self) -> list[str]:
        """All tokens with the statements in an order that does not depend on the text's."""
        return [token for tokens in sorted(unit.tokens for unit in self.units) for token in tokens]

    def without(self, other: NormalForm) -> NormalForm:
        """What is left when each statement of the other form is taken out once."""
        given = Counter(unit.tokens for unit in other.units)
        left = []
        for unit in self.units:
            if given[unit.tokens]:
                given[unit.tokens] -= 1
            else:
                left.append(unit)
        return NormalForm(tuple(left))


def normal_form(text: str, kept: Container[str] = ()) -> NormalForm | None:
    """The normal form of a text; None for one that is no Python. Functions in `kept` are those that were asked for."""
    try:
        return NormalForm(tuple(_units(plain(ast.parse(text), kept).body)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _units(body: Iterable[ast.AST]) -> Iterator[Unit]:
    for node in body:
        if isinstance(node, _LEFT_OUT) or _is_text(node):
            continue
        yield Unit(tuple(_tokens(node)), getattr(node, "lineno", 0))
        for block in _BLOCKS:
            inside = getattr(node, block, None)
            if isinstance(inside, list):
                yield from _units(inside)


def _is_text(node: ast.AST) -> bool:
    """A docstring, or another text that stands alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _tokens(node: ast.AST) -> Iterator[str]:
    """The node and what is in it, without the statements inside."""
    match node:
        case ast.Name(id=name):
            yield name if name in _BUILTIN else "name"
            return
        case ast.Constant(value=str() | bytes()):
            yield "text"
            return
        case ast.Constant(value=value):
            yield repr(value)
            return
        case ast.Attribute(value=ast.Name(id=name)) if name in _OWN:
            yield "own attribute"
            return
        case ast.Attribute(attr=name):
            yield f".{name}"
        case ast.keyword(arg=name):
            yield f"{name}="
        case ast.AnnAssign():
            yield "Assign"
        case _:
            yield type(node).__name__
    inside_statement = isinstance(node, ast.stmt | ast.excepthandler | ast.match_case)
    for name, value in ast.iter_fields(node):
        if name in _NO_PART or (inside_statement and name in _BLOCKS):
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.AST):
                yield from _tokens(part)
