"""Traces in files."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest

from mqlab.errors import LearnerError, MissingExtraError, ProtocolError
from mqlab.trace.bus import Row
from mqlab.trace.catalogue import CATALOGUE, SCHEMA_VERSION, CatalogueError, field_types
from mqlab.trace.recorded import check_whole, json_lines_to_parquet, read_header, read_json_lines, read_parquet
from mqlab.trace.recorder import BATCH_ROWS, JsonLinesRecorder, ParquetRecorder, Recorder

SAMPLES: dict[str, Any] = {"int": -(2**40), "str": 'a "quoted"\n\x00 text, 中文 \ud800', "bool": True}


class Answer(IntEnum):
    """An enum is not an int here."""

    NO = 0


def one_of_each() -> list[Row]:
    """A row of every kind there is, with awkward values."""
    rows = []
    for n, (kind, made) in enumerate(CATALOGUE.items()):
        fields = [SAMPLES[field_types()[field]] for field in made._fields]
        rows.append((n, n % 2, n * 1_000, "broker-a", "task 1", n - 1, 0, kind, *fields))
    return rows


def sendable(rows: list[Row]) -> list[Row]:
    """The rows with question marks for lone surrogates, which Parquet's UTF-8 cannot hold."""
    return [tuple(v.replace("\ud800", "?") if isinstance(v, str) else v for v in row) for row in rows]


def record(recorder: Recorder, rows: list[Row]) -> None:
    with recorder:
        for row in rows:
            recorder(row)


def test_json_lines_hold_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    record(JsonLinesRecorder(path, {"seed": 7}), one_of_each())
    assert list(read_json_lines(path)) == one_of_each()


def test_parquet_holds_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    record(ParquetRecorder(path, {"seed": 7}), one_of_each())
    assert one_of_each() != sendable(one_of_each())
    assert list(read_parquet(path)) == sendable(one_of_each())


def test_the_first_line_is_a_header_and_each_other_line_has_the_fields_of_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    record(JsonLinesRecorder(path, {"seed": 7}), [(3, 0, 5, "broker-a", "x", -1, -1, "BrokerShutDown", "broker-a", 0)])
    header, line, end = path.read_text().splitlines()
    assert json.loads(header) == read_header(path)
    assert read_header(path) == {"mqlab_trace": 2, "mqlab": "0.1.0", "end_mark": True, "metadata": {"seed": 7}}
    assert line == (
        '{"slice":3,"i":0,"ts_us":5,"node":"broker-a","task":"x","cause_slice":-1,"cause_i":-1,'
        '"kind":"BrokerShutDown","broker_name":"broker-a","broker_id":0}'
    )
    assert end == '{"mqlab_end": 1}'


def test_both_files_hold_the_same_events_and_metadata(tmp_path: Path) -> None:
    rows = sendable(one_of_each()) * 300
    source, target = tmp_path / "trace.jsonl", tmp_path / "trace.parquet"
    record(JsonLinesRecorder(source, {"seed": 7}), rows)
    assert json_lines_to_parquet(source, target) == len(rows) > 2 * BATCH_ROWS
    assert list(read_parquet(target)) == list(read_json_lines(source)) == rows
    assert read_header(target) == read_header(source)


