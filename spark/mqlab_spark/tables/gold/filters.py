"""Who filters what: of the messages that pulls of a group went over, which were held back, and where."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD
from mqlab_spark.tables.table import EVENTS, GOLD, NUMBER, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared

KINDS = ("PullAnswered", "MessagesFilteredByBroker", "MessagesFiltered", "SubscriptionChanged")

WENT_ON = ("FOUND", "NO_MATCHED_MESSAGE")
"""What a pull is answered that has gone over messages: its next offset lies behind the last of them."""

PULLS = [WORLD, "group", "topic", "node", "queue_id", "queue_offset", "next_offset"]


def _query(tables: Tables) -> DataFrame:
    is_pull = (F.col("kind") == "PullAnswered") & F.col("status").isin(*WENT_ON)
    by_broker = F.col("kind") == "MessagesFilteredByBroker"
    wanted = (F.col("kind") == "SubscriptionChanged") & (F.col("expression") != "")
    spans = F.col("next_offset") - F.col("queue_offset")

    def total(value: str | Column, of: Column) -> Column:
        amount = F.col(value) if isinstance(value, str) else value
        return F.coalesce(F.sum(F.when(of, amount)), F.lit(0).cast("bigint"))

    # What a broker tells of a filter belongs to the pull over the same messages; of a pop there is no such pull.
    of_pulls = (
        tables[EVENTS]
        .where(F.col("kind").isin(*KINDS))
        .groupBy(*PULLS)
        .agg(
            F.count(F.when(is_pull, 1)).alias("pulls"),
            F.count(F.when(is_pull & (F.col("messages") == 0), 1)).alias("empty_pulls"),
            total(spans, is_pull).alias("read"),
            total("messages", is_pull).alias("given"),
            total("size", is_pull).alias("bytes"),
            total("by_bit_map", by_broker).alias("by_bit_map"),
            total("by_expression", by_broker).alias("by_expression"),
            total("not_judged", by_broker).alias("not_judged"),
            total("messages", F.col("kind") == "MessagesFiltered").alias("by_client"),
            F.max(F.when(wanted, F.struct("ts_us", "slice", "i", "expression"))).alias("wanted"),
        )
    )
    pulled = F.col("pulls") > 0
    summed = of_pulls.groupBy(WORLD, "group", "topic").agg(
        F.max("wanted")["expression"].alias("expression"),
        *(F.sum(name).alias(name) for name in ("pulls", "empty_pulls", "read", "given", "bytes", "by_client")),
        *(total(name, pulled).alias(name) for name in ("by_bit_map", "by_expression", "not_judged")),
    )
    taken = F.col("given") - F.col("by_client")
    return (
        summed.where("pulls > 0")
        .withColumn("by_tag_hash", F.col("read") - F.col("given") - F.col("by_bit_map") - F.col("by_expression"))
        .withColumn("taken", taken)
        .withColumn("bytes_per_taken", F.when(taken > 0, F.round(F.col("bytes") / taken, 3)))
    )


FILTERS = Table(
    "filters",
    GOLD,
    "Of the messages that a group's pulls went over, how many were held back, by whom, and what did the rest cost?",
    shared(
        world=WHICH_WORLD,
        group=(TEXT, "the consumer group"),
        topic=(TEXT, "the topic, perhaps the group's retry topic"),
        expression=(TEXT, "what it wants of the topic, as it said last: tags, or a condition; null: it told no broker"),
        pulls=(WHOLE, "how many pulls went over messages"),
        empty_pulls=(WHOLE, "how many of these brought none: the group was only told where to go on"),
        read=(WHOLE, "how many messages they went over, each counted as often as it was"),
        by_tag_hash=(WHOLE, "how many the broker passed over because the hash of their tag was not wanted"),
        by_bit_map=(WHOLE, "how many it passed over by the bits that were noted when they were dispatched"),
        by_expression=(WHOLE, "how many it read and judged by the condition, and held back"),
        not_judged=(WHOLE, "how many of these could not be judged: a property is no number where one is needed"),
        given=(WHOLE, "how many were sent to the group's consumers"),
        by_client=(WHOLE, "how many of these a consumer dropped: another tag with the same hash"),
        taken=(WHOLE, "how many were left"),
        bytes=(WHOLE, "the bytes of all messages that were sent to the consumers"),
        bytes_per_taken=(NUMBER, "how many bytes were sent for each that was left; null: none was"),
    ),
    (EVENTS,),
    _query,
)
