"""How sending went: retries, refusals and time-outs."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD
from mqlab_spark.tables.table import GOLD, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared


def outcome() -> Column:
    """What the producer of a message knows in the end."""
    return (
        F.when(F.col("send_status") == "SEND_OK", "acknowledged")
        .when(F.col("acknowledged_us").isNotNull(), "acknowledged, less safely")
        .when(F.col("failed_us").isNotNull(), "given up")
        .when(F.col("mode") == "ONEWAY", "one-way")
        .otherwise("open")
    )


def _query(tables: Tables) -> DataFrame:
    return (
        tables["messages"]
        .groupBy(WORLD, "topic", "mode", outcome().alias("outcome"))
        .agg(
            F.count("*").alias("messages"),
            F.sum("attempts").alias("attempts"),
            F.count(F.when(F.col("attempts") > 1, 1)).alias("tried_again"),
            F.max("attempts").alias("most_attempts"),
            F.sum("failed_attempts").alias("failed_attempts"),
            F.sum("timed_out").alias("timed_out"),
            F.count(F.when(F.col("stored_us").isNotNull(), 1)).alias("stored"),
            F.count(F.when(F.col("copies") > 1, 1)).alias("stored_again"),
        )
    )


SENDS = Table(
    "sends",
    GOLD,
    "How did sending end, how often was it tried again, and what was stored all the same?",
    shared(
        world=WHICH_WORLD,
        topic=(TEXT, "the topic"),
        mode=(TEXT, "SYNC, ASYNC or ONEWAY"),
        outcome=(TEXT, "acknowledged, acknowledged less safely, given up, one-way, or open when the trace ends"),
        messages=(WHOLE, "how many messages"),
        attempts=(WHOLE, "how many attempts in all"),
        tried_again=(WHOLE, "how many messages took more than one"),
        most_attempts=(WHOLE, "the most that one took"),
        failed_attempts=(WHOLE, "how many attempts failed"),
        timed_out=(WHOLE, "how many of these because no answer came in time"),
        stored=(WHOLE, "how many are in a commit log, whatever the producer knows"),
        stored_again=(WHOLE, "how many were stored more than once: a retry after an answer that was lost"),
    ),
    ("messages",),
    _query,
)
