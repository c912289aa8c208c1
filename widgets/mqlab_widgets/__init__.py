"""The live views of mqlab: widgets that show a world while it plays."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .boards.board import Board
    from .stepper import Stepper

__all__ = ["Board", "Stepper"]

_HOMES = {"Board": "boards.board", "Stepper": "stepper"}
"""Where the public names come from; they are imported when first used, as charts need no widgets."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
