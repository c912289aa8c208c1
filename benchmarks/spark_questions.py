"""Each gold question, by Spark and by DuckDB on the same tables: how long each takes, and whether the rows agree.

Both read the tables that were built, answer on two cores, and write Parquet; the answers in SQL are in `questions/`.
Where Spark takes more than three times as long, its plan is in out/bench-plans/. `python -m benchmarks.spark_questions
PLACE` is one measurement of all questions; with `PLACE 1` each is asked once and not three times, behind a first time
that loads what is loaded once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from benchmarks.harness import Figure, beside, figure, shown
from benchmarks.spark_data import Wanted
from benchmarks.spark_run import cpu_seconds, in_a_process, jvm_read_bytes, spark_on, tell
from mqlab_spark import tables_at
from mqlab_spark.place import Place
from mqlab_spark.tables import ANSWERS, EVENTS, Table

QUESTIONS = Path(__file__).with_name("questions")
PLANS = Path("out/bench-plans")
ROUNDS = 3
CORES = 2
AIM = 3.0
SIZE = "10M"

ONE_KIND = "SELECT count(*), max(queue_offset) FROM events WHERE kind = 'PullHeld'"
ONE_WORLD = "SELECT kind, count(*) FROM events WHERE world = (SELECT min(world) FROM worlds) GROUP BY kind"


def measure(place: Path, rounds: int = ROUNDS) -> dict[str, Any]:
    """All questions on these tables: seconds of Spark and of DuckDB, rows, and how many rows differ."""
    database = open_in_duckdb(place)
    answers: dict[str, Any] = {}
    with spark_on(CORES) as spark, TemporaryDirectory() as directory:
        tables = tables_at(spark, place)
        for answer in ANSWERS:
            ours, theirs = Path(directory, "ours", answer.name), Path(directory, f"{answer.name}.parquet")

            def by_spark(answer: Table = answer, ours: Path = ours) -> None:
                answer.make(tables).write.mode("overwrite").option("compression", "zstd").parquet(str(ours))

            def by_duckdb(answer: Table = answer, theirs: Path = theirs) -> None:
                database.sql(f"COPY ({sql_of(answer)}) TO '{theirs}' (FORMAT parquet, COMPRESSION zstd)")

            (by_clock, cpu), (duckdb_by_clock, duckdb_cpu) = _in_turns(rounds, by_spark, by_duckdb)
            rows, different = compare(database, answer, f"{ours}/*.parquet", str(theirs))
            answers[answer.name] = {
                "clock": by_clock, "duckdb_clock": duckdb_by_clock, "cpu": cpu, "duckdb_cpu": duckdb_cpu,
                "rows": rows, "different": different,
            }  # fmt: skip
            told = f"Spark {by_clock:.2f} s (CPU {cpu:.2f}), DuckDB {duckdb_by_clock:.2f} s (CPU {duckdb_cpu:.2f})"
            print(f"{answer.name}: {told}, of {rows:,} rows {different} differ", flush=True)
            if by_clock > AIM * duckdb_by_clock:
                PLANS.mkdir(parents=True, exist_ok=True)
                plan = answer.make(tables)._jdf.queryExecution().explainString(_formatted(spark))
                (PLANS / f"{answer.name}.txt").write_text(plan, encoding="utf-8")
        answers["reads"] = _reads(spark, place)
    return answers


def sql_of(answer: Table) -> str:
    """The question in DuckDB's SQL, with the columns of the table in their order."""
    names = ", ".join(f'"{name}"' for name in answer.columns)
    return f"SELECT {names} FROM ({(QUESTIONS / f'{answer.name}.sql').read_text(encoding='utf-8')})"


def open_in_duckdb(place: Path) -> duckdb.DuckDBPyConnection:
    """The tables of a place as views."""
    database = duckdb.connect()
    database.execute(f"SET threads = {CORES}")
    for name, entry in Place(place).entries().items():
        parts = [f"{place.resolve()}/{path}/**/*.parquet" for path in entry.paths]
        if name == EVENTS:
            # Of kinds that never occur there is no file that has their columns.
            columns = ", ".join(f'NULL::{kind} AS "{column}"' for column, kind in entry.columns.items())
            read = f"FROM read_parquet({parts}, union_by_name = true, hive_partitioning = true)"
            read = f"(SELECT {columns} WHERE false) UNION ALL BY NAME ({read})"
        else:
            read = f"FROM read_parquet({parts}, hive_partitioning = false)"
        database.execute(f"CREATE VIEW {name} AS {read}")
    return database


