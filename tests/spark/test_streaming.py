"""A live world is followed: the stream says what a batch says of the whole trace, also when it was killed meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import StringType, StructField, StructType

from mqlab import Lab, scenarios
from mqlab.errors import LearnerError, ProtocolError
from mqlab_spark.streaming import Following, follow, live_trace, lives, open_lives, recorded
from mqlab_spark.streaming.segments import END, segment_path
from mqlab_spark.streaming.state import ANSWER_US, OUTPUT, carry_on
from mqlab_spark.tables.silver.deliveries import DELIVERIES
from mqlab_spark.tables.silver.messages import MESSAGES
from mqlab_spark.tables.table import EVENTS
from mqlab_widgets.stream_charts import StreamCharts

SECONDS = 40
HANG = ("consumer-1", 4.0, 18.0)
"""Fourteen seconds, so that what the consumer did comes up to three segments late."""

PATIENCE_S, LOOK_S = 240.0, 0.02
"""How long to wait for a process at most, and how long for one look."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A world whose listener fails now and then, followed to its end; its messages come again after 10 s and 30 s."""
    directory = tmp_path_factory.mktemp("live") / "shop"
    lab = scenarios.get("retry-and-dead-letters").build(5, parameters={"messages": 20, "every_ms": 600})
    with live_trace(lab, directory, segment_ms=5_000, hangs=[HANG]):
        lab.run_for(seconds=SECONDS)
    return directory


@pytest.fixture
def stopping() -> Iterator[list[Following]]:
    """Streams that are stopped at the end, whatever happened."""
    streams: list[Following] = []
    yield streams
    for stream in streams:
        stream.stop()


def rows(frame: DataFrame) -> list[Row]:
    """All rows, each as often as it is there."""
    return sorted(frame.collect(), key=str)


def ended(stream: Following) -> list[Row]:
    """The lives that were put out, as a batch has them."""
    return rows(stream.lives().drop("outcome", "watermark_us"))


# -- the stream and the batch ------------------------------------------------------------------------------------------


def test_a_stream_puts_out_what_the_batch_has_and_keeps_what_is_open(
    spark: SparkSession, shop: Path, tmp_path: Path
) -> None:
    trace = recorded(spark, shop)
    with follow(spark, shop, tmp_path / "followed", late_s=15) as stream:
        stream.catch_up()
        assert ended(stream) == rows(lives(trace))
        assert rows(stream.open()) == rows(open_lives(trace))
        assert stream.ended
        numbers = stream.numbers
    assert stream.open().count() == numbers[-1].open > 0
    assert sum(n.events for n in numbers) == trace.count()
    assert sum(n.late for n in numbers) == 0
    assert [n.batch for n in numbers] == list(range(stream.segments))


