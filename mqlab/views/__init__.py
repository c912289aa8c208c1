"""What a notebook shows: tables, labelled bytes and diagrams, each with a plain-text twin."""

from .beliefs import Beliefs
from .budget_bars import BudgetBars
from .disk_table import disk_table
from .index_steps import index_steps
from .labelled_bytes import Field, LabelledBytes
from .layouts import label_consume_queue_entry, label_frame, label_record
from .send_strip import SendStrip
from .store_map import StoreMap
from .table import Table
from .torn_log import TornLog
from .waits import Waits
from .wire import FrameUnderWay, Wire

__all__ = [
    "Beliefs",
    "BudgetBars",
    "Field",
    "FrameUnderWay",
    "LabelledBytes",
    "SendStrip",
    "StoreMap",
    "Table",
    "TornLog",
    "Waits",
    "Wire",
    "disk_table",
    "index_steps",
    "label_consume_queue_entry",
    "label_frame",
    "label_record",
]
