"""What became of requests and their replies: beside a truth told event by event."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqlab_spark.tables.gold.round_trips import ROUND_TRIPS
from mqlab_spark.tables.silver.replies import REPLIES
from mqlab_spark.tables.table import EVENTS
from tests.spark.truths import ACCIDENTS, Worlds, played, recorded, replies


@pytest.fixture(scope="module")
def asking() -> Worlds:
    """Late replies; askers, repliers and brokers that die; and a world that ends while requests are out."""
    return {
        **played("request-reply", (0,), settle_s=0),
        **played("request-reply", (10, 15, 18), *ACCIDENTS, settle_s=10),
        **played("request-reply", (3,), settle_s=0, every_ms=450, timeout_ms=20_000, slow_ms=15_000),
        **played("steady-load", (0,), settle_s=0),
    }


@pytest.fixture(scope="module")
def tables(spark: SparkSession, asking: Worlds, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DataFrame]:
    made = {EVENTS: recorded(spark, tmp_path_factory.mktemp("asking"), asking).cache()}
    made[REPLIES.name] = REPLIES.make(made).cache()
    return made


def test_every_request_ends_as_its_world_says(tables: dict[str, DataFrame], asking: Worlds) -> None:
    told = {}
    for row in tables["replies"].collect():
        ended_us = row.answered_us if row.answered_us is not None else row.given_up_us
        took_ms = None if ended_us is None else (ended_us - row.asked_us) // 1_000
        told[row.world, row.correlation_id] = (row.outcome, row.reply, row.replies, took_ms)
    truth = {(world, name): tuple(rest) for world, lab in asking.items() for name, *rest in replies(lab)}
    assert told == truth
    assert max(replies for _, _, replies, _ in truth.values()) > 1
    assert {(outcome, reply) for outcome, reply, *_ in truth.values()} >= {
        ("answered", "in time"), ("timed out", "late"), ("timed out", "none"), ("timed out", "not pushed"),
        ("failed", "none"), ("open", "none"),
    }  # fmt: skip


def test_round_trips_are_counted_with_their_times(tables: dict[str, DataFrame], asking: Worlds) -> None:
    rows = ROUND_TRIPS.make(tables).collect()
    for world, lab in asking.items():
        requests = list(replies(lab))
        here = {(row.outcome, row.reply): row for row in rows if row.world == world}
        assert {ends: row.requests for ends, row in here.items()} == Counter((each[1], each[2]) for each in requests)
        for ends, row in here.items():
            took = [took_ms for _, outcome, reply, _, took_ms in requests if (outcome, reply) == ends]
            assert (row.slowest_ms is None) == (None in took)
            assert row.slowest_ms is None or int(row.slowest_ms) == max(took)
            assert row.replied_again == sum(each[3] > 1 for each in requests if (each[1], each[2]) == ends)
            assert (row.latest_ms is not None) == (row.reply == "late")
