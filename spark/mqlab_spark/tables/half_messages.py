"""How half messages end: told by their producers, put aside by their brokers, or torn away."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab.explore.rules_of_transactions import COMMIT, ROLLBACK, STORED
from mqlab.protocol.topics import RMQ_SYS_TRANS_HALF_TOPIC
from mqlab_spark.schema import WORLD
from mqlab_spark.tables.copies import copies

KINDS = ("HalfMessageHidden", "TransactionEnded", "TransactionChecked", "HalfMessageGivenUp", "MessageStored")
"""What is told of half messages, and what is stored under their keys."""


def is_hidden() -> Column:
    """The event: a half message was stored."""
    return (F.col("kind") == "HalfMessageHidden") & F.col("status").isin(*STORED)


def is_ended(local_state: str) -> Column:
    """The event: this end of a transaction was carried out."""
    return (F.col("kind") == "TransactionEnded") & (F.col("code") == 0) & (F.col("local_state") == local_state)


def of_half_messages(events: DataFrame) -> DataFrame:
    """What is told of half messages, and what is stored under their keys; of other messages nothing."""
    keys = events.where(is_hidden()).select(WORLD, "unique_key").distinct()
    return events.where(F.col("kind").isin(*KINDS)).join(keys, [WORLD, "unique_key"], "left_semi")


def halves(events: DataFrame, *by: str) -> DataFrame:
    """A row for each half message that was written into a commit log, for the first time or again to be asked about:
    how many of its copies are left (`halves`), and when the last one was torn away.
    """
    return (
        copies(events)
        .where(F.col("topic") == RMQ_SYS_TRANS_HALF_TOPIC)
        .groupBy(WORLD, *by, "msg_id")
        .agg(F.count(F.when(F.col("torn_us").isNull(), 1)).alias("halves"), F.max("torn_us").alias("halves_torn_us"))
    )


def half_messages(events: DataFrame) -> DataFrame:
    """A row for each message of a transaction, on whichever brokers it was hidden: how often it was committed, when it
    was rolled back or put aside, and how many copies of its half message are left.
    """
    ends = (
        events.where(F.col("kind").isin("HalfMessageHidden", "TransactionEnded", "HalfMessageGivenUp"))
        .groupBy(WORLD, F.col("unique_key").alias("msg_id"))
        .agg(
            F.min(F.when(is_hidden(), F.col("ts_us"))).alias("hidden_us"),
            F.count(F.when(is_ended(COMMIT), 1)).alias("commits"),
            F.min(F.when(is_ended(ROLLBACK), F.col("ts_us"))).alias("rolled_back_us"),
            F.min(F.when(F.col("kind") == "HalfMessageGivenUp", F.col("ts_us"))).alias("put_aside_us"),
        )
        .where("hidden_us IS NOT NULL")
    )
    return ends.join(halves(events), [WORLD, "msg_id"], "left").withColumn("halves", F.coalesce("halves", F.lit(0)))
