"""The audit, and all other tables, of worlds with transactions, copies, filters, replies and traces of messages."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from benchmarks.spark_questions import compare, open_in_duckdb, sql_of
from mqlab import Lab, LocalTransactionState, Message, TransactionListener
from mqlab.client import ConsumeFromWhere
from mqlab.data_sets import TWICE, hidden
from mqlab_spark import build, tables_at, world_id
from mqlab_spark.auditing import found
from mqlab_spark.jobs import delivery_latency
from mqlab_spark.place import Place
from mqlab_spark.tables import ALL, ANSWERS, EVENTS
from mqlab_spark.tables.table import Table
from tests.spark.conftest import TraceOf
from tests.spark.truths import ACCIDENTS, Worlds, played, record_all
from tests.worlds import send, shop, started_consumer, started_producer

pytestmark = pytest.mark.slow

NOTHING_TO_TELL = ("flow_control", "pop_outcomes")
"""Tables that have no rows of these worlds."""


def traced_shop() -> Lab:
    """What was sent and consumed is told to the topic of traces, which nobody reads."""
    lab = shop(seed=1)
    producer = started_producer(lab, "senders", enable_trace=True)
    started_consumer(lab, enable_trace=True)
    send(producer, *(b"%d" % number for number in range(10)))
    lab.run_for(seconds=20)
    return lab


def slave_that_serves() -> Lab:
    """The master is gone before a group has read anything: all that it gets, a slave gives."""
    lab = shop(seed=1, broker_role="SYNC_MASTER", in_sync_replicas=2, slave_read_enable=True)
    lab.broker(slave_of="broker-a")
    lab.run_for(seconds=66)
    send(started_producer(lab, "senders"), *(b"%d" % number for number in range(10)))
    lab.run_for(seconds=2)
    started_consumer(lab, consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    lab.crash("broker-a")
    lab.run_for(seconds=60)
    lab.restart("broker-a")
    lab.run_for(ms=1)
    return lab


class NeverKnows(TransactionListener):
    """Does not say how a transaction ends, however often it is asked."""

    def execute_local_transaction(self, message: Message, argument: Any) -> LocalTransactionState:
        return LocalTransactionState.UNKNOW

    def check_local_transaction(self, message: Message) -> LocalTransactionState:
        return LocalTransactionState.UNKNOW


def put_aside() -> Lab:
    """A broker asks once about a half message, and then no more."""
    lab = shop(seed=1, transaction_check_max=1, transaction_check_interval=10_000)
    producer = lab.transaction_producer("bank", NeverKnows(), topics=["T"])
    lab.run(producer.start())
    started_consumer(lab)
    lab.run(producer.send_message_in_transaction(Message("T", b"100")))
    lab.run_for(seconds=60)
    return lab


@pytest.fixture(scope="module")
def worlds() -> Worlds:
    return {
        **played("bank-transfers", (0, 3), "power_off"),
        **played("bank-transfers", (2,), settle_s=0, producers=1, every_ms=1_000, transfers=120),
        **played("sync-replication", (0,)),
        **played("sync-replication", (3,), "power_off", slave_hangs_s=0, master_down_s=0, in_sync_replicas=1),
        **played("sql-filters", (1,), settle_s=10, bit_maps=True),
        **played("request-reply", (18,), *ACCIDENTS),
        "traced.parquet": traced_shop(),
        "served.parquet": slave_that_serves(),
        "aside.parquet": put_aside(),
    }


@pytest.fixture(scope="module")
def place(spark: SparkSession, worlds: Worlds, tmp_path_factory: pytest.TempPathFactory) -> Place:
    traces = tmp_path_factory.mktemp("traces")
    record_all(traces, worlds)
    return build(spark, traces, tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="module")
def tables(spark: SparkSession, place: Place) -> dict[str, DataFrame]:
    return tables_at(spark, place.where)


@pytest.mark.parametrize(
    "answer", [each for each in ANSWERS if each.name not in NOTHING_TO_TELL], ids=lambda answer: answer.name
)
def test_duckdb_gives_the_same_answer(place: Place, answer: Table, tmp_path: Path) -> None:
    database, theirs = open_in_duckdb(Path(place.where)), str(tmp_path / "theirs.parquet")
    database.sql(f"COPY ({sql_of(answer)}) TO '{theirs}' (FORMAT parquet)")
    entry = place.entries()[answer.name]
    assert entry.rows, "a table without rows agrees with everything"
    assert compare(database, answer, f"{place.where}/{entry.paths[0]}/*.parquet", theirs) == (entry.rows, 0)


def test_what_was_lost_came_twice_or_late_is_what_the_brokers_have(
    tables: dict[str, DataFrame], worlds: Worlds
) -> None:
    told = {(row.world, row.what, row.group, row.msg_id) for row in found(tables).collect()}
    truth = {
        (world_id(world), *each) for world, lab in worlds.items() for each in hidden(lab) if "sql-filters" not in world
    }
    filtered = {world_id(world) for world in worlds if "sql-filters" in world}
    assert {each for each in told if each[0] not in filtered} == truth
    assert {what for _, what, *_ in truth} == {"lost", "twice", "late"}
    assert not any(what == "lost" for world, what, *_ in told if world in filtered)


def of_world(table: DataFrame, world: str) -> DataFrame:
    return table.where(F.col("world") == world_id(world))


def rows_of(tables: dict[str, DataFrame], world: str) -> list[Any]:
    return of_world(tables["audit"], world).collect()


def test_a_rolled_back_transfer_is_not_lost_and_one_without_an_end_waits(
    tables: dict[str, DataFrame], worlds: Worlds
) -> None:
    world = "bank-transfers-2.parquet"
    status = {row.msg_id: row.status for row in rows_of(tables, world)}
    outcomes = {row.msg_id: row.outcome for row in of_world(tables["transactions"], world).collect()}
    wanted = {"committed": "consumed", "rolled back": "rolled back", "open": "half", "asked about": "half"}
    assert status == {key: wanted[outcome] for key, outcome in outcomes.items()}
    assert Counter(status.values())["half"] == 5


def test_what_its_broker_asks_no_more_about_is_put_aside(tables: dict[str, DataFrame]) -> None:
    (row,) = rows_of(tables, "aside.parquet")
    (life,) = of_world(tables["transactions"], "aside.parquet").collect()
    assert (row.status, row.proof_us) == ("put aside", life.put_aside_us)
    assert (life.outcome, life.asked, life.said) == ("put aside", 1, "UNKNOW")


def test_a_transfer_that_is_credited_twice_was_committed_twice(tables: dict[str, DataFrame], worlds: Worlds) -> None:
    twice = {key for what, _, key in hidden(worlds["bank-transfers-0.parquet"]) if what == TWICE}
    rows = [row for row in rows_of(tables, "bank-transfers-0.parquet") if row.duplicates]
    assert twice == {row.msg_id for row in rows}
    assert {row.duplicate_reason for row in rows} == {"committed twice: the broker asked about it again"}


def test_what_each_group_of_a_filtered_topic_has_not_got_is_filtered(tables: dict[str, DataFrame]) -> None:
    counts = Counter((row.group, row.status) for row in rows_of(tables, "sql-filters-1.parquet"))
    assert counts["everything", "consumed"] == 80
    assert counts["paid-orders", "consumed"] == counts["paid-orders", "filtered"] == 40
    assert counts["large-in-berlin", "consumed"] + counts["large-in-berlin", "filtered"] == 80


def test_replies_and_traces_of_messages_are_in_no_audit(tables: dict[str, DataFrame]) -> None:
    topics = {"request-reply-18.parquet": "DefaultCluster_REPLY_TOPIC", "traced.parquet": "RMQ_SYS_TRACE_TOPIC"}
    for world, topic in topics.items():
        sent = of_world(tables["messages"], world).where(f"topic = '{topic}'")
        assert sent.count() > 0
        assert {row.topic for row in rows_of(tables, world)}.isdisjoint({topic})
    assert {row.status for row in rows_of(tables, "traced.parquet")} == {"consumed"}


def test_what_a_slave_gave_was_delivered_once_and_nothing_is_odd_about_it(
    tables: dict[str, DataFrame], worlds: Worlds
) -> None:
    (given_us,) = [record.ts_us for record in worlds["served.parquet"].history.find("PullAnswered", messages=10)]
    lives = of_world(tables["lives"], "served.parquet").collect()
    assert [life.calls for life in lives] == [1] * 10
    assert {life.delivered_us for life in lives} == {given_us}
    assert of_world(tables["anomalies"], "served.parquet").count() == 0
    waited = delivery_latency(of_world(tables["events"], "served.parquet"))
    assert {(row.node, row.delivered_us) for row in waited.collect()} == {("broker-a", given_us)}
    assert waited.count() == 10


def test_what_no_group_will_get_is_told_apart(trace_of: TraceOf) -> None:
    """Rows made by hand: half messages and records that a loss of power took away, with and without a slave."""
    rows: list[Any] = []

    def tell(node: str, kind: str, *fields: Any) -> None:
        rows.append((len(rows), 0, len(rows) * 1_000, node, "task", -1, -1, kind, *fields))

    def store(key: str, offset: int, topic: str = "T") -> None:
        tell("broker-a", "MessageStored", topic, 0, offset, offset * 100, 100, key)

    def send(key: str, offset: int, *, half: bool = False) -> None:
        tell("shop", "SendAttempted", "T", "a", 0, key, "SYNC", 3_000, 10)
        store(key, offset, "RMQ_SYS_TRANS_HALF_TOPIC" if half else "T")
        if half:
            tell("broker-a", "HalfMessageHidden", "T", 0, key, "bank", offset, offset * 100, "PUT_OK")
        tell("shop", "SendSucceeded", "T", "a", 0, offset, key, "SEND_OK")

    def end(key: str, offset: int, state: str) -> None:
        tell("broker-a", "TransactionEnded", "T", key, "bank", offset, state, False, 0)

    tell("broker-a", "BrokerStarted", "a", 0, "10.0.0.1:10911")
    tell("slave-a", "BrokerStarted", "a", 1, "10.0.0.2:10911")
    tell("broker-a", "SubscriptionChanged", "G", "T", "*", 1)
    for offset, key in enumerate(("open", "back", "aside", "again")):
        send(key, offset, half=True)
    end("back", 1, "ROLLBACK_MESSAGE")
    tell("broker-a", "HalfMessageGivenUp", "T", "aside", 2, 15, True)
    send("kept", 4)
    # What lies behind byte 500 is torn away: a half message, a commit, and two messages of which a slave had the first.
    send("torn half", 5, half=True)
    store("again", 6)
    end("again", 3, "COMMIT_MESSAGE")
    send("copied", 7)
    tell("slave-a", "ReplicaDataAppended", 700, 100)
    send("gone", 8)
    tell("broker-a", "StoreRecovered", False, 5, 5, 0, 500, 400, "")
    made: dict[str, Any] = {EVENTS: trace_of(rows).cache()}
    for table in ALL:
        if table.name in ("messages", "deliveries", "audit"):
            made[table.name] = table.make(made).cache()
            made[table.name].count()
    status = {row.msg_id: row.status for row in made["audit"].collect()}
    for frame in made.values():
        frame.unpersist()
    assert status == {
        "open": "half", "back": "rolled back", "aside": "put aside", "again": "half", "kept": "waiting",
        "torn half": "LOST", "copied": "on a slave", "gone": "LOST",
    }  # fmt: skip
