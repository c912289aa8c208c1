"""What became of the messages that Pop handed out: on a few rows, and on a whole world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab import scenarios
from mqlab.trace.bus import Row
from mqlab.trace.catalogue import fields_of
from mqlab_spark.schema import WORLD
from mqlab_spark.tables.gold.pop import POP_OUTCOMES
from mqlab_spark.tables.silver.pops import POPS
from mqlab_spark.tables.table import EVENTS

DEFAULTS: dict[str, Any] = {
    "group": "g", "topic": "T", "queue_id": 0, "invisible_ms": 1_000, "revive_qid": 3, "pop_time": 5,
}  # fmt: skip


def row(number: int, ms: int, kind: str, offset: int, **fields: Any) -> Row:
    """An event of broker-a about the message at this offset."""
    texts = {"unique_key", "remote", "retry_topic"}
    known = {**DEFAULTS, "queue_offset": offset, **fields}
    values = [known.get(name, "" if name in texts else 0) for name in fields_of(kind)]
    return (number, 0, ms * 1_000, "broker-a", "task", -1, -1, kind, *values)


def rows(*events: tuple[int, str, int, dict[str, Any]]) -> list[Row]:
    return [row(number, ms, kind, offset, **fields) for number, (ms, kind, offset, fields) in enumerate(events)]


@pytest.fixture
def pops_of(trace_of: Callable[[list[Row]], DataFrame]) -> Callable[[list[Row]], DataFrame]:
    return lambda events: POPS.make({EVENTS: trace_of(events).withColumn(WORLD, F.lit("w"))})


def test_how_deliveries_end(pops_of: Callable[[list[Row]], DataFrame]) -> None:
    offsets = range(6)
    told = pops_of(
        rows(
            *((0, "MessagePopped", offset, {}) for offset in offsets),
            (800, "InvisibleTimeChanged", 5, {"invisible_ms": 5_000}),
            (900, "AckReceived", 0, {}),
            (1_500, "AckReceived", 1, {}),
            (3_000, "MessageRevived", 2, {}),
            (3_000, "MessageRevived", 3, {}),
            (3_100, "AckReceived", 2, {}),
            (5_000, "AckReceived", 5, {}),
        )
    ).orderBy("queue_offset").collect()
    assert [each.outcome for each in told] == [
        "acked in time", "acked late", "acked too late", "revived", "still out", "acked in time",
    ]  # fmt: skip
    assert {each.popped_us for each in told} == {0}
    # The last one was given longer before its time was over.
    assert [(each.changes, each.invisible_ms) for each in told[4:]] == [(0, 1_000), (1, 1_000)]


def test_each_handing_out_is_a_delivery_of_its_own(pops_of: Callable[[list[Row]], DataFrame]) -> None:
    told = (
        pops_of(
            rows(
                (0, "MessagePopped", 1, {}),
                (50, "MessagePopped", 2, {}),
                (2_000, "MessagePopped", 1, {"revive_qid": 999}),
                (2_100, "AckReceived", 1, {}),
            )
        )
        .orderBy("popped_us")
        .collect()
    )
    assert [(each.queue_offset, each.outcome) for each in told] == [
        (1, "handed out again"), (2, "still out"), (1, "acked in time"),
    ]  # fmt: skip
    assert told[0].again_us == told[2].popped_us == 2_000_000
    assert [each.in_order for each in told] == [False, False, True]


def test_groups_topics_and_brokers_are_told_apart(pops_of: Callable[[list[Row]], DataFrame]) -> None:
    told = pops_of(
        rows(
            (0, "MessagePopped", 1, {}),
            (0, "MessagePopped", 1, {"group": "h"}),
            (0, "MessagePopped", 1, {"topic": "%RETRY%g_T"}),
            (10, "AckReceived", 1, {"group": "h"}),
            (10, "AckReceived", 1, {"group": "handed out before the trace began"}),
        )
    ).collect()
    assert sorted((each.group, each.topic, each.outcome) for each in told) == [
        ("g", "%RETRY%g_T", "still out"), ("g", "T", "still out"), ("h", "T", "acked in time"),
    ]  # fmt: skip


def test_outcomes_are_counted_with_their_times(pops_of: Callable[[list[Row]], DataFrame]) -> None:
    pops = pops_of(
        rows(
            *((0, "MessagePopped", offset, {}) for offset in range(4)),
            (100, "AckReceived", 0, {}),
            (300, "AckReceived", 1, {}),
            (3_000, "MessageRevived", 2, {}),
        )
    )
    told = {each.outcome: each for each in POP_OUTCOMES.make({"pops": pops}).collect()}
    acked, revived, out = told["acked in time"], told["revived"], told["still out"]
    assert (acked.deliveries, acked.share, acked.median_ms, acked.slowest_ms) == (2, 0.5, 200.0, 300.0)
    assert (revived.deliveries, revived.median_ms) == (1, 3_000.0)
    assert (out.deliveries, out.share, out.median_ms) == (1, 0.25, None)


def test_a_world_of_5x_clients_adds_up(
    spark: SparkSession, trace_of: Callable[[list[Row]], DataFrame]
) -> None:
    lab = scenarios.get("through-a-proxy").play(7)
    events = trace_of(list(lab.history.rows())).withColumn(WORLD, F.lit("w"))
    pops = POPS.make({EVENTS: events}).cache()
    count = {kind: len(list(lab.history.find(kind))) for kind in ("MessagePopped", "AckReceived", "MessageRevived")}
    assert pops.count() == count["MessagePopped"]
    assert pops.where("acked_us IS NOT NULL").count() == count["AckReceived"]
    assert pops.where("revived_us IS NOT NULL").count() == count["MessageRevived"]
    told = {
        (each.group, each.topic, each.outcome): each for each in POP_OUTCOMES.make({"pops": pops}).collect()
    }
    # Every fifth of the 60 is forgotten by the auditors, and acknowledged when it comes again.
    assert told["auditors", "Orders", "revived"].deliveries == 12
    assert told["auditors", "%RETRY%auditors_Orders", "acked in time"].deliveries == 12
    # A listener takes 70 s: its messages are in time all the same, since the proxy had them hidden for longer.
    slow = told["workers", "Orders", "acked in time"]
    assert slow.slowest_ms > 60_000
    assert slow.changes >= 2
    pops.unpersist()
