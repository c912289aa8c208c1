"""How long brokers held pulls, and what ended it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.latency import percentiles
from mqlab_spark.schema import WORLD
from mqlab_spark.tables.table import GOLD, NUMBER, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared


def _query(tables: Tables) -> DataFrame:
    held = tables["holds"].withColumn("latency_us", F.col("woken_us") - F.col("held_us"))
    return percentiles(held, WORLD, "group", "topic", "reason").withColumnRenamed("count", "holds")


HOLD_OUTCOMES = Table(
    "hold_outcomes",
    GOLD,
    "How many pulls were held, for how long, and were they held in vain?",
    shared(
        world=WHICH_WORLD,
        group=(TEXT, "the consumer group"),
        topic=(TEXT, "the topic that was pulled from"),
        reason=(TEXT, "arrived, timed out (in vain), or still held when the trace ends"),
        holds=(WHOLE, "how many pulls"),
        p50_ms=(NUMBER, "half of them were held no longer, ms; null: still held"),
        p90_ms=(NUMBER, "nine of ten were held no longer, ms"),
        p99_ms=(NUMBER, "99 of 100 were held no longer, ms"),
        max_ms=(NUMBER, "the longest, ms"),
    ),
    ("holds",),
    _query,
)