def test_the_batch_has_what_the_tables_of_the_pipeline_have(spark: SparkSession, shop: Path) -> None:
    made: dict[str, DataFrame] = {EVENTS: recorded(spark, shop)}
    for table in (MESSAGES, DELIVERIES):
        made[table.name] = table.make(made)
    first = (
        made["deliveries"]
        .groupBy("world", "msg_id")
        .agg(F.min("first_us").alias("taken_us"), F.min("consumed_us").alias("consumed_us"))
    )
    told = made["messages"].join(first, ["world", "msg_id"]).where("consumed_us IS NOT NULL")
    latency = (F.col("consumed_us") - F.col("sent_us")).alias("latency_us")
    wanted = told.select("world", "msg_id", "topic", "sent_us", "stored_us", "taken_us", "consumed_us", latency)
    assert rows(lives(made[EVENTS])) == rows(wanted)


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_when_a_stream_dies_between_two_batches_or_in_one(
    spark: SparkSession, shop: Path, tmp_path: Path, stopping: list[Following]
) -> None:
    """What a kill leaves on the disk: offsets of a batch that is not committed, its rows written or half-written."""
    growing, into = tmp_path / "shop", tmp_path / "followed"
    copied = iter(sorted(shop.glob("segment-*.parquet")))
    growing.mkdir()
    shutil.copy2(shop / "_live.json", growing)

    def grow(count: int) -> None:
        for _, segment in zip(range(count), copied, strict=False):
            shutil.copy2(segment, growing)

    def go_on() -> Following:
        stopping.append(follow(spark, growing, into, late_s=15))
        return stopping[-1].catch_up()

    grow(5)
    go_on().stop()
    commits, log = into / "checkpoint" / "commits", into / "lives" / "_spark_metadata"
    _unwrite(commits / "4")
    grow(2)
    go_on().stop()
    _unwrite(commits / "6")
    _unwrite(log / "6")
    # A batch that was half-written leaves files that no log names.
    shutil.copy2(next(iter((into / "lives").glob("part-*.parquet"))), into / "lives" / "part-99999-half.parquet")
    grow(99)
    shutil.copy2(shop / END, growing)
    last = follow(spark, growing, into, late_s=15)
    stopping.append(last)
    live = StreamCharts(last).live()
    live._answer(None, {"do": "shown"}, None)
    last.catch_up()
    drawn = live.frame["Lives in the state 0"]
    assert drawn["data"]["y"] == [n.open for n in last.numbers][: len(drawn["data"]["y"])] != []
    live.close()
    assert last.watchers == []
    assert last.ended
    assert ended(last) == rows(lives(recorded(spark, shop)))
    assert rows(last.open()) == rows(open_lives(recorded(spark, shop)))


KILLED_IN = 3
"""The micro-batch in which the process is killed."""

FOLLOWER = """
import sys
from mqlab_spark import session
from mqlab_spark.streaming import follow
follow(session("killed", "local[1]", driver_memory="480m"), sys.argv[1], sys.argv[2], late_s=15).catch_up()
"""


@pytest.mark.slow
def test_a_process_that_is_killed_in_a_batch_leaves_what_another_one_goes_on_from(
    spark: SparkSession, shop: Path, tmp_path: Path, stopping: list[Following]
) -> None:
    into = tmp_path / "followed"
    notes = into / "checkpoint"
    with (tmp_path / "told").open("w+b") as told:
        driver = subprocess.Popen(
            [sys.executable, "-c", FOLLOWER, str(shop), str(into)], stderr=told, start_new_session=True
        )
        try:
            end_s = time.monotonic() + PATIENCE_S
            while not (notes / "offsets" / str(KILLED_IN)).exists():
                with suppress(subprocess.TimeoutExpired):
                    driver.wait(LOOK_S)
                    told.seek(0)
                    raise AssertionError(f"it ended by itself: {told.read().decode()}")
                assert time.monotonic() < end_s
        finally:
            # Python and Java: neither has a moment for anything.
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    done = {int(note.name) for note in (notes / "commits").glob("[0-9]*")}
    assert KILLED_IN - 1 in done
    assert len(done) < len(list(shop.glob("segment-*.parquet")))
    stopping.append(follow(spark, shop, into, late_s=15))
    stopping[-1].catch_up()
    assert min(n.batch for n in stopping[-1].numbers) == len(done)
    assert ended(stopping[-1]) == rows(lives(recorded(spark, shop)))
    assert rows(stopping[-1].open()) == rows(open_lives(recorded(spark, shop)))


@pytest.mark.slow
def test_what_comes_behind_the_watermark_is_dropped_and_counted(
    spark: SparkSession, shop: Path, tmp_path: Path
) -> None:
    with follow(spark, shop, tmp_path / "followed", late_s=1) as stream:
        stream.catch_up()
        late = sum(n.late for n in stream.numbers)
        found = ended(stream)
    whole = rows(lives(recorded(spark, shop)))
    assert late > 0
    assert 0 < len(found) < len(whole)
    assert {row.msg_id for row in found} < {row.msg_id for row in whole}
    assert stream.open().count() > open_lives(recorded(spark, shop)).count()


