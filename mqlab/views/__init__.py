"""What a notebook shows: tables, labelled bytes and diagrams, each with a plain-text twin."""

from .labelled_bytes import Field, LabelledBytes
from .layouts import label_consume_queue_entry, label_frame, label_record
from .table import Table

__all__ = ["Field", "LabelledBytes", "Table", "label_consume_queue_entry", "label_frame", "label_record"]
