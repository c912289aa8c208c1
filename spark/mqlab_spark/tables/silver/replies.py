"""One row for each request of an application that waits for a reply."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD
from mqlab_spark.tables.table import EVENTS, SILVER, TEXT, WHICH_WORLD, WHOLE, Table, Tables, shared

KINDS = ("ReplyAwaited", "ReplyPushed", "ReplyNotPushed", "ReplyArrived", "ReplyGivenUp")

ANSWERED, TIMED_OUT, FAILED, OPEN = "answered", "timed out", "failed", "open"
IN_TIME, LATE, NOT_PUSHED, NONE = "in time", "late", "not pushed", "none"


def _query(tables: Tables) -> DataFrame:
    in_order = F.struct("ts_us", "slice", "i")

    def first(value: str, of: Column) -> Column:
        return F.min_by(value, F.when(of, in_order))

    awaited, given_up = F.col("kind") == "ReplyAwaited", F.col("kind") == "ReplyGivenUp"
    pushed, not_pushed = F.col("kind") == "ReplyPushed", F.col("kind") == "ReplyNotPushed"
    arrived = F.col("kind") == "ReplyArrived"
    matched, too_late = arrived & F.col("matched"), arrived & ~F.col("matched")
    return (
        tables[EVENTS]
        .where(F.col("kind").isin(*KINDS))
        .groupBy(WORLD, "correlation_id")
        .agg(
            first("topic", awaited).alias("topic"),
            first("node", awaited).alias("asker"),
            first("client_id", awaited).alias("client_id"),
            first("ts_us", awaited).alias("asked_us"),
            first("timeout_ms", awaited).alias("timeout_ms"),
            first("replier", pushed | not_pushed | arrived).alias("replier"),
            F.count(F.when(arrived, 1)).alias("replies"),
            F.count(F.when(not_pushed, 1)).alias("not_pushed"),
            first("reason", not_pushed).alias("not_pushed_reason"),
            first("ts_us", matched).alias("answered_us"),
            first("ts_us", too_late).alias("late_us"),
            first("ts_us", given_up).alias("given_up_us"),
            first("reason", given_up).alias("given_up_reason"),
        )
        .where("asked_us IS NOT NULL")
        .withColumns({"outcome": _outcome(), "reply": _reply()})
    )


def _outcome() -> Column:
    return (
        F.when(F.col("answered_us").isNotNull(), ANSWERED)
        .when(F.col("given_up_reason").contains("timeout"), TIMED_OUT)
        .when(F.col("given_up_us").isNotNull(), FAILED)
        .otherwise(OPEN)
    )


def _reply() -> Column:
    return (
        F.when(F.col("answered_us").isNotNull(), IN_TIME)
        .when(F.col("late_us").isNotNull(), LATE)
        .when(F.col("not_pushed") > 0, NOT_PUSHED)
        .otherwise(NONE)
    )


REPLIES = Table(
    "replies",
    SILVER,
    "What became of each request of an application that waits for a reply, and of the reply?",
    shared(
        world=WHICH_WORLD,
        correlation_id=(TEXT, "what joins the request and its reply"),
        topic=(TEXT, "where the request was sent to"),
        asker=(TEXT, "the machine that asked"),
        client_id=(TEXT, "the client there, to which the reply is pushed"),
        asked_us=(WHOLE, "when it asked, us since the world began"),
        timeout_ms=(WHOLE, "how long it was ready to wait"),
        replier=(TEXT, "the address of who replied first; null: no broker got a reply"),
        replies=(WHOLE, "how many replies came to the asker's machine: more than one if it was consumed twice"),
        not_pushed=(WHOLE, "how many replies a broker could not push"),
        not_pushed_reason=(TEXT, "why it could not push the first of these"),
        answered_us=(WHOLE, "when the reply came to who waited for it; null: never"),
        late_us=(WHOLE, "when a reply first came for which nobody waited any more; null: none did"),
        given_up_us=(WHOLE, "when the asker gave up; null: it did not"),
        given_up_reason=(TEXT, "why it gave up"),
        outcome=(TEXT, "answered, timed out, failed (the request could not be sent), or open: the trace, or the "
                       "asker's process, ended before"),
        reply=(TEXT, "in time, late (nobody waited any more), not pushed (it got no further than a broker), or none"),
    ),
    (EVENTS,),
    _query,
)  # fmt: skip
