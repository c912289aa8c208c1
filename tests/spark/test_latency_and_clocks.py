"""The table `latency` where clocks disagree: in worlds of a few events written by hand, and in one that was played."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from benchmarks.spark_questions import compare, sql_of
from mqlab.data_sets.named_worlds import WorldSpec
from mqlab.trace.recorded import check_whole
from mqlab.trace.recorder import JsonLinesRecorder
from mqlab_spark import read_trace
from mqlab_spark.changing import World
from mqlab_spark.tables import ALL, EVENTS
from mqlab_spark.tables.gold.latency import LATENCY, stages
from mqlab_spark.traces import listed, trace_files
from tests.spark.stories import BROKER, READER, SECOND_US, SHOP, Story, record_stories

OTHER_READER, NAMESRV, SLAVE = "reader-2", "namesrv", "broker-a-slave"
AHEAD_US = 3 * SECOND_US
STEP_US = 1_000
"""Between two events of a story, and on each way of a request: the uncertainty of a clock."""


def with_round_trips(story: Story) -> None:
    """Nobody asks the machine that sends but the broker, and nobody the machine that reads."""
    story.ask(1, READER, BROKER)
    story.ask(2, SHOP, BROKER)
    story.ask(3, OTHER_READER, BROKER)


def one_message(story: Story) -> None:
    story.begin()
    story.send("k", 0)
    story.pull(0, 1)
    story.call("k", 0)


def clocks_agree(story: Story) -> None:
    with_round_trips(story)
    one_message(story)


def the_readers_is_behind(story: Story) -> None:
    story.clocks[READER] = -AHEAD_US
    clocks_agree(story)


def the_shops_is_behind(story: Story) -> None:
    story.clocks[SHOP] = -AHEAD_US
    clocks_agree(story)


def the_brokers_is_ahead(story: Story) -> None:
    story.clocks[BROKER] = AHEAD_US
    clocks_agree(story)


def two_ways_from_shop_to_reader(story: Story) -> None:
    """The ways by the name server are longer and uneven, so the broker is believed."""
    story.ask(4, SHOP, NAMESRV, there_us=90_000, back_us=10_000)
    story.ask(5, READER, NAMESRV, there_us=10_000, back_us=90_000)
    the_readers_is_behind(story)


def nobody_was_asked(story: Story) -> None:
    story.clocks[READER] = AHEAD_US
    one_message(story)


def begun_here_and_ended_there(story: Story) -> None:
    story.clocks[OTHER_READER] = -AHEAD_US
    with_round_trips(story)
    story.begin()
    story.send("k", 0)
    place = {"group": "G", "topic": "T", "broker_name": "a", "msg_id": "k"}
    story.tell(READER, "ConsumeStarted", **place, messages=1)
    story.now_us += 2 * AHEAD_US
    story.call("k", 0, node=OTHER_READER)


def given_by_a_slave(story: Story) -> None:
    story.clocks[SLAVE] = -AHEAD_US
    story.ask(6, SLAVE, BROKER)
    clocks_agree(story)
    story.tell(SLAVE, "BrokerStarted", broker_name="a", broker_id=1)
    story.send("l", 1)
    story.tell(
        SLAVE, "PullAnswered", group="G", topic="T", queue_offset=1, next_offset=2, messages=1, opaque=9
    )  # fmt: skip


STORIES: Mapping[str, Callable[[Story], None]] = {
    tell.__name__: tell
    for tell in (
        clocks_agree, the_readers_is_behind, the_shops_is_behind, the_brokers_is_ahead, two_ways_from_shop_to_reader,
        nobody_was_asked, begun_here_and_ended_there, given_by_a_slave,
    )
}  # fmt: skip


PLAYED, SHIFTED = "played.jsonl", "shifted.jsonl"

Tables = dict[str, DataFrame]


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """What `latency` is made from: of all stories, of a world, and of that with a consumer's clock 5 s ahead."""
    directory = tmp_path_factory.mktemp("stories")
    record_stories(directory, STORIES)
    lab = WorldSpec("steady-load", 1, {"messages": 60}).play()
    with JsonLinesRecorder(directory / PLAYED) as recorder:
        for row in lab.history.rows():
            recorder(row)
    there, found = listed(directory / PLAYED)
    (file,) = trace_files(there, {each: check_whole(there.at(each)) for each in found})
    shifted = World(file)
    shifted.shift("consumer-1", 5 * SECOND_US)
    shifted.write(directory / SHIFTED)
    made = {EVENTS: read_trace(spark, directory).cache()}
    for table in ALL:
        if table.name in ("messages", "deliveries", "requests", "clocks"):
            made[table.name] = table.make(made).localCheckpoint()
    return made


