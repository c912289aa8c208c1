"""Measurements on Spark: each in a process of its own, which says what it, its JVM and its Python workers cost.

A JVM keeps what it has compiled and the memory that it once took, so one measurement would change the next.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import psutil

LOOK_EVERY_SECONDS = 0.3
JVM, WORKERS, DRIVER, OTHERS = "java", "workers", "driver", "others"


class Cost(NamedTuple):
    """What something took: seconds by the clock, CPU seconds of all processes, and the most memory (MB) of each kind.

    The workers' memory is the sum of their resident sets, which counts what they share once for each.
    """

    seconds: float
    cpu_seconds: float
    jvm_mb: float
    workers_mb: float
    jvm_read_bytes: int
    """What the JVM read, by all system calls; 0 where the system does not tell."""


class Meter:
    """Looks at this process and all that it has started, from `with` to the end of the block; then `cost` is there."""

    def __enter__(self) -> Meter:
        self._ended = threading.Event()
        self._peaks = dict.fromkeys((JVM, WORKERS, DRIVER, OTHERS), 0.0)
        self._began = time.monotonic(), cpu_seconds(), jvm_read_bytes()
        self._looker = threading.Thread(target=self._look_now_and_then, daemon=True)
        self._looker.start()
        return self

    def __exit__(self, *_: object) -> None:
        at, cpu, read = self._began
        seconds, used = time.monotonic() - at, cpu_seconds() - cpu
        self._ended.set()
        self._looker.join()
        self._look()
        self.cost = Cost(seconds, used, self._peaks[JVM], self._peaks[WORKERS], jvm_read_bytes() - read)

    def _look_now_and_then(self) -> None:
        while not self._ended.wait(LOOK_EVERY_SECONDS):
            self._look()

    def _look(self) -> None:
        now = dict.fromkeys(self._peaks, 0.0)
        for kind, process in _family():
            try:
                now[kind] += process.memory_info().rss / 1e6
            except psutil.Error:
                continue
        self._peaks = {kind: max(self._peaks[kind], now[kind]) for kind in now}


def _family() -> Iterator[tuple[str, psutil.Process]]:
    """This process, and those that it and they have started, with the kind of each.

    A process that the JVM has just forked has the name of a thread and seems as large as the JVM: it is of no kind.
    """
    own = psutil.Process()
    yield DRIVER, own
    for each in own.children(recursive=True):
        try:
            name = each.name().lower()
        except psutil.Error:
            continue
        yield (JVM if name.startswith("java") else WORKERS if name.startswith("python") else OTHERS), each


def cpu_seconds() -> float:
    """The CPU seconds that this process and all that it has started have used so far, also those that have ended."""
    total = 0.0
    for _, process in _family():
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def jvm_read_bytes() -> int:
    """The bytes that the JVM has read so far."""
    total = 0
    for kind, process in _family():
        if kind == JVM and hasattr(process, "io_counters"):
            total += getattr(process.io_counters(), "read_chars", 0)
    return total


def on_cores(cores: int) -> None:
    """Let this process and what it will start use so many processors of this machine, where the system can do that."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def in_a_process(module: str, *arguments: object) -> Any:
    """What `python -m benchmarks.MODULE ARGUMENTS` tells in the end; what it prints before goes to our terminal.

    CalledProcessError when it fails.
    """
    command = [sys.executable, "-P", "-m", f"benchmarks.{module}", *(str(each) for each in arguments)]
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(last, end="", flush=True)
            last = line
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return json.loads(last)


def tell(result: Any) -> None:
    """Tell a result to the process that asked."""
    print(json.dumps(result), flush=True)


@contextmanager
def spark_on(cores: int) -> Iterator[Any]:
    """A session on so many cores of this machine, stopped in the end."""
    from mqlab_spark import session

    spark = session("mqlab-bench", f"local[{cores}]")
    try:
        yield spark
    finally:
        spark.stop()
