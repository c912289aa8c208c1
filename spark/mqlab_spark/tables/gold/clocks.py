"""Clocks that disagree, as the requests between machines show it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD
from mqlab_spark.tables.table import GOLD, TEXT, TRUTH, WHICH_WORLD, WHOLE, Table, Tables, shared

PAIR = [WORLD, "node", "other"]


def _query(tables: Tables) -> DataFrame:
    """As NTP does it: the round trip that took least says most, and leaves half of itself uncertain."""
    asked_first = F.col("caller") < F.col("server")
    ahead = (F.col("received_us") - F.col("sent_us") + F.col("answered_us") - F.col("returned_us")) / 2
    trip = F.col("returned_us") - F.col("sent_us") - (F.col("answered_us") - F.col("received_us"))
    best = (
        tables["requests"]
        .where("returned_us IS NOT NULL AND answered_us IS NOT NULL AND received_us IS NOT NULL AND caller != server")
        .select(
            WORLD, F.least("caller", "server").alias("node"), F.greatest("caller", "server").alias("other"),
            trip.alias("trip_us"), F.floor(F.when(asked_first, ahead).otherwise(-ahead)).alias("offset_us"),
        )
        .where("trip_us >= 0")
        .groupBy(*PAIR)
        .agg(F.min(F.struct("trip_us", "offset_us")).alias("best"), F.count("*").alias("round_trips"))
        .select(
            *PAIR, F.col("best.offset_us"), F.ceil(F.col("best.trip_us") / 2).alias("uncertainty_us"), "round_trips"
        )
        .withColumn("disagrees", F.abs("offset_us") > F.col("uncertainty_us"))
    )  # fmt: skip
    sides = best.select(WORLD, F.explode(F.array("node", "other")).alias("machine"), "disagrees")
    share = sides.groupBy(WORLD, "machine").agg(F.avg(F.col("disagrees").cast("int")).alias("share"))
    of_node, of_other = (
        share.select(WORLD, F.col("machine").alias(name), F.col("share").alias(f"{name}_share"))
        for name in ("node", "other")
    )
    odd = F.when(F.col("node_share") > F.col("other_share"), F.col("node")).when(
        F.col("other_share") > F.col("node_share"), F.col("other")
    )
    return (
        best.join(of_node, [WORLD, "node"])
        .join(of_other, [WORLD, "other"])
        .withColumn("odd", F.when(F.col("disagrees"), odd))
        .drop("node_share", "other_share")
    )


def both_ways(clocks: DataFrame) -> DataFrame:
    """A row for each machine and each other machine whose clock does not agree with its own: `ahead_us`, by how much
    its clock is ahead of the other's, and `uncertainty_us`.
    """
    return _either_way(clocks.where("disagrees"))


def in_two_steps(clocks: DataFrame) -> DataFrame:
    """As `both_ways`, and also for machines that never ask each other, where both exchange requests with a third one:
    what lies between their clocks is what lies between each of them and that one's, and so is the uncertainty.

    Where there are several such machines, the one that is least uncertain is believed. Where all clocks agree, or may
    do so, there is no row.
    """
    one = _either_way(clocks)
    second = one.select(
        WORLD, F.col("node").alias("between"), "other", F.col("ahead_us").alias("second_us"),
        F.col("uncertainty_us").alias("second_uncertainty_us"),
    )  # fmt: skip
    two = (
        one.withColumnRenamed("other", "between")
        .join(second, [WORLD, "between"])
        .where("node != other")
        .select(
            *PAIR, (F.col("ahead_us") + F.col("second_us")).alias("ahead_us"),
            (F.col("uncertainty_us") + F.col("second_uncertainty_us")).alias("uncertainty_us"),
        )
    )  # fmt: skip
    steps = one.withColumn("steps", F.lit(1)).unionByName(two.withColumn("steps", F.lit(2)))
    return (
        steps.groupBy(*PAIR)
        .agg(F.min(F.struct("steps", "uncertainty_us", "ahead_us")).alias("best"))
        .select(*PAIR, "best.ahead_us", "best.uncertainty_us")
        .where("abs(ahead_us) > uncertainty_us")
    )


def _either_way(clocks: DataFrame) -> DataFrame:
    """Each row twice: how far the one clock is ahead of the other, and the other of the one."""
    ahead = clocks.select(WORLD, F.col("other").alias("node"), F.col("node").alias("other"),
                          F.col("offset_us").alias("ahead_us"), "uncertainty_us")  # fmt: skip
    return ahead.unionByName(clocks.select(*PAIR, (-F.col("offset_us")).alias("ahead_us"), "uncertainty_us"))


CLOCKS = Table(
    "clocks",
    GOLD,
    "Which machines' clocks disagree, by how much, and how sure is that?",
    shared(
        world=WHICH_WORLD,
        node=(TEXT, "a machine"),
        other=(TEXT, "another one; of the two names it is the later one in the alphabet"),
        offset_us=(WHOLE, "how far the other's clock is ahead, us: half of what both ways of a request seem to differ"),
        uncertainty_us=(WHOLE, "how far from that it can be at most: half of the shortest round trip, us"),
        round_trips=(WHOLE, "how many requests between the two were answered"),
        disagrees=(TRUTH, "the offset is more than the uncertainty"),
        odd=(TEXT, "of two that disagree the one that disagrees with more of its peers; null: they agree, or both do"),
    ),
    ("requests",),
    _query,
)
