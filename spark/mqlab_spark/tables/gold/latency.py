"""Where the time of a message goes: by stage, and by what brought its delivery about."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.latency import percentiles, waits
from mqlab_spark.schema import WORLD
from mqlab_spark.tables.gold.clocks import in_two_steps
from mqlab_spark.tables.table import EVENTS, GOLD, NUMBER, TEXT, WHOLE, Table, Tables, ms, shared

BY = ("topic", "group", "stage", "cause")
DIGITS = 4
"""So many digits of each latency count for percentiles: exact below 10 ms, else less than 0.1 % too small."""


def stages(tables: Tables) -> DataFrame:
    """A row for each stage of each message: world, topic, group ("" while no group has it), stage, cause, `latency_us`,
    the machines on whose clocks it began (`other`) and ended (`node`), and, where these two disagree, how far the later
    one is ahead (`ahead_us`), which is taken off the latency, and how far from that it can be (`uncertainty_us`).
    """
    messages, deliveries = tables["messages"], tables["deliveries"]
    own = messages.select(WORLD, "msg_id", "topic", "producer", "broker", "sent_us", "stored_us", "acknowledged_us")
    sent = own.where("acknowledged_us IS NOT NULL").withColumn("group", F.lit(""))
    given = deliveries.join(own, [WORLD, "msg_id"]).where("first_us IS NOT NULL")
    kept = given.where("stored_us IS NOT NULL")
    done = kept.where("consumed_us IS NOT NULL")
    got, again = ("first_us", "first_consumer"), F.when(F.col("calls") > 1, "called again").otherwise("")
    pulled = waits(tables[EVENTS]).select(
        WORLD, "topic", "group", F.lit("wait in the queue").alias("stage"), "cause", "latency_us",
        F.col("node").alias("other"), F.col("giver").alias("node"),
    )  # fmt: skip
    all_of_them = (
        _stage("send", sent, ("sent_us", "producer"), ("acknowledged_us", "producer"))
        .unionByName(pulled)
        .unionByName(_stage("stored to listener", kept, ("stored_us", "broker"), got))
        .unionByName(_stage("listener to done", done, got, ("consumed_us", "consumer"), again))
        .unionByName(_stage("end to end", given, ("sent_us", "producer"), got))
    )
    # Only of clocks that disagree there is a row.
    ahead = F.broadcast(in_two_steps(tables["clocks"]))
    corrected = F.col("latency_us") - F.coalesce("ahead_us", F.lit(0))
    return all_of_them.join(ahead, [WORLD, "node", "other"], "left").withColumn("latency_us", corrected)


def _stage(
    name: str, frame: DataFrame, begin: tuple[str, str], end: tuple[str, str], cause: Column | None = None
) -> DataFrame:
    """The rows of a stage; of its begin and its end the columns of the time and of the machine that tells it."""
    return frame.select(
        WORLD, "topic", "group", F.lit(name).alias("stage"), (F.lit("") if cause is None else cause).alias("cause"),
        (F.col(end[0]) - F.col(begin[0])).alias("latency_us"), F.col(begin[1]).alias("other"),
        F.col(end[1]).alias("node"),
    )  # fmt: skip


def _query(tables: Tables) -> DataFrame:
    of_clocks = {"corrected": F.count("ahead_us"), "uncertain_us": F.max("uncertainty_us")}
    measured = percentiles(stages(tables), *BY, digits=DIGITS, **of_clocks)
    return measured.withColumn("uncertain_ms", ms("uncertain_us")).drop("uncertain_us")


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
        corrected=(WHOLE, "how many of them began on one machine and ended on another whose clock disagrees: by what "
                          "`clocks` says of the two, or of each and a third one, their time was corrected before all "
                          "else in the row"),
        uncertain_ms=(NUMBER, "how far off, either way, what was corrected can be at most, ms; null: nothing was"),
    ),
    (EVENTS, "messages", "deliveries", "clocks"),
    _query,
)  # fmt: skip