def _unwrite(note: Path) -> None:
    """Take a note of Spark's back, with its checksum: it was killed before it could write it."""
    note.unlink()
    note.with_name(f".{note.name}.crc").unlink()


# -- what is said when something is wrong -----------------------------------------------------------------------------


def test_the_stop_button_stops_the_query_and_one_that_was_stopped_says_so(
    spark: SparkSession, shop: Path, tmp_path: Path, stopping: list[Following]
) -> None:
    stream = follow(spark, shop, tmp_path / "followed")
    stopping.append(stream)
    with pytest.raises(LearnerError, match="being followed"):
        follow(spark, shop, tmp_path / "followed")

    def pressed() -> None:
        raise KeyboardInterrupt

    stream.watchers.append(pressed)
    with pytest.raises(KeyboardInterrupt):
        stream.catch_up()
    assert not stream.query.isActive
    stream.watchers.clear()
    with pytest.raises(LearnerError, match="was stopped"):
        stream.catch_up()
    with pytest.raises(LearnerError, match="begun with late_s=10"):
        follow(spark, shop, tmp_path / "followed", late_s=20)


def test_a_cut_segment_and_a_missing_one_are_named(
    spark: SparkSession, shop: Path, tmp_path: Path, stopping: list[Following]
) -> None:
    shutil.copytree(shop, tmp_path / "cut")
    whole = segment_path(tmp_path / "cut", 2)
    whole.write_bytes(whole.read_bytes()[:1_000])
    stopping.append(follow(spark, tmp_path / "cut", tmp_path / "followed"))
    with pytest.raises(ProtocolError, match="segment-000002"):
        stopping[-1].catch_up()
    whole.unlink()
    with pytest.raises(ProtocolError, match=r"segment-000002\.parquet is missing"):
        recorded(spark, tmp_path / "cut")


def test_a_place_that_is_no_live_trace_is_refused(spark: SparkSession, shop: Path, tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match="does not exist"):
        follow(spark, tmp_path / "nowhere", tmp_path / "followed")
    with pytest.raises(LearnerError, match="has no live trace"):
        follow(spark, tmp_path, tmp_path / "followed")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with pytest.raises(LearnerError, match="not empty"):
        follow(spark, shop, tmp_path / "full")


# -- what the world writes --------------------------------------------------------------------------------------------


def test_a_world_writes_each_event_once_and_what_hangs_comes_later(
    spark: SparkSession, shop: Path, tmp_path: Path
) -> None:
    lab = scenarios.get("retry-and-dead-letters").build(5, parameters={"messages": 20, "every_ms": 600})
    lab.run_for(seconds=SECONDS)
    told = recorded(spark, shop).select("slice", "i", "ts_us", "node", "kind", F.col("_metadata.file_name"))
    found = told.collect()
    assert sorted(row[:2] for row in found) == [row[:2] for row in lab.history.rows()]
    machine, from_s, to_s = HANG
    hung = [row for row in found if row.node == machine and from_s * 1e6 <= row.ts_us < to_s * 1e6]
    assert hung
    assert {row.file_name for row in hung} == {"segment-000004.parquet"}
    for row in set(found) - set(hung):
        assert row.file_name == f"segment-{row.ts_us // 5_000_000 + 1:06}.parquet"


