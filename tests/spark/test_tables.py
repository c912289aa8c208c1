"""The tables of the pipeline: what they say of a world with losses and duplicates, and how they are built."""

from __future__ import annotations

import importlib
import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from benchmarks.spark_questions import compare, open_in_duckdb, sql_of
from mqlab import ConsumeConcurrentlyStatus, Lab, scenarios
from mqlab.data_sets import LATE, Size, hidden, judge, make, read_recipe
from mqlab.errors import LearnerError
from mqlab.protocol import Message, MessageExt
from mqlab.protocol.record import decode_record
from mqlab.trace.recorder import JsonLinesRecorder, ParquetRecorder, Recorder
from mqlab_spark import build, dictionary, read_trace, tables_at, world_id, world_of, worlds
from mqlab_spark.__main__ import main
from mqlab_spark.auditing import audited
from mqlab_spark.failing import NOT_DONE, SET_ASIDE
from mqlab_spark.place import BUILDERS, Place
from mqlab_spark.session import SETTINGS
from mqlab_spark.tables import ALL, ANSWERS, EVENTS
from mqlab_spark.tables.table import TEXT, Column, Table
from tests.spark.conftest import TraceOf
from tests.worlds import shop, started_consumer, started_producer

MESSAGES = 20


def lossy_world() -> tuple[Lab, list[str]]:
    """A broker that loses power before it has flushed, and a consumer that dies before it has committed.

    Returns the world and the ids of the messages that a producer was told are stored.
    """
    lab = shop(seed=6)
    producer = started_producer(lab, "senders")
    sent = [lab.run(producer.send(Message("T", b"%d" % n))).msg_id for n in range(MESSAGES)]

    async def listen(messages: list[MessageExt], context: object) -> ConsumeConcurrentlyStatus:
        await lab.world.nodes["consumer-1"].sleep(50)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    started_consumer(lab, listen, consume_thread_min=1, consume_thread_max=1)
    lab.run_until(lambda: sum(1 for _ in lab.history.find("ConsumeFinished")) > MESSAGES / 2)
    lab.crash("consumer-1")
    lab.restart("consumer-1")
    lab.run_for(seconds=30)
    lab.crash("consumer-1")
    sent += [lab.run(producer.send(Message("T", b"lost"))).msg_id for _ in range(5)]
    lab.power_off("broker-a")
    lab.restart("broker-a")
    lab.restart("consumer-1")
    lab.run_for(seconds=30)
    return lab, sent


def record(recorder: Recorder, lab: Lab) -> None:
    with recorder:
        for row in lab.history.rows():
            recorder(row)


@pytest.fixture(scope="module")
def lossy() -> tuple[Lab, list[str]]:
    return lossy_world()


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory, lossy: tuple[Lab, list[str]]) -> Path:
    """The same world as Parquet and as JSON lines, once more with a line that is no event, and cut."""
    directory = tmp_path_factory.mktemp("traces")
    record(ParquetRecorder(directory / "a.parquet"), lossy[0])
    record(JsonLinesRecorder(directory / "b.jsonl"), lossy[0])
    lines = (directory / "b.jsonl").read_text("ascii").splitlines(keepends=True)
    (directory / "c.jsonl").write_text("".join([*lines[:3], "{not an event\n", *lines[4:]]), "ascii")
    (directory / "cut.jsonl").write_text("".join(lines[:9]), "ascii")
    return directory


