"""How requests that wait for a reply end, and how long a round trip takes."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD
from mqlab_spark.tables.table import GOLD, NUMBER, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared

WHOSE = [WORLD, "topic"]


def _query(tables: Tables) -> DataFrame:
    ended_us = F.coalesce("answered_us", "given_up_us")
    late_by = F.when(F.col("reply") == "late", F.col("late_us") - F.col("given_up_us")) / 1_000
    by_outcome = (
        tables["replies"]
        .withColumn("took_ms", (ended_us - F.col("asked_us")) / 1_000)
        .groupBy(*WHOSE, "outcome", "reply")
        .agg(
            F.count("*").alias("requests"),
            F.round(F.percentile("took_ms", 0.5), 3).alias("median_ms"),
            F.round(F.percentile("took_ms", 0.99), 3).alias("p99_ms"),
            F.round(F.max("took_ms"), 3).alias("slowest_ms"),
            F.round(F.max(late_by), 3).alias("latest_ms"),
            F.count(F.when(F.col("replies") > 1, 1)).alias("replied_again"),
        )
    )
    all_of_them = F.sum("requests").over(Window.partitionBy(WHOSE))
    return by_outcome.withColumn("share", F.round(F.col("requests") / all_of_them, 6))


ROUND_TRIPS = Table(
    "round_trips",
    GOLD,
    "How long do requests wait for their replies, how do they end, and how many replies come late or are lost?",
    shared(
        world=WHICH_WORLD,
        topic=(TEXT, "where the requests were sent to"),
        outcome=(TEXT, "answered, timed out, failed (the request could not be sent), or open"),
        reply=(TEXT, "in time, late (nobody waited any more), not pushed (it got no further than a broker), or none"),
        requests=(WHOLE, "how many requests"),
        share=(NUMBER, "their share of all to the topic, 0 to 1"),
        median_ms=(NUMBER, "from asking to the reply, or to giving up, half took at most so long; null: open"),
        p99_ms=(NUMBER, "99 of 100 took no longer"),
        slowest_ms=(NUMBER, "the longest of them"),
        latest_ms=(NUMBER, "of late replies: the longest time behind giving up; null: there is none"),
        replied_again=(WHOLE, "how many got more than one reply, as when the request was consumed twice"),
    ),
    ("replies",),
    _query,
)
