"""Data sets that a process of its own makes: their recipe, their first world, the whole, and the judge."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab.data_sets import hidden, world
from mqlab.errors import LearnerError
from mqlab_spark import of_kind, read_trace
from mqlab_spark.background import GrowingDataSet, begin, recipe, size_of

FAULTS = {"faults": ["freeze"], "settle_seconds": 20, "sealed": True}


@pytest.fixture(scope="module")
def days() -> Iterator[GrowingDataSet]:
    text = recipe("twice", "push-clustering", worlds=3, first_seed=23, parameters={"messages": 20}, **FAULTS)  # type: ignore[arg-type]
    data = begin(text)
    yield data
    data.end()


def test_the_first_world_and_the_whole_are_those_of_the_recipe(days: GrowingDataSet, spark: SparkSession) -> None:
    first = read_trace(spark, days.first())
    names = [world(days.recipe, seed).name for seed in (23, 24, 25)]
    assert [row.world for row in first.select("world").distinct().collect()] == names[:1]
    whole = read_trace(spark, days.whole())
    assert sorted(row.world for row in whole.select("world").distinct().collect()) == names
    assert repr(days) == "twice: 3 of 3 worlds are there"


def test_answers_are_judged_by_the_sealed_list(days: GrowingDataSet, spark: SparkSession) -> None:
    done = of_kind(read_trace(spark, days.whole()), "ConsumeFinished").where("status = 'CONSUME_SUCCESS'")
    times = done.groupBy("world", "group", "msg_id").count().withColumn("what", F.lit("twice"))
    kinds = [what for seed in days.seeds for what, _, _ in hidden(world(days.recipe, seed).play())]
    planted = sum(what in days.recipe.sealed for what in kinds)
    assert planted > 0
    result = days.judge(times.where("count > 1"))
    assert result["right"] + result["missing"] == planted
    assert result["wrong"] == 0
    assert days.judge(times)["wrong"] > 0
    with pytest.raises(LearnerError, match="no column 'what'"):
        days.judge(times.drop("what"))


def test_what_goes_wrong_in_the_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    data = begin(recipe("broken", "push-clustering", worlds=1, first_seed=1, faults=["no-such-fault"]))
    with pytest.raises(LearnerError, match="no-such-fault"):
        data.whole()
    data.end()


def test_the_size_is_said_by_the_lab_or_by_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MQLAB_LAB_DATA", raising=False)
    assert size_of("", small=1, million=2) == 2
    assert size_of("small", small=1, million=2) == 1
    monkeypatch.setenv("MQLAB_LAB_DATA", "small")
    assert size_of("", small=1, million=2) == 1
    assert size_of("million", small=1, million=2) == 2
    with pytest.raises(LearnerError, match="there is no size 'big'"):
        size_of("big", small=1, million=2)
