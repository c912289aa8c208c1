"""Recorded traces as DataFrames, with a schema made from the catalogue of events and not guessed from the data."""

from __future__ import annotations

import glob
from functools import cache
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses
from pyspark.sql.types import BooleanType, DataType, LongType, StringType, StructField, StructType

from mqlab.errors import LearnerError
from mqlab.trace.catalogue import COMMON_TYPES, columns_of, field_types
from mqlab.trace.recorded import check_whole, read_header

SPARK_TYPES: dict[str, DataType] = {"int": LongType(), "str": StringType(), "bool": BooleanType()}

WORLD = "world"
"""The column that tells the traces of several worlds apart: the name of the file that an event was read from."""


@cache
def trace_schema() -> StructType:
    """The columns of a recorded trace: those that every event has, then the fields of all kinds, null where missing."""
    common = [StructField(name, SPARK_TYPES[kind], nullable=False) for name, kind in COMMON_TYPES.items()]
    fields = [StructField(name, SPARK_TYPES[kind]) for name, kind in field_types().items()]
    return StructType([*common, *fields])


def read_trace(spark: SparkSession, path: str | Path, *, whole: bool = True) -> DataFrame:
    """A recorded trace, or all traces of a directory or a pattern, as one DataFrame: `world`, then `trace_schema()`.

    Files that end in .jsonl are JSON lines, all others Parquet. One file is one world. ProtocolError if a file on this
    machine is of another schema version, or is not whole because its recording was interrupted (`whole=False` reads
    what is there); files elsewhere, as in hdfs://, are not opened before the job runs. LearnerError without a file.
    """
    elsewhere = "://" in str(path) and not str(path).startswith("file://")
    files = [str(path)] if elsewhere else _local_files(str(path).removeprefix("file://"))
    if not elsewhere:
        for file in files:
            read_header(file)
            if whole:
                check_whole(file)
    json_lines = files[0].endswith(".jsonl")
    reader = spark.read.schema(trace_schema())
    # Header and end mark of JSON lines have none of the columns; a line cut short must not pass for another one.
    mode = "FAILFAST" if whole else "DROPMALFORMED"
    frame = reader.json(files, mode=mode).where("kind IS NOT NULL") if json_lines else reader.parquet(*files)
    return frame.select(F.col("_metadata.file_name").alias(WORLD), *trace_schema().names)


def _local_files(path: str) -> list[str]:
    """The files that a path on this machine means, all of one kind. LearnerError if there is none."""
    place = Path(path)
    if place.is_dir():
        found = [str(file) for ending in ("parquet", "jsonl") for file in sorted(place.rglob(f"*.{ending}"))]
    else:
        found = sorted(glob.glob(str(place)))
    if not found:
        raise LearnerError(f"there is no trace at {path}", "write one: mqlab trace SCENARIO --out trace.parquet")
    if len({Path(file).suffix == ".jsonl" for file in found}) > 1:
        raise LearnerError(f"{path} holds both JSON lines and Parquet", "name one of them, like 'traces/*.parquet'")
    return found


def of_kind(trace: DataFrame, kind: str) -> DataFrame:
    """The events of one kind: `world`, the common columns and the kind's fields. LearnerError for an unknown kind."""
    columns = [WORLD, *columns_of(kind)]
    return trace.where(F.col("kind") == kind).select(*columns)
