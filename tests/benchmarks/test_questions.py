"""The answers in SQL beside the gold tables: rows that differ are counted, and every question has its answer."""

from __future__ import annotations

from pathlib import Path

import duckdb

from benchmarks.spark_data import Wanted
from benchmarks.spark_questions import compare, sql_of
from mqlab_spark.tables import ALL, ANSWERS
from mqlab_spark.tables.gold.pop import POP_OUTCOMES
from mqlab_spark.world_source import events_schema

SQL_TYPES = {
    "bigint": "BIGINT", "string": "VARCHAR", "double": "DOUBLE", "boolean": "BOOLEAN", "array<string>": "VARCHAR[]",
}  # fmt: skip


def test_every_question_has_an_answer_in_sql_with_its_columns_and_types() -> None:
    database = duckdb.connect()
    events = {field.name: field.dataType.simpleString() for field in events_schema()}
    tables = {"events": events, **{table.name: {n: c.type for n, c in table.columns.items()} for table in ALL}}
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
    for name in ("card.json", "seed-0.parquet", "seed-1.parquet"):
        (smaller / name).write_text(name)
    linked = Wanted(directory=tmp_path, linked=True).traces("10M")
    assert linked == Wanted(directory=tmp_path, linked=True).traces("10M")
    assert len(list(linked.glob("*.parquet"))) == 20
    assert (linked / "9-seed-1.parquet").read_text() == "seed-1.parquet"