@pytest.fixture(scope="module")
def place(spark: SparkSession, traces: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return build(spark, traces, tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="module")
def tables(spark: SparkSession, place: Place) -> dict[str, DataFrame]:
    return {name: frame.where(F.col("world") == world_id("a.parquet")) if "world" in frame.columns else frame
            for name, frame in tables_at(spark, place.where).items()}  # fmt: skip


# -- what they say ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_is_kept_in_memory_that_grows_with_the_worlds(spark: SparkSession, place: Place) -> None:
    """Where Spark itself would broadcast nothing, the tables do not ask for it, but for clocks that disagree."""
    there = tables_at(spark, place.where)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        plans = {
            table.name: [part._jdf.queryExecution().executedPlan().toString() for part in table.make_parts(there)]
            for table in ALL
        }
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", SETTINGS["spark.sql.autoBroadcastJoinThreshold"])
    assert [name for name, parts in plans.items() if any("Broadcast" in part for part in parts)] == ["latency"]


@pytest.mark.slow
def test_spark_takes_no_kind_of_event_for_smaller_than_its_rows_are(spark: SparkSession, tmp_path: Path) -> None:
    """A row of two numbers takes 24 bytes in memory: else a table of millions of rows would be broadcast."""
    (tmp_path / "traces").mkdir()
    lab = scenarios.get("steady-load").play(1, parameters={"messages": 3_000, "every_ms": 5})
    record(ParquetRecorder(tmp_path / "traces" / "steady.parquet"), lab)
    build(spark, tmp_path / "traces", tmp_path / "tables", only=["worlds"])
    sent = tables_at(spark, tmp_path / "tables")[EVENTS].where("kind = 'RequestSent'").select("world", "ts_us")
    assert sent._jdf.queryExecution().optimizedPlan().stats().sizeInBytes() > 24 * sent.count()


@pytest.mark.slow
def test_every_event_of_both_kinds_of_file_is_in_bronze(
    spark: SparkSession, place: Place, lossy: tuple[Lab, list[str]]
) -> None:
    counted = tables_at(spark, place.where)[EVENTS].groupBy("world", "kind").count().collect()
    told = Counter(record.kind for record in lossy[0].history.records())
    for world in ("a.parquet", "b.jsonl"):
        assert {row["kind"]: row["count"] for row in counted if row["world"] == world_id(world)} == told


@pytest.mark.slow
@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.name)
def test_another_engine_has_the_same_answer(place: Place, answer: Table, tmp_path: Path) -> None:
    database, theirs = open_in_duckdb(Path(place.where)), str(tmp_path / "theirs.parquet")
    database.sql(f"COPY ({sql_of(answer)}) TO '{theirs}' (FORMAT parquet)")
    entry = place.entries()[answer.name]
    assert compare(database, answer, f"{place.where}/{entry.paths[0]}/*.parquet", theirs) == (entry.rows, 0)


@pytest.mark.slow
def test_the_audit_finds_what_was_lost_and_what_came_twice(
    tables: dict[str, DataFrame], lossy: tuple[Lab, list[str]]
) -> None:
    lab, sent = lossy
    rows = {row["msg_id"]: row for row in tables["audit"].collect()}
    assert set(rows) == set(sent)
    gone = {msg_id for msg_id, row in rows.items() if row["status"] == "LOST"}
    assert gone == set(sent) - stored_now(lab)
    assert gone
    for msg_id in gone:
        assert rows[msg_id]["proof"] == "every copy was cut off the commit log"
        (recovered,) = [r.ts_us for r in lab.history.find("StoreRecovered") if r.cut_bytes or r.ts_us > 1_000_000]
        assert rows[msg_id]["proof_us"] == recovered
    assert {row["status"] for msg_id, row in rows.items() if msg_id not in gone} == {"consumed"}
    assert {row["msg_id"] for row in tables["order_violations"].collect()} == {
        key for what, _, key in hidden(lab) if what == LATE
    }
    calls = Counter(record.msg_id for record in lab.history.find("ConsumeStarted"))
    assert {msg_id: row["calls"] for msg_id, row in rows.items() if row["calls"]} == calls
    twice = {msg_id for msg_id, count in calls.items() if count > 1}
    assert {msg_id for msg_id, row in rows.items() if row["duplicates"]} == twice
    assert {rows[msg_id]["duplicate_reason"] for msg_id in twice} == {
        "the consumer began again at the committed offset"
    }


