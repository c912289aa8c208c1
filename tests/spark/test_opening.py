"""From a row back to its world: the same events, and the view stands at the one that is meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqlab.data_sets.named_worlds import WorldSpec, world_of
from mqlab.errors import LearnerError
from mqlab.lab import Lab
from mqlab.trace.recorder import ParquetRecorder
from mqlab_spark import build, open_at, read_trace, tables_at, world_id, worlds

SPEC = WorldSpec("steady-load", 7, {"messages": 3}, 2.0, ("freeze", "delay"), 1.0)


def record(lab: Lab, path: Path, header: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with ParquetRecorder(path, header) as recorder:
        for row in lab.history.rows():
            recorder(row)


@pytest.fixture(scope="module")
def lab() -> Lab:
    return SPEC.play()


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory, lab: Lab) -> Path:
    """Two traces of one name in two directories, of different worlds, and one whose header names no world."""
    directory = tmp_path_factory.mktemp("two nights+more")
    record(lab, directory / "a" / "x.parquet", SPEC.header(lab))
    other = WorldSpec("steady-load", 8, {"messages": 2}, 1.0)
    record(other.play(), directory / "b" / "x.parquet", other.header(other.play()))
    record(other.play(), directory / "c" / "x.parquet", {"note": "mine"})
    return directory


def test_files_of_one_name_are_worlds_of_their_own(spark: SparkSession, traces: Path, lab: Lab) -> None:
    counted = {row["world"]: row["count"] for row in read_trace(spark, traces).groupBy("world").count().collect()}
    assert set(counted) == {SPEC.name, "steady-load --seed 8 -p messages=2 --seconds 1", "c/x.parquet"}
    assert counted[SPEC.name] == len(lab.history)


def test_two_traces_of_one_world_are_told_apart_and_lead_back(spark: SparkSession, tmp_path: Path, lab: Lab) -> None:
    for name in ("a/x.parquet", "b/x.parquet"):
        record(lab, tmp_path / name, SPEC.header(lab))
    named = [row["world"] for row in read_trace(spark, tmp_path).select("world").distinct().collect()]
    assert sorted(named) == [f"{SPEC.name} # a/x.parquet", f"{SPEC.name} # b/x.parquet"]
    assert {world_of(name).name for name in named} == {SPEC.name}


def test_an_event_is_opened_where_it_is(spark: SparkSession, traces: Path, lab: Lab) -> None:
    """Of all events at one instant it is the very one."""
    places = {row.at: n for n, row in enumerate(lab.history)}
    events = read_trace(spark, traces / "a").where("kind IN ('MessageStored', 'NodeThawed')").collect()
    assert {row["kind"] for row in events} == {"MessageStored", "NodeThawed"}
    for row in events:
        view = open_at(row)
        assert view.session.lab.history.cursor == places[row["slice"], row["i"]] + 1
        assert view.session.cursor.event().row == lab.history.row(places[row["slice"], row["i"]])
        assert view.session.page.followed == (row["unique_key"] or "")
        view.close()


@pytest.mark.slow
def test_rows_of_all_kinds_of_tables_open(spark: SparkSession, traces: Path, tmp_path: Path, lab: Lab) -> None:
    tables = tables_at(spark, build(spark, traces / "a", tmp_path).where)
    told = tables["worlds"].first()
    assert told is not None
    assert (told["world"], told["name"], told["file"], told["trace_hash"]) == (
        world_id(SPEC.name), SPEC.name, "x.parquet", lab.trace_hash(),
    )  # fmt: skip
    message = tables["messages"].orderBy("sent_us").toPandas().iloc[0]
    assert open_at(message).session.cursor.event().kind == "SendAttempted"
    assert open_at(message, at="stored_us").session.cursor.event().kind == "MessageStored"
    assert open_at(message).session.page.followed == message["msg_id"]
    assert open_at(told).session.cursor.at_end
    assert open_at({"world": SPEC.name, "seq": 0}).session.lab.history.cursor == 1
    lag = tables["lag"].orderBy("second").first()
    assert lag is not None
    assert open_at(lag).session.cursor.event().ts_us <= (lag["second"] + 1) * 1_000_000


def test_a_world_that_spark_played_opens_too(spark: SparkSession) -> None:
    row = worlds(spark, "steady-load", "3", seconds=1, messages=2).where("kind = 'SendSucceeded'").first()
    assert row is not None
    assert open_at(row).session.cursor.event().kind == "SendSucceeded"


def test_a_row_with_number_and_name_of_its_world_opens(spark: SparkSession, tmp_path: Path) -> None:
    spec = SPEC._replace(seed=11)
    number = world_id(spec.name)
    assert open_at({"world": number, "name": spec.name, "seq": 4}).session.lab.history.cursor == 5
    with pytest.raises(LearnerError, match=f"the number {number}"):
        open_at({"world": number, "seq": 4})
    record(spec.play(), tmp_path / "a.parquet", spec.header(spec.play()))
    read_trace(spark, tmp_path)
    assert open_at({"world": float(number), "seq": 4}).session.lab.history.cursor == 5, "the trace was opened here"
    row = spark.sql(f"SELECT CAST(conv(left(sha2('{spec.name}', 256), 13), 16, 10) AS BIGINT) AS world").first()
    assert row is not None
    assert row["world"] == number


def test_a_world_that_comes_out_differently_is_refused(spark: SparkSession, tmp_path: Path, lab: Lab) -> None:
    spec = SPEC._replace(seed=9)
    record(lab, tmp_path / "odd.parquet", {**spec.header(lab)})
    row = read_trace(spark, tmp_path).first()
    with pytest.raises(LearnerError, match="does not come out as it was recorded: its trace hash is"):
        open_at(row)
    other = {"world": "steady-load --seed 9 -p messages=2", "kind": "PullHeld", "slice": 3, "i": 0, "ts_us": 1_000}
    with pytest.raises(LearnerError, match=r"does not come out as it was recorded: .* is there instead"):
        open_at(other)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"ts_us": 1}, "does not say of which world"),
        ({"world": SPEC.name}, "does not say when"),
        ({"world": "night/a.parquet", "ts_us": 1}, "nothing leads back to the world 'night/a.parquet'"),
        ({"world": "it's", "ts_us": 1}, "nothing leads back"),
        ({"world": 7, "ts_us": 1}, "nothing here tells the name of the world with the number 7"),
        ({"world": 7, "name": SPEC.name, "ts_us": 1}, "nothing here tells the name of the world with the number 7"),
        ({"world": SPEC.name, "ts_us": 10**9}, "ends at"),
        ({"world": SPEC.name, "seq": 10**6}, "and no event 1000000"),
        (7, "is no row"),
    ],
)
def test_a_row_that_leads_nowhere_says_why(row: Any, words: str) -> None:
    with pytest.raises(LearnerError, match=words):
        open_at(row)


def test_a_time_that_the_row_does_not_have_is_refused() -> None:
    with pytest.raises(LearnerError, match="has no time 'stored_us'"):
        open_at({"world": SPEC.name, "sent_us": 1}, at="stored_us")
