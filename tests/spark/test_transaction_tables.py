"""What became of half messages: beside a truth told event by event, and on rows of what no healthy world shows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab.trace.bus import Row
from mqlab.trace.catalogue import fields_of
from mqlab_spark.schema import WORLD
from mqlab_spark.tables.gold.check_backs import CHECK_BACKS
from mqlab_spark.tables.gold.transaction_outcomes import TRANSACTION_OUTCOMES
from mqlab_spark.tables.silver.transactions import TRANSACTIONS
from mqlab_spark.tables.silver.worlds import WORLDS
from mqlab_spark.tables.table import EVENTS
from tests.spark.conftest import TraceOf
from tests.spark.truths import MINUTE_US, Worlds, check_backs, last_us, played, recorded, transactions


@pytest.fixture(scope="module")
def banks() -> Worlds:
    """Banks whose brokers lose power, whose machines die, and one world that ends while transfers are open."""
    return {
        **played("bank-transfers", (0, 3, 7), "power_off"),
        **played("bank-transfers", (1,), "crash", "freeze", "partition"),
        **played("bank-transfers", (2,), settle_s=0, producers=1, every_ms=1_000, transfers=120),
        **played("half-message", (0,), settle_s=0),
        **played("steady-load", (0,), settle_s=0),
    }


@pytest.fixture(scope="module")
def tables(spark: SparkSession, banks: Worlds, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DataFrame]:
    made = {EVENTS: recorded(spark, tmp_path_factory.mktemp("banks"), banks).cache()}
    for table in (WORLDS, TRANSACTIONS):
        made[table.name] = table.make(made).cache()
    return made


@pytest.mark.slow
def test_every_half_message_ends_as_its_world_says(tables: dict[str, DataFrame], banks: Worlds) -> None:
    told = {
        (row.world, row.broker, row.msg_id): (
            row.outcome, row.hidden_us, row.asked, row.asked_nobody, row.commits,
            row.ended_us if row.ended_us is not None else row.put_aside_us or row.lost_us, row.visible_us,
        )
        for row in tables["transactions"].collect()
    }  # fmt: skip
    truth = {
        (world, *whose): (
            life.outcome, life.hidden_us, life.asked, life.asked_nobody, life.commits, life.gone_us, life.visible_us,
        )
        for world, lab in banks.items()
        for whose, life in transactions(lab).items()
    }  # fmt: skip
    assert told == truth
    assert Counter(outcome for outcome, *_ in truth.values()).keys() == {
        "committed", "rolled back", "asked about", "open", "lost",
    }  # fmt: skip


@pytest.mark.slow
def test_what_is_open_is_counted_minute_by_minute(tables: dict[str, DataFrame], banks: Worlds) -> None:
    told = {
        (row.world, row.broker, row.minute): (row.begun, row.asked, row.open, row.oldest_open_ms)
        for row in CHECK_BACKS.make(tables).collect()
    }
    truth = {}
    for world, lab in banks.items():
        for (broker, minute), (begun, asked, still_open, oldest_us) in check_backs(lab).items():
            until_us = min((minute + 1) * MINUTE_US, last_us(lab))
            age_ms = None if oldest_us is None else round((until_us - oldest_us) / 1_000, 3)
            truth[world, broker, minute] = (begun, asked, still_open, age_ms)
    assert told == truth
    assert any(age_ms is not None and age_ms > 10_000 for *_, age_ms in truth.values())


@pytest.mark.slow
def test_outcomes_are_counted_with_their_times(tables: dict[str, DataFrame], banks: Worlds) -> None:
    rows = TRANSACTION_OUTCOMES.make(tables).collect()
    for world, lab in banks.items():
        lives = list(transactions(lab).values())
        here = {row.outcome: row for row in rows if row.world == world}
        assert {name: row.transactions for name, row in here.items()} == Counter(life.outcome for life in lives)
        for name, row in here.items():
            took = [life.gone_us - life.hidden_us for life in lives if life.outcome == name and life.gone_us]
            assert row.slowest_ms == (round(max(took) / 1_000, 3) if took else None)
            assert row.asked == sum(life.asked for life in lives if life.outcome == name)
            assert row.committed_again == sum(life.commits > 1 for life in lives if life.outcome == name)
        assert not here or sum(row.share for row in here.values()) == pytest.approx(1, abs=1e-5)


DEFAULTS: dict[str, Any] = {
    "group": "bank", "topic": "T", "status": "PUT_OK", "stored": True, "from_check": False, "clean": False,
}  # fmt: skip


def row(number: int, ms: int, kind: str, **fields: Any) -> Row:
    """An event of broker-a about the half message k."""
    known = {**DEFAULTS, "unique_key": "k", **fields}
    texts = {"reason", "remote", "local_state"}
    values = [known.get(name, "" if name in texts else 0) for name in fields_of(kind)]
    return (number, 0, ms * 1_000, "broker-a", "task", -1, -1, kind, *values)


def test_ends_that_no_healthy_world_has(trace_of: TraceOf) -> None:
    half = "RMQ_SYS_TRANS_HALF_TOPIC"
    told = [
        # Refused: never a half message.
        (0, "HalfMessageHidden", {"unique_key": "refused", "status": "CREATE_MAPPED_FILE_FAILED"}),
        # Nobody was there to be asked, so it was put aside, though for another one that failed.
        *((0, "MessageStored", {"unique_key": key, "topic": half, "commit_log_offset": 100 * place})
          for place, key in enumerate(("aside", "not aside", "both", "torn", "twice", "twice"))),
        *((1, "HalfMessageHidden", {"unique_key": key})
          for key in ("aside", "not aside", "both", "torn", "twice", "twice")),
        (9, "TransactionChecked", {"unique_key": "aside", "remote": ""}),
        (10, "HalfMessageGivenUp", {"unique_key": "aside"}),
        (10, "HalfMessageGivenUp", {"unique_key": "not aside", "stored": False}),
        # Two members of the group did not agree, and the broker refused one more end.
        (11, "TransactionEnded", {"unique_key": "both", "local_state": "ROLLBACK_MESSAGE"}),
        (12, "TransactionEnded", {"unique_key": "both", "local_state": "COMMIT_MESSAGE", "from_check": True}),
        (13, "TransactionEnded", {"unique_key": "torn", "local_state": "COMMIT_MESSAGE", "code": 1}),
        (14, "TransactionEnded", {"unique_key": "torn", "local_state": "UNKNOW"}),
        # A message of the same key in another topic is not the one that was hidden.
        (15, "MessageStored", {"unique_key": "both", "topic": "%RETRY%g", "commit_log_offset": 2_000}),
        (16, "MessageStored", {"unique_key": "both", "topic": "T", "commit_log_offset": 2_100}),
        (20, "StoreRecovered", {"commit_log_max_offset": 300}),
    ]  # fmt: skip
    rows = [row(number, ms, kind, **fields) for number, (ms, kind, fields) in enumerate(told)]
    events = trace_of(rows).withColumn(WORLD, F.lit("w"))
    found = {each.msg_id: each for each in TRANSACTIONS.make({EVENTS: events}).collect()}
    assert {key: each.outcome for key, each in found.items()} == {
        "aside": "put aside", "not aside": "open", "both": "committed", "torn": "lost", "twice": "lost",
    }  # fmt: skip
    assert (found["aside"].asked, found["aside"].asked_nobody) == (1, 1)
    assert (found["both"].ended_us, found["both"].from_check, found["both"].visible_us) == (12_000, True, 16_000)
    assert found["torn"].lost_us == 20_000
    assert found["twice"].hidden == 2
