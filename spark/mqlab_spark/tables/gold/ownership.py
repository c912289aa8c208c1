"""Queues that two consumers of a group held at the same time."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD, of_kind
from mqlab_spark.tables.table import EVENTS, GOLD, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared

QUEUE = [WORLD, "group", "topic", "broker_name", "queue_id"]
END_OF_PROCESS = ("NodeCrashed", "PowerLost")


def owners(events: DataFrame) -> DataFrame:
    """A row for each time that a consumer held a queue: the queue, node, from_us, to_us (null: to the end)."""
    taken = of_kind(events, "QueueAllocated").select(*QUEUE, "node", "ts_us", "slice", "i", F.lit(1).alias("takes"))
    dropped = of_kind(events, "QueueDropped").select(*QUEUE, "node", "ts_us", "slice", "i", F.lit(0).alias("takes"))
    died = events.where(F.col("kind").isin(*END_OF_PROCESS)).select(
        WORLD, F.col("target").alias("node"), "ts_us", "slice", "i"
    )
    stopped = of_kind(events, "ClientStopped").select(WORLD, "node", "ts_us", "slice", "i")
    # Whoever dies or ends drops all that it ever held.
    gone = (
        taken.select(*QUEUE, "node")
        .distinct()
        .join(died.unionByName(stopped), [WORLD, "node"])
        .withColumn("takes", F.lit(0))
    )
    in_order = Window.partitionBy(*QUEUE, "node").orderBy("ts_us", "slice", "i")
    changes = taken.unionByName(dropped).unionByName(gone.select(taken.columns))
    return (
        changes.withColumn("to_us", F.lead("ts_us").over(in_order))
        .where("takes = 1")
        .select(*QUEUE, "node", F.col("ts_us").alias("from_us"), "to_us")
    )


def _query(tables: Tables) -> DataFrame:
    held = owners(tables[EVENTS])
    ends = tables["worlds"].select(WORLD, "end_us")
    held = held.join(ends, [WORLD]).withColumn("to_us", F.coalesce("to_us", "end_us")).drop("end_us")
    other = held.withColumnsRenamed({"node": "other", "from_us": "other_from_us", "to_us": "other_to_us"})
    both = held.join(other, QUEUE).where("node < other AND from_us < other_to_us AND other_from_us < to_us")
    return both.select(
        *QUEUE, "node", "other",
        F.greatest("from_us", "other_from_us").alias("began_us"),
        F.least("to_us", "other_to_us").alias("ended_us"),
    )  # fmt: skip


DOUBLE_OWNERSHIP = Table(
    "double_ownership",
    GOLD,
    "Which queues did two consumers of one group hold at the same time, and how long?",
    shared(
        world=WHICH_WORLD,
        group=(TEXT, "the group; of one that broadcasts everybody holds every queue"),
        topic=(TEXT, "the topic"),
        broker_name=(TEXT, "the broker of the queue"),
        queue_id=(WHOLE, "the queue"),
        node=(TEXT, "one consumer's machine"),
        other=(TEXT, "the other's"),
        began_us=(WHOLE, "when both held it, us since the world began"),
        ended_us=(WHOLE, "when one gave it up, died, or the trace ended"),
    ),
    (EVENTS, "worlds"),
    _query,
)
