"""How transactions end, and how long that takes."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD
from mqlab_spark.tables.table import GOLD, NUMBER, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared

WHOSE = [WORLD, "group", "topic"]


def _query(tables: Tables) -> DataFrame:
    ended_us = F.coalesce("ended_us", "put_aside_us", "lost_us")
    by_outcome = (
        tables["transactions"]
        .withColumn("took_ms", (ended_us - F.col("hidden_us")) / 1_000)
        .groupBy(*WHOSE, "outcome")
        .agg(
            F.count("*").alias("transactions"),
            F.count(F.when(F.col("from_check"), 1)).alias("after_a_question"),
            F.sum("asked").alias("asked"),
            F.max("asked").alias("most_asked"),
            F.count(F.when(F.col("commits") > 1, 1)).alias("committed_again"),
            F.round(F.percentile("took_ms", 0.5), 3).alias("median_ms"),
            F.round(F.max("took_ms"), 3).alias("slowest_ms"),
        )
    )
    all_of_them = F.sum("transactions").over(Window.partitionBy(WHOSE))
    return by_outcome.withColumn("share", F.round(F.col("transactions") / all_of_them, 6))


TRANSACTION_OUTCOMES = Table(
    "transaction_outcomes",
    GOLD,
    "How do transactions end, how long are their messages hidden, and how often must brokers ask?",
    shared(
        world=WHICH_WORLD,
        group=(TEXT, "the producer group"),
        topic=(TEXT, "where the messages are meant to go"),
        outcome=(TEXT, "committed, rolled back, put aside, lost, asked about (and no end yet), or open"),
        transactions=(WHOLE, "how many half messages"),
        share=(NUMBER, "their share of all of the group for this topic, 0 to 1"),
        after_a_question=(WHOLE, "how many of them ended with the answer to a broker's question"),
        asked=(WHOLE, "how often brokers wanted to ask about them"),
        most_asked=(WHOLE, "the most for one"),
        committed_again=(WHOLE, "how many were committed more than once: consumers may get those twice"),
        median_ms=(NUMBER, "from hiding to this end, half of them took at most so long; null: no end yet"),
        slowest_ms=(NUMBER, "the longest of them"),
    ),
    ("transactions",),
    _query,
)
