"""A worker that is killed in the middle of a job: what it had not finished is played again by the other one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from mqlab.explore import play_seeds
from mqlab_spark.local_cluster import LocalCluster

ROOT = Path(__file__).parents[2]
SEEDS = range(60)

PROGRAM = f"""
import sys
from mqlab_spark import session
from mqlab_spark.exploring import outcomes, results
spark = session(master=sys.argv[1])
for result in results(outcomes(spark, "async-send", {SEEDS!r})):
    print(repr(result), flush=True)
"""


def test_a_worker_killed_in_the_middle_of_a_job_changes_no_row(cluster: LocalCluster) -> None:
    here = {**cluster.environment, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "spark")))}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, cluster.master], env=here, stdout=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None
        told = [job.stdout.readline()]
        cluster.workers[0].kill()
        told += job.stdout.readlines()
    assert job.returncode == 0
    assert [line.rstrip("\n") for line in told] == [repr(result) for result in play_seeds("async-send", SEEDS)]
