"""Building the tables: from recorded traces to bronze, silver and gold, in steps that can be repeated."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial, reduce
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from mqlab import __version__
from mqlab.errors import LearnerError, ProtocolError
from mqlab.trace.catalogue import SCHEMA_VERSION
from mqlab.trace.recorded import check_whole
from mqlab_spark.place import TABLES_VERSION, Entry, Place, saying_no_room
from mqlab_spark.schema import WORLD, trace_schema
from mqlab_spark.tables import ALL, BRONZE, EVENTS, GOLD, SILVER, TRACES
from mqlab_spark.traces import TraceFile, trace_files, traces_of, with_worlds

LAYERS = (BRONZE, SILVER, GOLD)
BAD_LINE = "_bad_line"
LAYOUT = {"compression": "zstd", "parquet.page.row.count.limit": "2000"}
"""Small pages, each with its least and its greatest value: who asks for one kind of one world reads few of them."""

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
TRACE_BYTES_PER_SHUFFLE_PARTITION = 16 * 1024 * 1024
"""About 800,000 events: what a table sorts or hashes of them is some ten MB."""

Progress = Callable[[str, int, float], None]
"""Told of each table when it is there: its name, its rows, and how many seconds it took (0: it was there already)."""


def build(spark: SparkSession, traces: str | Path, out: str | Path, progress: Progress | None = None) -> Place:
    """Make all tables of the traces in a directory (or of one trace, or of a pattern) at a place.

    Tables that are there already, of the same traces and by the same code, are left alone, so a build that was killed
    goes on where it was. Files that are no whole trace, and lines that are no event, are set aside with a reason:
    `Place.read()["set_aside"]`. LearnerError when there is no trace at all, or when somebody else builds there.
    """
    place = Place(out)
    with place.alone():
        whole, bad = sorted_out(traces)
        if not whole:
            raise LearnerError(
                f"there is no whole trace at {traces}", bad[0]["reason"] if bad else "record one: mqlab trace"
            )
        key = _key(whole, traces)
        catalogue = place.read()
        if catalogue.get("key") == key:
            made = catalogue
        else:
            # Who reads meanwhile has the old tables, all of them.
            made = catalogue.get("building", {})
            if made.get("key") != key:
                made = {"key": key, "traces": len(whole), "tables": {}, "set_aside": bad}
            catalogue["building"] = made
        files = trace_files(whole)
        tables: dict[str, DataFrame] = {}
        first = ((EVENTS, partial(_events, spark, files, made)), (TRACES, partial(traces_of, spark, files)))
        with _tasks_for(spark, sum(file.stat().st_size for file in whole)):
            for name, make in first:
                tables[name] = _ensure(spark, place, catalogue, made, name, BRONZE, make, progress)
            for table in ALL:
                make = partial(table.make, tables)
                tables[table.name] = _ensure(spark, place, catalogue, made, table.name, table.layer, make, progress)
        if made is not catalogue:
            place.write({"version": TABLES_VERSION, **made})
        place.remove_others(LAYERS)
    return place


@contextmanager
def _tasks_for(spark: SparkSession, trace_bytes: int) -> Iterator[None]:
    """Shuffles in so many parts that each fits into memory, however much there is; not fewer than are set already.

    Files are listed by as many tasks: Spark would take one for each file, which costs more than the listing.
    """
    before = {name: spark.conf.get(name) for name in (SHUFFLE_PARTITIONS, LISTING_TASKS)}
    parts = max(int(before[SHUFFLE_PARTITIONS] or 1), -(-trace_bytes // TRACE_BYTES_PER_SHUFFLE_PARTITION))
    try:
        for name in before:
            spark.conf.set(name, parts)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, str(value))


def sorted_out(traces: str | Path) -> tuple[dict[Path, dict[str, Any]], list[dict[str, str]]]:
    """The whole traces among the files that are meant, each with its header, and the others, each with the reason why
    it is set aside.
    """
    place = Path(traces)
    if place.is_dir():
        found = sorted(file for ending in ("parquet", "jsonl") for file in place.rglob(f"*.{ending}"))
    else:
        found = sorted(place.parent.glob(place.name))
    root = _root(traces)
    good: dict[Path, dict[str, Any]] = {}
    bad: list[dict[str, str]] = []
    for file in found:
        try:
            header = check_whole(file)
        except (ProtocolError, OSError) as problem:
            bad.append({"file": file.relative_to(root).as_posix(), "reason": str(problem)})
        else:
            good[file] = header
    return good, bad


def _root(traces: str | Path) -> Path:
    place = Path(traces)
    return place if place.is_dir() else place.parent


def _key(whole: Iterable[Path], traces: str | Path) -> str:
    """What the tables depend on: the traces, and the code that makes tables of them."""
    digest = hashlib.blake2b(digest_size=8)
    root = _root(traces)
    for file in whole:
        state = file.stat()
        digest.update(f"{file.relative_to(root).as_posix()}|{state.st_size}|{state.st_mtime_ns}\n".encode())
    for source in _sources(files("mqlab_spark")):
        digest.update(source.read_bytes())
    digest.update(f"{__version__}|{SCHEMA_VERSION}".encode())
    return digest.hexdigest()


def _sources(folder: Traversable) -> Iterator[Traversable]:
    """The Python files of a package, in order, whether it lies in a directory or in an archive."""
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            yield from _sources(each)
        elif each.name.endswith(".py"):
            yield each


def _ensure(
    spark: SparkSession,
    place: Place,
    catalogue: dict[str, Any],
    made: dict[str, Any],
    name: str,
    layer: str,
    make: Callable[[], DataFrame],
    progress: Progress | None,
) -> DataFrame:
    """The table as it lies at the place; it is made and written first when `made`, of the catalogue, has none."""
    known = made["tables"].get(name)
    began = time.monotonic()
    if known is None:
        path = _free_path(place, f"{layer}/{name}/{made['key']}")
        table = make()
        with saying_no_room(f"the table {name!r} cannot be written to {place.where}"):
            table.write.mode("error").options(**LAYOUT).parquet(place.address(path))
        rows = spark.read.parquet(place.address(path)).count()
        columns = {field.name: field.dataType.simpleString() for field in table.schema}
        known = made["tables"][name] = Entry(path, rows, made["key"], columns)._asdict()
        # So that a build that is killed goes on behind this table.
        place.write(catalogue)
    if progress is not None:
        progress(name, known["rows"], time.monotonic() - began)
    return spark.read.parquet(place.address(known["path"]))


def _free_path(place: Place, path: str) -> str:
    """The path, or with a number behind it: what a killed build left may still be there."""
    return next(
        tried for number in count() if not place.exists(tried := path if not number else f"{path}-{number}")
    )  # fmt: skip


# -- bronze ------------------------------------------------------------------------------------------------------------


def _events(spark: SparkSession, files: list[TraceFile], made: dict[str, Any]) -> DataFrame:
    """All events of the traces, sorted so that the events of one kind of one world lie together."""
    lines = [each for each in files if each.path.suffix == ".jsonl"]
    others = [each for each in files if each.path.suffix != ".jsonl"]
    names = trace_schema().names
    frames = []
    if others:
        read = spark.read.schema(_nullable(trace_schema())).parquet(*(str(each.path) for each in others))
        frames.append(with_worlds(spark, read, others))
    if lines:
        schema = StructType([*_nullable(trace_schema()).fields, StructField(BAD_LINE, StringType())])
        paths = [str(each.path) for each in lines]
        read = spark.read.schema(schema).json(paths, mode="PERMISSIVE", columnNameOfCorruptRecord=BAD_LINE)
        read = with_worlds(spark, read, lines).cache()
        file_of = {each.world: each.file for each in lines}
        for row in read.where(f"{BAD_LINE} IS NOT NULL").groupBy(WORLD).count().collect():
            reason = f"{row['count']} lines are no events" if row["count"] > 1 else "1 line is no event"
            made["set_aside"].append({"file": file_of[row[WORLD]], "reason": reason})
        frames.append(read.where(f"kind IS NOT NULL AND {BAD_LINE} IS NULL"))
    events = reduce(DataFrame.unionByName, [frame.select(WORLD, *names) for frame in frames])
    # What reads files reads whole worlds, many in one task, so nothing has to be moved between tasks.
    return events.sortWithinPartitions("kind", WORLD, "slice", "i")


def _nullable(schema: StructType) -> StructType:
    """The same columns, which may all be null: an older trace lacks some, a line of a header has none."""
    return StructType([StructField(field.name, field.dataType) for field in schema])


def tell(name: str, rows: int, seconds: float) -> None:
    """Say on the terminal that a table is there."""
    took = f"in {seconds:.1f} s" if seconds >= 0.05 else "was there already"
    print(f"{name:<20} {rows:>12,} rows  {took}", file=sys.stderr)
