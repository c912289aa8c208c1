"""Where the time of a message goes: by stage, and by what brought its delivery about."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.latency import delivery_latency, percentiles
from mqlab_spark.schema import WORLD
from mqlab_spark.tables.table import EVENTS, GOLD, NUMBER, TEXT, WHOLE, Table, Tables, shared

BY = ("topic", "group", "stage", "cause")
DIGITS = 4
"""So many digits of each latency count for percentiles: exact below 10 ms, else less than 0.1 % too small."""


def stages(tables: Tables) -> DataFrame:
    """A row for each stage of each message: topic, group ("" while no group has it), stage, cause, latency_us."""
    messages, deliveries = tables["messages"], tables["deliveries"]
    own = messages.select(WORLD, "msg_id", "topic", "sent_us", "stored_us", "acknowledged_us")
    sent = own.where("acknowledged_us IS NOT NULL").select(
        "topic", F.lit("").alias("group"), F.lit("send").alias("stage"), F.lit("").alias("cause"),
        (F.col("acknowledged_us") - F.col("sent_us")).alias("latency_us"),
    )  # fmt: skip
    pulled = delivery_latency(tables[EVENTS]).select(
        "topic", "group", F.lit("wait in the queue").alias("stage"), "cause", "latency_us"
    )
    got = deliveries.join(own, [WORLD, "msg_id"]).where("first_us IS NOT NULL AND stored_us IS NOT NULL")
    kept = got.select(
        "topic", "group", F.lit("stored to listener").alias("stage"), F.lit("").alias("cause"),
        (F.col("first_us") - F.col("stored_us")).alias("latency_us"),
    )  # fmt: skip
    done = got.where("consumed_us IS NOT NULL").select(
        "topic", "group", F.lit("listener to done").alias("stage"),
        F.when(F.col("calls") > 1, "called again").otherwise("").alias("cause"),
        (F.col("consumed_us") - F.col("first_us")).alias("latency_us"),
    )  # fmt: skip
    whole = deliveries.join(own, [WORLD, "msg_id"]).where("first_us IS NOT NULL").select(
        "topic", "group", F.lit("end to end").alias("stage"), F.lit("").alias("cause"),
        (F.col("first_us") - F.col("sent_us")).alias("latency_us"),
    )  # fmt: skip
    return sent.unionByName(pulled).unionByName(kept).unionByName(done).unionByName(whole)


def _query(tables: Tables) -> DataFrame:
    return percentiles(stages(tables), *BY, digits=DIGITS)


LATENCY = Table(
    "latency",
    GOLD,
    "Where does the time of a message go, and what brings a delivery about?",
    shared(
        topic=(TEXT, "the message's topic"),
        group=(TEXT, "the consumer group; empty: none has it yet"),
        stage=(TEXT, "send, wait in the queue, stored to listener, listener to done, or end to end: from the first "
                     "attempt to send to the first time that a listener got it"),
        cause=(TEXT, "of a wait: first pull, arrived or timed out; of a listener: called again"),
        count=(WHOLE, "how many messages"),
        p50_ms=(NUMBER, "half of them took no longer, ms; exact below 10 ms, else less than 0.1 % too small"),
        p90_ms=(NUMBER, "nine of ten took no longer, ms, as exact"),
        p99_ms=(NUMBER, "99 of 100 took no longer, ms, as exact"),
        max_ms=(NUMBER, "the longest, ms"),
    ),
    (EVENTS, "messages", "deliveries"),
    _query,
)  # fmt: skip
