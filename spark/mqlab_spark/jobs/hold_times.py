"""How long brokers hold pulls that find nothing new: the long polling of RocketMQ, as data."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.jobs.latency import PULL
from mqlab_spark.schema import WORLD, of_kind


def hold_times(trace: DataFrame) -> DataFrame:
    """Every pull that was held and looked at again, with how long that took and why it ended; one row is one hold.

    `reason` is "arrived" or "timed out". A pull that is still held when the trace ends is not among them.

    Columns: world, node, group, topic, queue_id, queue_offset, remote, opaque, reason, held_at_us, woken_at_us,
    hold_us.
    """
    held = of_kind(trace, "PullHeld").select(
        *PULL, "group", "topic", "queue_id", "queue_offset", F.col("ts_us").alias("held_at_us")
    )
    woken = of_kind(trace, "PullWoken").select(*PULL, "reason", F.col("ts_us").alias("woken_at_us"))
    return held.join(woken, on=list(PULL), how="inner").select(
        WORLD,
        "node",
        "group",
        "topic",
        "queue_id",
        "queue_offset",
        "remote",
        "opaque",
        "reason",
        "held_at_us",
        "woken_at_us",
        (F.col("woken_at_us") - F.col("held_at_us")).alias("hold_us"),
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
