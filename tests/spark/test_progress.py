"""The bar of Spark's tasks."""

from __future__ import annotations

import io
import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqlab_spark.progress import steps_bar, watched


class Terminal(io.StringIO):
    """What a terminal got."""

    def isatty(self) -> bool:
        return True


def test_tasks_are_counted_while_they_run(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two tasks goes on when it is let go: when the report has said how many have ended before it."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    told: list[tuple[int, int]] = []
    with socket.create_server(("127.0.0.1", 0)) as door:
        door.settimeout(60)
        port = door.getsockname()[1]

        def hold(batches: Iterable[Any]) -> Iterator[Any]:
            with socket.create_connection(("127.0.0.1", port), timeout=60) as waiting:
                waiting.recv(1)
            yield from batches

        def report(done: int, known: int) -> None:
            if (done, known) not in told:
                told.append((done, known))
                if len(told) <= 2:
                    door.accept()[0].close()

        with watched(spark, report):
            assert spark.range(0, 2, numPartitions=2).mapInArrow(hold, "id long").count() == 2
    assert told[:2] == [(0, 2), (1, 2)]
    assert not [thread for thread in threading.enumerate() if thread.name == "mqlab-spark-progress"]


def test_where_nobody_looks_no_thread_is_started(spark: SparkSession) -> None:
    with watched(spark, lambda done, known: None):
        assert not [thread for thread in threading.enumerate() if thread.name == "mqlab-spark-progress"]


def test_steps_leave_what_they_print(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    with steps_bar(spark, "tables", 2) as step:
        for name in ("events", "worlds"):
            with step(name):
                print(name, file=sys.stderr)
    assert capsys.readouterr().err == "events\nworlds\n"
