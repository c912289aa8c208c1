"""What brokers gave to groups, message by message, whoever asked and whatever came of it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.pairs import at_masters
from mqlab_spark.schema import WORLD, of_kind


def pulled(events: DataFrame, without: DataFrame | None = None) -> DataFrame:
    """A row for each place that a pull of a group went over when it brought messages: world, group, node (the master,
    also where a slave gave them), topic, queue_id, queue_offset. Groups of `without` (world, group) are left out.
    """
    answers = of_kind(events, "PullAnswered").where("messages > 0 AND queue_offset < next_offset")
    if without is not None:
        answers = answers.join(without, [WORLD, "group"], "left_anti")
    places = answers.withColumn("queue_offset", F.explode(F.expr("sequence(queue_offset, next_offset - 1)")))
    return at_masters(places, events).select(WORLD, "group", "node", "topic", "queue_id", "queue_offset")


def popped(events: DataFrame) -> DataFrame:
    """A row for each message that a group popped: world, group, msg_id."""
    popped = of_kind(events, "MessagePopped")
    return popped.select(WORLD, "group", F.col("unique_key").alias("msg_id")).distinct()
