"""How far slaves are behind: beside a truth told event by event, with masters and slaves that die and lose power."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqlab_spark.tables.gold.replication import REPLICATION
from mqlab_spark.tables.silver.messages import MESSAGES
from mqlab_spark.tables.silver.replicas import REPLICAS
from mqlab_spark.tables.silver.worlds import WORLDS
from mqlab_spark.tables.table import EVENTS
from tests.spark.conftest import TraceOf
from tests.spark.truths import SECOND_US, Worlds, last_us, played, recorded, replication

MASTER, SLAVE = "broker-a", "slave-a"


@pytest.fixture(scope="module")
def pairs() -> Worlds:
    """A slave that hangs, a master that dies; drawn faults; masters that do not wait, one without a slave."""
    return {
        **played("sync-replication", (0,)),
        **played("sync-replication", (1, 2), "crash", "freeze", "cut", "power_off", slave_hangs_s=0, master_down_s=0),
        **played("sync-replication", (3, 7), "power_off", slave_hangs_s=0, master_down_s=0),
        **played("accident", (0,), what="power off"),
        **played("accident", (1,), what="network cut", size=9_000),
        **played("accident", (2,), what="disk lost"),
        **played("steady-load", (0,), settle_s=0),
    }


@pytest.fixture(scope="module")
def tables(spark: SparkSession, pairs: Worlds, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DataFrame]:
    made = {EVENTS: recorded(spark, tmp_path_factory.mktemp("pairs"), pairs).cache()}
    for table in (WORLDS, MESSAGES, REPLICAS):
        made[table.name] = table.make(made).cache()
    return made


@pytest.mark.slow
def test_each_second_is_what_the_events_say(tables: dict[str, DataFrame], pairs: Worlds) -> None:
    told = {
        (row.world, row.second): (
            row.written, row.copied, row.behind, row.behind_bytes, row.lag_ms, row.only_here, row.sync_ok,
            row.sync_timed_out,
        )
        for row in REPLICATION.make(tables).collect()
    }  # fmt: skip
    truth = {}
    for world, lab in pairs.items():
        for number, second in enumerate(replication(lab, MASTER, SLAVE)) if "steady" not in world else ():
            until_us = min((number + 1) * SECOND_US, last_us(lab))
            lag_ms = 0.0 if second.oldest_us is None else round((until_us - second.oldest_us) / 1_000, 3)
            truth[world, number] = (
                second.written, second.copied, second.behind, second.behind_bytes, lag_ms, second.only_here,
                second.sync_ok, second.sync_timed_out,
            )  # fmt: skip
    assert told == truth


@pytest.mark.slow
def test_the_worlds_have_what_is_compared(tables: dict[str, DataFrame], pairs: Worlds) -> None:
    seconds = {world: replication(lab, MASTER, SLAVE) for world, lab in pairs.items()}
    waits = seconds["sync-replication-0.parquet"]
    assert sum(second.sync_timed_out for second in waits) == 2
    # What an ASYNC_MASTER acknowledges in the 100 ms between two looks of its sender, no slave has.
    assert seconds["accident-2.parquet"][-1].only_here > 0
    torn = tables["replicas"].where("why = 'torn from the slave'").select("world").distinct().collect()
    assert [row.world for row in torn]
    gone = tables["replicas"].where("gone_us IS NOT NULL").select("world").distinct().collect()
    assert [row.world for row in gone]


@pytest.mark.slow
def test_a_record_is_copied_once_for_each_time_that_it_was_lacking(
    tables: dict[str, DataFrame], pairs: Worlds
) -> None:
    rows = tables["replicas"].where("world = 'sync-replication-0.parquet'").collect()
    stored = list(pairs["sync-replication-0.parquet"].history.find("MessageStored"))
    assert {(row.msg_id, row.stored_us, row.commit_log_offset) for row in rows} == {
        (record.unique_key, record.ts_us, record.commit_log_offset) for record in stored
    }
    assert len(rows) == len(stored)
    assert all(row.lacked_us == row.stored_us < row.copied_us for row in rows)


def test_a_record_is_there_when_its_last_piece_is_and_gone_when_the_slave_loses_power(trace_of: TraceOf) -> None:
    """Rows made by hand: a record in two pieces, one that the slave loses again, and one that it never gets."""
    rows: list[Any] = []

    def tell(ms: int, node: str, kind: str, *fields: Any) -> None:
        rows.append((len(rows), 0, ms * 1_000, node, "task", -1, -1, kind, *fields))

    def store(ms: int, key: str, begins: int, size: int) -> None:
        tell(ms, "m", "MessageStored", "T", 0, begins, begins, size, key)
        tell(ms, "shop", "SendSucceeded", "T", "m", 0, begins, key, "SEND_OK")

    tell(0, "m", "BrokerStarted", "m", 0, "10.0.0.1:10911")
    tell(0, "s", "BrokerStarted", "m", 1, "10.0.0.2:10911")
    tell(0, "other", "BrokerStarted", "other", 0, "10.0.0.3:10911")
    tell(0, "shop", "SendAttempted", "T", "m", 0, "split,torn,never", "SYNC", 3_000, 10)
    store(100, "split", 0, 6_000)
    tell(150, "other", "MessageStored", "T", 0, 0, 0, 100, "elsewhere")
    tell(200, "s", "ReplicaDataAppended", 0, 5_000)
    tell(300, "s", "ReplicaDataAppended", 5_000, 1_000)
    store(400, "torn", 6_000, 500)
    tell(500, "s", "ReplicaDataAppended", 6_000, 500)
    tell(1_500, "s", "StoreRecovered", False, 1, 1, 0, 6_000, 500, "")
    tell(2_600, "s", "ReplicaDataAppended", 6_000, 500)
    store(2_700, "never", 6_500, 500)
    tell(2_900, "m", "ReplicaPutAnswered", 7_000, 2, "FLUSH_SLAVE_TIMEOUT", 200)
    made = {EVENTS: trace_of(rows)}
    for table in (WORLDS, MESSAGES, REPLICAS):
        made[table.name] = table.make(made)
    replicas = made["replicas"].cache()
    made["replicas"] = replicas
    told = {(row.msg_id, row.why): (row.lacked_us // 1_000, row.copied_us and row.copied_us // 1_000)
            for row in replicas.collect()}  # fmt: skip
    assert told == {
        ("split", "written"): (100, 300), ("torn", "written"): (400, 500),
        ("torn", "torn from the slave"): (1_500, 2_600), ("never", "written"): (2_700, None),
    }  # fmt: skip
    seconds = REPLICATION.make(made).orderBy("second").collect()
    replicas.unpersist()
    assert [(row.written, row.copied, row.behind_bytes, row.only_here, row.lag_ms) for row in seconds] == [
        (2, 2, 0, 0, 0.0), (0, 0, 500, 1, 500.0), (1, 1, 500, 1, 200.0),
    ]  # fmt: skip
    assert (seconds[2].sync_timed_out, seconds[2].longest_wait_ms, seconds[0].longest_wait_ms) == (1, 200, None)
    assert [row.slowest_copy_ms for row in seconds] == [200.0, None, 1_100.0]


def test_what_its_master_loses_is_lacking_no_longer(trace_of: TraceOf) -> None:
    """Rows made by hand: a record that its master loses before a slave has it."""
    told: list[tuple[Any, ...]] = [
        (0, "m", "BrokerStarted", "m", 0, "10.0.0.1:10911"),
        (0, "s", "BrokerStarted", "m", 1, "10.0.0.2:10911"),
        (100, "m", "MessageStored", "T", 0, 0, 0, 500, "gone"),
        (1_200, "m", "StoreRecovered", False, 0, 0, 0, 0, 500, ""),
    ]
    rows: list[Any] = [
        (number, 0, ms * 1_000, node, "task", -1, -1, *rest) for number, (ms, node, *rest) in enumerate(told)
    ]
    made = {EVENTS: trace_of(rows)}
    for table in (WORLDS, MESSAGES, REPLICAS):
        made[table.name] = table.make(made)
    (lacked,) = made["replicas"].collect()
    assert (lacked.why, lacked.lacked_us, lacked.copied_us, lacked.gone_us) == ("written", 100_000, None, 1_200_000)
    seconds = REPLICATION.make(made).orderBy("second").collect()
    assert [(row.written, row.copied, row.behind, row.behind_bytes, row.lag_ms) for row in seconds] == [
        (1, 0, 1, 500, 900.0), (0, 0, 0, 0, 0.0),
    ]  # fmt: skip
