"""How far consumers are behind, second by second."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD, of_kind
from mqlab_spark.tables.table import EVENTS, GOLD, TEXT, WHOLE, Table, Tables, shared

QUEUE = [WORLD, "topic", "broker_name", "queue_id"]


def _second() -> Column:
    return F.floor(F.col("ts_us") / 1_000_000).cast("bigint").alias("second")


def _query(tables: Tables) -> DataFrame:
    events = tables[EVENTS]
    names = of_kind(events, "BrokerStarted").select(WORLD, "node", "broker_name").distinct()
    ends = (
        of_kind(events, "MessageDispatched")
        .join(F.broadcast(names), [WORLD, "node"])
        .groupBy(*QUEUE, _second())
        .agg((F.max("queue_offset") + 1).alias("end_offset"))
    )
    known = (
        of_kind(events, "OffsetUpdated")
        .groupBy(*QUEUE, "group", _second())
        .agg(F.max_by("queue_offset", F.struct("ts_us", "slice", "i")).alias("consumed_offset"))
    )
    committed = (
        of_kind(events, "OffsetCommitted")
        .join(F.broadcast(names), [WORLD, "node"])
        .groupBy(*QUEUE, "group", _second())
        .agg(F.max_by("queue_offset", F.struct("ts_us", "slice", "i")).alias("committed_offset"))
    )
    groups = known.select(*QUEUE, "group").union(committed.select(*QUEUE, "group")).distinct()
    last = events.groupBy(WORLD).agg(F.max(_second()).alias("last_second"))
    seconds = (
        groups.join(F.broadcast(last), [WORLD])
        .withColumn("second", F.explode(F.sequence(F.lit(0).cast("bigint"), "last_second")))
        .drop("last_second")
    )
    so_far = Window.partitionBy(*QUEUE, "group").orderBy("second")
    filled = (
        seconds.join(ends, [*QUEUE, "second"], "left")
        .join(known, [*QUEUE, "group", "second"], "left")
        .join(committed, [*QUEUE, "group", "second"], "left")
    )
    for name in ("end_offset", "consumed_offset", "committed_offset"):
        filled = filled.withColumn(name, F.last(name, ignorenulls=True).over(so_far))
    return filled.where("end_offset IS NOT NULL").withColumn(
        "lag", F.col("end_offset") - F.coalesce("consumed_offset", "committed_offset", F.lit(0))
    )


LAG = Table(
    "lag",
    GOLD,
    "How many messages is each group behind, second by second?",
    shared(
        world=(TEXT, "which world"),
        topic=(TEXT, "the topic"),
        broker_name=(TEXT, "the broker of the queue"),
        queue_id=(WHOLE, "the queue"),
        group=(TEXT, "the consumer group"),
        second=(WHOLE, "at the end of which second of the world, from 0"),
        end_offset=(WHOLE, "where the queue ends: the offset behind its last message"),
        consumed_offset=(WHOLE, "up to where the consumer is done, as it knows itself; null: it never said"),
        committed_offset=(WHOLE, "up to where the broker knows that the group is done; null: nobody told it"),
        lag=(WHOLE, "from there to the end, in messages"),
    ),
    (EVENTS,),
    _query,
)
