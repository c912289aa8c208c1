"""The typed headers of every command, one file per area; `table` says which code goes with which header.

These files do without `from __future__ import annotations`: a NamedTuple would compile each of those texts on import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mqlab.protocol.headers.admin import *  # noqa: F403
    from mqlab.protocol.headers.client import *  # noqa: F403
    from mqlab.protocol.headers.namesrv import *  # noqa: F403
    from mqlab.protocol.headers.offset import *  # noqa: F403
    from mqlab.protocol.headers.pop import *  # noqa: F403
    from mqlab.protocol.headers.pull import *  # noqa: F403
    from mqlab.protocol.headers.send import *  # noqa: F403
    from mqlab.protocol.headers.transaction import *  # noqa: F403

_AREAS = ("client", "namesrv", "offset", "pull", "send", "pop", "admin", "transaction")
"""Where a name is looked for when it is first asked for, those that every world needs first."""


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and name not in _AREAS:
        for area in _AREAS:
            module = import_module(f"{__name__}.{area}")
            if hasattr(module, name):
                return globals().setdefault(name, getattr(module, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
