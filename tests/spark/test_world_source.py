"""Worlds that Spark's workers play: the same events as anywhere else."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from pyspark.sql import DataFrame, SparkSession

from mqlab import scenarios
from mqlab.data_sets.named_worlds import WorldSpec, seeds_of
from mqlab.errors import LearnerError
from mqlab.trace.catalogue import columns_of
from mqlab_spark import world_of, worlds, worlds_of

FEW = {"messages": 3}


def events_of(frame: DataFrame) -> list[tuple[object, ...]]:
    """The rows of a DataFrame of events as the history has them."""
    rows = frame.orderBy("slice", "i").collect()
    return [tuple(row[column] for column in columns_of(row["kind"])) for row in rows]


def test_a_world_played_by_spark_has_the_events_of_a_world_played_here(spark: SparkSession) -> None:
    frame = worlds(spark, "steady-load", "7", seconds=1, **FEW)
    lab = scenarios.get("steady-load").play(7, seconds=1, parameters=FEW)
    assert events_of(frame) == list(lab.history.rows())
    assert [row["world"] for row in frame.select("world").distinct().collect()] == [
        "steady-load --seed 7 -p messages=3 --seconds 1"
    ]


def test_the_table_of_worlds_has_their_trace_hashes_whatever_the_tasks(spark: SparkSession) -> None:
    source = spark.read.format("mqlab").options(
        scenario="steady-load", seeds="1-3", seconds="1", table="worlds", parameters=json.dumps(FEW)
    )
    first, second = (
        sorted(source.option("worldsPerTask", each).load().collect(), key=lambda row: row["world"]) for each in (1, 3)
    )
    assert first == second
    for row in first:
        lab = world_of(row["world"]).play()
        assert row["trace_hash"] == lab.trace_hash()
        assert (row["events"], row["slices"], row["now_us"]) == (
            len(lab.history), lab.world.slice_no, lab.world.now_us,
        )  # fmt: skip
        assert row["problem"] is None


def test_queries_on_one_frame_do_not_change_each_other(spark: SparkSession) -> None:
    frame = worlds(spark, "steady-load", "1", seconds=1, **FEW)
    stored, sent = (frame.where(f"kind = '{kind}'").select("kind") for kind in ("MessageStored", "SendSucceeded"))
    assert Counter(row["kind"] for row in stored.union(sent).collect()) == {"MessageStored": 3, "SendSucceeded": 3}
    assert stored.count() == 3
    assert frame.count() > 40


def test_only_the_kinds_that_are_asked_for_are_made_into_rows(spark: SparkSession) -> None:
    frame = worlds(spark, "steady-load", "1", seconds=1, kinds=("MessageStored", "SendSucceeded"), **FEW)
    rows = frame.collect()
    assert Counter(row["kind"] for row in rows) == {"MessageStored": 3, "SendSucceeded": 3}
    assert set(frame.columns) == {"world", *columns_of("MessageStored"), *columns_of("SendSucceeded")}
    assert {row["send_status"] for row in rows if row["kind"] == "SendSucceeded"} == {"SEND_OK"}


def test_columns_that_are_not_asked_for_are_not_made(spark: SparkSession) -> None:
    wanted = ("queue_offset", "world", "kind")
    few = worlds(spark, "steady-load", "1", seconds=1, columns=wanted, **FEW)
    whole = worlds(spark, "steady-load", "1", seconds=1, **FEW).select(*wanted)
    assert few.columns == list(wanted)
    assert few.where("kind = 'MessageStored'").count() == 3
    assert Counter(few.collect()) == Counter(whole.collect())
    source = spark.read.format("mqlab").options(scenario="steady-load", seconds="1", table="worlds")
    assert source.schema("seed string, events long").load().collect()[0].asDict().keys() == {"seed", "events"}
    with pytest.raises(LearnerError, match="the table of events has no column 'seed'"):
        worlds(spark, "steady-load", columns=("world", "seed"))
    with pytest.raises(Exception, match="the column ts_us is a bigint"):
        spark.read.format("mqlab").schema("ts_us string").option("scenario", "steady-load").load().collect()


def test_a_grid_of_parameters_becomes_worlds(spark: SparkSession) -> None:
    grid = spark.createDataFrame(
        [("steady-load", 1, 2, 1.0), ("steady-load", 2, None, 1.0)],
        "scenario string, seed long, messages long, seconds double",
    )
    table = {row["world"]: row["trace_hash"] for row in worlds_of(grid, table="worlds").collect()}
    assert set(table) == {"steady-load --seed 1 -p messages=2 --seconds 1", "steady-load --seed 2 --seconds 1"}
    for world, trace_hash in table.items():
        assert world_of(world).play().trace_hash() == trace_hash
    stored = worlds_of(grid).where("kind = 'MessageStored'").groupBy("world").count().collect()
    assert {row["world"].split()[4]: row["count"] for row in stored}["messages=2"] == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scenario": "steady-loud"}, "did you mean steady-load"),
        ({"scenario": "steady-load", "seeds": "9-1"}, "are no seeds"),
        ({"scenario": "steady-load", "seeds": "x"}, "are no seeds"),
        ({"scenario": "steady-load", "table": "rows"}, "there is no table"),
        ({"scenario": "steady-load", "kinds": ["MassageStored"]}, "MassageStored"),
        ({"scenario": "steady-load", "kinds": ["PullHeld"], "table": "worlds"}, "kinds are of events"),
        ({"scenario": "steady-load", "massages": 3}, "has no parameter 'massages'"),
        ({"scenario": "steady-load", "messages": "many"}, "is not a int"),
    ],
)
def test_what_cannot_be_is_refused_at_once(spark: SparkSession, options: dict[str, str], words: str) -> None:
    with pytest.raises(LearnerError) as caught:
        worlds(spark, **options)  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_an_unknown_option_of_the_format_is_refused(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="the format mqlab has no option 'sead'"):
        spark.read.format("mqlab").options(scenario="steady-load", sead="1").load()


def test_a_grid_without_seeds_is_refused(spark: SparkSession) -> None:
    with pytest.raises(LearnerError, match="the grid has no column 'seed'"):
        worlds_of(spark.createDataFrame([("steady-load",)], "scenario string"))


@pytest.mark.parametrize(
    ("scenario", "column", "value", "words"),
    [
        ("steady-load", "massages", 3, "has no parameter 'massages'"),
        ("steady-load", "messages", "many", "is not a int"),
        ("steady-loud", "messages", 3, "did you mean steady-load"),
    ],
)
def test_a_grid_that_cannot_be_is_refused_at_once(
    spark: SparkSession, scenario: str, column: str, value: object, words: str
) -> None:
    kind = "long" if isinstance(value, int) else "string"
    with pytest.raises(LearnerError, match=words):
        worlds_of(spark.createDataFrame([(scenario, 1, value)], f"scenario string, seed long, {column} {kind}"))


@pytest.mark.parametrize("name", ["", "steady-load --seed", "steady-load --speed 3", "steady-load 7"])
def test_a_text_that_names_no_world_is_refused(name: str) -> None:
    with pytest.raises(LearnerError):
        world_of(name)


def test_the_number_that_tables_have_for_a_world_is_no_name() -> None:
    with pytest.raises(LearnerError, match="join the column `name` of their table `worlds`"):
        world_of(4484689171177616)  # type: ignore[arg-type]


def test_a_name_says_everything() -> None:
    spec = WorldSpec("steady-load", 7, {"messages": 3}, 1.5)
    assert world_of(spec.name) == spec
    assert world_of("steady-load") == WorldSpec("steady-load", 0)
    assert seeds_of("3, 7,20-22") == [3, 7, 20, 21, 22]
