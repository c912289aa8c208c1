"""The live views of mqlab: widgets that show a world while it plays."""

from typing import TYPE_CHECKING

from mqlab.lazy import lazy_names

if TYPE_CHECKING:
    from mqlab_widgets.boards.board import Board, TableBoard
    from mqlab_widgets.boards.check_points import CheckPointsBoard
    from mqlab_widgets.boards.filters import FiltersBoard
    from mqlab_widgets.boards.flow_control import FlowControlBoard
    from mqlab_widgets.boards.held_pulls import HeldPullsBoard
    from mqlab_widgets.boards.lights import LightsBoard
    from mqlab_widgets.boards.merge_buffer import MergeBufferBoard
    from mqlab_widgets.boards.offsets import OffsetsBoard
    from mqlab_widgets.boards.ordered_pops import OrderedPopsBoard
    from mqlab_widgets.boards.owners import OwnersBoard
    from mqlab_widgets.boards.pop_records import PopRecordsBoard
    from mqlab_widgets.boards.popped_messages import PoppedMessagesBoard
    from mqlab_widgets.boards.replication import ReplicationBoard
    from mqlab_widgets.boards.responses import ResponsesBoard
    from mqlab_widgets.boards.revive_queue import ReviveQueueBoard
    from mqlab_widgets.boards.revive_ruler import ReviveRulerBoard
    from mqlab_widgets.boards.routes import RoutesBoard
    from mqlab_widgets.boards.space_time import SpaceTimeBoard
    from mqlab_widgets.boards.timer_wheel import TimerWheelBoard
    from mqlab_widgets.boards.transactions import TransactionsBoard
    from mqlab_widgets.settings import Settings
    from mqlab_widgets.side_by_side import SideBySide
    from mqlab_widgets.stepper import Stepper
    from mqlab_widgets.storyboard import storyboard
    from mqlab_widgets.world_charts import WorldCharts

__all__ = [
    "Board",
    "CheckPointsBoard",
    "FiltersBoard",
    "FlowControlBoard",
    "HeldPullsBoard",
    "LightsBoard",
    "MergeBufferBoard",
    "OffsetsBoard",
    "OrderedPopsBoard",
    "OwnersBoard",
    "PopRecordsBoard",
    "PoppedMessagesBoard",
    "ReplicationBoard",
    "ResponsesBoard",
    "ReviveQueueBoard",
    "ReviveRulerBoard",
    "RoutesBoard",
    "Settings",
    "SideBySide",
    "SpaceTimeBoard",
    "Stepper",
    "TableBoard",
    "TimerWheelBoard",
    "TransactionsBoard",
    "WorldCharts",
    "storyboard",
]

_HOMES = {
    "Board": "boards.board",
    "CheckPointsBoard": "boards.check_points",
    "FiltersBoard": "boards.filters",
    "FlowControlBoard": "boards.flow_control",
    "HeldPullsBoard": "boards.held_pulls",
    "LightsBoard": "boards.lights",
    "MergeBufferBoard": "boards.merge_buffer",
    "OffsetsBoard": "boards.offsets",
    "OrderedPopsBoard": "boards.ordered_pops",
    "OwnersBoard": "boards.owners",
    "PopRecordsBoard": "boards.pop_records",
    "PoppedMessagesBoard": "boards.popped_messages",
    "ReplicationBoard": "boards.replication",
    "ResponsesBoard": "boards.responses",
    "ReviveQueueBoard": "boards.revive_queue",
    "ReviveRulerBoard": "boards.revive_ruler",
    "RoutesBoard": "boards.routes",
    "Settings": "settings",
    "SideBySide": "side_by_side",
    "SpaceTimeBoard": "boards.space_time",
    "Stepper": "stepper",
    "TableBoard": "boards.board",
    "TimerWheelBoard": "boards.timer_wheel",
    "TransactionsBoard": "boards.transactions",
    "WorldCharts": "world_charts",
    "storyboard": "storyboard",
}
"""Where the public names come from; they are imported when first used, as charts need no widgets."""

__getattr__ = lazy_names(__name__, _HOMES)
