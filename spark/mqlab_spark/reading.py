"""Opening the tables of a place as DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyarrow import dataset
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from mqlab.errors import LearnerError
from mqlab_spark.place import Place
from mqlab_spark.schema import WORLD, nullable, trace_schema
from mqlab_spark.tables.table import EVENTS, TRACES

EVENTS_AT = "bronze/events"

_opened: set[str] = set()
"""The places whose tables were opened in this process."""


def tables_at(spark: SparkSession, where: str | Path) -> dict[str, DataFrame]:
    """The tables of a place by name; LearnerError where there are none."""
    place = Place(where)
    entries = place.entries()
    if not entries:
        raise LearnerError(f"there are no tables at {where}", "build them: python -m mqlab_spark build TRACES OUT")
    _opened.add(place.where)
    return {
        name: events_at(spark, place, entry.paths)
        if name == EVENTS
        else table_at(spark, place, entry.paths, entry.columns)
        for name, entry in entries.items()
    }


def events_at(spark: SparkSession, place: Place, paths: Sequence[str]) -> DataFrame:
    """The events that lie in these directories of a place: `world`, then the columns of all kinds, null where missing.

    What asks for one kind reads that kind's files alone.
    """
    schema = nullable(trace_schema()).add(WORLD, "string")
    read = spark.read.schema(schema).option("basePath", place.address(EVENTS_AT))
    return read.parquet(*map(place.address, paths)).select(WORLD, *trace_schema().names)


def table_at(spark: SparkSession, place: Place, paths: Sequence[str], types: Mapping[str, str]) -> DataFrame:
    """The table that lies in these directories of a place, with columns of these types."""
    schema = StructType([StructField(name, DataType.fromDDL(kind)) for name, kind in types.items()])
    return spark.read.schema(schema).parquet(*map(place.address, paths))


def hashes_in_tables(world: str) -> set[str]:
    """The trace hashes that the tables which were opened in this process say of a world."""
    found: set[str] = set()
    for where in sorted(_opened):
        place = Place(where)
        entry = place.entries().get(TRACES)
        for path in () if entry is None else entry.paths:
            told = dataset.dataset(f"{place.root}/{path}", filesystem=place.files, format="parquet", partitioning=None)
            found.update(told.to_table(["trace_hash"], filter=dataset.field(WORLD) == world)["trace_hash"].to_pylist())
    return found - {None}
