"""What recording costs: time per event above emitting, beside libraries in C that are given the same ready rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.harness import Contender, Figure, figure, operations_per_second
from benchmarks.messages import events
from mqlab.trace.bus import Row
from mqlab.trace.catalogue import columns_of
from mqlab.trace.recorder import (
    BATCH_ROWS,
    LINES_BATCH_ROWS,
    JsonLinesRecorder,
    ParquetRecorder,
    Recorder,
    parquet_schema,
)


@cache
def _rows() -> list[Row]:
    return events()


def recorded(make: Callable[[Path], Recorder]) -> Contender:
    """Give every row to a recorder and close it."""

    def prepare() -> Callable[[], int]:
        rows, directory = _rows(), TemporaryDirectory()
        recorder = make(Path(directory.name, "trace"))

        def run() -> int:
            for row in rows:
                recorder(row)
            recorder.close()
            directory.cleanup()
            return len(rows)

        return run

    return prepare


def by_orjson() -> Callable[[], int]:
    """Write each row as the object that a recorder writes."""
    rows, directory, dumps = _rows(), TemporaryDirectory(), import_module("orjson").dumps
    columns = {row[7]: columns_of(row[7]) for row in rows}

    def run() -> int:
        with Path(directory.name, "trace").open("wb") as file:
            for first in range(0, len(rows), LINES_BATCH_ROWS):
                batch = rows[first : first + LINES_BATCH_ROWS]
                file.write(b"\n".join([dumps(dict(zip(columns[row[7]], row, strict=True))) for row in batch]))
        directory.cleanup()
        return len(rows)

    return run


def by_pyarrow() -> Callable[[], int]:
    """Write columns that are ready: a list for each field that occurs, None where a row has no such field."""
    arrow: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    rows, directory, schema = _rows(), TemporaryDirectory(), parquet_schema()
    batches = [rows[first : first + BATCH_ROWS] for first in range(0, len(rows), BATCH_ROWS)]
    columns = [_columns(batch) for batch in batches]

    def run() -> int:
        with parquet.ParquetWriter(str(Path(directory.name, "trace")), schema, compression="zstd") as writer:
            for ready, batch in zip(columns, batches, strict=True):
                arrays = [
                    arrow.array(ready[field.name], field.type)
                    if field.name in ready
                    else arrow.nulls(len(batch), field.type)
                    for field in schema
                ]
                writer.write_table(arrow.Table.from_arrays(arrays, schema=schema), row_group_size=BATCH_ROWS)
        directory.cleanup()
        return len(rows)

    return run


def _columns(rows: list[Row]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for place, row in enumerate(rows):
        for name, value in zip(columns_of(row[7]), row, strict=True):
            columns.setdefault(name, [None] * len(rows))[place] = value
    return columns


def recording() -> list[Figure]:
    """Time per event above emitting: JSON lines beside orjson, Parquet beside pyarrow."""
    rates = operations_per_second(
        {
            "json": recorded(JsonLinesRecorder),
            "orjson": by_orjson,
            "parquet": recorded(ParquetRecorder),
            "pyarrow": by_pyarrow,
        }
    )
    return [
        _per_event("recording to JSON lines / orjson", rates["json"], rates["orjson"], 1.2),
        _per_event("recording to Parquet / pyarrow", rates["parquet"], rates["pyarrow"], 1.5),
    ]


def _per_event(name: str, rate: float, peer: float, aim: float) -> Figure:
    return figure(name, 1e6 / rate, "us/event", versus=1e6 / peer, aim=aim, better="lower")
