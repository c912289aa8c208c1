"""A Spark cluster on this machine: a master, workers with one core each, and a server of Spark Connect, on loopback.

    with LocalCluster(workers=2) as cluster:
        spark = session(master=cluster.master)
        ...

It is what a real one is, processes and all, only that they share one machine: so it shows what differs from `local[2]`
(code that must be shipped, files that every worker must see, executors that die) and not what a cluster is for.
"""

from __future__ import annotations

import os
import queue
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

import pyspark

from mqlab.errors import LearnerError
from mqlab_spark.java_home import java_home
from mqlab_spark.session import SMALL_JVM

SPARK_HOME = Path(pyspark.__file__).parent
PATIENCE_S = 180
MEMORY = "1g"
OUTSIDE = ("MQLAB_", "SPARK_", "PYSPARK_")
"""What is set outside is for another Spark."""

MEMORY_NEEDED_MIB = 3_000
"""About what a master, two workers and their two executors with Python take at most, beside the driver."""


class Daemon:
    """A process of Spark whose log is read until it says what was waited for."""

    def __init__(self, *command: str, env: dict[str, str], within: Sequence[str] = ()) -> None:
        self.process = subprocess.Popen(
            [*within, str(SPARK_HOME / "bin" / command[0]), *command[1:]],
            env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(line)
        self._lines.put(None)

    def wait_for(self, words: str) -> None:
        """Read its log up to a line with these words; LearnerError if it ends before, or says nothing for long."""
        seen: list[str] = []
        try:
            while (line := self._lines.get(timeout=PATIENCE_S)) is not None:
                seen.append(line)
                if re.search(words, line):
                    return
        except queue.Empty:
            seen.append(f"(nothing more for {PATIENCE_S} s)")
        told = "".join(seen[-20:])
        raise LearnerError(f"a process of Spark did not come to say {words!r}", f"look at what it said:\n{told}")

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait(timeout=PATIENCE_S)

    def stop(self) -> None:
        """End the master, the workers and whatever they have started."""
        self.process.terminate()
        try:
            self.process.wait(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()


class LocalCluster:
    """A master and workers, from `with` to its end; `master` is the address for `session(master=...)`.

    `within` is a command that starts another one, by which each worker is started: in a container, say.
    LearnerError where there is too little memory for it, or when one of its processes does not start.
    """

    def __init__(self, workers: int = 2, within: Sequence[str] = ()) -> None:
        if workers < 1:
            raise LearnerError(f"{workers} workers cannot be", "give a number from 1 on")
        self.master = f"spark://127.0.0.1:{free_port()}"
        self.workers: list[Daemon] = []
        self._wanted = workers
        self._within = within
        self._running: list[Daemon] = []

    def __enter__(self) -> LocalCluster:
        _require_memory()
        self._place = TemporaryDirectory(prefix="mqlab-cluster-", ignore_cleanup_errors=True)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(OUTSIDE)},
            "JAVA_HOME": str(java_home()),
            "JDK_JAVA_OPTIONS": os.environ.get("JDK_JAVA_OPTIONS", SMALL_JVM),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOG_DIR": self._place.name,
            "SPARK_WORKER_DIR": self._place.name,
            "SPARK_NO_DAEMONIZE": "1",
        }  # fmt: skip
        try:
            port = self.master.rpartition(":")[2]
            self._start("New state: ALIVE", "master.Master", "--port", port)
            for _ in range(self._wanted):
                command = ("worker.Worker", "-c", "1", "-m", MEMORY, self.master)
                self.workers.append(self._daemon(*command, within=self._within))
            for worker in self.workers:
                worker.wait_for("Successfully registered with master")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def connect_server(self) -> ConnectServer:
        """Start a server of Spark Connect that computes on this cluster; `.address` is for `session(master=...)`."""
        return ConnectServer(self)

    def stop(self) -> None:
        """End all of it."""
        while self._running:
            self._running.pop().stop()
        self._place.cleanup()

    def _start(self, words: str, name: str, *arguments: str) -> None:
        self._daemon(name, *arguments).wait_for(words)

    def _daemon(self, name: str, *arguments: str, within: Sequence[str] = ()) -> Daemon:
        started = Daemon(
            "spark-class", f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", "--webui-port", str(free_port()),
            *arguments, env=self.environment, within=within,
        )  # fmt: skip
        self._running.append(started)
        return started


class ConnectServer(Daemon):
    """A server of Spark Connect on a cluster, from `with` to its end."""

    def __init__(self, cluster: LocalCluster) -> None:
        port = free_port()
        self.address = f"sc://127.0.0.1:{port}"
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": str(port),
            "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false",
            "spark.driver.memory": MEMORY, "spark.sql.shuffle.partitions": "4",
            "spark.connect.progress.reportInterval": "200ms",
        }  # fmt: skip
        super().__init__(
            "spark-submit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master",
            cluster.master, *(word for name, value in settings.items() for word in ("--conf", f"{name}={value}")),
            "spark-internal", env=cluster.environment,
        )  # fmt: skip

    def __enter__(self) -> ConnectServer:
        try:
            self.wait_for("Spark Connect server started")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _require_memory() -> None:
    """LearnerError where a cluster would make the machine swap; where psutil is not installed nobody knows."""
    if find_spec("psutil") is None:
        return
    import psutil

    free_mib = psutil.virtual_memory().available >> 20
    if free_mib < MEMORY_NEEDED_MIB:
        raise LearnerError(
            f"a cluster needs {MEMORY_NEEDED_MIB:,} MiB of memory, and {free_mib:,} MiB are free",
            "close something, or stay with local[1]",
        )


def free_port() -> int:
    """A port of loopback that nobody has."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
