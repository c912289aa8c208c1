"""Keys of code: what a table depends on beside its rows. Docstrings and comments are no part of it."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec

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
        tree = _tree(name)
        if name.partition(".")[0] == OURS:
            new = [found for found in _imported(tree) if found not in seen]
            seen.update(new)
            waiting += new
    for name in sorted(seen):
        digest.update(f"{name}\n{ast.dump(_tree(name))}\n".encode())
    return digest.hexdigest()


@cache
def _tree(module: str) -> ast.Module:
    """A module's code without its texts that are no values: docstrings, and those behind constants."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.loader is not None
    source = spec.loader.get_source(module)  # type: ignore[attr-defined]
    tree = ast.parse(source or "")
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _is_text(each)]  # type: ignore[attr-defined]
    return tree


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _imported(tree: ast.Module) -> Iterator[str]:
    """The modules of ours and of mqlab that are imported, those behind names of packages with them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in (OURS, WORLD):
            yield node.module
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                if find_spec(node.module).submodule_search_locations and find_spec(inner):  # type: ignore[union-attr]
                    yield inner
