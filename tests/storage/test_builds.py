"""Tables on HDFS and on S3: a build that is killed five times there has the rows of one on this machine, and so has
one by three workers that share no disk.

It is a build of the tables that an audit needs, since there are a dozen builds.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import gettempdir

import pytest
from pyarrow import dataset

from mqlab import scenarios
from mqlab.trace.record import KIND
from mqlab.trace.recorded import read_parquet
from mqlab.trace.recorder import JsonLinesRecorder, ParquetRecorder
from mqlab_spark.archive import write_archive
from mqlab_spark.local_cluster import LocalCluster
from mqlab_spark.place import Place
from mqlab_spark.storage import folder
from tests.storage.servers import JARS, ROOT, jars

ENVIRONMENT = Path(sys.prefix)

KILLS = 5
PATIENCE_S = 600
SEED = 3
WORLDS = ("always-fails", "async-send", "maintenance", "proxy-transactions")

BUILD = """
import sys
from mqlab_spark import build, session
from mqlab_spark.auditing import NEEDED
build(session(), *sys.argv[1:], only=NEEDED)
"""

BUILD_BY_ALL = """
import json, sys
from mqlab_spark import bronze, build, session
from mqlab_spark.auditing import NEEDED
bronze.LEAST_GROUP_BYTES = 1
spark = session()
build(spark, *sys.argv[1:], only=NEEDED)
workers = spark.sparkContext._jsc.sc().statusStore().executorList(True)
done = {each.id(): each.completedTasks() for each in map(workers.apply, range(workers.size()))}
print(json.dumps({name: tasks for name, tasks in done.items() if name != "driver"}))
"""
"""The same with a task of bronze for each trace, however small; it prints how many tasks each worker has done."""

LOOK_ROUND = """
import json, os, sys
from mqlab_spark import session
def look(_):
    import mqlab, mqlab_spark
    code = [os.path.dirname(os.path.dirname(each.__file__)) for each in (mqlab, mqlab_spark)]
    yield os.stat("/tmp").st_dev, [path for path in paths if os.path.exists(path)], code
paths = sys.argv[1:]
rows = session().sparkContext.parallelize(range(3), 3).barrier().mapPartitions(look).collect()
print(json.dumps(rows))
"""
"""What each of three workers sees: which /tmp, which of some paths, and where the code lies that it runs."""

READ = """
import json, sys
from mqlab.errors import MqlabError
from mqlab_spark import read_trace, session
def told(path, **how):
    try:
        trace = read_trace(spark, sys.argv[1] + path, **how)
        return sorted(map(list, trace.groupBy("world", "kind").count().collect()))
    except MqlabError as problem:
        return f"{type(problem).__name__}: {str(problem).replace(sys.argv[1], '')}"
spark = session()
whole = ["", "/two", "/two/*/x.parquet", "/two/b y/x.parquet", "/lines", "/lines/a.jsonl", "/cut", "/none"]
print(json.dumps([told(path) for path in whole] + [told(path, whole=False) for path in ("/lines", "/cut")]))
"""
"""What is read at some paths below an address: how many events of each kind and world, or why none."""


def begun(program: str, *arguments: str, master: str = "local[2]", submit: str = "") -> subprocess.Popen[bytes]:
    """A program, begun, in a process group of its own; Spark has what it takes to reach S3."""
    reach_s3 = os.pathsep.join(map(str, jars("hadoop-aws", "bundle", "analyticsaccelerator")))
    classes = f"--driver-class-path {reach_s3} --conf spark.executor.extraClassPath={reach_s3}"
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "MQLAB_SPARK_MASTER": master, "PYSPARK_SUBMIT_ARGS": f"{classes} {submit} pyspark-shell"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def ended(job: subprocess.Popen[bytes]) -> str:
    """Let it come to its end; what it printed."""
    printed, errors = job.communicate(timeout=PATIENCE_S)
    assert job.returncode == 0, errors.decode()
    return printed.decode()


def building(traces: Path, out: str) -> subprocess.Popen[bytes]:
    """A build, begun."""
    return begun(BUILD, str(traces), out)


def build(traces: Path, out: str) -> float:
    """Build to the end; returns how many seconds it took."""
    began = time.monotonic()
    ended(building(traces, out))
    return time.monotonic() - began


def rows(out: str) -> dict[str, list[str]]:
    """All rows of all tables at a place, in an order of their own."""
    place = Place(out)
    found = {}
    for name, entry in place.entries().items():
        (path,) = entry.paths
        found[name] = sorted(_rows_at(place, path))
        assert len(found[name]) == entry.rows
    return found


def _rows_at(place: Place, path: str) -> Iterator[str]:
    """The rows of a directory, each with all columns that its file has; those of an event after its kind."""
    for part in dataset.dataset(f"{place.root}/{path}", filesystem=place.files, format="parquet").get_fragments():
        kind = next((name for name in part.path.split("/") if name.startswith("kind=")), "")
        yield from (f"{kind} {row}" for row in part.to_table().to_pylist())


@pytest.fixture(scope="module")
def local(traces: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, list[str]], float]:
    """The rows of a build on this machine, and how long it took."""
    out = str(tmp_path_factory.mktemp("local"))
    seconds = build(traces, out)
    return rows(out), seconds


def killed_and_ended(traces: Path, out: str, local: tuple[dict[str, list[str]], float]) -> dict[str, list[str]]:
    """Build, killed with its JVM at five random moments, as power cuts would do it, and then to the end; its rows."""
    tables, seconds = local
    moments = random.Random(out)
    for _ in range(KILLS):
        job = building(traces, out)
        try:
            job.wait(moments.uniform(0.2, 0.6) * seconds)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            job.communicate()
        assert Place(out).entries().keys() in (set(), tables.keys()), "nobody reads what is not whole"
    build(traces, out)
    return rows(out)


def test_a_build_on_hdfs_that_was_killed_five_times_has_the_rows_of_one_here(
    hdfs: str, traces: Path, local: tuple[dict[str, list[str]], float]
) -> None:
    assert killed_and_ended(traces, f"{hdfs}/tables", local) == local[0]


def test_a_build_on_s3_that_was_killed_five_times_has_the_rows_of_one_here(
    s3: Mapping[str, str], traces: Path, local: tuple[dict[str, list[str]], float]
) -> None:
    assert killed_and_ended(traces, "s3a://lake/tables", local) == local[0]


@pytest.fixture(scope="module")
def many(traces: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with traces of two worlds, with a world as JSON lines, and with lines that were cut."""
    place = tmp_path_factory.mktemp("many")
    (trace,) = traces.iterdir()
    for name, header in (("two/a/x.parquet", {}), ("two/b y/x.parquet", {"world": "w"}), ("lines/a.jsonl", {})):
        (place / name).parent.mkdir(parents=True)
        recorder = JsonLinesRecorder if name.endswith(".jsonl") else ParquetRecorder
        with recorder(place / name, header) as recording:
            for row in read_parquet(trace):
                recording(row)
    (place / "cut").mkdir()
    lines = (place / "lines" / "a.jsonl").read_text().splitlines(keepends=True)
    (place / "cut" / "a.jsonl").write_text("".join(lines[:-9]))
    return place


