"""Every time that a queue came to a consumer: from whom, after how long, and from which offset on."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import of_kind
from mqlab_spark.tables.gold.ownership import QUEUE, owners
from mqlab_spark.tables.table import EVENTS, GOLD, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared


def _query(tables: Tables) -> DataFrame:
    events = tables[EVENTS]
    began = of_kind(events, "QueueAllocated").select(
        *QUEUE, "node", F.col("ts_us").alias("from_us"), "queue_offset"
    )  # fmt: skip
    # Who has dropped a queue in the same slice in which it took it again has two rows that begin at one time.
    held = owners(events).distinct().join(began.distinct(), [*QUEUE, "node", "from_us"])
    in_order = Window.partitionBy(QUEUE).orderBy("from_us", "node")
    before = F.lag(F.struct("node", F.col("to_us").alias("left_us"))).over(in_order)
    went_on = (
        of_kind(events, "ConsumeStarted")
        .where("reconsume_times = 0")
        .select(*QUEUE, "node", F.col("ts_us").alias("listened_us"))
    )
    rows = held.withColumn("before", before).select(
        *QUEUE, "node", F.col("from_us").alias("taken_us"), F.col("to_us").alias("left_us"),
        F.col("queue_offset").alias("from_offset"),
        F.col("before.node").alias("before"), F.col("before.left_us").alias("before_left_us"),
    )  # fmt: skip
    first = (
        rows.join(went_on, [*QUEUE, "node"])
        .where("listened_us >= taken_us AND (left_us IS NULL OR listened_us <= left_us)")
        .groupBy(*QUEUE, "node", "taken_us")
        .agg(F.min("listened_us").alias("listened_us"))
    )
    gap_us = F.col("taken_us") - F.col("before_left_us")
    return (
        rows.join(first, [*QUEUE, "node", "taken_us"], "left")
        .withColumn("gap_us", F.when(gap_us > 0, gap_us))
        .withColumn("overlap_us", F.when(gap_us < 0, -gap_us))
        .drop("before_left_us")
    )


REBALANCES = Table(
    "rebalances",
    GOLD,
    "When did each queue come to which consumer, from whom, and how long did nobody have it?",
    shared(
        world=WHICH_WORLD,
        group=(TEXT, "the group"),
        topic=(TEXT, "the topic, perhaps the group's retry topic"),
        broker_name=(TEXT, "the broker of the queue"),
        queue_id=(WHOLE, "the queue"),
        node=(TEXT, "the consumer's machine that took it"),
        taken_us=(WHOLE, "when it did, us since the world began"),
        from_offset=(WHOLE, "from which offset on it pulled"),
        listened_us=(WHOLE, "when its application first got a message of the queue; null: never"),
        left_us=(WHOLE, "when it gave the queue up or ended; null: it had it to the end"),
        before=(TEXT, "who had it before; null: nobody"),
        gap_us=(WHOLE, "how long nobody had it; null: it went over at once, or both had it"),
        overlap_us=(WHOLE, "how long both had it; null: they did not"),
    ),
    (EVENTS,),
    _query,
)
