"""Everything that is worth seeing in a world, as one stream of typed events, and what reads it.

Parts publish events on the `bus`. `History` keeps them, `Record` reads one, `Breakpoint` waits for one, `View` folds
them into a picture, `Monitor` judges them, the recorders write them to files. `CATALOGUE` is the index of all kinds.
"""

from typing import TYPE_CHECKING, Any

_HOME = {
    "Bus": "bus",
    "COMMON_FIELDS": "bus",
    "Row": "bus",
    "CATALOGUE": "catalogue",
    "SCHEMA_VERSION": "catalogue",
    "field_types": "catalogue",
    "fields_of": "catalogue",
    "kind_name": "catalogue",
    "schema": "catalogue",
    "Breakpoint": "breakpoints",
    "History": "history",
    "Record": "record",
    "records": "record",
    "format_trace": "record",
    "TraceDigest": "digest",
    "Folded": "view",
    "View": "view",
    "JsonLinesRecorder": "recorder",
    "ParquetRecorder": "recorder",
    "json_lines_to_parquet": "recorder",
    "read_header": "recorder",
    "read_json_lines": "recorder",
    "read_parquet": "recorder",
    "Monitor": "monitors",
    "Violation": "monitors",
}
"""The public names and the module of each; imported when first used, because a world needs only the bus."""

__all__ = [*_HOME]

if TYPE_CHECKING:
    from .breakpoints import Breakpoint
    from .bus import COMMON_FIELDS, Bus, Row
    from .catalogue import CATALOGUE, SCHEMA_VERSION, field_types, fields_of, kind_name, schema
    from .digest import TraceDigest
    from .history import History
    from .monitors import Monitor, Violation
    from .record import Record, format_trace, records
    from .recorder import (
        JsonLinesRecorder,
        ParquetRecorder,
        json_lines_to_parquet,
        read_header,
        read_json_lines,
        read_parquet,
    )
    from .view import Folded, View


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _HOME:
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'mqlab.trace' has no attribute {name!r}")