def stored_now(lab: Lab) -> set[str]:
    """The unique keys of all messages that the broker can still read."""
    queue = lab.queue("T", 0)
    return {decode_record(queue.record_bytes(offset)).msg_id for offset in range(queue.max_offset)}


@pytest.mark.slow
def test_messages_and_requests_agree_with_the_history(
    tables: dict[str, DataFrame], lossy: tuple[Lab, list[str]]
) -> None:
    lab, sent = lossy
    assert {row["msg_id"] for row in tables["messages"].where("acknowledged_us IS NOT NULL").collect()} == set(sent)
    answered = tables["requests"].groupBy("outcome").count().collect()
    total = sum(row["count"] for row in answered)
    assert total == sum(1 for _ in lab.history.find("RequestSent"))
    assert {row["outcome"] for row in answered} <= {"answered", "one-way", "failed", "timed out", "open"}
    holds = tables["holds"].count()
    assert holds == sum(1 for _ in lab.history.find("PullHeld"))


@pytest.mark.slow
def test_the_lag_ends_at_nothing_and_the_seconds_are_all_there(tables: dict[str, DataFrame]) -> None:
    rows = tables["lag"].where("topic = 'T' AND group = 'readers'").orderBy("second").collect()
    seconds = [row["second"] for row in rows]
    assert seconds == list(range(seconds[0], seconds[-1] + 1))
    assert rows[-1]["end_offset"] >= MESSAGES
    assert rows[-1]["consumed_offset"] == MESSAGES


@pytest.mark.slow
def test_a_life_goes_from_the_first_attempt_to_its_end(
    tables: dict[str, DataFrame], lossy: tuple[Lab, list[str]]
) -> None:
    lab, sent = lossy
    rows = {row["msg_id"]: row for row in tables["lives"].collect()}
    assert set(rows) == set(sent)
    dispatched = {r.queue_offset: r.ts_us for r in reversed(list(lab.history.find("MessageDispatched", topic="T")))}
    held = 0
    for row in rows.values():
        assert row["dispatched_us"] == dispatched.get(row["queue_offset"])
        stages = ("sent", "stored", "dispatched", "delivered", "listened", "consumed")
        times = [row[f"{stage}_us"] for stage in stages if row[f"{stage}_us"] is not None]
        assert times == sorted(times)
        assert (row["lost_us"] is not None) == (row["msg_id"] in set(sent) - stored_now(lab))
        held += row["held_us"] is not None
        assert row["held_us"] is None or row["held_us"] < row["delivered_us"]
    assert sum(row["calls"] for row in rows.values()) == sum(1 for _ in lab.history.find("ConsumeStarted"))
    assert held == 0, "all messages were there before the consumer asked"


@pytest.mark.slow
def test_from_end_to_end_is_from_the_first_attempt_to_the_first_call_of_a_listener(
    tables: dict[str, DataFrame], lossy: tuple[Lab, list[str]]
) -> None:
    first: dict[tuple[str, str], int] = {}
    for kind in ("SendAttempted", "ConsumeStarted"):
        for record in lossy[0].history.find(kind):
            first.setdefault((kind, record.msg_id), record.ts_us)
    heard = [msg_id for kind, msg_id in first if kind == "ConsumeStarted"]
    us = [first["ConsumeStarted", msg_id] - first["SendAttempted", msg_id] for msg_id in heard]
    (row,) = tables["latency"].where("stage = 'end to end'").collect()
    assert (row["topic"], row["group"], row["cause"]) == ("T", "readers", "")
    assert row["count"] == 2 * len(us), "both files are of this world"
    assert row["max_ms"] == max(us) / 1_000
    for percent in (50, 90, 99):
        exact = np.percentile(us * 2, percent) / 1_000
        assert exact * 0.999 - 0.001 <= row[f"p{percent}_ms"] <= exact + 0.001


