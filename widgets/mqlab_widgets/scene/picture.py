"""Which picture a view shows of its world: what is folded for it, how it is drawn, and what moves in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from mqlab_widgets.boards.stage import StageBoard
from mqlab_widgets.scene.acts import Moves, acts_of
from mqlab_widgets.scene.scene import Look, Scene, scene_of

if TYPE_CHECKING:
    from mqlab.trace.record import Record


class Picture(NamedTuple):
    """A board; the scene that is drawn from it, perhaps with what is as it was in the scene before; and what an event
    moves, of which the board knows already, in the scene that was drawn last.
    """

    board: type[StageBoard]
    scene_of: Callable[[StageBoard, Look, Scene | None], Scene]
    moves_of: Callable[[Record, StageBoard, Scene], Moves]


STAGE = Picture(StageBoard, scene_of, acts_of)
"""The machines, what lies in them, and what is on its way."""