def test_parquet_has_a_column_for_each_field_and_null_where_a_kind_has_none(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    path = tmp_path / "trace.parquet"
    record(ParquetRecorder(path), [(3, 0, 5, "broker-a", "x", -1, -1, "BrokerShutDown", "broker-a", 0)])
    table = pq.read_table(path)
    assert table.num_rows == 1
    assert [f.name for f in table.schema if not f.nullable] == [
        "slice", "i", "ts_us", "node", "task", "cause_slice", "cause_i", "kind",
    ]  # fmt: skip
    assert table.column_names[8:] == list(field_types())
    assert table["broker_id"].to_pylist() == [0]
    assert table["topic"].to_pylist() == [None]


def test_an_empty_trace_is_a_trace(tmp_path: Path) -> None:
    record(JsonLinesRecorder(tmp_path / "t.jsonl"), [])
    record(ParquetRecorder(tmp_path / "t.parquet"), [])
    assert list(read_json_lines(tmp_path / "t.jsonl")) == list(read_parquet(tmp_path / "t.parquet")) == []


def test_a_recorder_counts_and_may_be_closed_twice(tmp_path: Path) -> None:
    recorder = JsonLinesRecorder(tmp_path / "t.jsonl")
    recorder((3, 0, 5, "broker-a", "x", -1, -1, "BrokerShutDown", "broker-a", 0))
    recorder.close()
    recorder.close()
    assert recorder.count == 1


@pytest.mark.parametrize("value", [0.5, True, "0", None, Answer.NO])
def test_what_no_trace_can_hold_is_refused_by_name(tmp_path: Path, value: Any) -> None:
    row = (3, 0, 5, "broker-a", "x", -1, -1, "BrokerShutDown", "broker-a", value)
    with pytest.raises(CatalogueError, match=re.escape(f"BrokerShutDown.broker_id is {value!r}")):
        record(JsonLinesRecorder(tmp_path / "t.jsonl"), [row])


RECORDERS = [("t.jsonl", JsonLinesRecorder, read_json_lines), ("t.parquet", ParquetRecorder, read_parquet)]


def interrupted(recorder: Recorder, rows: list[Row]) -> None:
    """What the stop button does to a recording."""
    for row in rows:
        recorder(row)
    with pytest.raises(KeyboardInterrupt), recorder:
        raise KeyboardInterrupt


@pytest.mark.parametrize(("name", "recorder", "read"), RECORDERS)
def test_a_recording_that_was_interrupted_is_not_taken_as_whole_and_keeps_what_it_has(
    tmp_path: Path, name: str, recorder: Callable[[Path], Recorder], read: Callable[..., Iterator[Row]]
) -> None:
    path = tmp_path / name
    rows = sendable(one_of_each())[:21]
    record(recorder(path), rows[:5])
    interrupted(recorder(path), rows)
    if name == "t.parquet":
        assert not path.exists(), "an older recording must not pass for this one"
        path = tmp_path / "_t.parquet.unfinished"
    with pytest.raises(ProtocolError, match=r"not whole.*whole=False"):
        list(read(path))
    with pytest.raises(ProtocolError, match="not whole"):
        check_whole(path)
    assert list(read(path, whole=False)) == rows


@pytest.mark.parametrize(("name", "recorder", "read"), RECORDERS)
def test_a_recorder_whose_last_rows_cannot_be_written_leaves_nothing_that_looks_whole(
    tmp_path: Path, name: str, recorder: Callable[[Path], Recorder], read: Callable[..., Iterator[Row]]
) -> None:
    wrong = (3, 0, 5, "broker-a", "x", -1, -1, "BrokerShutDown", "broker-a", "no number")
    sink = recorder(tmp_path / name)
    sink(wrong)
    with pytest.raises(Exception, match="no number"):
        sink.close()
    with pytest.raises((ProtocolError, LearnerError), match=r"not whole|no file"):
        list(read(tmp_path / name))


@pytest.mark.parametrize(("name", "recorder", "read"), RECORDERS)
def test_a_recorder_that_has_lost_rows_does_not_look_whole_when_it_is_closed(
    tmp_path: Path, name: str, recorder: Callable[[Path], Recorder], read: Callable[..., Iterator[Row]]
) -> None:
    sink = recorder(tmp_path / name)
    sink.batch_rows = 1
    sink(one_of_each()[0])
    with pytest.raises(Exception, match="no number"):
        sink((3, 0, 5, "broker-a", "x", -1, -1, "BrokerShutDown", "broker-a", "no number"))
    sink(one_of_each()[1])
    sink.close()
    with pytest.raises((ProtocolError, LearnerError), match=r"not whole|no file"):
        list(read(tmp_path / name))


@pytest.mark.parametrize("cut", [1, 15, 17, 40, 5_000])
def test_json_lines_that_were_cut_anywhere_are_not_taken_as_whole_or_converted(tmp_path: Path, cut: int) -> None:
    source, target = tmp_path / "t.jsonl", tmp_path / "t.parquet"
    record(JsonLinesRecorder(source), sendable(one_of_each()))
    source.write_bytes(source.read_bytes()[:-cut])
    with pytest.raises(ProtocolError, match="not whole"):
        list(read_json_lines(source))
    with pytest.raises(ProtocolError, match="not whole"):
        json_lines_to_parquet(source, target)
    assert [file.name for file in tmp_path.iterdir()] == ["t.jsonl"]
    there = list(read_json_lines(source, whole=False))
    assert there == sendable(one_of_each())[: len(there)]


def test_json_lines_without_a_line_in_the_middle_or_with_one_behind_the_end_say_so(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    record(JsonLinesRecorder(path), one_of_each())
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3] + lines[4:]))
    with pytest.raises(ProtocolError, match=f"has {len(CATALOGUE) - 1} events, but its end mark counts"):
        list(read_json_lines(path))
    path.write_text("".join([*lines, lines[1]]))
    with pytest.raises(ProtocolError, match="something follows the end mark"):
        list(read_json_lines(path))


