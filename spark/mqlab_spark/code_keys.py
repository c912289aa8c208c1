"""Keys of code: what a table depends on beside its rows. Docstrings and comments are no part of it."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from zipimport import zipimporter

from mqlab import __version__

OURS, WORLD = "mqlab_spark", "mqlab"


@cache
def code_key(*modules: str) -> str:
    """The key of what these modules do: of their code and of that of all modules of mqlab_spark that they import.

    Of mqlab itself the modules that are imported there count, too, and beyond them its version.
    """
    digest = hashlib.blake2b(__version__.encode(), digest_size=8)
    waiting, seen = list(modules), set(modules)
    while waiting:
        name = waiting.pop()
        if name.partition(".")[0] == OURS:
            new = set(_imported(_tree(name))) - seen
            seen |= new
            waiting += new
    for name in sorted(seen):
        digest.update(f"{name}\n{ast.dump(_tree(name))}\n".encode())
    return digest.hexdigest()


class _WithoutTexts(ast.NodeTransformer):
    """Takes out the texts that are no values: docstrings, and those behind constants."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else node


@cache
def _tree(module: str) -> ast.AST:
    """A module's code."""
    loader = _spec(module).loader
    assert isinstance(loader, InspectLoader | zipimporter)
    tree: ast.AST = _WithoutTexts().visit(ast.parse(loader.get_source(module) or ""))
    return tree


def _spec(module: str) -> ModuleSpec:
    spec = find_spec(module)
    assert spec is not None
    return spec


def _imported(tree: ast.AST) -> Iterator[str]:
    """The modules of ours and of mqlab that are imported, those behind names of packages with them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in (OURS, WORLD):
            yield node.module
            if _spec(node.module).submodule_search_locations:
                inner = (f"{node.module}.{name.name}" for name in node.names)
                yield from (name for name in inner if find_spec(name))
