"""What became of the copies of messages in commit logs: which were torn away, and which are left."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab.protocol.topics import RMQ_SYS_SCHEDULE_TOPIC, TIMER_TOPIC
from mqlab_spark.pairs import PAIR, pairs
from mqlab_spark.schema import WORLD, of_kind

MESSAGE = [WORLD, "msg_id"]
COPY = [WORLD, "node", "topic", "msg_id", "commit_log_offset"]

PARKED = (RMQ_SYS_SCHEDULE_TOPIC, TIMER_TOPIC)
"""Where messages wait that are to be delivered later."""

BLOCK_BYTES = 4_096
"""Records and pieces of the log meet in blocks of this size: few records in each, and few blocks for each piece."""


def copies(events: DataFrame) -> DataFrame:
    """A row for each time that a record was written to a commit log: its place, size, message and time (`stored_us`),
    and when it was `torn_us`: the broker came back with a log that ends before it. Null: it never was.
    """
    ends = (
        of_kind(events, "StoreRecovered")
        .groupBy(WORLD, "node")
        .agg(F.collect_list(F.struct("ts_us", "commit_log_max_offset")).alias("ends"))
    )
    without_it = F.filter(
        "ends",
        lambda end: (end["ts_us"] > F.col("stored_us"))
        & (F.col("commit_log_offset") >= end["commit_log_max_offset"]),
    )
    return (
        of_kind(events, "MessageStored")
        .withColumnsRenamed({"unique_key": "msg_id", "ts_us": "stored_us"})
        .select(*COPY, "queue_id", "queue_offset", "store_size", "stored_us")
        .join(ends, [WORLD, "node"], "left")
        .withColumn("torn_us", F.array_min(F.transform(without_it, lambda end: end["ts_us"])))
        .drop("ends")
    )


def torn_away(events: DataFrame) -> DataFrame:
    """A row for each copy of a message that its broker no longer had after a restart: it was behind the log's end.

    A copy that was written again at its place (by the producer's retry, say) and torn away again is one row.
    """
    return (
        copies(events)
        .where("torn_us IS NOT NULL")
        .groupBy(*COPY, "queue_id", "queue_offset")
        .agg(
            F.min("torn_us").alias("torn_us"),
            F.min("stored_us").alias("stored_us"),
            F.max("store_size").alias("store_size"),
        )
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


def records_of_messages(events: DataFrame) -> DataFrame:
    """A row for each message: `records`, all that was ever stored of it, each with its topic and when it was torn away.

    `left_of` and `torn_of` say what became of those that are meant.
    """
    of_messages = copies(events).where("msg_id != ''")
    return of_messages.groupBy(*MESSAGE).agg(F.collect_list(F.struct("topic", "torn_us")).alias("records"))


def left_of(is_meant: Callable[[Column], Column]) -> Column:
    """How many of the `records` in the topics that are meant are still there; null: there never was one."""
    meant = F.filter("records", lambda record: is_meant(record["topic"]))
    there = F.filter(meant, lambda record: record["torn_us"].isNull())
    return F.when(F.size(meant) > 0, F.size(there))


def torn_of(is_meant: Callable[[Column], Column]) -> Column:
    """When the last of the `records` in the topics that are meant was torn away; null: none was."""
    meant = F.filter("records", lambda record: is_meant(record["topic"]))
    return F.array_max(F.transform(meant, lambda record: record["torn_us"]))


def on_slaves(events: DataFrame) -> DataFrame:
    """A row for each message and topic of which a master lost copies that a slave has: how many."""
    return _on_slaves(events, torn_away(events)).groupBy(*MESSAGE, "topic").agg(F.count("*").alias("on_slaves"))


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
