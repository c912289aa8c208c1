"""How far slaves are behind their masters, and what an accident would lose, second by second."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.pairs import PAIR
from mqlab_spark.schema import WORLD, of_kind
from mqlab_spark.tables.table import EVENTS, GOLD, NUMBER, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared

SECOND_US = 1_000_000


def _second(us: str | Column) -> Column:
    return F.floor((F.col(us) if isinstance(us, str) else us) / SECOND_US).cast("bigint").alias("second")


def _query(tables: Tables) -> DataFrame:
    replicas = tables["replicas"].withColumn("until_us", F.least("copied_us", "gone_us"))
    seconds = (
        replicas.groupBy(*PAIR)
        .agg(F.min(F.when(F.col("until_us").isNull(), F.col("lacked_us"))).alias("never_copied_us"))
        .join(tables["worlds"].select(WORLD, "end_us"), WORLD)
        .withColumn("second", F.explode(F.sequence(F.lit(0).cast("bigint"), _second("end_us"))))
    )
    began = replicas.groupBy(*PAIR, _second("lacked_us")).agg(
        F.count(F.when(F.col("why") == "written", 1)).alias("written"),
        F.count("*").alias("begun"), F.sum("store_size").alias("begun_bytes"),
    )  # fmt: skip
    over = replicas.where("until_us IS NOT NULL").groupBy(*PAIR, _second("until_us")).agg(
        F.count(F.when(F.col("copied_us") == F.col("until_us"), 1)).alias("copied"),
        F.round(F.max(F.when(F.col("copied_us") == F.col("until_us"), F.col("until_us") - F.col("lacked_us"))) / 1_000,
                3).alias("slowest_copy_ms"),
        F.count("*").alias("over"), F.sum("store_size").alias("over_bytes"),
        F.min("lacked_us").alias("oldest_over_us"),
    )  # fmt: skip
    risk_us = F.greatest("lacked_us", "acknowledged_us")
    risky = replicas.where("acknowledged_us IS NOT NULL").withColumn("risk_us", risk_us)
    risky = risky.where("until_us IS NULL OR risk_us < until_us")
    risks = risky.groupBy(*PAIR, _second("risk_us")).agg(F.count("*").alias("risks"))
    saved = risky.where("until_us IS NOT NULL").groupBy(*PAIR, _second("until_us")).agg(F.count("*").alias("saved"))
    waits = (
        of_kind(tables[EVENTS], "ReplicaPutAnswered")
        .groupBy(WORLD, F.col("node").alias("master"), _second("ts_us"))
        .agg(
            F.count(F.when(F.col("status") == "PUT_OK", 1)).alias("sync_ok"),
            F.count(F.when(F.col("status") != "PUT_OK", 1)).alias("sync_timed_out"),
            F.max("waited_ms").alias("longest_wait_ms"),
        )
    )
    filled = seconds
    for part in (began, over, risks, saved):
        filled = filled.join(part, [*PAIR, "second"], "left")
    counts = (
        "written", "begun", "begun_bytes", "copied", "over", "over_bytes", "risks", "saved", "sync_ok", "sync_timed_out"
    )  # fmt: skip
    filled = filled.join(waits, [WORLD, "master", "second"], "left").withColumns(
        {name: F.coalesce(name, F.lit(0).cast("bigint")) for name in counts}
    )
    in_order = Window.partitionBy(PAIR).orderBy("second")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    later = in_order.rowsBetween(1, Window.unboundedFollowing)
    until_us = F.least((F.col("second") + 1) * SECOND_US, F.col("end_us"))
    # What is copied later, or never, was lacking at the end of the second if it had been written by then.
    oldest_us = F.least("never_copied_us", F.min("oldest_over_us").over(later))
    behind = F.sum(F.col("begun") - F.col("over")).over(so_far)
    return filled.withColumns({
        "behind": behind,
        "behind_bytes": F.sum(F.col("begun_bytes") - F.col("over_bytes")).over(so_far),
        "lag_ms": F.round(F.when(behind > 0, (until_us - oldest_us) / 1_000).otherwise(0.0), 3),
        "only_here": F.sum(F.col("risks") - F.col("saved")).over(so_far),
    }).select(*REPLICATION_COLUMNS)  # fmt: skip


REPLICATION_COLUMNS = shared(
    world=WHICH_WORLD,
    broker_name=(TEXT, "the name that master and slave have in common"),
    master=(TEXT, "the master's machine"),
    slave=(TEXT, "the slave's"),
    second=(WHOLE, "which second of the world, from 0"),
    written=(WHOLE, "records that the master wrote in it"),
    copied=(WHOLE, "records that the slave got in it"),
    slowest_copy_ms=(NUMBER, "the longest time that the slave had lacked one of these; null: it got none"),
    behind=(WHOLE, "records that the slave lacks at the end of the second, or of the world"),
    behind_bytes=(WHOLE, "their bytes in the log"),
    lag_ms=(NUMBER, "for how long it has lacked the oldest of them; 0: it lacks none"),
    only_here=(WHOLE, "those of them whose producer was told that they are stored: lost if the master's disk is lost "
                       "now; of bytes that it has not flushed, and a loss of power takes, nothing is said"),
    sync_ok=(WHOLE, "puts at the master that waited for copies, and were answered PUT_OK in the second"),
    sync_timed_out=(WHOLE, "puts that were answered FLUSH_SLAVE_TIMEOUT"),
    longest_wait_ms=(WHOLE, "the longest wait of these; null: none was answered"),
)

REPLICATION = Table(
    "replication",
    GOLD,
    "How far is each slave behind its master, what would the loss of the master's disk cost, and who waits for copies?",
    REPLICATION_COLUMNS,
    (EVENTS, "replicas", "worlds"),
    _query,
)