@pytest.mark.slow
def test_every_move_of_a_queue_is_told(tables: dict[str, DataFrame], lossy: tuple[Lab, list[str]]) -> None:
    rows = tables["rebalances"].where("topic = 'T'").orderBy("taken_us").collect()
    taken = list(lossy[0].history.find("QueueAllocated", topic="T"))
    assert [(row["taken_us"], row["from_offset"]) for row in rows] == [(r.ts_us, r.queue_offset) for r in taken]
    crashes = [r.ts_us for r in lossy[0].history.find("NodeCrashed", target="consumer-1")]
    assert [row["left_us"] for row in rows] == [*crashes, None]
    assert [row["gap_us"] for row in rows] == [None, *(t.ts_us - c for t, c in zip(taken[1:], crashes, strict=True))]


@pytest.mark.slow
def test_the_anomalies_are_those_of_the_world_and_each_has_its_event(
    tables: dict[str, DataFrame], lossy: tuple[Lab, list[str]]
) -> None:
    lab, sent = lossy
    found: dict[str, list[Any]] = {}
    for row in tables["anomalies"].collect():
        found.setdefault(row["anomaly"], []).append(row)
    assert found.keys() == {"lost write", "redelivered"}
    assert {row["msg_id"] for row in found["lost write"]} == set(sent) - stored_now(lab)
    done = Counter(record.msg_id for record in lab.history.find("ConsumeFinished"))
    assert {row["msg_id"] for row in found["redelivered"]} == {msg_id for msg_id, times in done.items() if times > 1}
    times = {record.ts_us for record in lab.history}
    assert all(row["ts_us"] in times and row["before_us"] in times for rows in found.values() for row in rows)
    assert all(row["reason"] for rows in found.values() for row in rows)


def test_owners_and_flow_control_in_the_worlds_that_have_them(spark: SparkSession) -> None:
    events = worlds(spark, "slow-listener").cache()
    made: dict[str, Any] = {EVENTS: events}
    by_name = {table.name: table for table in ALL}
    episodes = by_name["flow_control"].make(made).collect()
    refusals = events.where("kind = 'FlowControlled'").count()
    assert sum(row["refusals"] for row in episodes) == refusals > 0
    assert all(row["most_cached"] > row["limit"] and row["began_us"] <= row["ended_us"] for row in episodes)


# -- how they are built -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_no_trace_or_no_event_is_set_aside_with_its_reason(place: Place) -> None:
    aside = {each["file"]: each["reason"] for each in place.read()["set_aside"]}
    assert set(aside) == {"c.jsonl", "cut.jsonl"}
    assert "line 4: this is not an event: '{not an event'" in aside["c.jsonl"]
    assert "not whole" in aside["cut.jsonl"]


@pytest.mark.slow
def test_the_command_says_what_was_taken_and_what_not_and_its_status_too(
    place: Place, traces: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], lossy: tuple[Lab, list[str]]
) -> None:
    out = shutil.copytree(place.where, tmp_path / "out")
    assert main(["build", str(traces), str(out)]) == SET_ASIDE
    told = capfd.readouterr().err
    assert f"taken: 2 traces, {2 * len(lossy[0].history):,} events; set aside: 2\n" in told
    assert "set aside: cut.jsonl: cut.jsonl is not whole" in told
    assert main(["build", str(traces), str(out), "--strict"]) == NOT_DONE
    assert "not every trace is whole and true: c.jsonl" in capfd.readouterr().err


@pytest.mark.slow
def test_a_second_build_changes_nothing(spark: SparkSession, place: Place, traces: Path) -> None:
    before = place.read()
    told: list[float] = []
    build(spark, traces, place.where, lambda name, rows, seconds: told.append(seconds))
    assert place.read() == before
    assert len(told) == len(ALL) + 2


