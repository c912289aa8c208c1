"""One row for each record of a master's log and each of its slaves, each time that the slave lacked it."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.pairs import PAIR, pairs
from mqlab_spark.schema import WORLD, of_kind
from mqlab_spark.tables.copies import copied, torn_away
from mqlab_spark.tables.table import EVENTS, SILVER, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared

RECORD = [*PAIR, "topic", "msg_id", "commit_log_offset", "store_size", "stored_us"]

WRITTEN, TORN = "written", "torn from the slave"


def _torn(events: DataFrame, records: DataFrame) -> DataFrame:
    """A row for each time that a slave came back with a log that ends before a record does."""
    ends = (
        of_kind(events, "StoreRecovered")
        .join(pairs(events).withColumn("node", F.col("slave")), [WORLD, "node"])
        .select(*PAIR, "commit_log_max_offset", F.col("ts_us").alias("at_us"))
    )
    return (
        records.join(ends, PAIR)
        .where("at_us > stored_us AND commit_log_offset + store_size > commit_log_max_offset")
        .select(*RECORD, "at_us", F.lit(False).alias("there"))
    )


def _query(tables: Tables) -> DataFrame:
    events = tables[EVENTS]
    of_pairs = pairs(events).withColumn("node", F.col("master"))
    records = (
        of_kind(events, "MessageStored")
        .join(of_pairs, [WORLD, "node"])
        .withColumnsRenamed({"unique_key": "msg_id", "ts_us": "stored_us"})
        .select(*RECORD)
    )
    written = records.select(*RECORD, F.col("stored_us").alias("at_us"), F.lit(False).alias("there"))
    in_order = Window.partitionBy(RECORD).orderBy("at_us")
    later = in_order.rowsBetween(1, Window.unboundedFollowing)
    got = copied(events, records).select(*RECORD, F.col("copied_us").alias("at_us"), F.lit(True).alias("there"))
    lacked = (
        written.unionByName(got)
        .unionByName(_torn(events, records))
        .withColumns({
            "before": F.lag("there").over(in_order),
            "copied_us": F.min(F.when(F.col("there"), F.col("at_us"))).over(later),
        })
        .where("NOT there AND coalesce(before, true)")
        .withColumn("why", F.when(F.col("before").isNull(), WRITTEN).otherwise(TORN))
    )  # fmt: skip
    gone = torn_away(events).select(
        WORLD, F.col("node").alias("master"), "topic", "msg_id", "commit_log_offset", F.col("torn_us").alias("gone_us")
    )
    answers = tables["messages"].where("acknowledged_us IS NOT NULL").select(WORLD, "msg_id", "acknowledged_us")
    return (
        lacked.withColumnRenamed("at_us", "lacked_us")
        .join(gone, [WORLD, "master", "topic", "msg_id", "commit_log_offset"], "left")
        .where("gone_us IS NULL OR gone_us > lacked_us")
        .join(answers, [WORLD, "msg_id"], "left")
        .drop("there", "before")
    )


REPLICAS = Table(
    "replicas",
    SILVER,
    "When did each slave get each record of its master's log, and for how long did it lack it?",
    shared(
        world=WHICH_WORLD,
        broker_name=(TEXT, "the name that master and slave have in common"),
        master=(TEXT, "the master's machine"),
        slave=(TEXT, "the slave's"),
        topic=(TEXT, "the topic under which the record lies, perhaps one of the broker's own"),
        msg_id=(TEXT, "the unique key of the message in it; empty: it has none"),
        commit_log_offset=(WHOLE, "its first byte in the log of both"),
        store_size=(WHOLE, "its length there"),
        stored_us=(WHOLE, "when the master wrote it, us since the world began"),
        acknowledged_us=(WHOLE, "when a producer knew that the message is stored; null: none did"),
        why=(TEXT, "written: it was new; torn from the slave: it had been there until the slave lost power"),
        lacked_us=(WHOLE, "since when the slave lacked it"),
        copied_us=(WHOLE, "when the slave had all of it; null: not any more"),
        gone_us=(WHOLE, "when the master itself lost it, behind the end of its log after a restart; null: it has it"),
    ),
    (EVENTS, "messages"),
    _query,
)
"""A slave whose log is longer than its master's keeps what it has: what the master writes there it never gets."""
