"""Spark Connect: a client without Java, and a server on a cluster that has none of our code but what is shipped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mqlab import scenarios
from mqlab.explore import play_seeds
from mqlab.lab import Lab
from mqlab_spark.local_cluster import LocalCluster
from mqlab_spark.tables import ALL
from tests.golden.recorded import manifest
from tests.store.conftest import unpack

ROOT = Path(__file__).parents[2]

PROGRAM = """
import json, os, sys
from mqlab.errors import LearnerError
from mqlab_spark import build, read_store, read_trace, session, tables_at, worlds, worlds_of
from mqlab_spark.exploring import outcomes, results
from mqlab_spark.jobs import delivery_latency, percentiles
from mqlab_spark.progress import RemoteWatch
from mqlab_spark.stages import stages_of

address, traces, store, out = sys.argv[1:]
told = {}
spark = session(master=address)
assert session() is session(master=address)
try:
    session(master="local[1]")
except LearnerError as error:
    told["other master"] = str(error).splitlines()[0]
table = worlds(spark, "async-send", "0-3", table="worlds")
told["hashes"] = {row["seed"]: row["trace_hash"] for row in table.collect()}
told["kind"] = worlds(spark, "async-send", "3").where("kind = 'MessageStored'").count()
grid = spark.createDataFrame([("async-send", 3)], "scenario string, seed long")
told["grid"] = worlds_of(grid, table="worlds").first()["trace_hash"]
trace = read_trace(spark, traces)
told["events"] = trace.count()
told["delivered"] = percentiles(delivery_latency(trace)).first()["count"]
told["outcomes"] = [repr(result) for result in results(outcomes(spark, "async-send", range(3, 7)))]
told["store"] = read_store(spark, store).where("damage IS NULL").count()
place = build(spark, traces, out)
told["tables"] = {name: entry.rows for name, entry in place.entries().items()}
told["read again"] = tables_at(spark, out)["messages"].count()
try:
    worlds(spark, "nope")
except LearnerError as error:
    told["no scenario"] = str(error).splitlines()[0]
try:
    stages_of(spark, trace.count)
except LearnerError as error:
    told["stages"] = str(error).splitlines()[0]
seen = []
watch = RemoteWatch(spark, lambda done, known: seen.append((done, known)))
watch.start()
told["played"] = worlds(spark, "async-send", "0-7").count()
watch.stop()
told["tasks"] = max(known for _, known in seen)
told["java"] = "JAVA_HOME" in os.environ
spark.stop()
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(cluster: LocalCluster, traces: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a program says that does all of it in one session."""
    place = tmp_path_factory.mktemp("connect")
    unpack("plain", store := place / "store")
    with cluster.connect_server() as server:
        environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
        environment["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "spark")))
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, server.address, str(traces), str(store), str(place / "tables")],
            env=environment, capture_output=True, text=True, check=False, timeout=900,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4_000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def here() -> Lab:
    """The world of seed 3, played here."""
    return scenarios.get("async-send").play(3)


def test_worlds_and_grids_are_played_by_the_workers(told: dict[str, Any], here: Lab) -> None:
    assert told["hashes"] == {str(seed): scenarios.get("async-send").play(seed).trace_hash() for seed in range(4)}
    assert told["grid"] == here.trace_hash()
    assert told["kind"] == len(list(here.history.find("MessageStored")))


def test_traces_stores_and_jobs_are_read(told: dict[str, Any], here: Lab) -> None:
    assert told["events"] == len(here.history)
    assert 0 < told["delivered"] <= told["kind"]
    assert told["store"] >= len(manifest("plain")["messages"])


def test_an_exploration_says_what_the_command_line_says(told: dict[str, Any]) -> None:
    assert told["outcomes"] == [repr(result) for result in play_seeds("async-send", range(3, 7))]


def test_all_tables_are_built(told: dict[str, Any], here: Lab) -> None:
    assert set(told["tables"]) >= {"events", *(table.name for table in ALL)}
    assert told["tables"]["events"] == len(here.history)
    sent = {record.msg_id for record in here.history.find("SendAttempted")}
    assert told["tables"]["messages"] == told["read again"] == len(sent)


def test_what_cannot_be_is_refused_in_a_sentence(told: dict[str, Any]) -> None:
    assert "runs already, not on local[1]" in told["other master"]
    assert "no scenario" in told["no scenario"]
    assert "not told of its stages" in told["stages"]


def test_the_server_tells_of_its_tasks(told: dict[str, Any]) -> None:
    assert told["tasks"] >= 8


def test_the_client_needs_no_java(told: dict[str, Any]) -> None:
    assert told["java"] is False
