"""Plausible wrong solutions of lab 20_trace, each of which its check catches."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark import of_kind

PULL = ("world", "node", "remote", "opaque")
MESSAGE = ("world", "node", "topic", "queue_id", "queue_offset")
COLUMNS = ("world", "node", "group", "topic", "queue_id", "queue_offset", "cause", "wait_us")


def _answered(trace: DataFrame, *, pull: Sequence[str] = PULL, how: str = "left") -> DataFrame:
    """The answers with messages, each with its cause; with another key or another join than the right ones."""
    woken = of_kind(trace, "PullWoken").select(*pull, "reason")
    answers = of_kind(trace, "PullAnswered").where("messages > 0").join(woken, on=list(pull), how=how)
    return answers.withColumn("cause", F.coalesce("reason", F.lit("first pull")))


def _exploded(answers: DataFrame) -> DataFrame:
    offsets = F.sequence(F.col("queue_offset"), F.col("next_offset") - 1)
    return answers.withColumn("queue_offset", F.explode(offsets))


def _first(deliveries: DataFrame) -> DataFrame:
    return deliveries.groupBy(*MESSAGE, "group").agg(
        F.min("ts_us").alias("delivered_us"), F.min_by("cause", "ts_us").alias("cause")
    )


def _timed(deliveries: DataFrame, trace: DataFrame) -> DataFrame:
    stored = of_kind(trace, "MessageStored").select(*MESSAGE, F.col("ts_us").alias("stored_us"))
    timed = deliveries.join(stored, on=list(MESSAGE), how="inner")
    return timed.withColumn("wait_us", F.col("delivered_us") - F.col("stored_us")).select(*COLUMNS)


def only_pulls_that_were_held(trace: DataFrame) -> DataFrame:
    """Joins answers and wake-ups with an inner join, which loses every pull that did not have to wait."""
    return _timed(_first(_exploded(_answered(trace, how="inner"))), trace)


def number_without_connection(trace: DataFrame) -> DataFrame:
    """Takes the number of a request for its name; every client counts from the same number."""
    return _timed(_first(_exploded(_answered(trace, pull=("world", "node", "opaque")))), trace)


def worlds_mixed_up(trace: DataFrame) -> DataFrame:
    """Forgets that machines and connections have the same names in every world."""
    return _timed(_first(_exploded(_answered(trace, pull=("node", "remote", "opaque")))), trace)


def first_of_each_answer(trace: DataFrame) -> DataFrame:
    """Takes an answer for one message; it can bring up to 32."""
    return _timed(_first(_answered(trace)), trace)


def every_time_again(trace: DataFrame) -> DataFrame:
    """Counts a message again when it is given out a second time, after a crash."""
    return _timed(_exploded(_answered(trace)).withColumnRenamed("ts_us", "delivered_us"), trace)


def cause_by_the_clock(trace: DataFrame) -> DataFrame:
    """Guesses the cause from the wait: what came within 2 ms must have woken somebody."""
    timed = _timed(_first(_exploded(_answered(trace))), trace)
    guessed = F.when(F.col("wait_us") < 2_000, "arrived").otherwise("first pull")
    return timed.withColumn("cause", guessed)


def groups_as_one(trace: DataFrame) -> DataFrame:
    """Takes the first delivery of all groups together; each group gets every message."""
    first = _exploded(_answered(trace)).groupBy(*MESSAGE)
    one = first.agg(
        F.min("ts_us").alias("delivered_us"), F.min_by("cause", "ts_us").alias("cause"), F.min("group").alias("group")
    )
    return _timed(one, trace)


def shown_not_returned(trace: DataFrame) -> None:
    """Prints the table and forgets to return it."""
    _timed(_first(_exploded(_answered(trace))), trace).show()


WRONG = {
    "20/time-to-delivery": [
        only_pulls_that_were_held,
        number_without_connection,
        worlds_mixed_up,
        first_of_each_answer,
        every_time_again,
        cause_by_the_clock,
        groups_as_one,
        shown_not_returned,
    ]
}