def compare(database: duckdb.DuckDBPyConnection, answer: Table, ours: str, theirs: str) -> tuple[int, int]:
    """The rows of our answer, and how many rows are in one answer and not in the other, each counted as often as it is.

    Numbers with a fraction are compared to two thousandths: the last digit that is written was rounded.
    """
    columns = ", ".join(
        f'round("{name}" * 500)::BIGINT AS "{name}"' if column.type == "double" else f'"{name}"'
        for name, column in answer.columns.items()
    )
    one, other = (f"SELECT {columns} FROM read_parquet('{path}')" for path in (ours, theirs))
    count = database.sql(f"SELECT count(*) FROM ({one})").fetchall()[0][0]
    different = database.sql(
        f"SELECT count(*) FROM ((({one}) EXCEPT ALL ({other})) UNION ALL (({other}) EXCEPT ALL ({one})))"
    )
    return int(count), int(different.fetchall()[0][0])


def _in_turns(rounds: int, *contenders: Callable[[], None]) -> list[tuple[float, float]]:
    """The median seconds of each by the clock, and of CPU; a round before them loads what is loaded once."""
    costs: list[list[tuple[float, float]]] = [[] for _ in contenders]
    for number in range(rounds + 1):
        for taken, run in zip(costs, contenders, strict=True):
            began, used = time.perf_counter(), cpu_seconds()
            run()
            if number:
                taken.append((time.perf_counter() - began, cpu_seconds() - used))
    return [(median(clock for clock, _ in taken), median(cpu for _, cpu in taken)) for taken in costs]


def _formatted(spark: Any) -> Any:
    return spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")


def _reads(spark: Any, place: Path) -> dict[str, Any]:
    """The bytes that the JVM reads for a question on one kind of events, and on one world, beside all bytes of events.

    Asked a second time, so that what is read for the program itself is no part of it.
    """
    paths = Place(place).entries()[EVENTS].paths
    for name, table in tables_at(spark, place).items():
        table.createOrReplaceTempView(name)
    files = [file for path in paths for file in (place / path).rglob("*.parquet")]
    told: dict[str, Any] = {"all": sum(file.stat().st_size for file in files)}
    for name, query in (("one kind", ONE_KIND), ("one world", ONE_WORLD)):
        spark.sql(query).collect()
        before = jvm_read_bytes()
        spark.sql(query).collect()
        told[name] = jvm_read_bytes() - before
    return told


def questions(wanted: Wanted) -> Iterator[Figure]:
    """Spark's seconds beside DuckDB's, rows that differ, and bytes that a narrow question reads."""
    sizes = [size for size in wanted.sizes if size == SIZE] or list(wanted.sizes[-1:])
    for size in sizes:
        place = wanted.tables(size)
        if not (place / "catalogue.json").exists():
            in_a_process("spark_build", wanted.traces(size), place)
        answers = in_a_process("spark_questions", place)
        reads = answers.pop("reads")
        for name, told in answers.items():
            yield figure(f"{name}, {size} events: Spark / DuckDB", told["clock"], "s", versus=told["duckdb_clock"],
                         aim=AIM, better="lower")  # fmt: skip
            yield beside(f"{name}: CPU of Spark / of DuckDB", told["cpu"], "s", told["duckdb_cpu"])
            yield figure(f"{name}: of {told['rows']:,} rows differ", told["different"], "rows", aim=0, better="lower")
        for name in ("one kind", "one world"):
            if reads[name]:
                yield figure(f"a question on {name}: read / the events", reads[name] / 1e6, "MB",
                             versus=reads["all"] / 1e6, aim=0.25, better="lower")  # fmt: skip
            else:
                yield shown(f"a question on {name}: not told here", 0, "MB")


if __name__ == "__main__":
    tell(measure(Path(sys.argv[1]), *map(int, sys.argv[2:])))
