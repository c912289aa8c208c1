"""One row for each request between two machines."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark.schema import WORLD, of_kind
from mqlab_spark.tables.table import EVENTS, SILVER, TEXT, TRUTH, WHICH_WORLD, WHOLE, Table, Tables, shared

CALL = [WORLD, "connection", "opaque", "asker"]


def _query(tables: Tables) -> DataFrame:
    events = tables[EVENTS]
    # Both sides of a connection may ask, each with numbers of its own: who asks is a part of the name.
    asked = of_kind(events, "RequestSent").select(
        WORLD, "connection", "opaque", F.col("local").alias("asker"), F.col("node").alias("caller"), "remote",
        "request_code", "request_name", "oneway", F.col("ts_us").alias("sent_us"),
    )  # fmt: skip
    received = _first(events, "RequestReceived", "remote", received_us="ts_us", server="node")
    answered = _first(events, "ResponseSent", "remote", answered_us="ts_us", response_code="response_code")
    returned = _first(events, "ResponseReceived", "local", returned_us="ts_us")
    ended = _ends(events)
    return (
        asked.join(received, CALL, "left")
        .join(answered, CALL, "left")
        .join(returned, CALL, "left")
        .join(ended, [WORLD, "connection", "opaque", "caller"], "left")
        .withColumn("outcome", _outcome())
        .drop("ended_kind")
    )


def _first(events: DataFrame, kind: str, asker: str, **columns: str) -> DataFrame:
    """The first event of a kind for each call; `asker` is the field that has the address of who asked."""
    named = of_kind(events, kind).withColumn("asker", F.col(asker))
    return named.groupBy(CALL).agg(*(F.min_by(field, "ts_us").alias(name) for name, field in columns.items()))


def _ends(events: DataFrame) -> DataFrame:
    """How calls ended at their caller without an answer."""
    kinds = ("RequestTimedOut", "RequestFailed", "ResponseDropped")
    rows = events.where(F.col("kind").isin(*kinds))
    return rows.groupBy(WORLD, "connection", "opaque", F.col("node").alias("caller")).agg(
        F.min_by("kind", "ts_us").alias("ended_kind"), F.min("ts_us").alias("ended_us")
    )


def _outcome() -> Column:
    return (
        F.when(F.col("oneway"), "one-way")
        .when(F.col("ended_kind") == "RequestTimedOut", "timed out")
        .when(F.col("ended_kind") == "RequestFailed", "failed")
        .when(F.col("returned_us").isNotNull(), "answered")
        .otherwise("open")
    )


REQUESTS = Table(
    "requests",
    SILVER,
    "What became of each request between two machines?",
    shared(
        world=WHICH_WORLD,
        connection=(WHOLE, "the number of the connection, the same on both sides"),
        opaque=(WHOLE, "the number that ties the answer to the request"),
        caller=(TEXT, "the machine that asked"),
        asker=(TEXT, "its address"),
        remote=(TEXT, "the address that was asked"),
        server=(TEXT, "the machine that got the request; null: none did"),
        request_code=(WHOLE, "RocketMQ's number of the request"),
        request_name=(TEXT, "its name"),
        oneway=(TRUTH, "no answer is wanted"),
        sent_us=(WHOLE, "when it was written, us since the world began"),
        received_us=(WHOLE, "when it was read"),
        answered_us=(WHOLE, "when the answer was written"),
        returned_us=(WHOLE, "when the answer was read"),
        response_code=(WHOLE, "RocketMQ's number of the answer"),
        ended_us=(WHOLE, "when the caller stopped waiting without an answer"),
        outcome=(TEXT, "answered, one-way, timed out, failed, or open when the trace ends"),
    ),
    (EVENTS,),
    _query,
)
