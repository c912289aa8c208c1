"""Exploration on Spark: the same outcomes as the command line's, row by row."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from mqlab.commands.cli import main
from mqlab.errors import LearnerError
from mqlab.explore import play_seeds
from mqlab_spark.exploring import outcomes, results

KILLED = "at 2s: crash broker-a; at 4s: cut producer-1 > broker-a"


def test_outcomes_are_those_of_the_command_line(spark: SparkSession) -> None:
    frame = outcomes(spark, "async-send", range(3, 7))
    assert list(results(frame)) == list(play_seeds("async-send", range(3, 7)))


def test_a_failure_has_its_rule_and_the_shortest_plan(spark: SparkSession) -> None:
    here = list(play_seeds("steady-load", [5], {"messages": 20}, tuple(KILLED.split("; "))))
    frame = outcomes(spark, "steady-load", [5], {"messages": 20}, KILLED).cache()
    assert list(results(frame)) == here
    (row,) = frame.collect()
    assert row["verdict"] == "failed"
    assert row["rule"] == here[0].outcome.breaches[0].rule
    assert row["plan"] == KILLED
    assert row["shortest_plan"] == "at 2s: crash broker-a"
    assert json.loads(row["excused"]) == here[0].outcome.excused
    assert json.loads(row["goals"]) == here[0].outcome.goals != {}
    assert row["cpu_us"] > 0


def test_the_command_prints_the_same_with_spark(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["explore", "async-send", "--seeds", "2", "--first-seed", "3", "--json"]
    printed = []
    for more in ([], ["--master", "local[1]"]):
        assert main([*arguments, *more]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


def test_what_cannot_be_is_refused_at_once(spark: SparkSession) -> None:
    with pytest.raises(LearnerError, match="no scenario"):
        outcomes(spark, "nope", [1])
    with pytest.raises(LearnerError, match="no parameter"):
        outcomes(spark, "async-send", [1], {"nope": 1})
    with pytest.raises(LearnerError):
        outcomes(spark, "async-send", [1], faults="at noon: crash broker-a")
