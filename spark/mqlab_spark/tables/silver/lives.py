"""One row for each message and group with the message's whole life: from the first attempt to its end."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.pairs import at_masters
from mqlab_spark.schema import PULL, QUEUE, of_kind
from mqlab_spark.tables.copies import MESSAGE, left_of, on_slaves, records_of_messages, torn_of
from mqlab_spark.tables.table import EVENTS, SILVER, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared

PLACE = [*QUEUE, "queue_offset"]


def dispatched(events: DataFrame) -> DataFrame:
    """A row for each place in a queue with when it first had its entry."""
    return of_kind(events, "MessageDispatched").groupBy(PLACE).agg(F.min("ts_us").alias("dispatched_us"))


def pulled(events: DataFrame) -> DataFrame:
    """A row for each place in a queue and group: when the pull that first brought it was held, and was answered."""
    held = of_kind(events, "PullHeld").select(*PULL, F.col("ts_us").alias("held_us"))
    answered = (
        of_kind(events, "PullAnswered")
        .where("messages > 0")
        .select(
            *PULL, "group", "topic", "queue_id", F.col("ts_us").alias("delivered_us"),
            F.explode(F.sequence("queue_offset", F.col("next_offset") - 1)).alias("queue_offset"),
        )
        .join(held, list(PULL), "left")
    )  # fmt: skip
    # A slave gives what is its master's, from the same places.
    return (
        at_masters(answered, events)
        .groupBy(*PLACE, "group")
        .agg(F.min("delivered_us").alias("delivered_us"), F.min_by("held_us", "delivered_us").alias("held_us"))
    )


def _query(tables: Tables) -> DataFrame:
    events = tables[EVENTS]
    messages = tables["messages"].withColumnRenamed("broker", "node")
    in_its_topic = F.col("topic").eqNullSafe
    is_lost = (left_of(in_its_topic) == 0) & F.col("on_slaves").isNull()
    groups = tables["deliveries"].select(
        *MESSAGE, "group", "first_us", "calls", "consumed_us", "successes", "first_back_us", "given_back", "dead_us"
    )
    brought = pulled(events)
    # A group that pulled a message and never gave it to its application has no delivery of it.
    known = (
        messages.select(*MESSAGE, *PLACE[1:])
        .join(brought, PLACE)
        .select(*MESSAGE, "group", "held_us", "delivered_us")
    )
    return (
        messages.join(dispatched(events), PLACE, "left")
        .join(records_of_messages(events), MESSAGE, "left")
        .join(on_slaves(events), [*MESSAGE, "topic"], "left")
        .withColumn("lost_us", F.when(is_lost, torn_of(in_its_topic)))
        .join(groups.join(known, [*MESSAGE, "group"], "full"), MESSAGE, "left")
        .withColumnsRenamed({"node": "broker", "first_us": "listened_us", "first_back_us": "retried_us"})
        .withColumns({name: F.coalesce(name, F.lit(0)) for name in ("calls", "successes", "given_back")})
        .select(*LIVES_COLUMNS)
    )


LIVES_COLUMNS = shared(
    world=WHICH_WORLD,
    msg_id=(TEXT, "the message's unique key"),
    topic=(TEXT, "where it was sent to"),
    group=(TEXT, "the consumer group; null: none had it, and the message has this one row"),
    producer=(TEXT, "the machine that sent it"),
    broker=(TEXT, "the machine that stored it first"),
    queue_id=(WHOLE, "its queue there"),
    queue_offset=(WHOLE, "its place in that queue"),
    sent_us=(WHOLE, "first attempt, us since the world began"),
    attempts=(WHOLE, "how often it was handed to remoting"),
    acknowledged_us=(WHOLE, "when the producer knew that it is stored; null: never"),
    failed_us=(WHOLE, "when the producer gave up; null: it did not"),
    stored_us=(WHOLE, "when it was first in a commit log, of a transaction: committed; null: never"),
    copies=(WHOLE, "how often it was stored in its own topic"),
    dispatched_us=(WHOLE, "when its place in the queue could first be pulled"),
    held_us=(WHOLE, "since when the pull that first brought it to the group was held; null: it was not held"),
    delivered_us=(WHOLE, "when that pull was answered; null: no pull brought it, as when it was popped"),
    listened_us=(WHOLE, "when the group's application first got it; null: never"),
    calls=(WHOLE, "how often the application got it"),
    consumed_us=(WHOLE, "when the application was first done with it; null: never"),
    successes=(WHOLE, "how often the application was done with it"),
    retried_us=(WHOLE, "when the broker first took it back to deliver it again; null: never"),
    given_back=(WHOLE, "how often it did"),
    dead_us=(WHOLE, "when it became a dead letter of the group; null: it is none"),
    lost_us=(WHOLE, "when the last of its copies was cut off its commit log; null: one is left, or none ever was"),
)

LIVES = Table(
    "lives",
    SILVER,
    "How did each message live in each group: sent, stored, delivered, consumed, retried, dead or lost?",
    LIVES_COLUMNS,
    (EVENTS, "messages", "deliveries"),
    _query,
)
