"""The input contract: what a trace must be like to come in, and what is said of one that is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from mqlab.errors import ProtocolError
from mqlab.trace.bus import Row
from mqlab.trace.recorded import check_whole, read_json_lines, read_parquet
from mqlab.trace.recorder import JsonLinesRecorder, ParquetRecorder
from mqlab_spark.contract import kind_schema, read_events, read_header
from mqlab_spark.storage import folder
from tests.spark.test_schema import one_of_each, record

Change = Callable[[pa.Table], pa.Table]


def events_in(path: Path) -> list[Row]:
    """All that the contract lets in, as rows of the trace, in the order of their places."""
    there, rows = folder(path.parent), []
    read_header(there, path.name)
    for batch in read_events(there, path.name):
        for kind, table in batch.tables.items():
            for values in table.to_pylist():
                common = [values.pop(name) for name in kind_schema(kind).names[:7]]
                rows.append((*common, kind, *values.values()))
    return sorted(rows)


def own_rows() -> list[Row]:
    """One event of each kind, in an order that a world can have."""
    return [(n, 0, n * 10, *row[3:]) for n, row in enumerate(one_of_each())]


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    record(JsonLinesRecorder(tmp_path / "a.jsonl"), own_rows())
    return tmp_path / "a.jsonl"


@pytest.fixture
def columns(tmp_path: Path) -> Path:
    record(ParquetRecorder(tmp_path / "a.parquet"), own_rows())
    return tmp_path / "a.parquet"


def changed(path: Path, change: Change) -> Path:
    """The same Parquet file with a table that was changed, and the metadata of the first."""
    table = parquet.read_table(path)
    metadata = parquet.read_metadata(path).metadata
    new = change(table)
    told = {**metadata, b"mqlab_end": str(new.num_rows).encode()}
    told.pop(b"ARROW:schema", None)
    parquet.write_table(new.replace_schema_metadata(told), path)
    return path


def test_both_kinds_of_file_come_in_as_they_were_written(lines: Path, columns: Path) -> None:
    wanted = own_rows()
    assert events_in(lines) == wanted
    assert events_in(columns) == wanted
    assert Counter(row[7] for row in wanted).most_common(1)[0][1] == 1, "one of each kind"


def _cast(name: str, column_type: pa.DataType) -> Change:
    def change(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(name)
        return table.set_column(at, name, table.column(name).cast(column_type))

    return change


def test_narrower_numbers_and_texts_with_a_dictionary_come_in(columns: Path) -> None:
    changed(columns, _cast("slice", pa.int32()))
    changed(columns, lambda table: table.set_column(
        table.schema.get_field_index("topic"), "topic", table.column("topic").dictionary_encode()
    ))  # fmt: skip
    assert events_in(columns) == own_rows()


def test_rows_in_any_order_come_in(columns: Path) -> None:
    changed(columns, lambda table: table.take(list(reversed(range(table.num_rows)))))
    assert events_in(columns) == own_rows()


def _set(name: str, row: int, value: Any) -> Change:
    def change(table: pa.Table) -> pa.Table:
        values = table.column(name).to_pylist()
        values[row] = value
        field = pa.field(name, table.schema.field(name).type)
        return table.set_column(table.schema.get_field_index(name), field, pa.array(values, field.type))

    return change


BAD_TABLES: list[tuple[Change, str]] = [
    (lambda table: table.drop_columns(["task"]), "has no column task, which every event has"),
    (_cast("queue_offset", pa.string()), "has a column queue_offset of string; it must be int"),
    (_cast("slice", pa.float64()), "has a column slice of double; it must be int"),
    (_set("kind", 3, "NobodyKnows"), "knows no event kind 'NobodyKnows'"),
    (_set("node", 3, None), "event 4: its node is null"),
    (lambda table: table.drop_columns(["unique_key"]), r"has no (column )?unique_key for"),
]
"""What Python's own reader refuses, too."""


@pytest.mark.parametrize(("change", "words"), BAD_TABLES, ids=[words for _, words in BAD_TABLES])
def test_a_parquet_trace_that_is_not_what_it_should_be_is_refused_by_both_readers(
    columns: Path, change: Change, words: str
) -> None:
    changed(columns, change)
    with pytest.raises(ProtocolError, match=words):
        events_in(columns)
    with pytest.raises(ProtocolError):
        list(read_parquet(columns))


