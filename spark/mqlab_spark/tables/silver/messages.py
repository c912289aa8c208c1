"""One row for each message that a producer tried to send."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD, of_kind
from mqlab_spark.tables.table import EVENTS, SILVER, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared

KEY = [WORLD, "msg_id"]


def _query(tables: Tables) -> DataFrame:
    events = tables[EVENTS]
    # A batch is sent under the ids of all its messages.
    sent = of_kind(events, "SendAttempted").withColumn("msg_id", F.explode(F.split("msg_id", ",")))
    attempted = sent.groupBy(KEY).agg(
        F.min_by("topic", "ts_us").alias("topic"),
        F.min_by("node", "ts_us").alias("producer"),
        F.min_by("mode", "ts_us").alias("mode"),
        F.min("ts_us").alias("sent_us"),
        F.count("*").alias("attempts"),
    )
    answered = (
        of_kind(events, "SendSucceeded")
        .withColumn("msg_id", F.explode(F.split("msg_id", ",")))
        .groupBy(KEY)
        .agg(F.min("ts_us").alias("acknowledged_us"), F.min_by("send_status", "ts_us").alias("send_status"))
    )
    tries = (
        of_kind(events, "SendAttemptFailed")
        .withColumn("msg_id", F.explode(F.split("msg_id", ",")))
        .groupBy(KEY)
        .agg(
            F.count("*").alias("failed_attempts"),
            F.count(F.when(F.col("reason").contains("timeout"), 1)).alias("timed_out"),
        )
    )
    failed = (
        of_kind(events, "SendFailed")
        .withColumn("msg_id", F.explode(F.split("msg_id", ",")))
        .groupBy(KEY)
        .agg(F.min("ts_us").alias("failed_us"), F.min_by("reason", "ts_us").alias("fail_reason"))
    )
    stored = (
        of_kind(events, "MessageStored")
        .withColumnRenamed("unique_key", "msg_id")
        .join(attempted.select(*KEY, "topic"), on=[*KEY, "topic"], how="inner")
        .groupBy(KEY)
        .agg(
            F.min("ts_us").alias("stored_us"),
            F.count("*").alias("copies"),
            F.min_by(F.struct("node", "queue_id", "queue_offset"), F.struct("ts_us", "slice", "i")).alias("first"),
        )
        .select(*KEY, "stored_us", "copies", F.col("first.*"))
        .withColumnRenamed("node", "broker")
    )
    return (
        attempted.join(answered, KEY, "left")
        .join(failed, KEY, "left")
        .join(stored, KEY, "left")
        .join(tries, KEY, "left")
        .withColumns({name: F.coalesce(name, F.lit(0)) for name in ("copies", "failed_attempts", "timed_out")})
    )


MESSAGES = Table(
    "messages",
    SILVER,
    "What became of each message that a producer tried to send?",
    shared(
        world=WHICH_WORLD,
        msg_id=(TEXT, "the message's unique key"),
        topic=(TEXT, "where it was sent to"),
        producer=(TEXT, "the machine that sent it"),
        mode=(TEXT, "SYNC, ASYNC or ONEWAY"),
        sent_us=(WHOLE, "first attempt, us since the world began"),
        attempts=(WHOLE, "how often it was handed to remoting"),
        failed_attempts=(WHOLE, "how many of these failed"),
        timed_out=(WHOLE, "how many of these failed because no answer came in time"),
        acknowledged_us=(WHOLE, "when the producer knew that it is stored; null: never"),
        send_status=(TEXT, "what the producer was told, SEND_OK or a weaker one"),
        failed_us=(WHOLE, "when the producer gave up; null: it did not"),
        fail_reason=(TEXT, "why it gave up"),
        stored_us=(WHOLE, "when it was first stored in its own topic, of a transaction: committed; null: never"),
        copies=(WHOLE, "how often it was stored in its own topic: more than one is a duplicate of the producer's"),
        broker=(TEXT, "the machine that stored it first"),
        queue_id=(WHOLE, "its queue there"),
        queue_offset=(WHOLE, "its place in that queue"),
    ),
    (EVENTS,),
    _query,
)
