"""What became of the copies of messages in commit logs: which were torn away, and which are left."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD, of_kind

MESSAGE = [WORLD, "msg_id"]


def torn_away(events: DataFrame) -> DataFrame:
    """A row for each copy of a message that its broker no longer had after a restart: it was behind the log's end.

    A copy that was written again (by the producer's retry, say) has another row of its own in the trace.
    """
    copies = of_kind(events, "MessageStored").select(
        WORLD, "node", "topic", F.col("unique_key").alias("msg_id"), "commit_log_offset", "ts_us"
    )
    ends = of_kind(events, "StoreRecovered").select(
        WORLD, "node", "commit_log_max_offset", F.col("ts_us").alias("recovered_us")
    )
    lost = copies.join(F.broadcast(ends), [WORLD, "node"]).where(
        "recovered_us > ts_us AND commit_log_offset >= commit_log_max_offset"
    )
    return lost.groupBy(WORLD, "node", "topic", "msg_id", "commit_log_offset").agg(
        F.min("recovered_us").alias("torn_us")
    )


def surviving(events: DataFrame) -> DataFrame:
    """A row for each message and topic with how many copies are still there, and when the last one was torn away."""
    copies = of_kind(events, "MessageStored").select(
        WORLD, "node", "topic", F.col("unique_key").alias("msg_id"), "commit_log_offset"
    )
    return (
        copies.join(torn_away(events), [WORLD, "node", "topic", "msg_id", "commit_log_offset"], "left")
        .groupBy(*MESSAGE, "topic")
        .agg(F.count(F.when(F.col("torn_us").isNull(), 1)).alias("left"), F.max("torn_us").alias("torn_us"))
    )