@pytest.mark.slow
def test_a_build_that_was_killed_goes_on_and_who_reads_meanwhile_has_the_old_tables(
    spark: SparkSession, place: Place, traces: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(place.where, out)
    whole = Place(out).read()
    (batch,) = whole["tables"]["audit"]["batches"]
    half = {**whole, "tables": {name: whole["tables"][name] for name in whole["tables"] if name != "audit"}}
    old = {**whole, "reader": "older", "tables": {"worlds": whole["tables"]["worlds"]}}
    Place(out).write({**old, "building": half})
    killed = {"host": os.uname().nodename, "pid": 2**22 + 1}
    Place(out).folder.below(BUILDERS).swap("00000007", json.dumps(killed).encode())
    left = out / "gold" / "audit" / f"batch_key={batch}"
    assert left.is_dir()
    meanwhile: set[str] = set()
    build(spark, traces, out, lambda name, rows, seconds: meanwhile.update(Place(out).entries()))
    assert meanwhile == {"worlds"}
    again = Place(out).read()
    assert again.keys() == whole.keys()
    assert again["files"] == whole["files"]
    audit, audit_before = (each["tables"]["audit"]["batches"][batch] for each in (again, whole))
    assert (audit["rows"], audit["key"]) == (audit_before["rows"], audit_before["key"])
    assert audit["path"] != audit_before["path"]
    assert again["tables"]["messages"] == whole["tables"]["messages"]
    assert not left.exists()
    assert os.listdir(out / BUILDERS) == ["00000008"]


def test_two_builds_into_one_place_are_refused(spark: SparkSession, traces: Path, tmp_path: Path) -> None:
    with Place(tmp_path).alone(), pytest.raises(LearnerError, match="somebody builds into"):
        build(spark, traces, tmp_path)
    with Place(tmp_path).alone():
        pass


def test_tables_of_another_version_or_none_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match="there are no tables"):
        tables_at(spark, tmp_path)
    (tmp_path / "catalogue.json").write_text('{"version": 99}')
    with pytest.raises(LearnerError, match="has tables of version 99"):
        tables_at(spark, tmp_path)
    (tmp_path / "catalogue.json").write_text("[")
    with pytest.raises(LearnerError, match="no catalogue"):
        tables_at(spark, tmp_path)


def test_no_trace_at_all_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: SparkSession) -> None:
    assert main(["build", str(tmp_path / "none"), str(tmp_path / "out")]) == 2
    assert "there is no whole trace" in capsys.readouterr().err


def test_a_table_that_is_not_what_it_declares_is_refused(spark: SparkSession) -> None:
    odd = Table("odd", "gold", "?", {"a": Column(TEXT, "a text")}, (), lambda tables: spark.range(1))
    with pytest.raises(LearnerError, match="gives a as None"):
        odd.make({})


def test_every_table_and_column_is_explained() -> None:
    names = [table.name for table in ALL]
    assert len(set(names)) == len(names)
    for table in ALL:
        assert table.question.endswith("?")
        assert all(column.meaning for column in table.columns.values())
    assert len(ANSWERS) >= 7


def test_notebooks_from_before_find_the_tables_of_gold_where_they_were() -> None:
    before = importlib.import_module("mqlab_spark.tables.marts.flow_control").FLOW_CONTROL
    now = importlib.import_module("mqlab_spark.tables.gold.flow_control").FLOW_CONTROL
    assert (before.name, before.columns) == (now.name, now.columns)


def test_the_data_dictionary_is_that_of_the_tables() -> None:
    assert dictionary.PAGE.read_text("utf-8") == dictionary.page(), "run: python -m mqlab_spark.dictionary"


@pytest.mark.slow
def test_the_order_violations_are_those_that_were_planted_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    recipe = read_recipe(Path(__file__).parents[2] / "datasets" / "out-of-order.toml")
    card = make(recipe._replace(sizes={"one": Size(1, None)}, sealed=(LATE,)), "one", tmp_path)
    made: dict[str, Any] = {EVENTS: read_trace(spark, tmp_path).cache()}
    for table in ALL:
        if table.name in ("messages", "deliveries", "requests", "clocks", "order_violations"):
            made[table.name] = table.make(made).cache()
    rows = made["order_violations"].collect()
    answers = [(int(world_of(row["world"]).seed), LATE, row["group"], row["msg_id"]) for row in rows]
    assert len(answers) > 10
    assert judge(card, answers) == {"right": len(answers), "wrong": 0, "missing": 0}
    assert all(row["later_offset"] > row["queue_offset"] and row["later_us"] < row["consumed_us"] for row in rows)
    assert not any(row["in_order"] for row in rows)


