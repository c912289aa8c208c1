"""The command lines under spark-submit, on a cluster whose workers have none of our code but the archive."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from mqlab import scenarios
from mqlab_spark.local_cluster import SPARK_HOME, LocalCluster

ROOT = Path(__file__).parents[2]


def submit(cluster: LocalCluster, archive: Path, *command: str) -> str:
    """Run a command line of mqlab_spark under spark-submit; what it printed."""
    # Python must find the package in the archive, as on a machine where it was never installed.
    alone = {**cluster.environment, "PYTHONNOUSERSITE": "1", "PYTHONPATH": str(archive)}
    done = subprocess.run(
        [
            str(SPARK_HOME / "bin" / "spark-submit"), "--master", cluster.master, "--py-files", str(archive),
            "--conf", "spark.executor.memory=700m", "--conf", "spark.driver.host=127.0.0.1", *command,
        ],
        env=alone, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4_000:]
    return done.stdout


def test_tables_built_on_a_cluster(cluster: LocalCluster, archive: Path, traces: Path, tmp_path: Path) -> None:
    lab = scenarios.get("async-send").play(3)
    main = ROOT / "spark" / "mqlab_spark" / "__main__.py"
    submit(cluster, archive, str(main), "build", str(traces), str(tmp_path / "tables"))
    catalogue = json.loads((tmp_path / "tables" / "catalogue.json").read_text())
    assert catalogue["tables"]["events"]["rows"] == len(lab.history)
    assert catalogue["tables"]["messages"]["rows"] == len({r.msg_id for r in lab.history.find("SendAttempted")})


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
    printed = dict(line.split() for line in submit(cluster, archive, str(script)).splitlines())
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