@pytest.mark.parametrize("store", ["hdfs", "s3"])
def test_traces_are_read_in_each_store_as_here(store: str, many: Path, request: pytest.FixtureRequest) -> None:
    found = request.getfixturevalue(store)
    place = folder(f"{found}/many" if store == "hdfs" else "s3a://lake/many")
    for file in folder(many).files():
        place.arrow.create_dir(place.at(file.path).rpartition("/")[0])
        with place.arrow.open_output_stream(place.at(file.path)) as stream:
            stream.write((many / file.path).read_bytes())
    here, there = (json.loads(ended(begun(READ, address))) for address in (str(many), place.address))
    assert [said[: said.index(":")] if isinstance(said, str) else len(said) > 9 for said in here] == [
        "LearnerError", True, True, True, True, True, "ProtocolError", "LearnerError", True, True,
    ]  # fmt: skip
    assert [str(said).replace("/cut/a.jsonl", "a.jsonl") for said in there] == [
        str(said).replace("/cut/a.jsonl", "a.jsonl") for said in here
    ]


def test_a_build_by_three_workers_without_a_shared_disk_has_the_rows_of_one_here(
    s3: Mapping[str, str], tmp_path: Path
) -> None:
    place = folder("s3a://lake/three")
    (tmp_path / "traces").mkdir()
    kinds = set()
    for number, scenario in enumerate(WORLDS):
        recorder, ending = (JsonLinesRecorder, "jsonl") if number % 2 else (ParquetRecorder, "parquet")
        trace = tmp_path / "traces" / f"{scenario}.{ending}"
        with recorder(trace, {"scenario": scenario, "seed": SEED}) as recording:
            for row in scenarios.get(scenario).play(SEED).history.rows():
                recording(row)
                kinds.add(row[KIND])
        place.swap(f"traces/{trace.name}", trace.read_bytes())
    write_archive(tmp_path / "mqlab-spark.zip")
    # Each worker has a /tmp of its own, writes nowhere else, and sees of this directory what is installed.
    hidden = dict.fromkeys(("/tmp", gettempdir(), str(ROOT)))
    alone = [
        "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
        *(word for path in hidden for word in ("--tmpfs", path)),
        *(word for path in (ENVIRONMENT, JARS) for word in ("--ro-bind", str(path), str(path))),
        "--unshare-pid", "--die-with-parent",
    ]  # fmt: skip
    settings = {
        # Of workers on one machine Spark thinks that each sees the others' disks.
        "spark.shuffle.readHostLocalDisk": "false",
        # The first task waits for all three.
        "spark.cores.max": "3",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{PATIENCE_S}s",
        "spark.executor.memory": "700m",
    }
    submit = " ".join(["--py-files", f"{tmp_path}/mqlab-spark.zip", *(f"--conf {k}={v}" for k, v in settings.items())])
    with LocalCluster(workers=3, within=alone) as cluster:
        told = {"master": cluster.master, "submit": submit}
        seen = json.loads(ended(begun(LOOK_ROUND, str(tmp_path), str(ROOT / "mqlab"), **told)))
        assert len({device for device, _, _ in seen}) == 3, "each has a disk of its own"
        assert [paths for _, paths, _ in seen] == [[], [], []], "and sees nothing of ours"
        assert all(where.endswith("mqlab-spark.zip") for _, _, code in seen for where in code)
        done = json.loads(ended(begun(BUILD_BY_ALL, place.spark("traces"), place.spark("tables"), **told)))
        assert len(done) == 3
        assert all(done.values()), "each worker has done some of it"
    build(tmp_path / "traces", str(tmp_path / "tables"))
    here = rows(str(tmp_path / "tables"))
    assert {row.partition(" ")[0] for row in here["events"]} == {f"kind={kind}" for kind in kinds}
    assert rows(place.spark("tables")) == here
