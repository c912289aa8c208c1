"""How far consumers are behind, second by second."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD, of_kind
from mqlab_spark.tables.table import EVENTS, GOLD, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared

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
    ends_at = tables["worlds"].select(WORLD, F.floor(F.col("end_us") / 1_000_000).cast("bigint").alias("last_second"))
    so_far = Window.partitionBy(*QUEUE, "group").orderBy("second")
    for name in OFFSETS:
        told = told.withColumn(name, F.last(name, ignorenulls=True).over(so_far))
    # Each holds until the next is told, the last one to the end of the world; before the first nothing is known.
    is_first = F.row_number().over(so_far) == 1
    begins = F.when(is_first, F.lit(0).cast("bigint")).otherwise(F.col("second"))
    until = F.lead("second").over(so_far) - 1
    is_told = F.col("at") >= F.col("second")
    seconds = (
        told.withColumns({"begins": begins, "until": until})
        .join(ends_at, [WORLD])
        .withColumn("at", F.explode(F.sequence("begins", F.coalesce("until", "last_second"))))
        .withColumns({name: F.when(is_told, F.col(name)) for name in OFFSETS})
        .withColumn("second", F.col("at"))
        .drop("begins", "until", "at", "last_second")
    )
    filled = seconds.join(ends, [*QUEUE, "second"], "left").withColumn(
        "end_offset", F.last("end_offset", ignorenulls=True).over(so_far)
    )
    lag = F.col("end_offset") - F.coalesce(*OFFSETS, F.lit(0))
    return filled.where("end_offset IS NOT NULL").withColumn("lag", lag)


def _last(offset: str) -> Column:
    """The last of the offsets in a column that is null where an event tells another one."""
    return F.max_by(offset, F.when(F.col(offset).isNotNull(), F.struct("ts_us", "slice", "i"))).alias(offset)


LAG = Table(
    "lag",
    GOLD,
    "How many messages is each group behind, second by second?",
    shared(
        world=WHICH_WORLD,
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
