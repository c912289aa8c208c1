"""How long messages take: from the producer to its answer, from the store to a consumer's pull, and to its listener.

All times are in microseconds since the world began (`..._us`), as the clock of the machine shows them that tells of an
event. Each function takes a trace (`read_trace`) and says in its docstring which columns it returns; one row is one
message. Where clocks disagree (the table `clocks`), what lies between two machines is wrong by as much: the table
`latency` corrects that.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.pairs import at_masters
from mqlab_spark.schema import PULL, QUEUE, WORLD, of_kind

FIRST_PULL = "first pull"
"""The cause of a delivery for which the request did not have to be held."""


def send_latency(trace: DataFrame) -> DataFrame:
    """How long each acknowledged message took from its first attempt to the answer that it is stored.

    Columns: world, topic, broker_name, queue_id, msg_id, attempts, sent_us, acknowledged_us, latency_us.
    """
    attempted = (
        of_kind(trace, "SendAttempted")
        .groupBy(WORLD, "msg_id")
        .agg(F.min("ts_us").alias("sent_us"), F.count("*").alias("attempts"))
    )
    succeeded = of_kind(trace, "SendSucceeded").select(
        WORLD, "topic", "broker_name", "queue_id", "msg_id", F.col("ts_us").alias("acknowledged_us")
    )
    return succeeded.join(attempted, on=[WORLD, "msg_id"], how="inner").select(
        WORLD,
        "topic",
        "broker_name",
        "queue_id",
        "msg_id",
        "attempts",
        "sent_us",
        "acknowledged_us",
        (F.col("acknowledged_us") - F.col("sent_us")).alias("latency_us"),
    )


def delivery_latency(trace: DataFrame) -> DataFrame:
    """How long each message lay in its queue until the broker first gave it to each group, and what brought it about.

    `cause` is "first pull" when the message was there before the request, "arrived" when it woke a held request, "timed
    out" when a held request found it at its end. A message that is dropped by a filter only counts as delivered too.

    Columns: world, node, group, topic, queue_id, queue_offset, unique_key, cause, stored_us, delivered_us, latency_us.
    """
    return waits(trace).drop("giver")


def waits(trace: DataFrame) -> DataFrame:
    """As `delivery_latency`, and with the machine that gave the message first and says when: the broker, or its slave.

    Columns: those of delivery_latency, then giver.
    """
    stored = of_kind(trace, "MessageStored").select(
        *QUEUE, "queue_offset", "unique_key", F.col("ts_us").alias("stored_us")
    )
    # A slave gives what is its master's, from the same places.
    answers = at_masters(_answers_with_messages(trace).withColumn("giver", F.col("node")), trace)
    by = F.min_by(F.struct("cause", "giver"), "answered_us").alias("by")
    delivered = (
        answers.select(
            *QUEUE, "group", "cause", "giver", "answered_us", F.explode(_offsets_answered()).alias("queue_offset")
        )
        .groupBy(*QUEUE, "group", "queue_offset")
        .agg(F.min("answered_us").alias("delivered_us"), by)
        .select(*QUEUE, "group", "queue_offset", "delivered_us", "by.cause", "by.giver")
    )
    return stored.join(delivered, on=[*QUEUE, "queue_offset"], how="inner").select(
        WORLD,
        "node",
        "group",
        "topic",
        "queue_id",
        "queue_offset",
        "unique_key",
        "cause",
        "stored_us",
        "delivered_us",
        (F.col("delivered_us") - F.col("stored_us")).alias("latency_us"),
        "giver",
    )


def consume_latency(trace: DataFrame) -> DataFrame:
    """How long each message took from the store to the first call of a listener of each group.

    Only the first message of a call is known: this is for listeners that take one message at a time (the default).

    Columns: world, group, topic, broker_name, queue_id, msg_id, stored_us, consumed_us, latency_us.
    """
    stored = (
        of_kind(trace, "MessageStored")
        .groupBy(WORLD, F.col("unique_key").alias("msg_id"))
        .agg(F.min("ts_us").alias("stored_us"))
    )
    consumed = (
        of_kind(trace, "ConsumeStarted")
        .where(F.col("reconsume_times") == 0)
        .groupBy(WORLD, "group", "topic", "broker_name", "queue_id", "msg_id")
        .agg(F.min("ts_us").alias("consumed_us"))
    )
    return consumed.join(stored, on=[WORLD, "msg_id"], how="inner").select(
        WORLD,
        "group",
        "topic",
        "broker_name",
        "queue_id",
        "msg_id",
        "stored_us",
        "consumed_us",
        (F.col("consumed_us") - F.col("stored_us")).alias("latency_us"),
    )


def delivered_by_cause(trace: DataFrame) -> DataFrame:
    """How many pulls brought messages, and how many messages, by what brought them about (see delivery_latency).

    Columns: cause, pulls, messages.
    """
    return (
        _answers_with_messages(trace)
        .groupBy("cause")
        .agg(F.count("*").alias("pulls"), F.sum("messages").alias("messages"))
        .select("cause", "pulls", "messages")
    )


def percentiles(latencies: DataFrame, *by: str, digits: int | None = None, **others: Column) -> DataFrame:
    """The distribution of `latency_us` in each group of rows: count, percentiles (interpolated), longest; and what else
    is to be aggregated.

    Milliseconds, rounded to a microsecond. Exact percentiles need memory for all different values of a group, in one
    task. With `digits` only so many leading digits of each value are looked at: a group never has more than
    9 * 10^(digits - 1) different values of each length, however many rows there are, and a percentile is too small by
    less than one part in 10^(digits - 1). Either way the rows are the same however they lie in partitions.

    Columns: the columns of `by`, then count, p50_ms, p90_ms, p99_ms, max_ms, then `others`.
    """
    us = F.col("latency_us")
    return (
        latencies.groupBy(*by)
        .agg(
            F.count("*").alias("count"),
            F.percentile(us if digits is None else _leading(us, digits), [0.5, 0.9, 0.99]).alias("percentiles"),
            F.max(us).alias("longest"),
            *(other.alias(name) for name, other in others.items()),
        )
        .select(
            *by,
            "count",
            _ms(F.col("percentiles")[0]).alias("p50_ms"),
            _ms(F.col("percentiles")[1]).alias("p90_ms"),
            _ms(F.col("percentiles")[2]).alias("p99_ms"),
            _ms(F.col("longest")).alias("max_ms"),
            *others,
        )
    )


def _leading(whole: Column, digits: int) -> Column:
    """A whole number with zeros behind its first digits."""
    others = F.greatest(F.length(F.abs(whole).cast("string")) - digits, F.lit(0))
    return whole - whole % F.pow(F.lit(10), others).cast("bigint")


def _ms(us: Column) -> Column:
    return F.round(us / 1_000, 3)


def _answers_with_messages(trace: DataFrame) -> DataFrame:
    """The pulls that were answered with messages, each with its cause."""
    answered = (
        of_kind(trace, "PullAnswered")
        .where(F.col("messages") > 0)
        .select(
            *PULL,
            "group",
            "topic",
            "queue_id",
            "queue_offset",
            "next_offset",
            "messages",
            F.col("ts_us").alias("answered_us"),
        )
    )
    woken = of_kind(trace, "PullWoken").select(*PULL, "reason")
    # A request is held at most once, so this adds no rows.
    return answered.join(woken, on=list(PULL), how="left").withColumn(
        "cause", F.coalesce(F.col("reason"), F.lit(FIRST_PULL))
    )


def _offsets_answered() -> Column:
    """The offsets that an answer covers: from the one that was asked for to the one before the next."""
    return F.sequence(F.col("queue_offset"), F.col("next_offset") - 1)
