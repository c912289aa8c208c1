"""What goes wrong in `python -m mqlab_spark` is one line that names a file with the stack traces, and a status."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from mqlab.errors import LearnerError
from mqlab.trace.recorder import ParquetRecorder
from mqlab_spark.__main__ import main
from mqlab_spark.failing import INTERRUPTED, NOT_DONE, UNEXPECTED, guarded, one_line
from mqlab_spark.place import Place

STORED = (3, 0, 8_499_000, "broker-a", "send", -1, -1, "MessageStored", "T", 0, 0, 0, 100, "M0")
OF_THE_JVM = "WARNING: Using incubator modules"


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Many events in one Parquet file."""
    (tmp_path / "traces").mkdir()
    with ParquetRecorder(tmp_path / "traces" / "a.parquet") as recorder:
        for i in range(2_000):
            recorder((STORED[0], i, STORED[2] + i * 37, *STORED[3:]))
    return tmp_path / "traces"


def damage(trace: Path, column: str) -> None:
    """Turn the bits of a column's pages; the footer stays whole."""
    pages = next(
        chunk
        for chunk in map(pq.ParquetFile(trace).metadata.row_group(0).column, range(20))
        if chunk.path_in_schema == column
    )
    start = pages.dictionary_page_offset or pages.data_page_offset
    content = bytearray(trace.read_bytes())
    for place in range(start + 30, start + pages.total_compressed_size):
        content[place] ^= 0x5A
    trace.write_bytes(content)


