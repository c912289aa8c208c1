"""Planted faults: what is planted is sealed, the same for a seed, and found by the audit, which finds nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that Spark's own documentation uses

from mqlab.data_sets import CARD
from mqlab.data_sets.named_worlds import WorldSpec
from mqlab.data_sets.recipe import seal
from mqlab.errors import LearnerError
from mqlab.trace.recorded import check_whole, read_parquet
from mqlab.trace.recorder import ParquetRecorder
from mqlab_spark.__main__ import main
from mqlab_spark.auditing import Verdict, answers, verdicts
from mqlab_spark.planting import A_CLOCK, KINDS, NAME, plant
from mqlab_spark.schema import world_id

WORLDS = (
    WorldSpec("steady-load", 1, {"messages": 60}), WorldSpec("held-pulls", 2), WorldSpec("sql-filters", 3),
)  # fmt: skip


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("traces")
    for spec in WORLDS:
        lab = spec.play()
        with ParquetRecorder(directory / f"{spec.scenario}.parquet", spec.header(lab)) as recorder:
            for row in lab.history.rows():
                recorder(row)
    return directory


def files_of(directory: Path) -> dict[str, list[object]]:
    return {file.name: list(read_parquet(file)) for file in sorted(directory.glob("*.parquet"))}


def test_a_seed_always_plants_the_same_and_another_one_does_not(traces: Path, tmp_path: Path) -> None:
    cards = [plant(traces, tmp_path / name, seed=seed, each=1) for name, seed in (("a", 1), ("b", 1), ("c", 2))]
    assert cards[0] == cards[1]
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b") != files_of(tmp_path / "c")
    assert set(cards[0]["sealed"]) != set(cards[2]["sealed"])
    for name in files_of(traces):
        headers = [check_whole(directory / name)["metadata"] for directory in (traces, tmp_path / "a")]
        same = list(read_parquet(traces / name)) == list(read_parquet(tmp_path / "a" / name))
        assert (headers[0]["trace_hash"] == headers[1]["trace_hash"]) is same


def test_a_place_that_is_not_empty_and_traces_that_are_not_there_are_refused(traces: Path, tmp_path: Path) -> None:
    (tmp_path / "something").write_text("")
    with pytest.raises(LearnerError, match="there is something in"):
        plant(traces, tmp_path)
    with pytest.raises(LearnerError, match="there is no trace at"):
        plant(tmp_path / "none", tmp_path / "out")


def test_what_a_data_set_had_or_has_not_counted_is_none_of_the_others(spark: SparkSession, tmp_path: Path) -> None:
    world = "steady-load --seed 3"
    there = [("LOST", 0, "lost"), ("LOST", 0, "odd"), ("consumed", 1, "twice"), ("consumed", 0, "late")]
    audit = "status string, duplicates int, msg_id string"
    named = {"world": F.lit(world), "group": F.lit("G"), "proof": F.lit("")}
    tables = {
        "audit": spark.createDataFrame(there, audit).withColumns(named),
        "order_violations": spark.createDataFrame([("late",), ("planted",)], "msg_id string").withColumns(named),
    }
    number = F.lit(world_id(world))
    of_build = {name: table.withColumn("world", number) for name, table in tables.items()} | {
        "traces": spark.createDataFrame([(world,)], "name string").withColumn("world", number)
    }
    assert sorted(answers(of_build)) == sorted(answers(tables)) == [
        (3, "late", "G", "late"), (3, "late", "G", "planted"), (3, "lost", "G", "lost"), (3, "lost", "G", "odd"),
        (3, "twice", "G", "twice"),
    ]  # fmt: skip
    planted = seal(NAME, world, [("late", "G", "planted")])
    of_before = seal("twice", 3, [("lost", "G", "lost"), ("twice", "G", "twice")])
    card = {"name": NAME, "sealed_by_kind": {"late": planted}, "sealed": planted}
    for before, others in (
        ({}, 4),
        ({"name": "twice", "seals": ["lost", "twice"], "sealed": of_before}, 1),
        ({"name": "twice", "seals": ["lost", "twice", "late"], "sealed": of_before}, 2),
    ):
        (tmp_path / CARD).write_text(json.dumps({**card, "before": before}))
        assert verdicts(tables, tmp_path) == verdicts(of_build, tmp_path) == ([Verdict("late", 1, 0)], others)


@pytest.mark.slow
def test_all_that_is_planted_is_found_and_nothing_else(
    spark: SparkSession, traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "planted"
    assert main(["plant", str(traces), str(out), "--seed", "1", "--each", "1"]) == 0
    planted = json.loads((out / CARD).read_text())["planted"]
    assert planted.keys() == {A_CLOCK, *KINDS}
    assert all(planted.values()), planted
    capsys.readouterr()
    assert main(["audit", str(out)]) == 0
    printed = capsys.readouterr().out
    for kind, times in planted.items():
        assert f"{kind}: {times} found, 0 missing" in printed
    assert f"of what was planted: {sum(planted.values())} found, 0 missing; 0 others" in printed