@pytest.mark.slow
def test_each_kind_of_anomaly_is_found(trace_of: TraceOf) -> None:
    """Rows made by hand: what no healthy world shows."""
    rows: list[Any] = []

    def tell(node: str, kind: str, *fields: Any) -> None:
        rows.append((len(rows), 0, len(rows) * 1_000, node, "task", -1, -1, kind, *fields))

    def send(key: str, offset: int | None, *, acknowledged: bool = True) -> None:
        tell("shop", "SendAttempted", "T", "a", 0, key, "SYNC", 3_000, 10)
        if offset is not None:
            tell("broker-a", "MessageStored", "T", 0, offset, offset * 100, 100, key)
        if acknowledged:
            tell("shop", "SendSucceeded", "T", "a", 0, offset, key, "SEND_OK")

    def consume(key: str, offset: int) -> None:
        tell("reader", "ConsumeStarted", "G", "T", "a", 0, offset, key, 1, 0)
        tell("reader", "ConsumeFinished", "G", "T", "a", 0, offset, key, "CONSUME_SUCCESS", 1_000)

    tell("broker-a", "BrokerStarted", "a", 0, "10.0.0.1:10911")
    tell("broker-a", "SubscriptionChanged", "G", "T", "*", 1)
    tell("reader", "QueueAllocated", "client", "G", "T", "a", 0, 0)
    for key, offset in (("k0", 0), ("k1", 1), ("k2", 2), ("k4", 4), ("k3", 3)):
        send(key, offset)
    send("k5", 5, acknowledged=False)
    tell("broker-a", "MessageStored", "T", 0, 6, 600, 100, "k5")
    tell("shop", "SendFailed", "T", "k5", 2, 1, "no answer")
    tell("broker-a", "PullAnswered", "G", "T", 0, 0, 6, 6, 600, "FOUND", 0, 1, "reader")
    consume("k0", 0)
    consume("k3", 3)
    consume("k1", 1)
    consume("k5", 5)
    tell("broker-a", "MessageStored", "T", 0, 6, 600, 100, "k7")
    made = audited(trace_of(rows))
    found = {(row["anomaly"], row["msg_id"], row["before_msg_id"]) for row in made["anomalies"].collect()}
    assert found == {
        ("nonmonotonic send", "k3", "k4"),
        ("duplicate", "k5", "k5"),
        ("aborted read", "k5", None),
        ("skip", "k3", "k0"),
        ("skip", "k5", "k3"),
        ("nonmonotonic", "k1", "k3"),
        ("out of order", "k1", "k3"),
        ("inconsistent offsets", "k7", "k5"),
        ("unobserved", "k2", None),
        ("unobserved", "k4", None),
    }


@pytest.mark.slow
def test_the_audit_finds_what_was_planted_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    recipe = read_recipe(Path(__file__).parents[2] / "datasets" / "lost-orders.toml")
    card = make(recipe._replace(sizes={"two": Size(2, None)}), "two", tmp_path)
    made = audited(read_trace(spark, tmp_path))
    answers = []
    for row in made["audit"].collect():
        seed = int(world_of(row["world"]).seed)
        if row["status"] == "LOST":
            answers.append((seed, "lost", row["group"], row["msg_id"]))
        if row["duplicates"]:
            answers.append((seed, "twice", row["group"], row["msg_id"]))
    assert answers
    assert judge(card, answers) == {"right": len(answers), "wrong": 0, "missing": 0}
