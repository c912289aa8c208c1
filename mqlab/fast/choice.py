"""Compiled or from source: what is imported where an installed mqlab has both, as a compiled wheel does.

Python takes a compiled module rather than its source. A notebook wants the sources: source lines of events, hints for
arguments of a wrong type, methods that can be replaced. So a kernel, and all that it starts, takes them; so does
marking. Everywhere else, as in `mqlab explore`, compiled modules run. MQLAB_COMPILED=0 or 1 says it for all. The events
of a world are the same either way.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType

VARIABLE = "MQLAB_COMPILED"
NO, YES = "0", "1"
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Sources:
    """A finder that knows the sources of mqlab alone."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The source of a module of mqlab; of all other modules it knows nothing."""
        if path is None or not name.startswith("mqlab."):
            return None
        found = (FileFinder(place, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name, target) for place in path)
        return next((spec for spec in found if spec is not None), None)


def has_compiled(package: str = PACKAGE) -> bool:
    """Whether compiled modules lie beside the sources of a package mqlab."""
    # A Python that loads no compiled modules has no ending for them.
    return any(os.path.exists(os.path.join(package, "sim", f"world{ending}")) for ending in EXTENSION_SUFFIXES[:1])


def choose() -> None:
    """Decide, when mqlab itself is imported and no other module of it is."""
    if has_compiled() and ("ipykernel" in sys.modules or os.environ.get(VARIABLE) == NO):
        take_sources()


def take_sources() -> None:
    """Import from source, in this process and in those that it starts, unless MQLAB_COMPILED says otherwise."""
    if has_compiled() and os.environ.setdefault(VARIABLE, NO) == NO and Sources not in sys.meta_path:
        sys.meta_path.insert(0, Sources)