@pytest.mark.parametrize("line", ['{"mqlab_end": null}', '{"mqlab_end": 2', '{"mqlab_end": "two"}', '{"kind": ["a"]}'])
def test_a_damaged_line_is_no_event_and_no_end_mark(tmp_path: Path, line: str) -> None:
    path = tmp_path / "t.jsonl"
    record(JsonLinesRecorder(path), one_of_each()[:2])
    path.write_text("".join([*path.read_text().splitlines(keepends=True)[:-1], line, "\n"]), encoding="ascii")
    with pytest.raises(ProtocolError, match="not whole"):
        check_whole(path)
    with pytest.raises(ProtocolError, match=r"line 4: this is not an event"):
        list(read_json_lines(path))


@pytest.mark.parametrize(
    ("field", "value"), [("ts_us", [1]), ("ts_us", "1"), ("ts_us", None), ("node", 3), ("task", {}), ("slice", True)]
)
def test_a_value_of_another_type_is_named_with_its_line(tmp_path: Path, field: str, value: object) -> None:
    path = tmp_path / "t.jsonl"
    record(JsonLinesRecorder(path), one_of_each()[:2])
    head, first, *rest = path.read_text().splitlines(keepends=True)
    path.write_text("".join([head, json.dumps({**json.loads(first), field: value}), "\n", *rest]), encoding="ascii")
    for reading in (lambda: list(read_json_lines(path)), lambda: json_lines_to_parquet(path, tmp_path / "t.parquet")):
        with pytest.raises(ProtocolError, match=f"line 2: .*{field}"):
            reading()
    assert [file.name for file in tmp_path.iterdir() if file.suffix == ".parquet"] == []


@pytest.mark.parametrize("head", ['{"mqlab_trace": %d, "metadata": 3}', "[" * 200_000, "null", '{"mqlab_trace": [%d]}'])
def test_a_damaged_header_is_told_as_one(tmp_path: Path, head: str) -> None:
    path = tmp_path / "t.jsonl"
    record(JsonLinesRecorder(path), one_of_each()[:2])
    _, *rest = path.read_text().splitlines(keepends=True)
    path.write_text("".join([head.replace("%d", str(SCHEMA_VERSION)), "\n", *rest]), encoding="ascii")
    for reading in (read_header, check_whole, lambda source: list(read_json_lines(source))):
        with pytest.raises(ProtocolError, match=r"header|schema version"):
            reading(path)


def test_a_trace_without_metadata_can_be_converted(tmp_path: Path) -> None:
    source, target = tmp_path / "t.jsonl", tmp_path / "t.parquet"
    record(JsonLinesRecorder(source), sendable(one_of_each()))
    head, *rest = source.read_text().splitlines(keepends=True)
    header = json.loads(head)
    del header["metadata"]
    source.write_text("".join([json.dumps(header), "\n", *rest]), encoding="ascii")
    assert json_lines_to_parquet(source, target) == len(one_of_each())
    assert list(read_parquet(target)) == sendable(one_of_each())


