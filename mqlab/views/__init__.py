"""What a notebook shows: tables, labelled bytes and diagrams, each with a plain-text twin."""

from .beliefs import Beliefs
from .budget_bars import BudgetBars
from .disk_table import disk_table
from .duplicates import duplicates_table, offsets_table
from .flow_gauges import FlowGauges, Gauge
from .flow_meter import FlowMeter
from .holds import Hold, Holds
from .index_steps import index_steps
from .journey import Journey
from .labelled_bytes import Field, LabelledBytes
from .layouts import label_consume_queue_entry, label_frame, label_record
from .ownership import Ownership
from .rivals import Rival, RivalMeter, RivalsChart
from .send_strip import SendStrip
from .send_waits import SendWaits
from .store_map import StoreMap
from .table import Table
from .task_runs import TaskRuns
from .time_chart import Limit, Series, TimeChart
from .torn_log import TornLog
from .waits import Waits
from .wire import FrameUnderWay, Wire

__all__ = [
    "Beliefs",
    "BudgetBars",
    "Field",
    "FlowGauges",
    "FlowMeter",
    "FrameUnderWay",
    "Gauge",
    "Hold",
    "Holds",
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
    "StoreMap",
    "Table",
    "TaskRuns",
    "TimeChart",
    "TornLog",
    "Waits",
    "Wire",
    "disk_table",
    "duplicates_table",
    "index_steps",
    "label_consume_queue_entry",
    "label_frame",
    "label_record",
    "offsets_table",
]
