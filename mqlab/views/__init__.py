"""What a notebook shows: tables, labelled bytes and diagrams, each with a plain-text twin."""

from typing import TYPE_CHECKING

from mqlab.lazy import lazy_names
from mqlab.views.disk_table import disk_table
from mqlab.views.index_steps import index_steps
from mqlab.views.labelled_bytes import Field, LabelledBytes
from mqlab.views.layouts import label_consume_queue_entry, label_frame, label_record
from mqlab.views.table import Table
from mqlab.views.wire import FrameUnderWay, Wire, command_in

if TYPE_CHECKING:
    from mqlab.views.beliefs import Beliefs
    from mqlab.views.budget_bars import BudgetBars
    from mqlab.views.delays import Delay, Delays
    from mqlab.views.duplicates import duplicates_table, offsets_table
    from mqlab.views.flow_gauges import FlowGauges, Gauge
    from mqlab.views.flow_meter import FlowMeter
    from mqlab.views.half_lives import HalfLives
    from mqlab.views.holds import Hold, Holds
    from mqlab.views.in_hand import InHand
    from mqlab.views.journey import Journey
    from mqlab.views.ownership import Ownership
    from mqlab.views.rivals import Rival, RivalMeter, RivalsChart
    from mqlab.views.send_strip import SendStrip
    from mqlab.views.send_waits import SendWaits
    from mqlab.views.share_window import ShareWindow
    from mqlab.views.step_bars import StepBars, Work
    from mqlab.views.store_map import StoreMap
    from mqlab.views.task_runs import TaskRuns
    from mqlab.views.time_chart import Limit, Series, TimeChart
    from mqlab.views.torn_log import TornLog
    from mqlab.views.waits import Waits
    from mqlab.views.whereabouts import Whereabouts

_LATER = {
    "Beliefs": "beliefs",
    "BudgetBars": "budget_bars",
    "Delay": "delays",
    "Delays": "delays",
    "FlowGauges": "flow_gauges",
    "FlowMeter": "flow_meter",
    "Gauge": "flow_gauges",
    "HalfLives": "half_lives",
    "Hold": "holds",
    "Holds": "holds",
    "InHand": "in_hand",
    "Journey": "journey",
    "Limit": "time_chart",
    "Ownership": "ownership",
    "Rival": "rivals",
    "RivalMeter": "rivals",
    "RivalsChart": "rivals",
    "SendStrip": "send_strip",
    "SendWaits": "send_waits",
    "ShareWindow": "share_window",
    "Series": "time_chart",
    "StepBars": "step_bars",
    "StoreMap": "store_map",
    "TaskRuns": "task_runs",
    "TimeChart": "time_chart",
    "TornLog": "torn_log",
    "Waits": "waits",
    "Whereabouts": "whereabouts",
    "Work": "step_bars",
    "duplicates_table": "duplicates",
    "offsets_table": "duplicates",
}
"""Where the larger views come from: they are imported when first used, which keeps `import mqlab` light."""

__all__ = [
    "Beliefs",
    "BudgetBars",
    "Delay",
    "Delays",
    "Field",
    "FlowGauges",
    "FlowMeter",
    "FrameUnderWay",
    "Gauge",
    "HalfLives",
    "Hold",
    "Holds",
    "InHand",
    "Journey",
    "LabelledBytes",
    "Limit",
    "Ownership",
    "Rival",
    "RivalMeter",
    "RivalsChart",
    "SendStrip",
    "SendWaits",
    "Series",
    "ShareWindow",
    "StepBars",
    "StoreMap",
    "Table",
    "TaskRuns",
    "TimeChart",
    "TornLog",
    "Waits",
    "Whereabouts",
    "Wire",
    "Work",
    "command_in",
    "disk_table",
    "duplicates_table",
    "index_steps",
    "label_consume_queue_entry",
    "label_frame",
    "label_record",
    "offsets_table",
]

__getattr__ = lazy_names(__name__, _LATER)