@pytest.mark.parametrize("part", [0.02, 0.3, 0.6, 0.9, 0.99])
def test_a_parquet_file_that_is_damaged_anywhere_is_told_in_a_sentence(tmp_path: Path, part: float) -> None:
    path = tmp_path / "t.parquet"
    record(ParquetRecorder(path), sendable(one_of_each()) * 20)
    data = bytearray(path.read_bytes())
    at = int(len(data) * part)
    data[at : at + 40] = bytes(0xFF - each for each in data[at : at + 40])
    path.write_bytes(data)
    told, rows = "", 0
    try:
        rows = len(list(read_parquet(path)))
    except ProtocolError as error:
        told = str(error)
    assert str(path) in told or rows == len(one_of_each()) * 20, "told, or where nothing is read"


def test_a_trace_from_before_there_were_end_marks_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    record(JsonLinesRecorder(path), one_of_each())
    lines = path.read_text().splitlines(keepends=True)
    header = json.loads(lines[0])
    del header["end_mark"]
    path.write_text("".join([json.dumps(header) + "\n", *lines[1:-1]]))
    check_whole(path)
    assert list(read_json_lines(path)) == one_of_each()


def test_metadata_that_is_not_json_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match="must be JSON"):
        JsonLinesRecorder(tmp_path / "t.jsonl", {"seed": object()})
    assert not (tmp_path / "t.jsonl").exists()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "does not begin with a header"),
        ('{"slice": 1}\n', "does not begin with a header"),
        (
            '{"mqlab_trace": 99, "mqlab": "9.0", "metadata": {}}\n',
            "schema version 99 .*written by mqlab 9.0.*reads versions 1 to 2: install that mqlab",
        ),
        ('{"mqlab_trace": 0, "metadata": {}}\n', "schema version 0 .*reads versions 1 to 2: record the trace again"),
        ('{"mqlab_trace": 1, "metadata": {}}\nnonsense\n', "line 2: this is not an event: 'nonsense'"),
        (
            '{"mqlab_trace": 1, "metadata": {}}\n{"kind": "Strange"}\n',
            "line 2: this mqlab knows no event kind 'Strange'",
        ),
        ('{"mqlab_trace": 1, "metadata": {}}\n{"kind": "BrokerShutDown"}\n', "fields of BrokerShutDown are not those"),
        ('{"mqlab_trace": 1, "metadata": {}}\n{"slice": 3, "i"', "line 2: this is not an event"),
    ],
)
def test_a_file_that_is_no_trace_says_so(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    with pytest.raises(ProtocolError, match=reason):
        list(read_json_lines(path))


OLD = Path(__file__).parents[1] / "golden" / "traces" / "old"
"""A first message as mqlab recorded it before there were Pop, timers and proxies: 111 kinds, and fewer columns."""


def test_a_trace_of_an_older_version_is_read() -> None:
    lines = list(read_json_lines(OLD / "version-1.jsonl"))
    assert list(read_parquet(OLD / "version-1.parquet")) == lines
    assert read_header(OLD / "version-1.parquet")["mqlab_trace"] == 1
    assert len(lines) == 213
    (received,) = [row for row in lines if row[7] == "MessageSendReceived"]
    assert received[8:11] == ("TopicTest", 0, "orders")


def test_another_version_is_refused_before_the_first_row_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"mqlab_trace": 99, "mqlab": "9.0", "metadata": {}}\n')
    with pytest.raises(ProtocolError):
        read_json_lines(path)


def test_a_parquet_file_that_is_no_trace_says_so(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "text.parquet").write_text("text")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(ProtocolError, match="not a Parquet file, or is damaged or was not closed"):
        read_parquet(tmp_path / "text.parquet")
    with pytest.raises(ProtocolError, match="does not begin with a header"):
        read_parquet(tmp_path / "other.parquet")


@pytest.mark.parametrize("read", [read_json_lines, read_parquet])
def test_a_file_that_is_not_there_says_how_to_write_one(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    with pytest.raises(LearnerError, match="mqlab trace SCENARIO --out FILE"):
        read(tmp_path / "none")


def test_parquet_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'mqlab\[trace\]'"):
        ParquetRecorder(tmp_path / "t.parquet")
