"""Opening the tables of a place as DataFrames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pyarrow import dataset
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, LongType, StructField, StructType

from mqlab.data_sets.named_worlds import TRACE_HASH
from mqlab.errors import LearnerError
from mqlab_spark.place import Place
from mqlab_spark.schema import WORLD, WORLD_NAME, nullable, trace_schema, world_id
from mqlab_spark.tables import ALL, EVENTS, TRACES

EVENTS_AT = "bronze/events"

_opened: set[str] = set()
"""The places whose tables were opened in this process."""


class _Built(dict[str, DataFrame]):
    """Tables by name, which say of a missing one how it comes."""

    def __init__(self, where: str, tables: Mapping[str, DataFrame]) -> None:
        super().__init__(tables)
        self._where = where

    def __missing__(self, name: str) -> DataFrame:
        if name not in (table.name for table in ALL):
            raise LearnerError(f"there is no table {name!r}", f"{self._where} has: {', '.join(self)}")
        raise LearnerError(
            f"the table {name!r} was not built at {self._where}",
            f"build it: python -m mqlab_spark build TRACES OUT --only {name}",
        )


def tables_at(spark: SparkSession, where: str | Path) -> dict[str, DataFrame]:
    """The tables of a place by name; LearnerError where there are none, and for one that is not among them."""
    place = Place(where)
    entries = place.entries()
    if not entries:
        raise LearnerError(f"there are no tables at {where}", "build them: python -m mqlab_spark build TRACES OUT")
    _opened.add(place.where)
    return _Built(place.where, {
        name: events_at(spark, place, entry.paths)
        if name == EVENTS
        else table_at(spark, place, entry.paths, entry.columns)
        for name, entry in entries.items()
    })  # fmt: skip


def events_at(spark: SparkSession, place: Place, paths: Sequence[str]) -> DataFrame:
    """The events that lie in these directories of a place: the number of their `world`, then the columns of all kinds,
    null where missing.

    What asks for one kind reads that kind's files alone.
    """
    schema = nullable(trace_schema()).add(WORLD, LongType())
    read = spark.read.schema(schema).option("basePath", place.address(EVENTS_AT))
    return read.parquet(*map(place.address, paths)).select(WORLD, *trace_schema().names)


def table_at(spark: SparkSession, place: Place, paths: Sequence[str], types: Mapping[str, str]) -> DataFrame:
    """The table that lies in these directories of a place, with columns of these types."""
    schema = StructType([StructField(name, DataType.fromDDL(kind)) for name, kind in types.items()])
    return spark.read.schema(schema).parquet(*map(place.address, paths))


def hashes_in_tables(name: str) -> set[str]:
    """The trace hashes that the tables which were opened in this process say of the world of this name."""
    return {trace_hash for known, trace_hash in _told_of(world_id(name)) if known == name and trace_hash is not None}


def name_in_tables(number: int) -> str | None:
    """The name that the tables which were opened in this process say of the world with this number."""
    return next((name for name, _ in _told_of(number)), None)


def _told_of(number: int) -> Iterator[tuple[str, str | None]]:
    """Name and trace hash of the world with this number, as each table of traces that was opened here has them."""
    for where in sorted(_opened):
        place = Place(where)
        entry = place.entries().get(TRACES)
        for path in () if entry is None else entry.paths:
            told = dataset.dataset(f"{place.root}/{path}", filesystem=place.files, format="parquet", partitioning=None)
            rows = told.to_table([WORLD_NAME, TRACE_HASH], filter=dataset.field(WORLD) == number)
            yield from zip(rows[WORLD_NAME].to_pylist(), rows[TRACE_HASH].to_pylist(), strict=True)
