"""A Spark standalone cluster on this machine: a master and two workers, each with one core, on loopback."""

from __future__ import annotations

import os
import queue
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from mqlab_spark.archive import write_archive
from mqlab_spark.java_home import java_home

SPARK = Path(pyspark.__file__).parent
PATIENCE_S = 90


class Daemon:
    """A process of Spark whose log is read until it says what was waited for."""

    def __init__(self, *command: str, env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [str(SPARK / "bin" / "spark-class"), *command],
            env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._lines.put(line)
        self._lines.put(None)

    def wait_for(self, words: str) -> None:
        """Read its log up to a line with these words."""
        seen: list[str] = []
        while (line := self._lines.get(timeout=PATIENCE_S)) is not None:
            seen.append(line)
            if re.search(words, line):
                return
        pytest.fail(f"a process of Spark ended before it said {words!r}:\n{''.join(seen[-20:])}")

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(timeout=PATIENCE_S)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the processes of the cluster are started with: the Python at hand, and none of our packages in its way."""
    home = tmp_path_factory.mktemp("spark")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("MQLAB_")},
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOG_DIR": str(home),
        "SPARK_WORKER_DIR": str(home),
        "SPARK_NO_DAEMONIZE": "1",
    }


@pytest.fixture(scope="session")
def workers(environment: dict[str, str]) -> Iterator[list[Daemon]]:
    """The two workers of the cluster; `workers.master` is its address."""
    port = free_port()
    master = Daemon(
        "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port",
        str(free_port()), env=environment,
    )  # fmt: skip
    started = [master]
    try:
        master.wait_for("New state: ALIVE")
        made = Workers(f"spark://127.0.0.1:{port}")
        for _ in range(2):
            worker = Daemon(
                "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "-c", "1", "-m", "1g",
                "--webui-port", str(free_port()), made.master, env=environment,
            )  # fmt: skip
            started.append(worker)
            made.append(worker)
        for worker in made:
            worker.wait_for("Successfully registered with master")
        yield made
    finally:
        for daemon in reversed(started):
            daemon.stop()


class Workers(list[Daemon]):
    """The workers, and the address of their master."""

    def __init__(self, master: str) -> None:
        super().__init__()
        self.master = master


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code as one archive."""
    path = tmp_path_factory.mktemp("archive") / "mqlab-spark.zip"
    write_archive(path)
    return path
