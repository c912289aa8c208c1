"""The questions that a trace alone is asked: pure functions from a trace (`read_trace`) to a DataFrame.

The pipeline's tables ask more of many traces (`mqlab_spark.tables`); where one of them has the rows, it is asked here.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.latency import consume_latency, delivered_by_cause, delivery_latency, percentiles, send_latency
from mqlab_spark.schema import WORLD
from mqlab_spark.tables.silver.holds import HOLDS
from mqlab_spark.tables.table import EVENTS

__all__ = [
    "consume_latency",
    "delivered_by_cause",
    "delivery_latency",
    "histogram",
    "hold_times",
    "percentiles",
    "send_latency",
]


def hold_times(trace: DataFrame) -> DataFrame:
    """Every pull that was held and looked at again, with how long that took and why it ended; one row is one hold.

    `reason` is "arrived" or "timed out". A pull that is still held when the trace ends is not among them.

    Columns: world, node, group, topic, queue_id, queue_offset, remote, opaque, reason, held_at_us, woken_at_us,
    hold_us.
    """
    ended = HOLDS.make({EVENTS: trace}).where("woken_us IS NOT NULL")
    return ended.select(
        *(WORLD, "node", "group", "topic", "queue_id", "queue_offset", "remote", "opaque", "reason"),
        F.col("held_us").alias("held_at_us"),
        F.col("woken_us").alias("woken_at_us"),
        (F.col("woken_us") - F.col("held_us")).alias("hold_us"),
    )


def histogram(holds: DataFrame, bin_ms: int, *by: str) -> DataFrame:
    """How many holds (of each group of rows) ended in each bin of `bin_ms`; bins without any are left out.

    Columns: the columns of `by`, then from_ms (included), to_ms (not included), holds.
    """
    from_ms = F.floor(F.col("hold_us") / (bin_ms * 1_000)) * bin_ms
    return (
        holds.groupBy(*by, from_ms.alias("from_ms"))
        .agg(F.count("*").alias("holds"))
        .select(*by, "from_ms", (F.col("from_ms") + bin_ms).alias("to_ms"), "holds")
    )
