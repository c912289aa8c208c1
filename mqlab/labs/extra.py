"""Packages of the extra `labs`, imported when they are needed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mqlab.errors import MissingExtraError

_GRAMMAR = "rfc3987_syntax"


def extra(package: str) -> Any:
    """The module of that name; raises MissingExtraError, which says how to install it."""
    try:
        with without_grammar():
            return importlib.import_module(package)
    except ModuleNotFoundError as missing:
        raise MissingExtraError(missing.name or package, "labs") from missing


@contextmanager
def without_grammar() -> Iterator[None]:
    """Within it jsonschema, which nbformat imports, does not find the grammar of international addresses.

    To build that grammar takes more than a second in each process, and no notebook is checked for such an address.
    """
    if _GRAMMAR in sys.modules:
        yield
        return
    sys.modules[_GRAMMAR] = None  # type: ignore[assignment]  # so Python says that there is no such module
    try:
        yield
    finally:
        del sys.modules[_GRAMMAR]
