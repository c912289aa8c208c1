"""What becomes of the messages that Pop hands out: acknowledged in time, late, too late, or never."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD
from mqlab_spark.tables.table import GOLD, NUMBER, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared

WHOSE = [WORLD, "group", "topic"]


def _query(tables: Tables) -> DataFrame:
    settled_us = F.coalesce("acked_us", "revived_us", "again_us")
    took_ms = (settled_us - F.col("popped_us")) / 1_000
    by_outcome = (
        tables["pops"]
        .withColumn("took_ms", took_ms)
        .groupBy(*WHOSE, "outcome")
        .agg(
            F.count("*").alias("deliveries"),
            F.sum("changes").alias("changes"),
            F.round(F.percentile("took_ms", 0.5), 3).alias("median_ms"),
            F.round(F.max("took_ms"), 3).alias("slowest_ms"),
        )
    )
    all_of_them = F.sum("deliveries").over(Window.partitionBy(WHOSE))
    return by_outcome.withColumn("share", F.round(F.col("deliveries") / all_of_them, 6))


POP_OUTCOMES = Table(
    "pop_outcomes",
    GOLD,
    "How do the messages end that Pop hands out, and how long does it take?",
    shared(
        world=WHICH_WORLD,
        group=(TEXT, "the consumer group"),
        topic=(TEXT, "the topic that was popped, perhaps the group's retry topic"),
        outcome=(TEXT, "acked in time, acked late, acked too late, revived, handed out again, or still out"),
        deliveries=(WHOLE, "how many messages ended so, each counted as often as it was handed out"),
        share=(NUMBER, "their share of all that the group was handed out of this topic, 0 to 1"),
        changes=(WHOLE, "how often their invisible times were changed"),
        median_ms=(NUMBER, "from handing out to this end, half of them took at most so long; null: still out"),
        slowest_ms=(NUMBER, "the longest of them"),
    ),
    ("pops",),
    _query,
)
