"""The jobs, over traces of a few rows written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab.trace.bus import Row
from mqlab.trace.events.broker import PullAnswered, PullHeld, PullWoken
from mqlab.trace.events.client import ConsumeStarted, SendAttempted, SendSucceeded
from mqlab.trace.events.store import MessageStored
from mqlab_spark import jobs

TraceOf = Callable[[list[Row]], DataFrame]
WORLD = "trace.jsonl"


def rows(*script: tuple[int, str, Any]) -> list[Row]:
    """(time in us, node, event) of each event, in order."""
    return [
        (n, 0, ts, node, "task", -1, -1, type(event).__name__, *event) for n, (ts, node, event) in enumerate(script)
    ]


def attempted(msg_id: str) -> SendAttempted:
    return SendAttempted("T", "broker-a", 0, msg_id, "SYNC", 3_000, 10)


def succeeded(msg_id: str, queue_offset: int = 0) -> SendSucceeded:
    return SendSucceeded("T", "broker-b", 1, queue_offset, msg_id, "SEND_OK")


def stored(queue_offset: int, queue_id: int = 0, topic: str = "T") -> MessageStored:
    return MessageStored(topic, queue_id, queue_offset, queue_offset * 100, 100, f"M{queue_offset}")


def answered(first: int, messages: int, opaque: int, *, queue_id: int = 0, remote: str = "c1", group: str = "g") -> Any:
    return PullAnswered(
        group, "T", queue_id, first, first + messages, messages, messages * 100, "FOUND", 0, opaque, remote
    )


def held(opaque: int, remote: str = "c1") -> PullHeld:
    return PullHeld("g", "T", 0, 0, 15_000, opaque, remote)


def woken(opaque: int, reason: str = "arrived", remote: str = "c1") -> PullWoken:
    return PullWoken("g", "T", 0, 0, reason, 0, opaque, remote)


def collected(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_a_send_takes_from_its_first_attempt_to_its_answer(trace_of: TraceOf) -> None:
    frame = jobs.send_latency(
        trace_of(
            rows(
                (1_000, "producer-1", attempted("A")),
                (1_500, "producer-1", attempted("B")),
                (4_000, "producer-1", attempted("A")),
                (4_700, "producer-1", succeeded("A")),
                (5_000, "producer-1", attempted("never answered")),
                (5_100, "producer-1", succeeded("B")),
            )
        )
    )
    assert frame.columns == [
        "world", "topic", "broker_name", "queue_id", "msg_id", "attempts", "sent_us", "acknowledged_us", "latency_us",
    ]  # fmt: skip
    assert collected(frame) == [
        (WORLD, "T", "broker-b", 1, "A", 2, 1_000, 4_700, 3_700),
        (WORLD, "T", "broker-b", 1, "B", 1, 1_500, 5_100, 3_600),
    ]


def test_a_delivery_takes_from_the_store_to_the_first_answer_and_has_a_cause(trace_of: TraceOf) -> None:
    frame = jobs.delivery_latency(
        trace_of(
            rows(
                (10, "broker-a", stored(0)),
                (20, "broker-a", stored(1)),
                (30, "broker-a", answered(0, 2, opaque=1)),
                (40, "broker-a", held(2)),
                (90, "broker-a", stored(2)),
                (95, "broker-a", woken(2)),
                (100, "broker-a", answered(2, 1, opaque=2)),
                (110, "broker-a", answered(2, 1, opaque=3, remote="c2")),
                (120, "broker-a", held(3)),
                (130, "broker-a", stored(3)),
                (190, "broker-a", woken(3, "timed out")),
                (200, "broker-a", answered(3, 1, opaque=3)),
                (210, "broker-a", stored(4)),
            )
        )
    )
    assert frame.columns == [
        "world", "node", "group", "topic", "queue_id", "queue_offset", "unique_key", "cause",
        "stored_us", "delivered_us", "latency_us",
    ]  # fmt: skip
    assert [row[5:] for row in collected(frame)] == [
        (0, "M0", "first pull", 10, 30, 20),
        (1, "M1", "first pull", 20, 30, 10),
        (2, "M2", "arrived", 90, 100, 10),
        (3, "M3", "timed out", 130, 200, 70),
    ]


def test_queues_nodes_and_groups_are_kept_apart(trace_of: TraceOf) -> None:
    frame = jobs.delivery_latency(
        trace_of(
            rows(
                (10, "broker-a", stored(0)),
                (11, "broker-b", stored(0)),
                (12, "broker-a", stored(0, queue_id=1)),
                (20, "broker-a", answered(0, 1, opaque=1)),
                (30, "broker-b", answered(0, 1, opaque=1)),
                (40, "broker-a", answered(0, 1, opaque=2, group="other")),
            )
        )
    )
    assert [(row[1], row[2], row[4], row[-1]) for row in collected(frame)] == [
        ("broker-a", "g", 0, 10),
        ("broker-a", "other", 0, 30),
        ("broker-b", "g", 0, 19),
    ]


def test_consumption_takes_from_the_store_to_the_first_call_of_the_listener(trace_of: TraceOf) -> None:
    def consume(msg_id: str, reconsume_times: int = 0) -> ConsumeStarted:
        return ConsumeStarted("g", "T", "broker-a", 0, 0, msg_id, 1, reconsume_times)

    frame = jobs.consume_latency(
        trace_of(
            rows(
                (10, "broker-a", stored(0)),
                (50, "consumer-1", consume("M0")),
                (60, "broker-a", MessageStored("%RETRY%g", 0, 0, 900, 100, "M0")),
                (70, "consumer-1", consume("M0", 1)),
                (80, "consumer-2", consume("M0")),
            )
        )
    )
    assert frame.columns == [
        "world", "group", "topic", "broker_name", "queue_id", "msg_id", "stored_us", "consumed_us", "latency_us",
    ]  # fmt: skip
    assert collected(frame) == [(WORLD, "g", "T", "broker-a", 0, "M0", 10, 50, 40)]


def test_deliveries_are_counted_by_their_cause(trace_of: TraceOf) -> None:
    frame = jobs.delivered_by_cause(
        trace_of(
            rows(
                (10, "broker-a", answered(0, 5, opaque=1)),
                (20, "broker-a", answered(5, 0, opaque=2)),
                (30, "broker-a", held(3)),
                (40, "broker-a", woken(3)),
                (40, "broker-a", answered(5, 2, opaque=3)),
                (50, "broker-a", answered(7, 1, opaque=4)),
            )
        )
    )
    assert frame.columns == ["cause", "pulls", "messages"]
    assert collected(frame) == [("arrived", 1, 2), ("first pull", 2, 6)]


def test_percentiles_are_exact_and_in_milliseconds(spark: SparkSession) -> None:
    latencies = spark.createDataFrame(
        [(q, n * 1_000) for q in (0, 1) for n in range(1, 101 + q)], "queue_id INT, latency_us LONG"
    )
    frame = jobs.percentiles(latencies, "queue_id")
    assert frame.columns == ["queue_id", "count", "p50_ms", "p90_ms", "p99_ms", "max_ms"]
    assert collected(frame)[0] == (0, 100, 50.5, 90.1, 99.01, 100.0)
    assert collected(frame)[1] == (1, 101, 51.0, 91.0, 100.0, 101.0)
    assert collected(jobs.percentiles(latencies)) == [(201, 51.0, 91.0, 100.0, 101.0)]


def test_percentiles_of_leading_digits_are_too_small_by_less_than_they_say(spark: SparkSession) -> None:
    latencies = spark.range(1, 200_001, 1, 3).select((F.col("id") * F.col("id") % 1_999_993).alias("latency_us"))
    (exact,) = collected(jobs.percentiles(latencies))
    for digits in (2, 4):
        (near,) = collected(jobs.percentiles(latencies, digits=digits))
        assert (near[0], near[-1]) == (exact[0], exact[-1]) == (200_000, exact[-1])
        assert near != exact
        assert all(0 <= (ours - ms) / ours < 10 ** (1 - digits) for ours, ms in zip(exact, near, strict=True))
    (again,) = collected(jobs.percentiles(latencies.repartition(5), digits=4))
    assert again == near


def test_percentiles_of_leading_digits_leave_small_and_negative_values_as_they_are(spark: SparkSession) -> None:
    for us in (0, 7, 9_999, -9_999):
        (row,) = collected(jobs.percentiles(spark.createDataFrame([(us,)], "latency_us LONG"), digits=4))
        assert row == (1, *[us / 1_000] * 4)


def test_a_hold_lasts_until_its_pull_is_looked_at_again(trace_of: TraceOf) -> None:
    frame = jobs.hold_times(
        trace_of(
            rows(
                (1_000, "broker-a", held(1)),
                (2_000, "broker-a", held(1, remote="c2")),
                (2_500, "broker-b", held(1)),
                (9_000, "broker-a", woken(1, remote="c2")),
                (16_000, "broker-a", woken(1, "timed out")),
            )
        )
    )
    assert frame.columns == [
        "world", "node", "group", "topic", "queue_id", "queue_offset", "remote", "opaque", "reason",
        "held_at_us", "woken_at_us", "hold_us",
    ]  # fmt: skip
    assert collected(frame) == [
        (WORLD, "broker-a", "g", "T", 0, 0, "c1", 1, "timed out", 1_000, 16_000, 15_000),
        (WORLD, "broker-a", "g", "T", 0, 0, "c2", 1, "arrived", 2_000, 9_000, 7_000),
    ]


def test_a_histogram_counts_holds_by_their_bins(spark: SparkSession) -> None:
    holds = spark.createDataFrame(
        [("arrived", 0), ("arrived", 999_999), ("arrived", 1_000_000), ("timed out", 15_000_000)],
        "reason STRING, hold_us LONG",
    )
    frame = jobs.histogram(holds, 1_000, "reason")
    assert frame.columns == ["reason", "from_ms", "to_ms", "holds"]
    assert collected(frame) == [
        ("arrived", 0, 1_000, 2),
        ("arrived", 1_000, 2_000, 1),
        ("timed out", 15_000, 16_000, 1),
    ]
    assert collected(jobs.histogram(holds, 20_000)) == [(0, 20_000, 4)]
