"""Plausible wrong solutions of lab 23_who_lost_it, each of which its check catches."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark import of_kind

ORDER = ("world", "msg_id")
AFTER_IT = "back_us > ts_us AND commit_log_offset >= commit_log_max_offset"

Copies = list[tuple[str, int, int]]
Recoveries = list[tuple[int, int]]


def _sent(trace: DataFrame) -> DataFrame:
    return of_kind(trace, "SendSucceeded").select(*ORDER)


def _packed(trace: DataFrame) -> DataFrame:
    return of_kind(trace, "ConsumeFinished").where("status = 'CONSUME_SUCCESS'").select(*ORDER)


def days_mixed_up(trace: DataFrame) -> DataFrame:
    """Forgets that messages of several days have the same names: packed on any day counts."""
    return _sent(trace).join(_packed(trace).select("msg_id"), "msg_id", "left_anti")


def every_attempt(trace: DataFrame) -> DataFrame:
    """Takes what was tried to send for what was acknowledged; and a retry is another row."""
    return of_kind(trace, "SendAttempted").select(*ORDER).join(_packed(trace), list(ORDER), "left_anti")


def every_stored(trace: DataFrame) -> DataFrame:
    """Takes what the broker had stored for what was acknowledged: nobody was told of some of it."""
    stored = of_kind(trace, "MessageStored").where("topic = 'Orders'").withColumnRenamed("unique_key", "msg_id")
    return stored.select(*ORDER).distinct().join(_packed(trace), list(ORDER), "left_anti")


def outer_join(trace: DataFrame) -> DataFrame:
    """Joins from the left, and forgets to keep only those without a partner."""
    return _sent(trace).join(_packed(trace), list(ORDER), "left").select(*ORDER)


def places_only(copies: Copies, recoveries: Recoveries) -> set[str]:
    """Compares places and not times: what was written after the cut, at a place that was torn off, counts as torn."""
    safe = {order for order, _, place in copies if all(place < end for _, end in recoveries)}
    return {order for order, _, _ in copies} - safe


def last_recovery_only(copies: Copies, recoveries: Recoveries) -> set[str]:
    """Looks at the last power cut; an earlier one may have torn off what was written over since."""
    back_ms, last = recoveries[-1]
    safe = {order for order, at_ms, place in copies if at_ms > back_ms or place < last}
    return {order for order, _, _ in copies} - safe


def any_copy(copies: Copies, recoveries: Recoveries) -> set[str]:
    """An order is gone when one of its copies is."""
    return {
        order for order, at_ms, place in copies if any(back_ms > at_ms and place >= end for back_ms, end in recoveries)
    }


def beyond_the_end(end: int, stored: int, asks: int) -> int:
    """Forgets that a packer that asks beyond the end is sent back to it: counts orders that do not exist."""
    return max(0, asks - end)


def all_or_none(end: int, stored: int, asks: int) -> int:
    """All orders that came before the packer was back."""
    return stored if asks > end else 0


def below_zero(end: int, stored: int, asks: int) -> int:
    """A packer that was behind has passed over fewer than none."""
    return min(asks, end + stored) - end


def _copies(trace: DataFrame, torn: str = AFTER_IT) -> DataFrame:
    stored = of_kind(trace, "MessageStored").where("topic = 'Orders'").withColumnRenamed("unique_key", "msg_id")
    ends = of_kind(trace, "StoreRecovered").select("world", F.col("ts_us").alias("back_us"), "commit_log_max_offset")
    each = stored.join(ends, "world", "left").groupBy(*ORDER, "queue_id", "queue_offset", "ts_us")
    return each.agg(F.max(F.expr(torn)).alias("torn"))


def _done(trace: DataFrame, which: Column, *, queue: Sequence[str] = ("world", "queue_id")) -> DataFrame:
    committed = of_kind(trace, "OffsetCommitted").where("topic = 'Orders'")
    return committed.groupBy(*queue).agg(which.alias("done"))


def _last() -> Column:
    return F.max_by("queue_offset", F.struct("slice", "i"))


def _lost(
    trace: DataFrame, copies: DataFrame, done: DataFrame, queue: Sequence[str] = ("world", "queue_id")
) -> DataFrame:
    waits = copies.join(done, list(queue), "left").withColumn(
        "waits", F.expr("NOT torn AND queue_offset >= coalesce(done, 0)")
    )
    left = waits.groupBy(*ORDER).agg(F.max(~F.col("torn")).alias("in_log"), F.max("waits").alias("waits"))
    how = F.when(~F.col("in_log"), "torn off").when(~F.col("waits"), "passed over")
    lost = _sent(trace).join(_packed(trace), list(ORDER), "left_anti").join(left, list(ORDER))
    return lost.withColumn("how", how).where("how IS NOT NULL").select(*ORDER, "how")


def only_what_was_torn(trace: DataFrame) -> DataFrame:
    """Trusts the first suspect: what is in the log cannot be lost."""
    return _lost(trace, _copies(trace), _done(trace, _last())).where("how = 'torn off'")


def whoever_waits(trace: DataFrame) -> DataFrame:
    """Takes everything that is in the log and was not packed for passed over, also what still waits."""
    return _lost(trace, _copies(trace).withColumn("queue_offset", F.lit(-1)), _done(trace, _last()))


def torn_by_place(trace: DataFrame) -> DataFrame:
    """Compares places and forgets the time: what was stored after a power cut counts as torn off by it."""
    return _lost(trace, _copies(trace, "commit_log_offset >= commit_log_max_offset"), _done(trace, _last()))


def queues_as_one(trace: DataFrame) -> DataFrame:
    """Takes the progress of one queue for that of all."""
    return _lost(trace, _copies(trace), _done(trace, _last(), queue=["world"]), ["world"])


def retries_too(trace: DataFrame) -> DataFrame:
    """Takes what was committed for the retry topic, whose queues have the same numbers, for that of the orders."""
    committed = of_kind(trace, "OffsetCommitted").groupBy("world", "queue_id").agg(_last().alias("done"))
    return _lost(trace, _copies(trace), committed)


def everything_torn(trace: DataFrame) -> DataFrame:
    """Lists all that was torn off, though most of it had been packed before."""
    torn = _copies(trace).groupBy(*ORDER).agg(F.min("torn").alias("torn")).where("torn")
    return _sent(trace).join(torn, list(ORDER)).select(*ORDER, F.lit("torn off").alias("how"))


def printed(trace: DataFrame) -> None:
    """Prints the table and forgets to return it."""
    _sent(trace).show()


WRONG = {
    "23/never-packed": [days_mixed_up, every_attempt, every_stored, outer_join],
    "23/torn-off": [places_only, last_recovery_only, any_copy],
    "23/passed-over": [beyond_the_end, all_or_none, below_zero],
    "23/find-lost": [
        only_what_was_torn, whoever_waits, torn_by_place, queues_as_one, retries_too, everything_torn, printed,
    ],
}
