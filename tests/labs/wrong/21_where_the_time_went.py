"""Plausible wrong solutions of lab 21_where_the_time_went, each of which its check catches."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab_spark import of_kind

ORDER = ["world", "msg_id"]


def of_the_longest(times: list[int], share: int) -> float:
    """Takes the slowest one for the whole share."""
    return 100 * max(times) / sum(times)


def not_sorted(times: list[int], share: int) -> float:
    """Takes the last ones for the slowest."""
    count = max(1, len(times) * share // 100)
    return 100 * sum(times[-count:]) / sum(times)


def none_of_few(times: list[int], share: int) -> float:
    """Forgets that it is one at least: of a short list the slowest hundredth is nobody, or, in Python, everybody."""
    return 100 * sum(sorted(times)[-(len(times) * share // 100) :]) / sum(times)


def _percentile(histogram: dict[int, int], percent: int) -> int:
    enough, so_far = percent * sum(histogram.values()), 0
    for end in sorted(histogram):
        so_far += histogram[end]
        if 100 * so_far >= enough:
            return end
    return max(histogram)


def mean_of_percentiles(days: list[dict[int, int]], percent: int) -> float:
    """The mean of the days' own percentiles."""
    return sum(_percentile(day, percent) for day in days) / len(days)


def worst_day(days: list[dict[int, int]], percent: int) -> int:
    """The largest of the days' own percentiles."""
    return max(_percentile(day, percent) for day in days)


def last_day_wins(days: list[dict[int, int]], percent: int) -> int:
    """Puts the histograms together with update: of a bin that two days have, one count is lost."""
    together: dict[int, int] = {}
    for day in days:
        together.update(day)
    return _percentile(together, percent)


def with_a_zero(times: list[int], every_ms: int) -> list[int]:
    """Adds somebody who does not wait at all."""
    return [left for time in times for left in range(time, -1, -every_ms)]


def only_one_more(times: list[int], every_ms: int) -> list[int]:
    """Adds one customer for each slow one, however slow it was."""
    return [*times, *(time - every_ms for time in times if time > every_ms)]


def all_as_slow(times: list[int], every_ms: int) -> list[int]:
    """Lets those who come later wait as long as the first."""
    return [time for time in times for _ in range(0, time, every_ms)]


def _first(events: DataFrame, name: str, by: list[str] = ORDER) -> DataFrame:
    return events.groupBy(*by).agg(F.min("ts_us").alias(name))


def _stored(trace: DataFrame) -> DataFrame:
    return of_kind(trace, "MessageStored").withColumnRenamed("unique_key", "msg_id")


def _done(trace: DataFrame) -> DataFrame:
    return of_kind(trace, "ConsumeFinished").where("status = 'CONSUME_SUCCESS'")


def _rows(times: DataFrame, keep: list[str] = ORDER) -> DataFrame:
    sending, waiting = F.col("stored") - F.col("sent"), F.col("started") - F.col("stored")
    listening = F.col("done") - F.col("started")
    most = F.greatest(sending, waiting, listening)
    stage = F.when(sending == most, "sending").when(waiting == most, "waiting").otherwise("listening")
    total = F.col("done") - F.col("sent")
    return times.select(*keep, total.alias("total_us"), stage.alias("stage"), most.alias("stage_us"))


def worlds_mixed_up(trace: DataFrame) -> DataFrame:
    """Joins on the name of the order alone, which is the same in every world."""
    times = _first(of_kind(trace, "SendAttempted"), "sent")
    for events, name in (
        (_stored(trace), "stored"),
        (of_kind(trace, "ConsumeStarted"), "started"),
        (_done(trace), "done"),
    ):
        times = times.join(_first(events, name, ["msg_id"]), "msg_id")
    return _rows(times)


def every_attempt(trace: DataFrame) -> DataFrame:
    """Joins all events and not the first of each: what was tried or packed twice has several rows."""
    times = of_kind(trace, "SendAttempted").select(*ORDER, F.col("ts_us").alias("sent"))
    for events, name in (
        (_stored(trace), "stored"),
        (of_kind(trace, "ConsumeStarted"), "started"),
        (_done(trace), "done"),
    ):
        times = times.join(events.select(*ORDER, F.col("ts_us").alias(name)), ORDER)
    return _rows(times)


def from_the_last_attempt(trace: DataFrame) -> DataFrame:
    """Counts from the last attempt, as a log of the broker would: the tries that failed are forgotten."""
    times = of_kind(trace, "SendAttempted").groupBy(*ORDER).agg(F.max("ts_us").alias("sent"))
    for events, name in (
        (_stored(trace), "stored"),
        (of_kind(trace, "ConsumeStarted"), "started"),
        (_done(trace), "done"),
    ):
        times = times.join(_first(events, name), ORDER)
    return _rows(times)


def open_ones_too(trace: DataFrame) -> DataFrame:
    """Keeps orders that were never packed, with a left join: rows without a time."""
    times = _first(of_kind(trace, "SendAttempted"), "sent")
    for events, name in (
        (_stored(trace), "stored"),
        (of_kind(trace, "ConsumeStarted"), "started"),
        (_done(trace), "done"),
    ):
        times = times.join(_first(events, name), ORDER, "left")
    return _rows(times)


WRONG = {
    "21/slowest-share": [of_the_longest, not_sorted, none_of_few],
    "21/percentile-of-days": [mean_of_percentiles, worst_day, last_day_wins],
    "21/with-omitted": [with_a_zero, only_one_more, all_as_slow],
    "21/where-the-time-went": [worlds_mixed_up, every_attempt, from_the_last_attempt, open_ones_too],
}
