"""Open transactions and the questions of brokers about them, minute by minute."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD, of_kind
from mqlab_spark.tables.table import EVENTS, GOLD, NUMBER, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared

MINUTE_US = 60_000_000
WHOSE = [WORLD, "broker", "group"]


def _minute(us: Column) -> Column:
    return F.floor(us / MINUTE_US).cast("bigint")


def _query(tables: Tables) -> DataFrame:
    gone_us = F.coalesce("ended_us", "put_aside_us", "lost_us")
    transactions = tables["transactions"].withColumn("gone_us", gone_us)
    last = tables["worlds"].select(WORLD, "end_us")
    minutes = (
        transactions.groupBy(*WHOSE)
        .agg(F.min(F.when(F.col("gone_us").isNull(), F.col("hidden_us"))).alias("never_gone_us"))
        .join(last, WORLD)
        .withColumn("minute", F.explode(F.sequence(F.lit(0).cast("bigint"), _minute(F.col("end_us")))))
    )
    begun = transactions.groupBy(*WHOSE, _minute(F.col("hidden_us")).alias("minute")).agg(F.count("*").alias("begun"))
    gone = (
        transactions.where("gone_us IS NOT NULL")
        .groupBy(*WHOSE, _minute(F.col("gone_us")).alias("minute"))
        .agg(
            F.count("*").alias("gone"),
            *(F.count(F.when(F.col("outcome") == name, 1)).alias(name.replace(" ", "_"))
              for name in ("committed", "rolled back", "put aside", "lost")),
            F.min("hidden_us").alias("oldest_gone_us"),
        )
    )  # fmt: skip
    asked = (
        of_kind(tables[EVENTS], "TransactionChecked")
        .groupBy(WORLD, F.col("node").alias("broker"), "group", _minute(F.col("ts_us")).alias("minute"))
        .agg(F.count("*").alias("asked"), F.count(F.when(F.col("remote") == "", 1)).alias("asked_nobody"))
    )
    counts = ("begun", "gone", "committed", "rolled_back", "put_aside", "lost", "asked", "asked_nobody")
    filled = (
        minutes.join(begun, [*WHOSE, "minute"], "left")
        .join(gone, [*WHOSE, "minute"], "left")
        .join(asked, [*WHOSE, "minute"], "left")
        .withColumns({name: F.coalesce(name, F.lit(0).cast("bigint")) for name in counts})
    )
    in_order = Window.partitionBy(WHOSE).orderBy("minute")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    later = in_order.rowsBetween(1, Window.unboundedFollowing)
    until_us = F.least((F.col("minute") + 1) * MINUTE_US, F.col("end_us"))
    # What goes later, or never, was open at the end of the minute if it had begun by then.
    oldest_us = F.least("never_gone_us", F.min("oldest_gone_us").over(later))
    return filled.withColumn("open", F.sum(F.col("begun") - F.col("gone")).over(so_far)).withColumn(
        "oldest_open_ms", F.round(F.when(F.col("open") > 0, (until_us - oldest_us) / 1_000), 3)
    ).drop("gone", "oldest_gone_us", "never_gone_us", "end_us")  # fmt: skip


CHECK_BACKS = Table(
    "check_backs",
    GOLD,
    "How many transactions are open minute by minute, how old is the oldest, and how often do brokers ask?",
    shared(
        world=WHICH_WORLD,
        broker=(TEXT, "the broker's machine"),
        group=(TEXT, "the producer group"),
        minute=(WHOLE, "which minute of the world, from 0"),
        begun=(WHOLE, "how many half messages were hidden in it"),
        committed=(WHOLE, "how many ended in it with a commit"),
        rolled_back=(WHOLE, "how many with a rollback"),
        put_aside=(WHOLE, "how many the broker gave up"),
        lost=(WHOLE, "how many were cut off the commit log"),
        asked=(WHOLE, "how often the broker wanted to ask about one"),
        asked_nobody=(WHOLE, "how often of these no producer of the group was there"),
        open=(WHOLE, "how many are open at the end of the minute, or of the world"),
        oldest_open_ms=(NUMBER, "for how long the oldest of these has been hidden then; null: none is open"),
    ),
    (EVENTS, "transactions", "worlds"),
    _query,
)
