"""Packages of the extra `labs`, imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from mqlab.errors import MissingExtraError


def extra(package: str) -> Any:
    """The module of that name; raises MissingExtraError, which says how to install it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as missing:
        raise MissingExtraError(missing.name or package, "labs") from missing
