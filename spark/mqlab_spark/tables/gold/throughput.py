"""How much went through, second by second."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD
from mqlab_spark.tables.table import GOLD, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared

WHAT = {"sent_us": "sent", "acknowledged_us": "acknowledged", "stored_us": "stored"}


def _query(tables: Tables) -> DataFrame:
    messages = tables["messages"]
    own = messages.select(
        WORLD, "topic", F.explode(F.map_from_arrays(_texts(WHAT.values()), F.array(*WHAT))).alias("what", "at_us")
    )
    consumed = (
        tables["deliveries"]
        .join(messages.select(WORLD, "msg_id", "topic"), [WORLD, "msg_id"])
        .select(WORLD, "topic", F.lit("consumed").alias("what"), F.col("consumed_us").alias("at_us"))
    )
    counted = own.unionByName(consumed).where("at_us IS NOT NULL")
    second = F.floor(F.col("at_us") / 1_000_000).cast("bigint").alias("second")
    pivoted = counted.groupBy(WORLD, "topic", second).pivot("what", [*WHAT.values(), "consumed"]).count()
    return pivoted.na.fill(0, [*WHAT.values(), "consumed"])


def _texts(texts: object) -> Column:
    return F.array(*(F.lit(text) for text in texts))  # type: ignore[attr-defined]


THROUGHPUT = Table(
    "throughput",
    GOLD,
    "How many messages went through each second?",
    shared(
        world=WHICH_WORLD,
        topic=(TEXT, "the topic"),
        second=(WHOLE, "which second of the world, from 0; seconds without any are left out"),
        sent=(WHOLE, "messages of which the first attempt was made"),
        acknowledged=(WHOLE, "messages of which the producer learnt that they are stored"),
        stored=(WHOLE, "messages that were written for the first time"),
        consumed=(WHOLE, "messages that a group was done with, counted for each group"),
    ),
    ("messages", "deliveries"),
    _query,
)
