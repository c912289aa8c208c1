"""The live views of mqlab: widgets that show a world while it plays."""

from typing import TYPE_CHECKING

from mqlab.lazy import lazy_names

if TYPE_CHECKING:
    from mqlab_widgets.boards.board import Board
    from mqlab_widgets.boards.flow_control import FlowControlBoard
    from mqlab_widgets.boards.held_pulls import HeldPullsBoard
    from mqlab_widgets.boards.lights import LightsBoard
    from mqlab_widgets.boards.offsets import OffsetsBoard
    from mqlab_widgets.boards.owners import OwnersBoard
    from mqlab_widgets.boards.responses import ResponsesBoard
    from mqlab_widgets.boards.routes import RoutesBoard
    from mqlab_widgets.boards.space_time import SpaceTimeBoard
    from mqlab_widgets.boards.timer_wheel import TimerWheelBoard
    from mqlab_widgets.stepper import Stepper
    from mqlab_widgets.world_charts import WorldCharts

__all__ = [
    "Board",
    "FlowControlBoard",
    "HeldPullsBoard",
    "LightsBoard",
    "OffsetsBoard",
    "OwnersBoard",
    "ResponsesBoard",
    "RoutesBoard",
    "SpaceTimeBoard",
    "Stepper",
    "TimerWheelBoard",
    "WorldCharts",
]

_HOMES = {
    "Board": "boards.board",
    "FlowControlBoard": "boards.flow_control",
    "HeldPullsBoard": "boards.held_pulls",
    "LightsBoard": "boards.lights",
    "OffsetsBoard": "boards.offsets",
    "OwnersBoard": "boards.owners",
    "ResponsesBoard": "boards.responses",
    "RoutesBoard": "boards.routes",
    "SpaceTimeBoard": "boards.space_time",
    "Stepper": "stepper",
    "TimerWheelBoard": "boards.timer_wheel",
    "WorldCharts": "world_charts",
}
"""Where the public names come from; they are imported when first used, as charts need no widgets."""

__getattr__ = lazy_names(__name__, _HOMES)
