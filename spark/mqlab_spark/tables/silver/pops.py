"""One row for each message that Pop handed out, each time that it did."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD
from mqlab_spark.tables.table import EVENTS, SILVER, TEXT, TRUTH, WHICH_WORLD, WHOLE, Table, Tables, shared

PLACE = [WORLD, "node", "group", "topic", "queue_id", "queue_offset"]
"""A message of a queue, for one group; `node` is the broker's machine."""

KINDS = ("MessagePopped", "InvisibleTimeChanged", "AckReceived", "MessageRevived")
"""What happens to a message that was handed out."""

IN_TIME, LATE, TOO_LATE = "acked in time", "acked late", "acked too late"
REVIVED, AGAIN, OPEN = "revived", "handed out again", "still out"

IN_ORDER = 999
"""The revive queue that stands in for none: what is popped in order has no check point."""


def _story(events: DataFrame) -> DataFrame:
    """What happened to each message of each group, in order, with the number of the handing out that it belongs to."""
    told = events.where(F.col("kind").isin(*KINDS)).select(
        *PLACE, "ts_us", "slice", "i", "kind", "invisible_ms", "revive_qid"
    )
    so_far = Window.partitionBy(PLACE).orderBy("ts_us", "slice", "i")
    hides = F.col("kind").isin("MessagePopped", "InvisibleTimeChanged")
    until_us = F.when(hides, F.col("ts_us") + 1_000 * F.col("invisible_ms"))
    number = F.count(_when("MessagePopped", "ts_us")).over(so_far)
    return told.withColumns({"number": number, "until_us": F.last(until_us, True).over(so_far)})


def _when(kind: str, value: str) -> Column:
    return F.when(F.col("kind") == kind, F.col(value))


def _query(tables: Tables) -> DataFrame:
    acks = F.when(F.col("kind") == "AckReceived", F.struct("ts_us", "slice", "i"))
    each = _story(tables[EVENTS]).groupBy(*PLACE, "number").agg(
        F.min(_when("MessagePopped", "ts_us")).alias("popped_us"),
        F.min(_when("MessagePopped", "invisible_ms")).alias("invisible_ms"),
        (F.min(_when("MessagePopped", "revive_qid")) == IN_ORDER).alias("in_order"),
        F.count(_when("InvisibleTimeChanged", "ts_us")).alias("changes"),
        F.min(_when("AckReceived", "ts_us")).alias("acked_us"),
        F.min_by("until_us", acks).alias("until_us"),
        F.min(_when("MessageRevived", "ts_us")).alias("revived_us"),
    )  # fmt: skip
    following = F.lead("popped_us").over(Window.partitionBy(PLACE).orderBy("number"))
    return (
        each.where("popped_us IS NOT NULL")
        .withColumn("again_us", following)
        .withColumn("outcome", _outcome())
        .drop("number", "until_us")
    )


def _outcome() -> Column:
    acked, revived = F.col("acked_us").isNotNull(), F.col("revived_us").isNotNull()
    return (
        F.when(acked & revived, TOO_LATE)
        .when(acked & (F.col("acked_us") > F.col("until_us")), LATE)
        .when(acked, IN_TIME)
        .when(revived, REVIVED)
        .when(F.col("again_us").isNotNull(), AGAIN)
        .otherwise(OPEN)
    )


POPS = Table(
    "pops",
    SILVER,
    "What became of each message that Pop handed out, each time?",
    shared(
        world=WHICH_WORLD,
        node=(TEXT, "the broker's machine"),
        group=(TEXT, "the consumer group"),
        topic=(TEXT, "the topic that was popped, perhaps the group's retry topic"),
        queue_id=(WHOLE, "its queue"),
        queue_offset=(WHOLE, "the message's place in it"),
        popped_us=(WHOLE, "when it was handed out, us since the world began"),
        invisible_ms=(WHOLE, "for how long it was hidden then"),
        in_order=(TRUTH, "whether it was popped in order, without a check point"),
        changes=(WHOLE, "how often its invisible time was changed: given back, or made longer"),
        acked_us=(WHOLE, "when the broker heard that it is done; null: never"),
        revived_us=(WHOLE, "when it was put to the retry topic; null: never"),
        again_us=(WHOLE, "when it was handed out again from the same place; null: never"),
        outcome=(TEXT, "acked in time, acked late, acked too late, revived, handed out again, or still out"),
    ),
    (EVENTS,),
    _query,
)
