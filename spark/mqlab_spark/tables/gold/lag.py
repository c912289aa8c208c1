"""How far consumers are behind, second by second."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD, of_kind
from mqlab_spark.tables.table import EVENTS, GOLD, TEXT, WHOLE, Table, Tables, shared

QUEUE = [WORLD, "topic", "broker_name", "queue_id"]
OFFSETS = ("consumed_offset", "committed_offset")
"""As the consumer knows it itself, and as it told its broker."""


def _second() -> Column:
    return F.floor(F.col("ts_us") / 1_000_000).cast("bigint").alias("second")


def _query(tables: Tables) -> DataFrame:
    events = tables[EVENTS]
    names = of_kind(events, "BrokerStarted").select(WORLD, "node", "broker_name").distinct()
    ends = (
        of_kind(events, "MessageDispatched")
        .join(names, [WORLD, "node"])
        .groupBy(*QUEUE, _second())
        .agg((F.max("queue_offset") + 1).alias("end_offset"))
    )
    by_group = [*QUEUE, "group", "ts_us", "slice", "i"]
    known = of_kind(events, "OffsetUpdated").select(*by_group, F.col("queue_offset").alias("consumed_offset"))
    committed = (
        of_kind(events, "OffsetCommitted")
        .join(names, [WORLD, "node"])
        .select(*by_group, F.col("queue_offset").alias("committed_offset"))
    )
    told = (
        known.unionByName(committed, allowMissingColumns=True)
        .groupBy(*QUEUE, "group", _second())
        .agg(*(_last(name) for name in OFFSETS))
    )
    last = tables["worlds"].select(WORLD, F.floor(F.col("end_us") / 1_000_000).cast("bigint").alias("last_second"))
    groups = told.select(*QUEUE, "group").distinct()
    seconds = groups.join(last, [WORLD]).select(
        *groups.columns, F.explode(F.sequence(F.lit(0).cast("bigint"), "last_second")).alias("second")
    )
    filled = seconds.join(ends, [*QUEUE, "second"], "left").join(told, [*QUEUE, "group", "second"], "left")
    so_far = Window.partitionBy(*QUEUE, "group").orderBy("second")
    for name in ("end_offset", *OFFSETS):
        filled = filled.withColumn(name, F.last(name, ignorenulls=True).over(so_far))
    return filled.where("end_offset IS NOT NULL").withColumn(
        "lag", F.col("end_offset") - F.coalesce(*OFFSETS, F.lit(0))
    )


def _last(offset: str) -> Column:
    """The last of the offsets in a column that is null where an event tells another one."""
    return F.max_by(offset, F.when(F.col(offset).isNotNull(), F.struct("ts_us", "slice", "i"))).alias(offset)


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
    (EVENTS, "worlds"),
    _query,
)
