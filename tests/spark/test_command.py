"""`python -m mqlab_spark`: the tables of a trace, as text."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqlab.trace.recorder import ParquetRecorder
from mqlab_spark.__main__ import main

HELD = (1, 0, 1_000, "broker-a", "pull", -1, -1, "PullHeld", "g", "T", 0, 0, 15_000, 1, "c1")
WOKEN = (2, 0, 8_500_000, "broker-a", "hold", -1, -1, "PullWoken", "g", "T", 0, 0, "arrived", 8_499_000, 1, "c1")
STORED = (3, 0, 8_499_000, "broker-a", "send", -1, -1, "MessageStored", "T", 0, 0, 0, 100, "M0")
ANSWERED = (4, 0, 8_501_000, "broker-a", "p", -1, -1, "PullAnswered", "g", "T", 0, 0, 1, 1, 100, "FOUND", 0, 1, "c1")


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """A message that wakes a held pull."""
    path = tmp_path / "trace.parquet"
    with ParquetRecorder(path) as recorder:
        for row in (HELD, WOKEN, STORED, ANSWERED):
            recorder(row)
    return str(path)


def test_latency_prints_its_tables(spark: SparkSession, trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["latency", trace]) == 0
    printed = capsys.readouterr().out
    assert "delivery by cause\n" in printed
    assert "|arrived|1    |2.0   |2.0   |2.0   |2.0   |" in printed
    assert "clocks that disagree\n" in printed


def test_holds_prints_a_histogram(spark: SparkSession, trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["holds", trace, "--bin-ms", "500", "--master", "local[1]"]) == 0
    assert "|arrived|8000   |8500 |1    |" in capsys.readouterr().out


def test_a_trace_that_is_not_there_is_one_line_and_status_2(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["latency", str(tmp_path / "none.parquet")]) == 2
    assert "mqlab_spark: there is no trace at" in capsys.readouterr().err
