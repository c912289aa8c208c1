"""Episodes of flow control: how long a consumer did not ask for more, and why."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD, of_kind
from mqlab_spark.tables.table import EVENTS, GOLD, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared

QUEUE = [WORLD, "node", "group", "topic", "broker_name", "queue_id"]
LONGEST_GAP_US = 1_000_000
"""A consumer looks again after 50 ms; what lies a second behind the last refusal is another episode."""


def _query(tables: Tables) -> DataFrame:
    in_order = Window.partitionBy(QUEUE).orderBy("ts_us", "slice", "i")
    gap = F.col("ts_us") - F.lag("ts_us").over(in_order)
    rows = of_kind(tables[EVENTS], "FlowControlled").withColumn(
        "begins", F.when(gap <= LONGEST_GAP_US, 0).otherwise(1)
    )
    numbered = rows.withColumn("episode", F.sum("begins").over(in_order))
    return (
        numbered.groupBy(*QUEUE, "episode")
        .agg(
            F.min("ts_us").alias("began_us"),
            F.max("ts_us").alias("ended_us"),
            F.count("*").alias("refusals"),
            F.min_by("reason", "ts_us").alias("reason"),
            F.max("cached").alias("most_cached"),
            F.max("limit").alias("limit"),
        )
        .drop("episode")
    )


FLOW_CONTROL = Table(
    "flow_control",
    GOLD,
    "When did a consumer hold too much to ask for more, for how long, and of what?",
    shared(
        world=WHICH_WORLD,
        node=(TEXT, "the consumer's machine"),
        group=(TEXT, "its group"),
        topic=(TEXT, "the topic"),
        broker_name=(TEXT, "the broker of the queue"),
        queue_id=(WHOLE, "the queue"),
        began_us=(WHOLE, "the first time that it put a pull off, us since the world began"),
        ended_us=(WHOLE, "the last time"),
        refusals=(WHOLE, "how often it put a pull off"),
        reason=(TEXT, "of what it held too much at first: count, size, span or all"),
        most_cached=(WHOLE, "how much it held at most: messages, MiB or offsets, as the reason says"),
        limit=(WHOLE, "how much it may hold"),
    ),
    (EVENTS,),
    _query,
)
