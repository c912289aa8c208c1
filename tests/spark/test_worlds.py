"""The jobs over the traces of real worlds, compared with what the events themselves say."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqlab import scenarios
from mqlab.trace.history import History
from mqlab.trace.recorder import ParquetRecorder
from mqlab_spark import jobs, read_trace

SEEDS = (7, 8)


def record(seed: int, path: Path) -> History:
    history = scenarios.get("held-pulls").play(seed).history
    with ParquetRecorder(path, {"scenario": "held-pulls", "seed": seed}) as recorder:
        for row in history.rows():
            recorder(row)
    return history


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The traces of one scenario with two seeds: five messages, three consumers whose pulls are mostly held in vain."""
    return tmp_path_factory.mktemp("traces")


@pytest.fixture(scope="module")
def worlds(directory: Path) -> dict[str, History]:
    """File name -> the history that is recorded there."""
    return {f"seed-{seed}.parquet": record(seed, directory / f"seed-{seed}.parquet") for seed in SEEDS}


@pytest.fixture(scope="module")
def trace(spark: SparkSession, directory: Path, worlds: dict[str, History]) -> DataFrame:
    """Both traces as one."""
    return read_trace(spark, directory).cache()


def test_holds_last_as_long_as_the_broker_says(trace: DataFrame, worlds: dict[str, History]) -> None:
    computed = sorted((row.world, row.woken_at_us, row.reason, row.hold_us) for row in jobs.hold_times(trace).collect())
    told = sorted(
        (world, record.ts_us, record.reason, record.held_us)
        for world, history in worlds.items()
        for record in history.find("PullWoken")
    )
    assert computed == told
    assert len(told) > 80


def test_a_hold_in_vain_ends_with_the_first_check_after_its_fifteen_seconds(trace: DataFrame) -> None:
    holds = jobs.hold_times(trace).where("reason = 'timed out'").collect()
    assert all(15_000_000 <= hold.hold_us <= 20_100_000 for hold in holds)
    assert all(hold.woken_at_us % 5_000_000 < 100_000 for hold in holds)


def test_every_message_is_sent_delivered_and_consumed_once(trace: DataFrame, worlds: dict[str, History]) -> None:
    sent = {(row.world, row.msg_id): row for row in jobs.send_latency(trace).collect()}
    delivered = {(row.world, row.unique_key): row for row in jobs.delivery_latency(trace).collect()}
    consumed = {(row.world, row.msg_id): row for row in jobs.consume_latency(trace).collect()}
    told = {(world, r.msg_id) for world, history in worlds.items() for r in history.find("SendSucceeded")}
    assert sent.keys() == delivered.keys() == consumed.keys() == told
    assert len(told) == 5 * len(SEEDS)
    for key, delivery in delivered.items():
        assert sent[key].sent_us < delivery.stored_us < sent[key].acknowledged_us
        assert 0 < delivery.latency_us < consumed[key].latency_us


def test_every_message_woke_a_held_pull(trace: DataFrame) -> None:
    (row,) = jobs.delivered_by_cause(trace).collect()
    assert tuple(row) == ("arrived", 5 * len(SEEDS), 5 * len(SEEDS))
