"""One row for each message and each group that got it, or should have."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab.views.journey import CONSUMED
from mqlab_spark.pairs import masters
from mqlab_spark.schema import WORLD, of_kind
from mqlab_spark.tables.table import EVENTS, SILVER, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared

KEY = [WORLD, "group", "msg_id"]
PLACE = [WORLD, "topic", "broker_name", "queue_id", "queue_offset"]

BEGAN, POLLED, ENDED = "began", "polled", "ended"
"""What is told of a call: that it began, that it went well, or that the application got it by asking."""


def _query(tables: Tables) -> DataFrame:
    events = tables[EVENTS]
    began = of_kind(events, "ConsumeStarted").withColumn("what", F.lit(BEGAN))
    polled = (
        of_kind(events, "MessagesPolled")
        .withColumn("reconsume_times", F.lit(0).cast("bigint"))
        .withColumn("what", F.lit(POLLED))
    )
    calls = [began, polled, _ended(events).withColumn("what", F.lit(ENDED))]
    columns = [*KEY, "node", *PLACE[1:], "messages", "reconsume_times", "ts_us", "what"]
    of_calls = _members(events, reduce(DataFrame.unionByName, [frame.select(*columns) for frame in calls]))
    got_us = F.when(F.col("what") != ENDED, F.col("ts_us"))
    # Who polls has no listener: its application is done with what it got.
    done_us = F.when(F.col("what") != BEGAN, F.col("ts_us"))
    told = of_calls.groupBy(KEY).agg(
        F.min(got_us).alias("first_us"),
        F.min_by("node", got_us).alias("first_consumer"),
        F.max(got_us).alias("last_us"),
        F.count(got_us).alias("calls"),
        F.size(F.collect_set(F.when(got_us.isNotNull(), F.col("node")))).cast("bigint").alias("consumers"),
        F.max(F.when(got_us.isNotNull(), F.col("reconsume_times"))).alias("reconsume_times"),
        F.min(done_us).alias("consumed_us"),
        F.min_by("node", done_us).alias("consumer"),
        F.max(done_us).alias("last_done_us"),
        F.max_by("node", done_us).alias("last_consumer"),
        F.count(done_us).alias("successes"),
    )
    back = (
        of_kind(events, "SendBackStored")
        .withColumn("is_dead", F.col("topic").startswith("%DLQ%"))
        .withColumnRenamed("unique_key", "msg_id")
        .groupBy(KEY)
        .agg(
            F.count(F.when(~F.col("is_dead"), 1)).alias("given_back"),
            F.min(F.when(~F.col("is_dead"), F.col("ts_us"))).alias("first_back_us"),
            F.min(F.when(F.col("is_dead"), F.col("ts_us"))).alias("dead_us"),
            F.max(F.when(~F.col("is_dead"), F.col("ts_us"))).alias("last_back_us"),
        )
    )
    return told.join(back, KEY, "full").withColumns({
        name: F.coalesce(name, F.lit(0)) for name in ("calls", "consumers", "successes", "given_back")
    })  # fmt: skip


def _members(events: DataFrame, calls: DataFrame) -> DataFrame:
    """A row for each message of each call: a call is told with its first message, the others follow it in its queue.

    What was given back lies in the group's retry queue, though it is told with the topic that it was sent to.
    """
    told = [*KEY, "node", "ts_us", "reconsume_times", "what"]
    again = F.concat(F.lit("%RETRY%"), "group")
    names = masters(events)
    stored = (
        of_kind(events, "MessageStored")
        .join(names, [WORLD, "node"])
        .select(*PLACE, F.col("unique_key").alias("msg_id"))
        .where("msg_id != ''")
    )
    several = (
        calls.where("messages > 1")
        .drop("msg_id")
        .withColumn("topic", F.when(F.col("reconsume_times") > 0, again).otherwise(F.col("topic")))
        .withColumn("queue_offset", F.explode(F.expr("sequence(queue_offset, queue_offset + messages - 1)")))
        .join(stored, PLACE)
    )
    return calls.where("messages = 1").select(*told).unionByName(several.select(*told))


def _ended(events: DataFrame) -> DataFrame:
    """A row for each call that went well, with its end; of a call that nobody saw begin, the first message, by which
    its end is told.
    """
    place = ["group", "node", "topic", "broker_name", "queue_id", "queue_offset"]
    began = of_kind(events, "ConsumeStarted").select(
        *(F.col(name).alias(f"began_{name}") for name in (WORLD, *place)),
        "messages", "reconsume_times", F.col("ts_us").alias("began_us"),
    )  # fmt: skip
    ended = of_kind(events, "ConsumeFinished").where(F.col("status").isin(*CONSUMED))
    same = [F.col(name) == F.col(f"began_{name}") for name in (WORLD, *place)]
    while_it_ran = (F.col("began_us") <= F.col("ts_us")) & (F.col("ts_us") - F.col("began_us") <= F.col("cost_us"))
    return (
        ended.join(began, [*same, while_it_ran], "left")
        .withColumn("messages", F.coalesce("messages", F.lit(1)))
        .select(*KEY, "node", *PLACE[1:], "messages", "reconsume_times", "ts_us")
        .distinct()
    )


DELIVERIES = Table(
    "deliveries",
    SILVER,
    "What became of each message in each group that got it?",
    shared(
        world=WHICH_WORLD,
        group=(TEXT, "the consumer group"),
        msg_id=(TEXT, "the message's unique key"),
        first_us=(WHOLE, "when the group's application first got it, us since the world began; null: never"),
        first_consumer=(TEXT, "the machine on which it first got it"),
        last_us=(WHOLE, "when it last got it"),
        calls=(WHOLE, "how often the application got it"),
        consumers=(WHOLE, "on how many machines"),
        reconsume_times=(WHOLE, "how often it had been given back before, at most"),
        consumed_us=(WHOLE, "when the application was first done with it; null: never"),
        consumer=(TEXT, "the machine that was first done with it"),
        last_done_us=(WHOLE, "when the application was last done with it"),
        last_consumer=(TEXT, "the machine that was last done with it"),
        successes=(WHOLE, "how often the application was done with it"),
        given_back=(WHOLE, "how often the broker took it back to deliver it again"),
        first_back_us=(WHOLE, "when the broker first took it back"),
        dead_us=(WHOLE, "when it became a dead letter of the group; null: it is none"),
        last_back_us=(WHOLE, "when the broker last took it back"),
    ),
    (EVENTS,),
    _query,
)