def retype(trace: Path, column: str) -> None:
    """Write a trace again with numbers in a column of text."""
    table, told = pq.read_table(trace), pq.ParquetFile(trace).metadata.metadata
    place = table.schema.get_field_index(column)
    numbers = pa.array(range(len(table)), pa.int64())
    table = table.set_column(place, pa.field(column, pa.int64()), numbers)
    with pq.ParquetWriter(trace, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({key: value for key, value in told.items() if key != b"ARROW:schema"})


def said_in_one_line(error: str) -> tuple[str, str]:
    """What the one line says, and what stands in the file that it names."""
    (line,) = (line for line in error.splitlines() if not line.startswith(OF_THE_JVM))
    match = re.fullmatch(r"mqlab_spark: (.*) \(stack trace: (.*)\)", line)
    assert match, line
    log = Path(match[2])
    text = log.read_text()
    log.unlink()
    return match[1], text


def test_a_table_that_was_removed_under_a_build(
    spark: SparkSession, traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    build = ["build", str(traces), str(out)]
    assert main(build) == 0
    shutil.rmtree(out / Place(out).entries()["worlds"].paths[0])
    capsys.readouterr()
    assert main(build) == NOT_DONE
    error = capsys.readouterr().err.splitlines()
    line, stack = said_in_one_line(error[-1])
    assert "Path does not exist" in line
    assert str(out / "silver" / "worlds") in line
    assert "Traceback" in stack
    assert "at org.apache.spark" in stack


def test_a_place_whose_catalogue_is_damaged_is_said_as_before(
    spark: SparkSession, traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "catalogue.json").write_text("{")
    assert main(["build", str(traces), str(tmp_path / "out"), "--only", "worlds"]) == NOT_DONE
    error = capsys.readouterr().err
    assert "is no catalogue of tables\n  What to do: build into another directory" in error
    assert "stack trace" not in error


def test_a_damaged_page_is_named_with_its_file_and_what_caused_it(
    spark: SparkSession, traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(traces / "a.parquet", "ts_us")
    assert main(["latency", str(traces / "a.parquet")]) == NOT_DONE
    line, stack = said_in_one_line(capsys.readouterr().err)
    assert re.search(r"Encountered error while reading file .*/a\.parquet, caused by ", line)
    assert "java.lang" not in line
    assert "Caused by: " in stack


def test_of_several_stages_that_failed_at_once_the_file_and_what_caused_it_are_named() -> None:
    """As Spark tells it: the exception of one stage, that of the other one below it, and each of the first again."""
    unread = (
        "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file a.parquet."
    )
    told = OSError(
        "An error occurred while calling o7.collectToPython.\n"
        ": org.apache.spark.SparkException: [STAGE_MATERIALIZATION_MULTIPLE_FAILURES] Multiple failures (2) in stage "
        "materialization:  SQLSTATE: XXKST\n\tat org.apache.spark.sql.Adaptive.run(Adaptive.scala:7)\n"
        f"\tSuppressed: {unread}  SQLSTATE: KD001\n\t\tat org.apache.spark.Scan.next(Scan.scala:3)\n"
        f"Caused by: {unread}  SQLSTATE: KD001\n\tat org.apache.spark.Scan.next(Scan.scala:3)\n"
        "Caused by: java.io.IOException: the page is damaged\n\tat Page.read(Page.java:1)\n"
        f"Caused by: [CIRCULAR REFERENCE: {unread}  SQLSTATE: KD001]\n"
    )
    assert one_line(told) == (
        "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file a.parquet, caused by the page is damaged"
    )
    beside = OSError(
        "An error occurred while calling o7.collectToPython.\n"
        ": org.apache.spark.SparkException: [STAGE_MATERIALIZATION_MULTIPLE_FAILURES] Multiple failures (2) in stage "
        "materialization:  SQLSTATE: XXKST\n\tat org.apache.spark.sql.Adaptive.run(Adaptive.scala:7)\n"
        f"\tSuppressed: {unread}  SQLSTATE: KD001\n\t\tat org.apache.spark.Scan.next(Scan.scala:3)\n"
        "\tCaused by: java.io.IOException: the page is damaged\n\t\tat Page.read(Page.java:1)\n"
        f"Caused by: {unread}  SQLSTATE: KD001\n\tat org.apache.spark.Scan.next(Scan.scala:3)\n"
    )
    assert one_line(beside) == one_line(told)
    below = OSError(f"{unread.partition(': ')[2]}  SQLSTATE: KD001\n\nJVM stacktrace:\n{str(told).partition(': ')[2]}")
    assert one_line(below) == one_line(told)


def test_a_column_of_another_type_is_named(
    spark: SparkSession, traces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    retype(traces / "a.parquet", "topic")
    assert main(["build", str(traces), str(tmp_path / "out"), "--only", "worlds"]) == NOT_DONE
    (last,) = capsys.readouterr().err.splitlines()[-1:]
    assert "topic" in last
    assert "INT64" in last or "int64" in last


def test_a_defect_of_our_own_has_a_status_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(lambda log: {"a": 1}["b"]) == UNEXPECTED
    line, stack = said_in_one_line(capsys.readouterr().err)
    assert line == "unexpected: KeyError: 'b'"
    assert stack.startswith("Traceback")


def test_what_spark_logged_is_kept_and_named_and_an_empty_log_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert guarded(lambda log: 0) == 0
    assert list(tmp_path.iterdir()) == []

    def complaining(log: Path) -> int:
        log.write_text("ERROR Executor\n")
        raise LearnerError("no", "yes")

    assert guarded(complaining) == NOT_DONE
    (kept,) = tmp_path.iterdir()
    assert capsys.readouterr().err == f"mqlab_spark: no\n  What to do: yes\n  What Spark said: {kept}\n"


@pytest.mark.slow
def test_nothing_but_the_line_is_on_stderr(traces: Path) -> None:
    damage(traces / "a.parquet", "ts_us")
    command = [sys.executable, "-m", "mqlab_spark", "latency", str(traces / "a.parquet"), "--master", "local[1]"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == NOT_DONE
    line, stack = said_in_one_line(told.stderr)
    assert "Encountered error while reading file" in line
    assert "ERROR Executor" in stack, "Spark's own log goes there, too"


@pytest.mark.slow
def test_ctrl_c_ends_a_build_with_a_word(traces: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mqlab_spark", "build", str(traces), str(tmp_path / "out"), "--master", "local[1]"]
    building = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert building.stderr is not None
    for line in building.stderr:
        if line.startswith("events "):
            break
    building.send_signal(signal.SIGINT)
    said = building.stderr.read()
    assert building.wait() == INTERRUPTED
    assert said.splitlines()[-1] == "mqlab_spark: interrupted"
    assert "Traceback" not in said
