"""What groups were given without what must come before: a store, a pull or a pop, a subscription."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.pairs import masters
from mqlab_spark.schema import WORLD, of_kind
from mqlab_spark.tables.copies import MESSAGE
from mqlab_spark.tables.gold.clocks import both_ways
from mqlab_spark.tables.handed_out import popped, pulled
from mqlab_spark.tables.table import EVENTS, Tables

RETRY, DEAD = "%RETRY%", "%DLQ%"
"""How the topics begin that belong to a group itself."""


def given(tables: Tables) -> DataFrame:
    """A row for each message and group that was given it: when (`got_us`) and on which `node`, when and by which broker
    it was first stored in any topic (null: never), and, where their clocks disagree, how far the node's is ahead.
    """
    stored = (
        of_kind(tables[EVENTS], "MessageStored")
        .where("unique_key != ''")
        .groupBy(WORLD, F.col("unique_key").alias("msg_id"))
        .agg(F.min(F.struct("ts_us", F.col("node"), "topic", "queue_id", "queue_offset")).alias("first"))
        .select(
            *MESSAGE, F.col("first.ts_us").alias("stored_us"), F.col("first.node").alias("broker"),
            F.col("first.topic").alias("stored_topic"), F.col("first.queue_id").alias("queue_id"),
            F.col("first.queue_offset").alias("queue_offset"),
        )
    )  # fmt: skip
    got = tables["deliveries"].where("calls > 0 OR successes > 0").select(
        *MESSAGE, "group", "first_us", F.coalesce("first_us", "consumed_us").alias("got_us"),
        F.coalesce("first_consumer", "consumer").alias("node"),
    )  # fmt: skip
    sent_to = tables["messages"].select(*MESSAGE, F.col("topic").alias("sent_topic"))
    ahead = both_ways(tables["clocks"]).withColumnRenamed("other", "broker")
    return (
        got.join(stored, MESSAGE, "left")
        .join(sent_to, MESSAGE, "left")
        .withColumn("topic", F.coalesce("sent_topic", "stored_topic"))
        .join(ahead, [WORLD, "node", "broker"], "left")
    )


def _calls(events: DataFrame) -> DataFrame:
    """A row for each time that an application was given messages, told by the first of them."""
    columns = (
        WORLD, "group", "node", "topic", "broker_name", "queue_id", "queue_offset", "msg_id", "ts_us",
        "reconsume_times",
    )  # fmt: skip
    polled = of_kind(events, "MessagesPolled").withColumn("reconsume_times", F.lit(0).cast("bigint"))
    return of_kind(events, "ConsumeStarted").select(*columns).unionByName(polled.select(*columns))


def calls_without_a_delivery(events: DataFrame) -> DataFrame:
    """The calls with messages over whose place no pull of the group went, and which it did not pop.

    What comes again lies in the group's retry topic, or is kept by a consumer which could not give it back.
    """
    of_master = masters(events).withColumnRenamed("node", "broker")
    places = pulled(events).join(of_master.withColumnRenamed("broker", "node"), [WORLD, "node"])
    from_queues = places.select(
        *(F.col(name).alias(f"given_{name}") for name in (WORLD, "group", "broker_name", "queue_id", "queue_offset")),
        F.col("topic").alias("given_topic"),
    )  # fmt: skip
    same = [
        F.col(name) == F.col(f"given_{name}") for name in (WORLD, "group", "broker_name", "queue_id", "queue_offset")
    ]
    retry_topic = F.concat(F.lit(RETRY), "group")
    same_topic = (F.col("given_topic") == F.col("topic")) | (
        (F.col("reconsume_times") > 0) & (F.col("given_topic") == retry_topic)
    )
    return (
        _calls(events)
        .join(popped(events), [WORLD, "group", "msg_id"], "left_anti")
        .join(from_queues, [*same, same_topic], "left_anti")
        .join(of_master, [WORLD, "broker_name"], "left")
    )


def strangers(events: DataFrame) -> DataFrame:
    """The calls of groups with messages of topics to which no broker was told that they subscribe.

    A group that subscribes to nothing may still ask for a topic, as who assigns queues to itself or reads by a proxy
    does: it is a stranger where it never asked.
    """
    subscribed = of_kind(events, "SubscriptionChanged").where("expression != ''").select(WORLD, "group", "topic")
    own = ~F.col("topic").startswith(RETRY) & ~F.col("topic").startswith(DEAD)
    with_topics = subscribed.where(own).select(WORLD, "group").distinct()
    asked = events.where(F.col("kind").isin("PullReceived", "PopReceived")).select(WORLD, "group", "topic")
    fine = subscribed.unionByName(asked.join(with_topics, [WORLD, "group"], "left_anti")).distinct()
    return (
        _calls(events)
        .where(own)
        .join(fine, [WORLD, "group", "topic"], "left_anti")
        .join(masters(events).withColumnRenamed("node", "broker"), [WORLD, "broker_name"], "left")
    )
