"""Reading recorded traces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqlab.errors import LearnerError, ProtocolError
from mqlab.trace.bus import COMMON_FIELDS, Row
from mqlab.trace.catalogue import CATALOGUE, field_types
from mqlab.trace.recorder import JsonLinesRecorder, ParquetRecorder, Recorder
from mqlab_spark import of_kind, read_trace, trace_schema

SAMPLES: dict[str, Any] = {"int": -(2**40), "str": 'a "quoted"\n text, 中文', "bool": True}


def one_of_each() -> list[Row]:
    rows: list[Row] = []
    for n, (kind, made) in enumerate(CATALOGUE.items()):
        fields = [SAMPLES[field_types()[field]] for field in made._fields]
        rows.append((n, 0, n * 1_000, "broker-a", "task", n - 1, 0, kind, *fields))
    return rows


def record(recorder: Recorder, rows: list[Row]) -> None:
    with recorder:
        for row in rows:
            recorder(row)


def test_the_schema_is_the_catalogue() -> None:
    schema = trace_schema()
    assert schema.names == [*COMMON_FIELDS, *field_types()]
    assert schema["ts_us"].simpleString() == "ts_us:bigint"
    assert schema["topic"].simpleString() == "topic:string"
    assert schema["first_pass"].simpleString() == "first_pass:boolean"
    assert [field.name for field in schema if not field.nullable] == list(COMMON_FIELDS)


@pytest.mark.parametrize(("ending", "recorder"), [("parquet", ParquetRecorder), ("jsonl", JsonLinesRecorder)])
def test_every_kind_comes_back_from_both_kinds_of_file(
    spark: SparkSession, tmp_path: Path, ending: str, recorder: Callable[[Path], Recorder]
) -> None:
    path = tmp_path / f"trace.{ending}"
    record(recorder(path), one_of_each())
    trace = read_trace(spark, path)
    assert trace.columns == ["world", *trace_schema().names]
    read = {row["kind"]: row.asDict() for row in trace.collect()}
    assert len(read) == len(CATALOGUE)
    for written in one_of_each():
        row = read[written[7]]
        columns = [*COMMON_FIELDS, *CATALOGUE[written[7]]._fields]
        assert tuple(row[column] for column in columns) == written
        assert row["world"] == path.name
        assert all(row[other] is None for other in set(field_types()) - set(columns))


def test_a_directory_is_one_trace_of_several_worlds(spark: SparkSession, tmp_path: Path) -> None:
    row = (1, 0, 5, "broker-a", "x", -1, -1, "BrokerShutDown", "broker-a", 0)
    (tmp_path / "deep").mkdir()
    for name in ("seed-1.parquet", "deep/seed-2.parquet"):
        record(ParquetRecorder(tmp_path / name), [row])
    worlds = [r.world for r in read_trace(spark, tmp_path).orderBy("world").collect()]
    assert worlds == ["deep/seed-2.parquet", "seed-1.parquet"]
    assert read_trace(spark, tmp_path / "seed-*.parquet").count() == 1


def test_the_events_of_one_kind_have_its_fields_only(trace_of: Callable[[list[Row]], DataFrame]) -> None:
    shut = of_kind(trace_of(one_of_each()), "BrokerShutDown")
    assert shut.columns == ["world", *COMMON_FIELDS, "broker_name", "broker_id"]
    assert shut.count() == 1
    with pytest.raises(LearnerError, match="did you mean BrokerShutDown"):
        of_kind(shut, "BrokerShutdown")


def test_another_schema_version_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "old.jsonl"
    path.write_text('{"mqlab_trace": 99, "mqlab": "9.0", "metadata": {}}\n')
    with pytest.raises(ProtocolError, match="schema version 99"):
        read_trace(spark, path)


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_an_older_version_is_read_with_null_in_columns_that_are_new(spark: SparkSession, ending: str) -> None:
    old = Path(__file__).parents[1] / "golden" / "traces" / "old" / f"version-1.{ending}"
    trace = read_trace(spark, old)
    (counted,) = trace.selectExpr("count(*)", "count(topic)", "count(invisible_ms)").collect()
    assert counted[0] == 213 > counted[1] > counted[2] == 0


def test_a_path_without_a_trace_says_how_to_make_one(spark: SparkSession, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.parquet", tmp_path / "*.jsonl"):
        with pytest.raises(LearnerError, match="there is no trace at"):
            read_trace(spark, path)


def test_a_directory_of_both_kinds_of_file_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    record(ParquetRecorder(tmp_path / "a.parquet"), [])
    record(JsonLinesRecorder(tmp_path / "a.jsonl"), [])
    with pytest.raises(LearnerError, match="holds both JSON lines and Parquet"):
        read_trace(spark, tmp_path)


def test_a_line_that_was_cut_short_is_not_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    record(JsonLinesRecorder(path), one_of_each())
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + whole[110:])
    with pytest.raises(Exception, match="FAILED_READ_FILE"):
        read_trace(spark, path).collect()


@pytest.mark.parametrize("cut", [25, 60])
def test_a_trace_that_was_cut_is_read_only_on_request(spark: SparkSession, tmp_path: Path, cut: int) -> None:
    path = tmp_path / "cut.jsonl"
    record(JsonLinesRecorder(path), one_of_each())
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(ProtocolError, match=r"not whole.*whole=False"):
        read_trace(spark, path)
    assert 0 < read_trace(spark, path, whole=False).count() < len(CATALOGUE)


def test_a_parquet_trace_whose_recording_was_interrupted_is_not_found_in_a_directory(
    spark: SparkSession, tmp_path: Path
) -> None:
    record(ParquetRecorder(tmp_path / "a.parquet"), one_of_each())
    ParquetRecorder(tmp_path / "b.parquet").abandon()
    assert read_trace(spark, tmp_path).select("world").distinct().count() == 1
