"""The live views of mqlab: widgets that show a world while it plays."""

from typing import TYPE_CHECKING

from mqlab.lazy import lazy_names

if TYPE_CHECKING:
    from mqlab_widgets.boards.board import Board
    from mqlab_widgets.stepper import Stepper

__all__ = ["Board", "Stepper"]

_HOMES = {"Board": "boards.board", "Stepper": "stepper"}
"""Where the public names come from; they are imported when first used, as charts need no widgets."""

__getattr__ = lazy_names(__name__, _HOMES)
