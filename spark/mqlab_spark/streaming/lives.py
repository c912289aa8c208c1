"""The life of a message, from the first attempt to send it to the moment when somebody was done with it.

`lives(trace)` reads a whole trace, with an aggregation. A stream has no end at which to aggregate: `lives_as_they_end`
keeps what it knows of each message that is still on its way (`state.py`), and puts each life out once. Both are built
on the same `marks`, and give the same rows.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses
from pyspark.sql.streaming.state import GroupStateTimeout

from mqlab.arguments import check_number
from mqlab.views.journey import CONSUMED
from mqlab_spark.schema import WORLD
from mqlab_spark.streaming import state
from mqlab_spark.streaming.segments import ENDED

SENT, ANSWERED, STORED, TAKEN, DONE = "sent", "answered", "stored", "taken", "consumed"

KEY = (WORLD, "msg_id")
LIFE = ("world", "msg_id", "topic", "sent_us", "stored_us", "taken_us", "consumed_us", "latency_us")

AT = "at"
"""The column of event times: the world's own time as a timestamp, whose zero is 1970."""

OBSERVED = "mqlab"
"""The name of the numbers that a stream counts beside its rows."""


def with_event_time(events: DataFrame, late_s: float) -> DataFrame:
    """The events with their time as `at`, and a watermark on it: `late_s` seconds behind the newest event of all."""
    check_number("late_s", late_s, "say how many seconds events may be late: late_s=10")
    timed = events.withColumn(AT, F.timestamp_micros("ts_us"))
    # Counting stands behind the watermark, so that Spark does not pull the filter on kinds in front of it: events
    # of every kind move the watermark, also heartbeats in a world where nobody sends anything.
    real = F.col("kind") != ENDED
    return timed.withWatermark(AT, f"{round(late_s * 1_000)} milliseconds").observe(
        OBSERVED, F.count_if(real).alias("events"), F.max(F.when(real, F.col("ts_us"))).alias("newest_us")
    )


def marks(events: DataFrame, group: str | None = None) -> DataFrame:
    """What the events say of messages: world, msg_id, `what` ("sent", "answered", "stored", "taken", "consumed"),
    topic, ts_us, and `at` where the events have it.

    With `group` only what its consumers took counts. A call of a listener is told with its first message: this is for
    listeners that take one message at a time (the default).
    """
    kind = F.col("kind")
    ours = F.lit(True) if group is None else F.col("group") == group
    what = (
        F.when(kind == "SendAttempted", SENT)
        .when(kind.isin("SendSucceeded", "SendFailed"), ANSWERED)
        .when(kind == "MessageStored", STORED)
        .when((kind == "ConsumeStarted") & ours, TAKEN)
        .when((kind == "ConsumeFinished") & F.col("status").isin(*CONSUMED) & ours, DONE)
    )
    kinds = ("SendAttempted", "SendSucceeded", "SendFailed", "MessageStored", "ConsumeStarted", "ConsumeFinished")
    # A batch is sent under the ids of all its messages.
    ids = F.explode(F.split(F.when(kind == "MessageStored", F.col("unique_key")).otherwise(F.col("msg_id")), ","))
    own_time = [AT] if AT in events.columns else []
    columns: list[str | Column] = [WORLD, ids.alias("msg_id"), what.alias("what"), "topic", "ts_us", *own_time]
    return events.where(kind.isin(*kinds)).select(*columns).where("what IS NOT NULL AND msg_id != ''")


def lives(trace: DataFrame, *, group: str | None = None) -> DataFrame:
    """One row for each message of a whole trace that was sent and consumed (by `group`, if one is named).

    Columns: world, msg_id, topic, sent_us (first attempt), stored_us (first copy), taken_us (first call of a listener),
    consumed_us (first call that went well), latency_us (from sent_us to consumed_us).
    """
    return _told(trace, group).where("consumed_us IS NOT NULL")


def open_lives(trace: DataFrame, *, group: str | None = None) -> DataFrame:
    """One row for each message of a whole trace that was sent and not consumed, with the columns of `lives`."""
    return _told(trace, group).where("consumed_us IS NULL")


def _told(trace: DataFrame, group: str | None) -> DataFrame:
    def first(what: str) -> Column:
        return F.min(F.when(F.col("what") == what, F.col("ts_us")))

    told = marks(trace, group).groupBy(*KEY).agg(
        F.min_by("topic", F.when(F.col("what") == SENT, F.col("ts_us"))).alias("topic"),
        first(SENT).alias("sent_us"),
        first(STORED).alias("stored_us"),
        first(TAKEN).alias("taken_us"),
        first(DONE).alias("consumed_us"),
    )  # fmt: skip
    latency = (F.col("consumed_us") - F.col("sent_us")).alias("latency_us")
    return told.where("sent_us IS NOT NULL").select(*LIFE[:-1], latency)


def lives_as_they_end(
    events: DataFrame, *, group: str | None = None, give_up_s: float | None = None, buckets: int = 1
) -> DataFrame:
    """The lives of a stream of events (`with_event_time`), each put out once, when the watermark has passed its end.

    The columns of `lives`, then `outcome` ("finished", or "given up": not consumed `give_up_s` after it was sent) and
    `watermark_us` (when it was put out). Rows with the outcome "state" are no lives: after each micro-batch a bucket of
    the state says how many lives are `open`, and how many `waiting` for the watermark. The state has `buckets` parts,
    which a cluster keeps in different places; a checkpoint keeps their number.

    No expression can do this: a window closes at a time that is known before, a join forgets nothing before its limit.
    """
    if AT not in events.columns:
        events = with_event_time(events, 0)
    give_up_us = -1 if give_up_s is None else round(give_up_s * 1_000_000)
    bucket = F.pmod(F.hash(*KEY), F.lit(buckets)).alias(state.BUCKET)
    return (
        marks(events, group)
        .select(bucket, *KEY, "what", "topic", "ts_us", AT)
        .groupBy(state.BUCKET)
        .applyInPandasWithState(
            partial(state.carry_on, give_up_us=give_up_us), state.OUTPUT, state.STATE, "append",
            GroupStateTimeout.EventTimeTimeout,
        )
    )  # fmt: skip
