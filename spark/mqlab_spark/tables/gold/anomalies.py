"""What clients saw of queues and should not have, by names of our own, with Jepsen's beside them.

Maelstrom (its workload "kafka") speaks of keys, offsets, sends and polls; here a key is a queue, and a poll is a call
of a listener. As there, an assignment begins anew: what lies before and behind it is not compared. One call's messages
lie in a row, so nothing can be wrong within a call ("internal").
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.pairs import masters
from mqlab_spark.schema import WORLD, of_kind
from mqlab_spark.tables.copies import torn_away
from mqlab_spark.tables.gold.audit import CUT_OFF, NEVER_STORED
from mqlab_spark.tables.gold.orphans import calls_without_a_delivery, given, strangers
from mqlab_spark.tables.half_messages import half_messages
from mqlab_spark.tables.table import EVENTS, GOLD, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared

MEANINGS = {
    "lost write": "acknowledged, never given to the group, and it never will be: no copy is left, or none ever was, or "
    "the group's offset is behind it",
    "unobserved": "acknowledged, and not given to the group yet when the trace ends",
    "skip": "a consumer went on beyond messages that lay between, which it was not given",
    "nonmonotonic": "a consumer was given a place of a queue again, or an earlier one, though it had kept the queue",
    "nonmonotonic send": "of two messages that a producer sent one after the other, the second has the earlier place",
    "duplicate": "one message was stored at two places",
    "inconsistent offsets": "two messages were stored at one place of a queue, one after the other",
    "aborted read": "a group was given a message of which the producer was told that it could not be sent",
    "redelivered": "a group was done with a message more than once",
    "out of order": "a group was done with a message after a later one of its queue",
    "never stored": "a group was given a message, and no event says that it was stored",
    "before it was stored": "a group was given a message before it was stored",
    "never handed out": "a listener was called with a message that no pull and no pop had brought, or ended without "
    "having begun",
    "wrong group": "a group was given a message of a topic that it had not subscribed to",
}
"""What each anomaly is."""

JEPSEN = {
    "lost write": "lost-write", "unobserved": "unseen", "skip": "poll-skip", "nonmonotonic": "nonmonotonic-poll",
    "nonmonotonic send": "nonmonotonic-send", "duplicate": "duplicate", "inconsistent offsets": "inconsistent-offsets",
    "aborted read": "G1a", "never stored": "unexpected",
}  # fmt: skip
"""Jepsen's names: of Maelstrom's workload "kafka", and "unexpected" of its checker of queues. What groups, their
subscriptions, acknowledgements and clocks come to has none there.
"""

CLOCK_IS_BEHIND = "the clock of who got it is %d us behind the broker's"
OF_ITS_COMMIT = "what was sent before is of a transaction, and has the place of its commit"

COLUMNS = shared(
    world=WHICH_WORLD,
    anomaly=(TEXT, "its name, of " + ", ".join(MEANINGS)),
    jepsen=(TEXT, "Jepsen's name for it; null: it has none"),
    group=(TEXT, "the consumer group that saw it; null: a producer did"),
    topic=(TEXT, "the topic"),
    broker=(TEXT, "the broker's machine, or its name where a consumer tells of it"),
    queue_id=(WHOLE, "the queue"),
    queue_offset=(WHOLE, "the place in it"),
    msg_id=(TEXT, "the message there"),
    node=(TEXT, "the machine on which the proving event happened"),
    ts_us=(WHOLE, "when the event happened that proves it, us since the world began"),
    before_us=(WHOLE, "when the event happened that it contradicts; null: there is none"),
    before_offset=(WHOLE, "the place that was seen then"),
    before_msg_id=(TEXT, "the message that was seen then"),
    proof=(TEXT, "the two events in words"),
    reason=(TEXT, "why RocketMQ lets it happen, as far as events show it; null: no documented reason was found"),
    fault=(TEXT, "of a lost write and of what was redelivered: what was last done to its machines from outside"),
    fault_us=(WHOLE, "when that was done"),
)


def _row(frame: DataFrame, anomaly: str, **given: str | Column) -> DataFrame:
    """Rows of an anomaly: columns of the same name, or those that are given."""
    return _rows(frame, anomaly=F.lit(anomaly), jepsen=F.lit(JEPSEN.get(anomaly)), **given)


def _rows(frame: DataFrame, **given: str | Column) -> DataFrame:
    """Rows of anomalies: columns of the same name, or those that are given."""
    columns = []
    for name, column in COLUMNS.items():
        value = given.get(name, name if name in frame.columns else None)
        expression = F.lit(None) if value is None else F.col(value) if isinstance(value, str) else value
        # The world as it is: a number, or where the table is made of a trace alone a name.
        columns.append((expression if name == WORLD else expression.cast(column.type)).alias(name))
    return frame.select(*columns)


def _never_given(tables: Tables) -> DataFrame:
    events, rows = tables[EVENTS], tables["audit"]
    place = [WORLD, "broker", "topic", "queue_id", "queue_offset"]
    torn = torn_away(events).select(
        WORLD, F.col("node").alias("broker"), "topic", "queue_id", "queue_offset", F.col("msg_id").alias("torn_id")
    )
    gone = rows.where("status = 'LOST'")
    others = (
        gone.join(torn, place).where("torn_id != msg_id").select(*place, "msg_id").distinct()
    )  # fmt: skip
    began = _first_places(events)
    lost = _row(
        gone.join(others.withColumn("torn", F.lit(True)), [*place, "msg_id"], "left").join(
            began, [*place[:-1], "group"], "left"
        ),
        "lost write", node="broker", ts_us="proof_us", before_us="acknowledged_us",
        reason=F.when(F.col("proof") == CUT_OFF, "acknowledged before it was on the disk (ASYNC_FLUSH)")
        .when(F.col("proof") == NEVER_STORED, None)
        .when(F.col("torn"), "its offset had been committed for a message that was torn away")
        .when(F.col("began_at") > F.col("queue_offset"), "the group began behind it (ConsumeFromWhere)"),
    )  # fmt: skip
    waits = rows.where("status = 'waiting' AND calls = 0")
    unseen = _row(
        waits, "unobserved", node="broker", ts_us="proof_us", before_us="acknowledged_us",
        reason=F.lit("the trace ends before"),
    )  # fmt: skip
    return lost.unionByName(unseen)


def _first_places(events: DataFrame) -> DataFrame:
    """A row for each queue and group: the offset at which a consumer of the group first began there."""
    taken = of_kind(events, "QueueAllocated").join(
        masters(events).withColumnRenamed("node", "broker"), [WORLD, "broker_name"]
    )
    first = F.min(F.struct("ts_us", "slice", "i", "queue_offset")).alias("first")
    return (
        taken.groupBy(WORLD, "broker", "topic", "queue_id", "group")
        .agg(first)
        .select(WORLD, "broker", "topic", "queue_id", "group", F.col("first.queue_offset").alias("began_at"))
    )


def calls(events: DataFrame) -> DataFrame:
    """A row for each first call with a message, with the last place before it that the consumer was given of the queue
    since it took it.
    """
    queue = [WORLD, "group", "node", "topic", "broker_name", "queue_id"]
    taken = of_kind(events, "QueueAllocated").select(*queue, "ts_us", "slice", "i", F.lit(1).alias("takes"))
    sought = of_kind(events, "QueueSought").select(*queue, "ts_us", "slice", "i", F.lit(1).alias("takes"))
    called = (
        of_kind(events, "ConsumeStarted")
        .where("reconsume_times = 0")
        .select(
            *queue, "ts_us", "slice", "i", F.lit(0).alias("takes"), "queue_offset", "msg_id",
            (F.col("queue_offset") + F.col("messages") - 1).alias("last_offset"),
        )
    )  # fmt: skip
    in_order = Window.partitionBy(queue).orderBy("ts_us", "slice", "i")
    numbered = (
        called.unionByName(taken, allowMissingColumns=True)
        .unionByName(sought, allowMissingColumns=True)
        .withColumn("assignment", F.sum("takes").over(in_order))
    )
    so_far = Window.partitionBy(*queue, "assignment").orderBy("ts_us", "slice", "i").rowsBetween(
        Window.unboundedPreceding, -1
    )  # fmt: skip
    before = F.max(F.struct("last_offset", "msg_id", "ts_us")).over(so_far)
    return numbered.where("takes = 0").withColumn("before", before)


def _as_given(tables: Tables) -> DataFrame:
    """Skips and steps back of single consumers."""
    events = tables[EVENTS]
    names = masters(events).withColumnRenamed("node", "broker")
    rows = calls(events).where("before.last_offset IS NOT NULL").join(names, [WORLD, "broker_name"])
    said = {
        "before_us": F.col("before.ts_us"), "before_offset": F.col("before.last_offset"),
        "before_msg_id": F.col("before.msg_id"),
    }  # fmt: skip
    back = rows.where("queue_offset <= before.last_offset")
    nonmonotonic = _row(
        back, "nonmonotonic", **said,
        proof=F.format_string("it was given offset %d after %d", "queue_offset", "before.last_offset"),
        reason=F.lit("its own offset was corrected, or it could not give the message back and kept it"),
    )  # fmt: skip
    # A group that wants certain tags alone is not given the others.
    wants = of_kind(events, "SubscriptionChanged").where("expression = '*'").select(WORLD, "group", "topic").distinct()
    wide = rows.where("queue_offset > before.last_offset + 1").join(wants, [WORLD, "group", "topic"], "left_semi")
    there = of_kind(events, "MessageStored").select(
        WORLD, F.col("node").alias("broker"), "topic", "queue_id", F.col("queue_offset").alias("between"),
        F.col("ts_us").alias("stored_us"),
    )  # fmt: skip
    skipped = (
        wide.join(there, [WORLD, "broker", "topic", "queue_id"])
        .where("between > before.last_offset AND between < queue_offset AND stored_us < ts_us")
        .groupBy(*wide.columns)
        .agg(F.countDistinct("between").alias("left_out"))
    )
    skip = _row(
        skipped, "skip", **said,
        proof=F.format_string("offset %d came after %d, and %d lay between", "queue_offset", "before.last_offset",
                              "left_out"),
        reason=F.lit("its offset was corrected: the queue was shorter than the group's progress"),
    )  # fmt: skip
    return nonmonotonic.unionByName(skip)


def _as_sent(tables: Tables) -> DataFrame:
    """What is wrong with the places of messages: two for one, one for two, and in another order than they were sent."""
    events = tables[EVENTS]
    stored = of_kind(events, "MessageStored").where("unique_key != ''").select(
        WORLD, F.col("node").alias("broker"), "topic", "queue_id", "queue_offset", F.col("unique_key").alias("msg_id"),
        "ts_us", "slice", "i", "commit_log_offset",
    )  # fmt: skip
    halves = half_messages(events).select(WORLD, "msg_id", F.lit(True).alias("is_half"))
    sent_to = tables["messages"].select(WORLD, "msg_id", "topic", "failed_us").join(halves, [WORLD, "msg_id"], "left")
    in_time = ("ts_us", "slice", "i")
    first = F.first(F.struct("queue_offset", "ts_us", "slice")).over(
        Window.partitionBy(WORLD, "msg_id", "topic").orderBy(*in_time)
    )
    # The messages of a batch are stored in one slice, with one key.
    again = stored.join(sent_to, [WORLD, "msg_id", "topic"]).withColumn("first", first).where("slice > first.slice")
    duplicate = _row(
        again, "duplicate", node="broker", before_us=F.col("first.ts_us"), before_offset=F.col("first.queue_offset"),
        before_msg_id="msg_id", proof=F.lit("the message had been stored before"),
        reason=F.when(F.col("is_half"), "its transaction was committed twice: the broker had asked about it again")
        .otherwise("the answer to the first attempt did not come in time, and the producer tried again"),
    )  # fmt: skip
    same_place = Window.partitionBy(WORLD, "broker", "topic", "queue_id", "queue_offset").orderBy(*in_time)
    other = F.lag(F.struct("msg_id", "ts_us", "commit_log_offset")).over(same_place)
    used_twice = stored.withColumn("other", other).where("other.msg_id != msg_id")
    torn = torn_away(events).select(
        WORLD, F.col("node").alias("broker"), "topic", F.col("msg_id").alias("other_id"),
        F.col("commit_log_offset").alias("other_at"), F.lit(True).alias("torn"),
    )  # fmt: skip
    inconsistent = _row(
        used_twice.withColumns({"other_id": F.col("other.msg_id"), "other_at": F.col("other.commit_log_offset")}).join(
            torn, [WORLD, "broker", "topic", "other_id", "other_at"], "left"
        ),
        "inconsistent offsets", node="broker", before_us=F.col("other.ts_us"), before_offset="queue_offset",
        before_msg_id="other_id", proof=F.lit("another message had been stored at this place"),
        reason=F.when(F.col("torn"), "the broker lost power before it had flushed the first one"),
    )  # fmt: skip
    one_after_the_other = Window.partitionBy(WORLD, "producer", "topic", "broker", "queue_id").orderBy(
        "sent_us", "msg_id"
    )
    before = F.struct("queue_offset", "msg_id", "acknowledged_us", "sent_us", "is_half")
    backward = (
        tables["messages"]
        .where("acknowledged_us IS NOT NULL AND queue_offset IS NOT NULL")
        .join(halves, [WORLD, "msg_id"], "left")
        .withColumn("earlier", F.lag(before).over(one_after_the_other))
        .where("earlier.queue_offset > queue_offset AND earlier.sent_us < sent_us")
    )
    nonmonotonic = _row(
        backward, "nonmonotonic send", node="producer", ts_us="acknowledged_us",
        before_us=F.col("earlier.acknowledged_us"), before_offset=F.col("earlier.queue_offset"),
        before_msg_id=F.col("earlier.msg_id"), proof=F.lit("what was sent before lies behind it"),
        reason=F.when(F.col("earlier.is_half"), OF_ITS_COMMIT)
        .when(F.col("earlier.acknowledged_us") > F.col("sent_us"), "it was sent before the answer had come"),
    )  # fmt: skip
    return duplicate.unionByName(inconsistent).unionByName(nonmonotonic)


def _of_groups(tables: Tables) -> DataFrame:
    places = tables["messages"].select(
        WORLD, "msg_id", "topic", "broker", "queue_id", "queue_offset", "failed_us", "acknowledged_us"
    )  # fmt: skip
    given = tables["deliveries"].join(places, [WORLD, "msg_id"])
    aborted = _row(
        given.where("first_us IS NOT NULL AND failed_us IS NOT NULL AND acknowledged_us IS NULL"),
        "aborted read", node="consumer", ts_us="first_us", before_us="failed_us",
        proof=F.lit("the producer had given the message up, or did later"),
        reason=F.lit("it was stored, and the answer did not come in time"),
    )  # fmt: skip
    audit = tables["audit"].where("duplicates > 0").select(
        WORLD, "group", "msg_id", "duplicate_reason", "fault", "fault_us"
    )
    redelivered = _row(
        given.where("successes > 1").join(audit, [WORLD, "group", "msg_id"], "left"),
        "redelivered", node="last_consumer", ts_us="last_done_us", before_us="consumed_us",
        before_offset="queue_offset", before_msg_id="msg_id",
        proof=F.format_string("the group was done with it %d times", "successes"), reason="duplicate_reason",
    )  # fmt: skip
    late = _row(
        tables["order_violations"], "out of order", ts_us="consumed_us", before_us="later_us",
        before_offset="later_offset", before_msg_id="later_msg_id",
        proof=F.format_string("the group was done with offset %d before", "later_offset"),
    )  # fmt: skip
    return aborted.unionByName(redelivered).unionByName(late)


def _orphans(tables: Tables) -> DataFrame:
    """What groups were given without anything that led to it."""
    clock_says = F.col("got_us") - F.col("ahead_us") >= F.col("stored_us") - F.col("uncertainty_us")
    later_us = F.col("stored_us") - F.col("got_us")
    explained = F.when(clock_says, F.format_string(CLOCK_IS_BEHIND, -F.col("ahead_us")))
    wrongs = (
        _wrong("never stored", F.col("stored_us").isNull(), F.lit("no event says that it was stored")),
        _wrong("before it was stored", later_us > 0, F.format_string("it was stored %d us later", later_us), explained),
        _wrong("never handed out", F.col("first_us").isNull(),
               F.lit("a listener ended with it, and no event says that it began")),
    )  # fmt: skip
    seen = given(tables).withColumn("wrong", F.explode(F.array_compact(F.array(*wrongs))))
    is_early = F.col("wrong.anomaly") == "before it was stored"
    got = _rows(
        seen, anomaly="wrong.anomaly", jepsen="wrong.jepsen", proof="wrong.proof", reason="wrong.reason",
        ts_us="got_us", before_us=F.when(is_early, F.col("stored_us")),
    )  # fmt: skip
    called = _row(
        calls_without_a_delivery(tables[EVENTS]), "never handed out",
        proof=F.lit("a listener was called with it, and no pull or pop of the group went over it"),
    )  # fmt: skip
    wrong_group = _row(
        strangers(tables[EVENTS]), "wrong group", proof=F.lit("no subscription of the group to the topic is told")
    )
    return got.unionByName(called).unionByName(wrong_group)


def _wrong(anomaly: str, where: Column, proof: Column, reason: Column | None = None) -> Column:
    """An anomaly of a row, where it has it."""
    told = F.lit(None).cast("string") if reason is None else reason
    named = F.struct(F.lit(anomaly).alias("anomaly"), F.lit(JEPSEN.get(anomaly)).cast("string").alias("jepsen"),
                     proof.alias("proof"), told.alias("reason"))  # fmt: skip
    return F.when(where, named)


ANOMALIES = Table(
    "anomalies",
    GOLD,
    "What did clients see of the queues that they should not, which events prove it, and is it explained?",
    COLUMNS,
    (EVENTS, "messages", "deliveries", "audit", "order_violations", "clocks"),
    _never_given,
    more=(_as_given, _as_sent, _of_groups, _orphans),
)
