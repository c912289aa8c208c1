"""What a trace looks like as a DataFrame: a schema made from the catalogue of events and not guessed from the data."""

from __future__ import annotations

import hashlib
from functools import cache

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses
from pyspark.sql.types import BooleanType, DataType, LongType, StringType, StructField, StructType

from mqlab.trace.catalogue import COMMON_TYPES, columns_of, field_types

SPARK_TYPES: dict[str, DataType] = {"int": LongType(), "str": StringType(), "bool": BooleanType()}

WORLD = "world"
"""The column that tells the events of several worlds apart.

In a trace it is the world's name: what `mqlab trace` is told to play the world of a row (see
`mqlab.data_sets.named_worlds`), or the trace's file, where that does not say which world it is of. In the tables of a
build it is the name's number, `world_id(name)`, and the tables `traces` and `worlds` have the names.
"""

WORLD_NAME = "name"
"""The column of `traces` and `worlds` with the name of the world."""

PULL = (WORLD, "node", "remote", "opaque")
"""What names one pull request: the broker's machine, the connection it came on, and its number there."""

QUEUE = (WORLD, "node", "topic", "queue_id")
"""What names one queue: the machine that holds it, its topic and its number."""


def world_id(name: str) -> int:
    """The number that a world has in tables: the first 52 bits of the SHA-256 of its name.

    It is the same in every build and on every machine, with nobody to hand out numbers; a double has room for it, in
    which pandas keeps a column with gaps, and JavaScript every number. Spark's SQL says
    `CAST(conv(left(sha2(name, 256), 13), 16, 10) AS BIGINT)`.
    """
    return int(hashlib.sha256(name.encode()).hexdigest()[:13], 16)


@cache
def trace_schema() -> StructType:
    """The columns of a recorded trace: those that every event has, then the fields of all kinds, null where missing."""
    common = [StructField(name, SPARK_TYPES[kind], nullable=False) for name, kind in COMMON_TYPES.items()]
    fields = [StructField(name, SPARK_TYPES[kind]) for name, kind in field_types().items()]
    return StructType([*common, *fields])


def nullable(schema: StructType) -> StructType:
    """The same columns, which may all be null."""
    return StructType([StructField(field.name, field.dataType) for field in schema])


def of_kind(trace: DataFrame, kind: str) -> DataFrame:
    """The events of one kind: `world`, the common columns and the kind's fields. LearnerError for an unknown kind."""
    columns = [WORLD, *columns_of(kind)]
    return trace.where(F.col("kind") == kind).select(*columns)
