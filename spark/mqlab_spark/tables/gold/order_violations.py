"""Messages that a group was done with after a later one of the same queue."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD, of_kind
from mqlab_spark.tables.gold.clocks import both_ways
from mqlab_spark.tables.table import EVENTS, GOLD, TEXT, TRUTH, WHICH_WORLD, WHOLE, Table, Tables, shared

QUEUE = [WORLD, "group", "topic", "broker", "queue_id"]


def done_in_queues(tables: Tables) -> DataFrame:
    """A row for each message and group that was done with it, at the place where the message was first stored."""
    places = tables["messages"].where("broker IS NOT NULL").select(
        WORLD, "msg_id", "topic", "broker", "queue_id", "queue_offset", "copies"
    )  # fmt: skip
    return tables["deliveries"].where("consumed_us IS NOT NULL").join(places, [WORLD, "msg_id"])


def _query(tables: Tables) -> DataFrame:
    # What ends in the same microsecond has no order that anybody could see.
    before = Window.partitionBy(QUEUE).orderBy("broker_us").rangeBetween(Window.unboundedPreceding, -1)
    later = F.max(F.struct("queue_offset", "msg_id", "consumed_us")).over(before)
    # Two consumers' clocks are compared by their broker's.
    ahead = both_ways(tables["clocks"]).select(
        WORLD, F.col("node").alias("consumer"), F.col("other").alias("broker"), "ahead_us"
    )
    locked = of_kind(tables[EVENTS], "QueueLockTaken").select(WORLD, "group", F.lit(True).alias("in_order")).distinct()
    return (
        done_in_queues(tables)
        .join(ahead, [WORLD, "consumer", "broker"], "left")
        .withColumn("broker_us", F.col("consumed_us") - F.coalesce("ahead_us", F.lit(0)))
        .withColumn("later", later)
        .where("later.queue_offset > queue_offset")
        .join(locked, [WORLD, "group"], "left")
        .select(
            *QUEUE, "queue_offset", "msg_id", "consumed_us", F.col("consumer").alias("node"), "first_us",
            F.col("later.queue_offset").alias("later_offset"), F.col("later.msg_id").alias("later_msg_id"),
            F.col("later.consumed_us").alias("later_us"),
            F.coalesce("in_order", F.lit(False)).alias("in_order"), _why().alias("reason"),
        )
    )  # fmt: skip


def _why() -> Column:
    """What brought a violation of order about."""
    return (
        F.when(F.col("given_back") > 0, "given back: it came again by the retry queue, and later ones went on")
        .when(F.col("copies") > 1, "stored twice: the place of its first copy counts")
        .when(F.col("calls") > 1, "the first call did not end well, as when a member dies, and later ones went on")
        .when(F.col("first_us") > F.col("later.consumed_us"), "it was called after the later one had ended")
        .otherwise("several threads of a listener: the later one ended first")
    )


ORDER_VIOLATIONS = Table(
    "order_violations",
    GOLD,
    "Which messages was a group done with after a later one of their queue, and what brought that about?",
    shared(
        world=WHICH_WORLD,
        group=(TEXT, "the consumer group"),
        topic=(TEXT, "the message's topic"),
        broker=(TEXT, "the machine that stored it first"),
        queue_id=(WHOLE, "its queue there"),
        queue_offset=(WHOLE, "its place in that queue"),
        msg_id=(TEXT, "the message's unique key"),
        consumed_us=(WHOLE, "when the group was first done with it, us since the world began"),
        node=(TEXT, "the machine that was"),
        first_us=(WHOLE, "when the group's application first got it"),
        later_offset=(WHOLE, "the last place of the queue with which the group was done before that"),
        later_msg_id=(TEXT, "the message there"),
        later_us=(WHOLE, "when the group was done with that one"),
        in_order=(TRUTH, "whether the group consumes in order, with locks: then it must not happen"),
        reason=(TEXT, "what brought it about"),
    ),
    (EVENTS, "messages", "deliveries", "clocks"),
    _query,
)
