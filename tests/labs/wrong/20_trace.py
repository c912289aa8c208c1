"""Plausible wrong solutions of lab 20_trace, each of which its check catches."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark import of_kind
from mqlab_spark.jobs import delivery_latency

PULL = ("world", "node", "remote", "opaque")
MESSAGE = ("world", "node", "topic", "queue_id", "queue_offset")
COLUMNS = ("world", "node", "group", "topic", "queue_id", "queue_offset", "cause", "wait_us", "held_us")


def _answered(trace: DataFrame, *, pull: Sequence[str] = PULL, how: str = "left") -> DataFrame:
    """The answers with messages, each with its cause; with another key or another join than the right ones."""
    held = of_kind(trace, "PullHeld").select(*pull, F.col("ts_us").alias("from_us"))
    woken = of_kind(trace, "PullWoken").select(*pull, "reason", F.col("ts_us").alias("to_us"))
    woken = woken.join(held, on=list(pull), how="left").withColumn("held", F.col("to_us") - F.col("from_us"))
    answers = of_kind(trace, "PullAnswered").where("messages > 0").join(woken, on=list(pull), how=how)
    caused = answers.withColumn("cause", F.coalesce("reason", F.lit("first pull")))
    return caused.withColumn("held_us", F.coalesce("held", F.lit(0)))


def _exploded(answers: DataFrame) -> DataFrame:
    offsets = F.sequence(F.col("queue_offset"), F.col("next_offset") - 1)
    return answers.withColumn("queue_offset", F.explode(offsets))


def _first(deliveries: DataFrame) -> DataFrame:
    return deliveries.groupBy(*MESSAGE, "group").agg(
        F.min("ts_us").alias("delivered_us"),
        F.min_by("cause", "ts_us").alias("cause"),
        F.min_by("held_us", "ts_us").alias("held_us"),
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
        F.min("ts_us").alias("delivered_us"),
        F.min_by("cause", "ts_us").alias("cause"),
        F.min_by("held_us", "ts_us").alias("held_us"),
        F.min("group").alias("group"),
    )
    return _timed(one, trace)


def shown_not_returned(trace: DataFrame) -> None:
    """Prints the table and forgets to return it."""
    _timed(_first(_exploded(_answered(trace))), trace).show()


def the_job_that_is_there(trace: DataFrame) -> DataFrame:
    """Takes the package's own job and renames a column: it does not know how long a pull was held."""
    return delivery_latency(trace).withColumnRenamed("latency_us", "wait_us")


def held_until_the_answer(trace: DataFrame) -> DataFrame:
    """Counts a hold until the answer instead of until the pull was woken; slow brokers take their time in between."""
    held = of_kind(trace, "PullHeld").select(*PULL, F.col("ts_us").alias("began_us"))
    answers = _answered(trace).join(held, on=list(PULL), how="left")
    counted = F.coalesce(F.col("ts_us") - F.col("began_us"), F.lit(0))
    return _timed(_first(_exploded(answers.withColumn("held_us", counted))), trace)


def in_the_order_they_came(waits: list[int], percent: int) -> int:
    """Forgets to sort."""
    return waits[-(-percent * len(waits) // 100) - 1]


def one_too_far(waits: list[int], percent: int) -> int:
    """Takes the number of values below for an index: one too far, and past the end at 100."""
    return sorted(waits)[min(percent * len(waits) // 100, len(waits) - 1)]


def share_of_the_longest(waits: list[int], percent: int) -> int:
    """Takes so many percent of the longest wait."""
    return percent * max(waits) // 100


def as_the_client_asked(begin_us: int, asked_us: int) -> int:
    """An alarm clock for each pull."""
    return asked_us


def always_the_third_look(begin_us: int, asked_us: int) -> int:
    """Counts looks, not ages: a pull that came just after a look is too young at the third."""
    return 3 * 5_000_000 - begin_us % 5_000_000


def never_at_a_look(begin_us: int, asked_us: int) -> int:
    """Asks for more than the time: a pull that has its age exactly at a look waits for another one."""
    return ((begin_us + asked_us) // 5_000_000 + 1) * 5_000_000 - begin_us


def in_some_world(holds: list[tuple[str, int]], width_ms: int) -> set[int]:
    """The bins of all worlds together."""
    return {hold_ms // width_ms for _, hold_ms in holds}


def of_the_first_and_last(holds: list[tuple[str, int]], width_ms: int) -> set[int]:
    """Compares two of the worlds."""
    ends = [min(world for world, _ in holds), max(world for world, _ in holds)]
    return set.intersection(*({hold_ms // width_ms for world, hold_ms in holds if world == end} for end in ends))


def in_ms(holds: list[tuple[str, int]], width_ms: int) -> set[int]:
    """Says where the bins begin, not which they are."""
    found: dict[str, set[int]] = {}
    for world, hold_ms in holds:
        found.setdefault(world, set()).add(hold_ms // width_ms * width_ms)
    return set.intersection(*found.values())


WRONG = {
    "20/percentile": [in_the_order_they_came, one_too_far, share_of_the_longest],
    "20/hold": [as_the_client_asked, always_the_third_look, never_at_a_look],
    "20/every-world": [in_some_world, of_the_first_and_last, in_ms],
    "20/time-to-delivery": [
        only_pulls_that_were_held,
        number_without_connection,
        worlds_mixed_up,
        first_of_each_answer,
        every_time_again,
        cause_by_the_clock,
        groups_as_one,
        shown_not_returned,
        the_job_that_is_there,
        held_until_the_answer,
    ],
}