Told = tuple[str, int, int | None]


@pytest.fixture(scope="module")
def told(tables: Tables) -> Mapping[str, set[Told]]:
    """Story -> the stages of its messages: which, the latency, and its uncertainty where it was corrected."""
    rows = stages(tables).where(~F.col("world").isin(PLAYED, SHIFTED)).collect()
    found: dict[str, set[Told]] = {name: set() for name in STORIES}
    for row in rows:
        found[row.world.removesuffix(".jsonl")].add((row.stage, row.latency_us, row.uncertainty_us))
    return found


SEND: Told = ("send", 3 * STEP_US, None)
WAIT: Told = ("wait in the queue", 3 * STEP_US, None)
LISTEN: Told = ("listener to done", STEP_US, None)


def to_listener(uncertainty_us: int | None = None) -> Told:
    return ("stored to listener", 4 * STEP_US, uncertainty_us)


def whole(uncertainty_us: int | None = None) -> Told:
    return ("end to end", 5 * STEP_US, uncertainty_us)


ONE, TWO = STEP_US, 2 * STEP_US
"""The uncertainty of a machine and another that it asks, and of two that ask the same one."""

EXPECTED: Mapping[str, set[Told]] = {
    "clocks_agree": {SEND, WAIT, LISTEN, to_listener(), whole()},
    "the_readers_is_behind": {SEND, WAIT, LISTEN, to_listener(ONE), whole(TWO)},
    "the_shops_is_behind": {SEND, WAIT, LISTEN, to_listener(), whole(TWO)},
    "the_brokers_is_ahead": {SEND, WAIT, LISTEN, to_listener(ONE), whole()},
    "two_ways_from_shop_to_reader": {SEND, WAIT, LISTEN, to_listener(ONE), whole(TWO)},
    "nobody_was_asked": {
        SEND, WAIT, LISTEN, ("stored to listener", 4 * STEP_US + AHEAD_US, None),
        ("end to end", 5 * STEP_US + AHEAD_US, None),
    },
    "begun_here_and_ended_there": {
        SEND, ("stored to listener", 3 * STEP_US, None), ("end to end", 4 * STEP_US, None),
        ("listener to done", 2 * STEP_US + 2 * AHEAD_US, TWO),
    },
    "given_by_a_slave": {
        SEND, WAIT, LISTEN, to_listener(), whole(), ("wait in the queue", 3 * STEP_US, ONE),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", STORIES)
def test_a_latency_is_corrected_where_the_clocks_of_its_two_machines_disagree(
    told: Mapping[str, set[Told]], name: str
) -> None:
    assert told[name] == EXPECTED[name]


def of(tables: Tables, world: str) -> dict[tuple[str, str], Any]:
    alone = {name: table.where(F.col("world") == world) for name, table in tables.items()}
    return {(row.stage, row.cause): row for row in LATENCY.make(alone).collect()}


@pytest.mark.slow
def test_a_world_with_a_wrong_clock_has_the_latencies_that_it_has_with_a_right_one(tables: Tables) -> None:
    right, wrong = of(tables, PLAYED), of(tables, SHIFTED)
    assert right.keys() == wrong.keys() >= {("end to end", ""), ("wait in the queue", "arrived")}
    assert all((row.corrected, row.uncertain_ms) == (0, None) for row in right.values())
    for (stage, cause), row in wrong.items():
        same = right[stage, cause]
        assert row["count"] == same["count"]
        if stage not in ("stored to listener", "end to end"):
            assert row == same
            continue
        assert row.corrected == row["count"]
        assert row.uncertain_ms < 2
        for name in ("p50_ms", "p90_ms", "p99_ms", "max_ms"):
            assert row[name] == pytest.approx(same[name], rel=1e-3, abs=row.uncertain_ms)


@pytest.mark.slow
def test_another_engine_has_the_same_answer(tables: Tables, tmp_path: Path) -> None:
    database = duckdb.connect()
    for name in LATENCY.made_from:
        tables[name].write.mode("overwrite").parquet(str(tmp_path / name))
        database.execute(f"CREATE VIEW {name} AS FROM read_parquet('{tmp_path / name}/*.parquet')")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs.parquet"
    LATENCY.make(tables).write.parquet(str(ours))
    database.sql(f"COPY ({sql_of(LATENCY)}) TO '{theirs}' (FORMAT parquet)")
    rows, different = compare(database, LATENCY, f"{ours}/*.parquet", str(theirs))
    assert rows > 0
    assert different == 0
