"""Names of a package that are imported when somebody first asks for them, so that importing the package stays quick."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str], modules: Collection[str] = ()) -> Callable[[str], Any]:
    """The `__getattr__` of a package: `homes` says in which of its modules each name is, `modules` are asked for whole.

    What was asked for once stands in the package from then on.
    """

    def module_getattr(name: str) -> Any:
        from importlib import import_module

        if name in homes:
            value = getattr(import_module(f".{homes[name]}", package), name)
            setattr(sys.modules[package], name, value)
            return value
        if name in modules:
            return import_module(f".{name}", package)
        raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])

    return module_getattr