def test_an_event_without_one_of_its_fields_is_refused(columns: Path) -> None:
    rows = own_rows()
    at = next(n for n, row in enumerate(rows) if row[7] == "MessageStored")
    changed(columns, _set("topic", at, None))
    with pytest.raises(ProtocolError, match=rf"event {at + 1}: MessageStored\.topic is null"):
        events_in(columns)
    with pytest.raises(ProtocolError, match="topic"):
        list(read_parquet(columns))


TWICE: list[tuple[Change, str]] = [
    (lambda table: pa.concat_tables([table, table]), "two events at one place, slice 0, i 0"),
    (lambda table: pa.concat_tables([table.slice(0, 9), table.slice(8)]), "two events at one place, slice 8, i 0"),
]


@pytest.mark.parametrize(("change", "words"), TWICE, ids=["all rows", "a row"])
def test_rows_that_come_twice_are_refused(columns: Path, change: Change, words: str) -> None:
    changed(columns, change)
    with pytest.raises(ProtocolError, match=words):
        events_in(columns)


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_clock_that_goes_back_is_refused(columns: Path, shuffled: bool) -> None:
    def change(table: pa.Table) -> pa.Table:
        table = _set("ts_us", 30, 1)(_set("node", 30, "broker-a")(_set("node", 20, "broker-a")(table)))
        return table.take(list(reversed(range(table.num_rows)))) if shuffled else table

    changed(columns, change)
    with pytest.raises(ProtocolError, match=r"the clock of broker-a goes back from .* to 1 us"):
        events_in(columns)


def test_clocks_of_different_machines_may_differ(columns: Path) -> None:
    """They are compared with each other behind this, by the table of clocks."""

    changed(columns, lambda table: _set("ts_us", 30, 1)(_set("node", 30, "consumer-1")(table)))
    assert len(events_in(columns)) == len(own_rows())


def test_a_damaged_page_is_said_plainly(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    record(ParquetRecorder(path), [(n, 0, n, f"machine-{n * n}", *own_rows()[0][4:]) for n in range(5_000)])
    whole = bytearray(path.read_bytes())
    middle = len(whole) // 3
    whole[middle : middle + 64] = bytes(64)
    path.write_bytes(whole)
    with pytest.raises(ProtocolError, match="damaged"):
        events_in(path)


BAD_LINES: list[tuple[Callable[[list[str]], list[str]], str]] = [
    (lambda lines: [*lines[:9], *lines[19:]], "but its end mark counts"),
    (lambda lines: lines[:-1], "it has no end mark|has .* events and no end mark"),
    (lambda lines: [*lines[:4], "{not an event\n", *lines[5:]], "line 5: this is not an event"),
    (lambda lines: [*lines[:4], lines[4].replace('"kind":"', '"kind":"Un'), *lines[5:]], "knows no event kind 'Un"),
    (lambda lines: [*lines[:4], lines[4].replace('"ts_us":30', '"ts_us":"30"'), *lines[5:]], "it must be exactly int"),
    (lambda lines: [*lines[:4], lines[4].replace('"ts_us":30,', ""), *lines[5:]], r"\(ts_us\)"),
]


@pytest.mark.parametrize(("change", "words"), BAD_LINES, ids=[words for _, words in BAD_LINES])
def test_lines_that_are_not_what_they_should_be_are_refused_by_both_readers(
    lines: Path, change: Callable[[list[str]], list[str]], words: str
) -> None:
    lines.write_text("".join(change(lines.read_text("ascii").splitlines(keepends=True))), "ascii")
    with pytest.raises(ProtocolError, match=words):
        events_in(lines)
    with pytest.raises(ProtocolError, match=words):
        list(read_json_lines(lines))


def test_a_hole_in_the_lines_shows_without_reading_the_events(lines: Path) -> None:
    told = lines.read_text("ascii").splitlines(keepends=True)
    assert check_whole(lines)["end_mark"]
    lines.write_text("".join([*told[:9], *told[10:]]), "ascii")
    with pytest.raises(ProtocolError, match="but its end mark counts"):
        check_whole(lines)
