"""Names of a package that are imported when somebody first asks for them, so that importing the package stays quick."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str], modules: Collection[str] = ()) -> Callable[[str], Any]:
    """The `__getattr__` of a package: `homes` says in which of its modules each name is, `modules` are asked for whole.

    What was asked for once stands in the package from then on.
    """

    def module_getattr(name: str) -> Any:
        if name in homes:
            value = getattr(import_module(f".{homes[name]}", package), name)
            setattr(sys.modules[package], name, value)
            return value
        if name in modules:
            return import_module(f".{name}", package)
        raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])

    return module_getattr


def names_of_areas(package: str, areas: Sequence[str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package that has all public names of its modules `areas`: the first one that knows a name
    has it, so those that every world needs stand first.
    """

    def module_getattr(name: str) -> Any:
        own = sys.modules[package]
        # A module of the package is no name that an area has: Python imports it when it is told that there is none.
        if not name.startswith("_") and PathFinder.find_spec(f"{package}.{name}", own.__path__) is None:
            for area in areas:
                module = import_module(f"{package}.{area}")
                if hasattr(module, name):
                    return vars(own).setdefault(name, getattr(module, name))
        raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=own)

    return module_getattr
