"""What goes wrong while tables are built: kills between any two writes, a full disk, files that are no traces."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from mqlab.errors import LearnerError
from mqlab.trace.recorder import JsonLinesRecorder, ParquetRecorder
from mqlab_spark import tables_at
from mqlab_spark.build import build, sorted_out
from mqlab_spark.place import Place
from mqlab_spark.tables import TABLES

STORED = (3, 0, 8_499_000, "broker-a", "send", -1, -1, "MessageStored", "T", 0, 0, 0, 100, "M0")
NEW = {"events", "traces", "worlds"}


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """One event in a Parquet file."""
    (tmp_path / "traces").mkdir()
    with ParquetRecorder(tmp_path / "traces" / "a.parquet") as recorder:
        recorder(STORED)
    return tmp_path / "traces"


@pytest.fixture
def few_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one table besides bronze, so that a build is quick."""
    only = tuple(table for table in TABLES if table.name == "worlds")
    monkeypatch.setattr(sys.modules["mqlab_spark.build"], "ALL", only)


class Killed(BaseException):
    """Nobody catches it, as nobody catches a SIGKILL."""


@pytest.mark.slow
def test_a_build_killed_before_or_after_any_write_of_the_catalogue_goes_on(
    spark: SparkSession, traces: Path, tmp_path: Path, few_tables: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    write = Place.write
    old = {"version": 1, "key": "old", "traces": 1, "set_aside": [], "tables": {}}
    Place(out).write(old)
    seen: list[str] = []

    def killed_at(number: int, *, after: bool) -> bool:
        """Is the build killed at its so-manyeth write? It is whole when it has not so many."""
        writes = 0

        def write_once(place: Place, catalogue: dict[str, Any]) -> None:
            nonlocal writes
            writes += 1
            if writes == number and not after:
                (out / "catalogue.json.new").write_text('{"half')
                raise Killed
            write(place, catalogue)
            seen.append(catalogue["key"])
            if writes == number:
                raise Killed

        monkeypatch.setattr(Place, "write", write_once)
        try:
            build(spark, traces, out)
        except Killed:
            return True
        finally:
            monkeypatch.setattr(Place, "write", write)
        return False

    kills = 0
    while killed_at(1, after=kills % 2 == 1):
        kills += 1
        entries = Place(out).entries()
        assert set(entries) in (set(), NEW)
        assert kills < 20
    assert kills == 2 * (len(NEW) + 1), "before and after each table's, and the last that names them all"
    assert seen[:3] == ["old"] * 3, "who reads meanwhile has the old tables"
    assert set(Place(out).entries()) == NEW
    assert tables_at(spark, out)["events"].count() == 1
    directories = {path.parent.relative_to(out).as_posix() for path in out.rglob("_SUCCESS")}
    assert directories == {entry.path for entry in Place(out).entries().values()}, "nothing half-written is left"


@contextmanager
def no_room_for(pid: int, most: int) -> Iterator[None]:
    """A process that can write no file of more bytes, as on a full disk."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@pytest.mark.slow
def test_a_full_disk_is_said_plainly_and_nothing_half_written_is_read(
    spark: SparkSession, traces: Path, tmp_path: Path, few_tables: None
) -> None:
    out = tmp_path / "out"
    # What Java unpacks when it first writes must not be what fails.
    build(spark, traces, tmp_path / "before")
    assert spark._jvm is not None
    jvm = spark._jvm.java.lang.ProcessHandle.current().pid()
    with no_room_for(jvm, 1_000), pytest.raises(LearnerError, match=r"'events' cannot be written .*file too large"):
        build(spark, traces, out)
    assert Place(out).entries() == {}
    with pytest.raises(LearnerError, match="there are no tables"):
        tables_at(spark, out)
    build(spark, traces, out)
    assert tables_at(spark, out)["events"].count() == 1


def test_what_is_no_trace_is_set_aside_whatever_it_is(traces: Path) -> None:
    whole = (traces / "a.parquet").read_bytes()
    (traces / "deep").mkdir()
    (traces / "deep" / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (traces / "text.parquet").write_text("no trace")
    (traces / "empty.jsonl").write_text("")
    with JsonLinesRecorder(traces / "newer.jsonl") as recorder:
        recorder(STORED)
    lines = (traces / "newer.jsonl").read_text().replace('"mqlab_trace": 2', '"mqlab_trace": 3')
    (traces / "newer.jsonl").write_text(lines)
    good, bad = sorted_out(traces)
    assert list(good) == [traces / "a.parquet"]
    reasons = {each["file"]: each["reason"] for each in bad}
    assert set(reasons) == {"deep/cut.parquet", "text.parquet", "empty.jsonl", "newer.jsonl"}
    assert "not a Parquet file, or is damaged or was not closed" in reasons["deep/cut.parquet"]
    assert "schema version 3" in reasons["newer.jsonl"]
    assert json.dumps(bad)
