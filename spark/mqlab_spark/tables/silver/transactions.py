"""One row for each half message on each broker that hid it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab.explore.rules_of_transactions import COMMIT, ROLLBACK
from mqlab_spark.schema import WORLD
from mqlab_spark.tables.half_messages import halves, is_ended, is_hidden, of_half_messages
from mqlab_spark.tables.table import EVENTS, SILVER, TEXT, TRUTH, WHICH_WORLD, WHOLE, Table, Tables, shared

COMMITTED, ROLLED_BACK, PUT_ASIDE = "committed", "rolled back", "put aside"
LOST, ASKED_ABOUT, OPEN = "lost", "asked about", "open"

KEY = [WORLD, "broker", "msg_id"]


def _query(tables: Tables) -> DataFrame:
    events = tables[EVENTS]
    ts_us = F.col("ts_us")
    asked = F.col("kind") == "TransactionChecked"
    put_aside = (F.col("kind") == "HalfMessageGivenUp") & F.col("stored")
    ended = is_ended(COMMIT) | is_ended(ROLLBACK)
    # A commit outweighs a rollback: the message is there.
    which_end = F.struct(F.when(is_ended(COMMIT), 0).otherwise(1), ts_us)
    stored = F.collect_list(F.when(F.col("kind") == "MessageStored", F.struct("topic", "ts_us")))
    key = (WORLD, F.col("node").alias("broker"), F.col("unique_key").alias("msg_id"))
    each = of_half_messages(events).groupBy(*key).agg(
        F.min(F.when(is_hidden(), ts_us)).alias("hidden_us"),
        F.count(F.when(is_hidden(), 1)).alias("hidden"),
        F.min_by("group", F.when(is_hidden(), ts_us)).alias("group"),
        F.min_by("topic", F.when(is_hidden(), ts_us)).alias("topic"),
        F.count(F.when(asked, 1)).alias("asked"),
        F.count(F.when(asked & (F.col("remote") == ""), 1)).alias("asked_nobody"),
        F.min(F.when(asked, ts_us)).alias("first_asked_us"),
        F.max(F.when(asked, ts_us)).alias("last_asked_us"),
        F.min_by(ts_us, F.when(ended, which_end)).alias("ended_us"),
        F.min_by("local_state", F.when(ended, which_end)).alias("local_state"),
        F.min_by("from_check", F.when(ended, which_end)).alias("from_check"),
        F.count(F.when(is_ended(COMMIT), 1)).alias("commits"),
        F.min(F.when(put_aside, ts_us)).alias("put_aside_us"),
        stored.alias("stored"),
    )  # fmt: skip
    in_its_topic = F.filter("stored", lambda record: record["topic"] == F.col("topic"))
    left = halves(events, "node").withColumnRenamed("node", "broker")
    is_torn = F.coalesce("ended_us", "put_aside_us").isNull() & (F.col("halves") == 0)
    return (
        each.where("hidden_us IS NOT NULL")
        .join(_said(events), [WORLD, "msg_id"], "left")
        .join(left, KEY, "left")
        .withColumn("visible_us", F.array_min(F.transform(in_its_topic, lambda record: record["ts_us"])))
        .withColumn("lost_us", F.when(is_torn, F.col("halves_torn_us")))
        .withColumn("outcome", _outcome())
        .drop("stored", "halves", "halves_torn_us", "local_state")
    )


def _said(events: DataFrame) -> DataFrame:
    """A row for each message with what listeners of its producers said of the local part."""
    executed = F.col("kind") == "LocalTransactionExecuted"
    return (
        events.where(F.col("kind").isin("LocalTransactionExecuted", "LocalTransactionRemembered"))
        .groupBy(WORLD, "msg_id")
        .agg(
            F.min(F.when(executed, F.col("ts_us"))).alias("executed_us"),
            F.max_by("local_state", F.struct("ts_us", "slice", "i")).alias("said"),
        )
    )


def _outcome() -> Column:
    return (
        F.when(F.col("local_state") == COMMIT, COMMITTED)
        .when(F.col("local_state") == ROLLBACK, ROLLED_BACK)
        .when(F.col("put_aside_us").isNotNull(), PUT_ASIDE)
        .when(F.col("lost_us").isNotNull(), LOST)
        .when(F.col("asked") > 0, ASKED_ABOUT)
        .otherwise(OPEN)
    )


TRANSACTIONS = Table(
    "transactions",
    SILVER,
    "What became of each half message: said, asked about, committed, rolled back, put aside or lost?",
    shared(
        world=WHICH_WORLD,
        broker=(TEXT, "the machine that hid it"),
        group=(TEXT, "the producer group, of which any member may be asked"),
        topic=(TEXT, "where the message is meant to go"),
        msg_id=(TEXT, "the message's unique key"),
        hidden_us=(WHOLE, "when it was first hidden, us since the world began"),
        hidden=(WHOLE, "how often: more than once when its producer tried again"),
        executed_us=(WHOLE, "when the producer had done the local part; null: it never came to that"),
        said=(TEXT, "what a listener of the group said last: COMMIT_MESSAGE, ROLLBACK_MESSAGE, UNKNOW; null: nothing"),
        asked=(WHOLE, "how often the broker wanted to ask what became of it"),
        asked_nobody=(WHOLE, "how often of these no producer of the group was there"),
        first_asked_us=(WHOLE, "when it first did; null: never"),
        last_asked_us=(WHOLE, "when it last did"),
        ended_us=(WHOLE, "when the broker carried out the commit, or else the rollback; null: neither"),
        from_check=(TRUTH, "whether that was the answer to a question"),
        commits=(WHOLE, "how often it was committed: more than once, consumers may get it twice"),
        visible_us=(WHOLE, "when the message was stored where it belongs, for consumers to see; null: never"),
        put_aside_us=(WHOLE, "when the broker gave it up: asked about too often, or too old; null: it did not"),
        lost_us=(WHOLE, "when its last copy was cut off the commit log before it had ended; null: it was not"),
        outcome=(TEXT, "committed, rolled back, put aside, lost, asked about (and no end yet), or open"),
    ),
    (EVENTS,),
    _query,
)
"""Where a half message was hidden twice on one broker, both are one row: what ends one of them is the row's end."""