def test_a_recording_that_an_error_ends_has_no_end_mark(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(seed=1)
    trace = live_trace(lab, tmp_path / "live", world="mine")
    lab.name_server()
    lab.broker()
    with pytest.raises(ZeroDivisionError), trace:
        raise ZeroDivisionError
    assert recorded(spark, tmp_path / "live", whole=False).count() == 0, "no stretch was over"
    trace.flush()
    with pytest.raises(ProtocolError, match="no end mark"):
        recorded(spark, tmp_path / "live")
    assert {row.world for row in recorded(spark, tmp_path / "live", whole=False).select("world").collect()} == {"mine"}
    with pytest.raises(LearnerError, match="not empty"):
        live_trace(lab, tmp_path / "live")
    with pytest.raises(LearnerError, match="no hang"):
        live_trace(lab, tmp_path / "other", hangs=[("consumer-9", 1, 2)])


# -- the state of one bucket ------------------------------------------------------------------------------------------


class Bucket:
    """One bucket of the state, which is given micro-batches as Spark does it."""

    def __init__(self, give_up_us: int = -1) -> None:
        self._give_up_us = give_up_us
        self._kept: Row | None = None

    def take(self, watermark_ms: int, *marks: tuple[str, str, int]) -> list[tuple[Any, ...]]:
        """The lives that are put out: (msg_id, outcome, consumed_us); marks are (msg_id, what, ts_us)."""
        state = GroupState(
            optionalValue=self._kept or Row(), batchProcessingTimeMs=0, eventTimeWatermarkMs=watermark_ms,
            timeoutConf=GroupStateTimeout.EventTimeTimeout, hasTimedOut=not marks, watermarkPresent=True,
            defined=self._kept is not None, updated=False, removed=False, timeoutTimestamp=-1,
            keyAsUnsafe=b"", valueSchema=StructType([StructField("lives", StringType())]),
        )  # fmt: skip
        batch = pd.DataFrame(
            [("w", msg_id, what, "T", ts_us) for msg_id, what, ts_us in marks],
            columns=["world", "msg_id", "what", "topic", "ts_us"],
        )
        (out,) = carry_on((0,), [batch] if marks else [], state, give_up_us=self._give_up_us)
        self._kept = Row(lives=state.get[0]) if state.exists else None
        assert list(out.columns) == [column.split()[0] for column in OUTPUT.split(", ")]
        return [(row.msg_id, row.outcome, row.consumed_us) for row in out.itertuples() if row.outcome != "state"]

    @property
    def empty(self) -> bool:
        return self._kept is None


def test_a_life_is_put_out_when_the_watermark_has_passed_its_end() -> None:
    bucket = Bucket()
    assert bucket.take(0, ("m", "consumed", 9_000), ("m", "sent", 1_000), ("m", "answered", 2_000)) == []
    assert bucket.take(8) == []
    assert bucket.take(8, ("m", "consumed", 8_500)) == [], "an earlier end came late"
    assert bucket.take(9) == [("m", "finished", 8_500)]
    assert bucket.empty


def test_a_second_copy_begins_no_second_life() -> None:
    bucket = Bucket()
    assert bucket.take(0, ("m", "sent", 1_000), ("m", "consumed", 2_000)) == []
    assert bucket.take(5) == [("m", "finished", 2_000)]
    assert bucket.take(5, ("m", "sent", 6_000), ("m", "consumed", 7_000), ("m", "answered", 7_500)) == []
    assert bucket.take(8) == []
    assert bucket.empty
    assert bucket.take(8, ("m", "consumed", 9_000)) == [], "its queue went to another consumer"
    assert bucket.take(10) == []
    assert bucket.empty


def test_who_never_gets_an_answer_is_remembered_for_a_minute() -> None:
    bucket = Bucket()
    bucket.take(0, ("m", "sent", 1_000), ("m", "consumed", 2_000))
    assert bucket.take(3) == [("m", "finished", 2_000)]
    assert not bucket.empty
    bucket.take(ANSWER_US // 1_000 + 2)
    assert bucket.empty


def test_a_message_that_nobody_consumes_is_given_up_once() -> None:
    bucket = Bucket(give_up_us=5_000)
    assert bucket.take(0, ("lost", "sent", 1_000), ("lost", "answered", 1_500)) == []
    assert bucket.take(5) == []
    assert [row[:2] for row in bucket.take(6)] == [("lost", "given up")]
    assert bucket.take(6, ("lost", "consumed", 8_000)) == []
    assert bucket.take(9) == []
    assert bucket.empty
