"""What became of the copies of messages in commit logs: which were torn away, and which are left."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab.protocol.topics import RMQ_SYS_SCHEDULE_TOPIC, TIMER_TOPIC
from mqlab_spark.pairs import PAIR, pairs
from mqlab_spark.schema import WORLD, of_kind

MESSAGE = [WORLD, "msg_id"]

PARKED = (RMQ_SYS_SCHEDULE_TOPIC, TIMER_TOPIC)
"""Where messages wait that are to be delivered later."""

BLOCK_BYTES = 4_096
"""Records and pieces of the log meet in blocks of this size: few records in each, and few blocks for each piece."""


def torn_away(events: DataFrame) -> DataFrame:
    """A row for each copy of a message that its broker no longer had after a restart: it was behind the log's end.

    A copy that was written again (by the producer's retry, say) has another row of its own in the trace.
    """
    copies = of_kind(events, "MessageStored").select(
        WORLD, "node", "topic", "queue_id", "queue_offset", F.col("unique_key").alias("msg_id"), "commit_log_offset",
        "store_size", "ts_us",
    )  # fmt: skip
    ends = of_kind(events, "StoreRecovered").select(
        WORLD, "node", "commit_log_max_offset", F.col("ts_us").alias("recovered_us")
    )
    lost = copies.join(ends, [WORLD, "node"]).where(
        "recovered_us > ts_us AND commit_log_offset >= commit_log_max_offset"
    )
    return lost.groupBy(WORLD, "node", "topic", "queue_id", "queue_offset", "msg_id", "commit_log_offset").agg(
        F.min("recovered_us").alias("torn_us"),
        F.min("ts_us").alias("stored_us"),
        F.max("store_size").alias("store_size"),
    )


def _block(offset: str) -> str:
    return f"floor(({offset}) / {BLOCK_BYTES})"


def copied(events: DataFrame, records: DataFrame) -> DataFrame:
    """A row for each time (`copied_us`) that a slave got a record: it appended the piece of the log where that ends.

    `records` has master, slave, commit_log_offset, store_size and stored_us of each record; all its columns are kept.
    """
    of_pairs = pairs(events).withColumn("node", F.col("slave"))
    pieces = (
        of_kind(events, "ReplicaDataAppended")
        .join(of_pairs, [WORLD, "node"])
        .select(
            *PAIR, F.col("commit_log_offset").alias("begins"),
            (F.col("commit_log_offset") + F.col("body_bytes")).alias("ends"), F.col("ts_us").alias("copied_us"),
        )
        .where("ends > begins")
        .withColumn("block", F.explode(F.expr(f"sequence({_block('begins')}, {_block('ends - 1')})")))
    )  # fmt: skip
    return (
        records.withColumn("ends_at", F.expr("commit_log_offset + store_size"))
        .withColumn("block", F.expr(_block("ends_at - 1")))
        .join(pieces, [*PAIR, "block"])
        .where("begins < ends_at AND ends_at <= ends AND copied_us > stored_us")
        .select(*records.columns, "copied_us")
    )


def surviving(events: DataFrame) -> DataFrame:
    """A row for each message and topic with how many copies are still there, when the last one was torn away, and how
    many of those that were torn away a slave has.
    """
    copy = [WORLD, "node", "topic", "msg_id", "commit_log_offset"]
    copies = of_kind(events, "MessageStored").select(
        WORLD, "node", "topic", F.col("unique_key").alias("msg_id"), "commit_log_offset"
    )
    torn = torn_away(events)
    return (
        copies.join(torn.select(*copy, "torn_us"), copy, "left")
        .join(_on_slaves(events, torn).select(*copy, F.lit(True).alias("on_slave")), copy, "left")
        .groupBy(*MESSAGE, "topic")
        .agg(
            F.count(F.when(F.col("torn_us").isNull(), 1)).alias("left"),
            F.max("torn_us").alias("torn_us"),
            F.count("on_slave").alias("on_slaves"),
        )
    )


def _on_slaves(events: DataFrame, torn: DataFrame) -> DataFrame:
    """The copies that a master lost and a slave has: it got them before, and has not lost them itself since."""
    of_pairs = pairs(events).withColumn("node", F.col("master"))
    ends = of_kind(events, "StoreRecovered").select(
        WORLD, F.col("node").alias("slave"), "commit_log_max_offset", F.col("ts_us").alias("recovered_us")
    )
    gone = (F.col("recovered_us") > F.col("copied_us")) & (F.col("commit_log_max_offset") <= F.col("commit_log_offset"))
    return (
        copied(events, torn.join(of_pairs, [WORLD, "node"]))
        .where("copied_us <= torn_us")
        .join(ends, [WORLD, "slave"], "left")
        .groupBy(*torn.columns, "slave", "copied_us")
        .agg(F.count(F.when(gone, 1)).alias("times_gone"))
        .where("times_gone = 0")
        .select(*torn.columns)
        .distinct()
    )
