"""Reading a store directory with Spark, beside a bare read of the same file and the same decoding without Spark.

`python -m benchmarks.spark_store DIRECTORY` is one measurement.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.harness import Figure, beside, figure
from benchmarks.messages import BORN_MS, TOPIC
from benchmarks.peers import BODY
from benchmarks.spark_run import cpu_seconds, in_a_process, spark_on, tell
from mqlab.protocol.record import encode_record
from mqlab.store import Damage, list_records
from mqlab_spark import read_store

MESSAGES = 60_000
FIRST_ROUNDS, ROUNDS = 5, 5
"""In the first ones Java compiles."""

CORES = 2
READ_BYTES = 1 << 20


def make_store(directory: Path) -> int:
    """A store whose commit log is one file of messages of 1 KB; the size of the file."""
    file = directory / "commitlog" / f"{0:020}"
    file.parent.mkdir(parents=True)
    hosts, log = ("10.0.0.1:40000", "10.0.0.2:10911"), bytearray()
    for number in range(MESSAGES):
        properties = f"UNIQ_KEY\x01{number:032X}\x02WAIT\x01true"
        log += encode_record(TOPIC, BODY, properties, 0, number, len(log), BORN_MS + number, BORN_MS + number, *hosts)
    return file.write_bytes(log)


def measure(directory: Path) -> dict[str, dict[str, float]]:
    """Seconds by the clock, and of CPU, of: a bare read of the file, Python that decodes it, and Spark that makes rows
    of it.
    """
    file = next((directory / "commitlog").iterdir())

    def bare() -> None:
        with file.open("rb", buffering=0) as stream:
            while stream.read(READ_BYTES):
                pass

    def decoded() -> None:
        assert sum(not isinstance(each, Damage) for each in list_records(directory)) == MESSAGES

    with spark_on(CORES) as spark:

        def by_spark() -> None:
            read_store(spark, str(directory)).write.format("noop").mode("overwrite").save()

        assert read_store(spark, str(directory)).where("damage IS NULL").count() == MESSAGES
        contenders: dict[str, Callable[[], None]] = {"bare": bare, "decoded": decoded, "spark": by_spark}
        clock: dict[str, list[float]] = {name: [] for name in contenders}
        cpu: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(FIRST_ROUNDS + ROUNDS):
            for name, run in contenders.items():
                began, used = time.perf_counter(), cpu_seconds()
                run()
                clock[name].append(time.perf_counter() - began)
                cpu[name].append(cpu_seconds() - used)
    return {
        name: {"clock": median(clock[name][FIRST_ROUNDS:]), "cpu": median(cpu[name][FIRST_ROUNDS:])}
        for name in contenders
    }


@cache
def _measured() -> tuple[float, dict[str, Any]]:
    with TemporaryDirectory() as directory:
        size = make_store(Path(directory))
        return size / 1e6, in_a_process("spark_store", directory)


def reading() -> list[Figure]:
    """MB/s of the format rocketmq-store on two cores, and the CPU that it takes."""
    mb, seconds = _measured()
    rates = {name: mb / took["clock"] for name, took in seconds.items()}
    return [
        beside("a store by Spark / a bare read of its file", rates["spark"], "MB/s", rates["bare"]),
        figure("a store by Spark, 2 cores / decoded in Python", rates["spark"], "MB/s", versus=rates["decoded"],
               aim=1.0, better="higher"),
        beside("CPU of a store by Spark / decoded in Python", seconds["spark"]["cpu"], "s", seconds["decoded"]["cpu"]),
    ]  # fmt: skip


if __name__ == "__main__":
    tell(measure(Path(sys.argv[1])))
