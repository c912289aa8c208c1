"""The answers in SQL beside the gold tables: rows that differ are counted, and every question has its answer."""

from __future__ import annotations

from pathlib import Path

import duckdb

from benchmarks.spark_data import Wanted
from benchmarks.spark_questions import compare, sql_of
from mqlab.trace.recorder import ParquetRecorder
from mqlab_spark.build import types_of
from mqlab_spark.contract import read_events, read_header
from mqlab_spark.storage import folder
from mqlab_spark.tables import ALL, ANSWERS, EVENTS
from mqlab_spark.tables.gold.pop import POP_OUTCOMES

SQL_TYPES = {
    "bigint": "BIGINT", "string": "VARCHAR", "double": "DOUBLE", "boolean": "BOOLEAN", "array<string>": "VARCHAR[]",
}  # fmt: skip

STORED = (3, 0, 8_499_000, "broker-a", "send", -1, -1, "MessageStored", "T", 0, 0, 0, 100, "M0")


def test_every_question_has_an_answer_in_sql_with_its_columns_and_types() -> None:
    database = duckdb.connect()
    tables = {EVENTS: types_of(EVENTS), **{table.name: {n: c.type for n, c in table.columns.items()} for table in ALL}}
    for name, columns in tables.items():
        declared = ", ".join(f'"{column}" {SQL_TYPES[kind]}' for column, kind in columns.items())
        database.execute(f"CREATE TABLE {name} ({declared})")
    for answer in ANSWERS:
        found = database.sql(sql_of(answer))
        assert dict(zip(found.columns, map(str, found.types), strict=True)) == {
            name: SQL_TYPES[column.type] for name, column in answer.columns.items()
        }


def test_rows_that_differ_are_counted_each_as_often_as_it_is(tmp_path: Path) -> None:
    database = duckdb.connect()
    row = "'w' AS world, 'g' AS \"group\", 't' AS topic, 'acked in time' AS outcome, 2::BIGINT AS deliveries"
    rest = "0::BIGINT AS changes, 1.5::DOUBLE AS median_ms, 3::DOUBLE AS slowest_ms"
    ours, theirs, other = (str(tmp_path / f"{name}.parquet") for name in ("ours", "theirs", "other"))
    for path, share, times in ((ours, 0.5, 3), (theirs, 0.500001, 3), (other, 0.51, 2)):
        one = f"SELECT {row}, {share}::DOUBLE AS share, {rest} FROM range({times})"
        database.sql(f"COPY ({one}) TO '{path}' (FORMAT parquet)")
    assert compare(database, POP_OUTCOMES, ours, ours) == (3, 0)
    assert compare(database, POP_OUTCOMES, ours, theirs) == (3, 0)
    assert compare(database, POP_OUTCOMES, ours, other) == (3, 5)


def test_a_data_set_that_is_there_is_not_made_again(tmp_path: Path) -> None:
    (tmp_path / "steady-1M").mkdir()
    (tmp_path / "steady-1M" / "card.json").write_text("{}")
    assert Wanted(directory=tmp_path).traces("1M") == tmp_path / "steady-1M"


def test_a_larger_data_set_can_be_the_smaller_one_ten_times(tmp_path: Path) -> None:
    smaller = tmp_path / "steady-1M"
    smaller.mkdir()
    (smaller / "card.json").write_text("{}")
    for seed in range(2):
        about = {"world": f"steady-{seed}", "trace_hash": f"hash-{seed}", "seed": str(seed)}
        with ParquetRecorder(smaller / f"seed-{seed}.parquet", about) as recorder:
            recorder(STORED)
    copied = Wanted(directory=tmp_path, copied=True).traces("10M")
    assert copied == Wanted(directory=tmp_path, copied=True).traces("10M")
    here = folder(str(copied))
    assert len(list(copied.iterdir())) == 20
    about = read_header(here, "9-seed-1.parquet")["metadata"]
    assert (about["world"], about["trace_hash"], about["seed"]) == ("9-steady-1", "9-hash-1", "1")
    (events,) = read_events(here, "9-seed-1.parquet")
    assert events.tables["MessageStored"].num_rows == 1
