"""One row for each pull that a broker held back."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import PULL, of_kind
from mqlab_spark.tables.table import EVENTS, SILVER, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared


def _query(tables: Tables) -> DataFrame:
    events = tables[EVENTS]
    held = of_kind(events, "PullHeld").select(
        *PULL, "group", "topic", "queue_id", "queue_offset", "hold_ms", F.col("ts_us").alias("held_us")
    )
    woken = of_kind(events, "PullWoken").select(*PULL, "reason", F.col("ts_us").alias("woken_us"))
    return held.join(woken, list(PULL), "left").withColumn("reason", F.coalesce("reason", F.lit("still held")))


HOLDS = Table(
    "holds",
    SILVER,
    "Which pulls were held back, for how long, and what ended it?",
    shared(
        world=WHICH_WORLD,
        node=(TEXT, "the broker's machine"),
        remote=(TEXT, "the consumer's address"),
        opaque=(WHOLE, "the number of the request"),
        group=(TEXT, "the consumer group"),
        topic=(TEXT, "the topic that was pulled from"),
        queue_id=(WHOLE, "its queue"),
        queue_offset=(WHOLE, "the offset that was asked for, which did not exist yet"),
        hold_ms=(WHOLE, "how long the consumer agreed to wait"),
        held_us=(WHOLE, "when the broker put it aside, us since the world began"),
        woken_us=(WHOLE, "when it was looked at again; null: it is still held"),
        reason=(TEXT, "arrived, timed out, or still held when the trace ends"),
    ),
    (EVENTS,),
    _query,
)
