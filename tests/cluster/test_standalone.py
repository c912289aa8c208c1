"""The command lines under spark-submit, on a cluster whose workers have none of our code but the archive."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mqlab import scenarios
from mqlab.errors import LearnerError
from mqlab_spark.local_cluster import SPARK_HOME, LocalCluster
from mqlab_spark.place import Place
from mqlab_spark.tables import ALL

ROOT = Path(__file__).parents[2]


def submission(cluster: LocalCluster, archive: Path, *command: str) -> subprocess.Popen[str]:
    """A command line of mqlab_spark under spark-submit, begun, in a process group of its own.

    spark-submit puts all that Python writes, errors too, to its own output, and Java's log to its errors.
    """
    # Python must find the package in the archive, as on a machine where it was never installed.
    alone = {**cluster.environment, "PYTHONNOUSERSITE": "1", "PYTHONPATH": str(archive)}
    return subprocess.Popen(
        [
            str(SPARK_HOME / "bin" / "spark-submit"), "--master", cluster.master, "--py-files", str(archive),
            "--conf", "spark.executor.memory=700m", "--conf", "spark.driver.host=127.0.0.1", *command,
        ],
        env=alone, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def submit(cluster: LocalCluster, archive: Path, *command: str) -> list[str]:
    """Run a command line of mqlab_spark under spark-submit; the lines that it printed."""
    with submission(cluster, archive, *command) as job:
        printed, _ = job.communicate(timeout=300)
    assert job.returncode == 0, printed
    return printed.splitlines()


def test_a_build_on_a_cluster_that_is_killed_goes_on_where_it_was(
    cluster: LocalCluster, archive: Path, traces: Path, tmp_path: Path
) -> None:
    out = tmp_path / "tables"
    command = (str(ROOT / "spark" / "mqlab_spark" / "__main__.py"), "build", str(traces), str(out))
    with submission(cluster, archive, *command) as job:
        assert job.stdout is not None
        assert any(line.startswith("messages ") for line in job.stdout)
        with pytest.raises(LearnerError, match="somebody builds into"), Place(out).alone():
            pass
        # The driver and its JVM at once, as a power cut would end them; only the executors are told.
        os.killpg(job.pid, signal.SIGKILL)
    assert Place(out).entries() == {}, "nobody reads what is not whole"
    printed = [line for line in submit(cluster, archive, *command) if " rows " in line]
    was_there = {line.split()[0]: line.endswith("was there already") for line in printed}
    assert [was_there[name] for name in ("events", "worlds", "messages", "audit")] == [True, True, True, False]
    lab = scenarios.get("async-send").play(3)
    tables = Place(out).entries()
    assert set(tables) >= {"events", "traces", *(table.name for table in ALL)}
    assert tables["events"].rows == len(lab.history)
    assert tables["messages"].rows == len({r.msg_id for r in lab.history.find("SendAttempted")})
    named = {out / path for entry in tables.values() for path in entry.paths}
    assert set(out.glob("*/*/batch_key=*")) == named, "what was half-written is gone"


def test_worlds_played_by_workers_of_a_cluster_are_the_same_worlds(
    cluster: LocalCluster, archive: Path, tmp_path: Path
) -> None:
    script = tmp_path / "worlds.py"
    script.write_text(
        "import mqlab_spark\n"
        "from mqlab_spark import session, worlds\n"
        "spark = session()\n"
        "assert spark.sparkContext.master.startswith('spark://'), spark.sparkContext.master\n"
        "for row in worlds(spark, 'async-send', '0-3', table='worlds').collect():\n"
        "    print(row['seed'], row['trace_hash'])\n"
    )
    printed = dict(line.split() for line in submit(cluster, archive, str(script)))
    assert printed == {str(seed): scenarios.get("async-send").play(seed).trace_hash() for seed in range(4)}


def test_an_exploration_on_a_cluster_says_what_the_command_line_says(
    cluster: LocalCluster,
) -> None:
    command = [sys.executable, "-m", "mqlab", "explore", "async-send", "--seeds", "6", "--json"]
    here = {**cluster.environment, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "spark")))}
    printed = [
        subprocess.run([*command, *more], env=here, capture_output=True, text=True, check=True, timeout=300).stdout
        for more in ((), ("--master", cluster.master))
    ]
    assert printed[0] == printed[1]
    assert json.loads(printed[0])["seeds"] == 6
