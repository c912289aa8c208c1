"""What goes wrong while tables are built: kills between any two writes, a full disk, files that are no traces."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from mqlab.errors import LearnerError
from mqlab.trace.recorder import JsonLinesRecorder, ParquetRecorder
from mqlab_spark import bronze, tables_at, world_id
from mqlab_spark.build import build
from mqlab_spark.place import TABLES_VERSION, Place

STORED = (3, 0, 8_499_000, "broker-a", "send", -1, -1, "MessageStored", "T", 0, 0, 0, 100, "M0")
NEW = {"events", "traces", "worlds"}


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """One event in a Parquet file."""
    (tmp_path / "traces").mkdir()
    with ParquetRecorder(tmp_path / "traces" / "a.parquet") as recorder:
        recorder(STORED)
    return tmp_path / "traces"


built = partial(build, only=("worlds",))
"""A build of one table besides bronze: it is quick."""


class Killed(BaseException):
    """Nobody catches it, as nobody catches a SIGKILL."""


@pytest.mark.slow
def test_a_build_killed_before_or_after_any_write_of_the_catalogue_goes_on(
    spark: SparkSession, traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    write = Place.write
    old = {"version": TABLES_VERSION, "reader": "old", "files": {}, "set_aside": [], "tables": {}}
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
            seen.append(catalogue["reader"])
            if writes == number:
                raise Killed

        monkeypatch.setattr(Place, "write", write_once)
        try:
            built(spark, traces, out)
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
    assert kills == 2 * len(NEW), "before and after those of bronze and of a table, and the last that names them all"
    assert seen[:2] == ["old"] * 2, "who reads meanwhile has the old tables"
    assert set(Place(out).entries()) == NEW
    assert tables_at(spark, out)["events"].count() == 1
    directories = {path.relative_to(out).as_posix() for path in out.glob("*/*/batch_key=*")}
    named = {path for entry in Place(out).entries().values() for path in entry.paths}
    assert directories == named, "nothing half-written is left"


@contextmanager
def no_room_for(pids: list[int], most: int) -> Iterator[None]:
    """Processes that can write no file of more bytes, as on a full disk."""
    before = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in pids}
    for pid, (_, hard) in before.items():
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        for pid, limits in before.items():
            # A worker whose task has failed is gone.
            with suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


def with_children(pid: int) -> list[int]:
    """A process and all that it has started."""
    process = psutil.Process(pid)
    return [pid, *(child.pid for child in process.children(recursive=True))]


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["events", "worlds"])
def test_a_full_disk_is_said_plainly_and_nothing_half_written_is_read(
    spark: SparkSession, traces: Path, tmp_path: Path, layer: str
) -> None:
    """Bronze is written by Spark's workers of Python, the others by Java."""
    out = tmp_path / "out"
    # What Java unpacks when it first writes must not be what fails.
    built(spark, traces, tmp_path / "before")
    assert spark._jvm is not None
    jvm = spark._jvm.java.lang.ProcessHandle.current().pid()
    limited = [jvm] if layer == "worlds" else with_children(jvm)
    with no_room_for(limited, 700), pytest.raises(LearnerError, match=rf"'{layer}' cannot be written .*file too large"):
        built(spark, traces, out)
    assert Place(out).entries() == {}
    with pytest.raises(LearnerError, match="there are no tables"):
        tables_at(spark, out)
    built(spark, traces, out)
    assert tables_at(spark, out)["events"].count() == 1


@pytest.mark.slow
def test_what_is_not_whole_and_true_is_set_aside_whatever_it_is(
    spark: SparkSession, traces: Path, tmp_path: Path
) -> None:
    whole = (traces / "a.parquet").read_bytes()
    (traces / "deep").mkdir()
    (traces / "deep" / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (traces / "text.parquet").write_text("no trace")
    (traces / "empty.jsonl").write_text("")
    (traces / "copy.parquet").write_bytes(whole)
    (traces / "_hidden.parquet").write_bytes(whole)
    with JsonLinesRecorder(traces / "newer.jsonl") as recorder:
        recorder(STORED)
    lines = (traces / "newer.jsonl").read_text().replace('"mqlab_trace": 2', '"mqlab_trace": 3')
    (traces / "newer.jsonl").write_text(lines)
    for name, offset in (("one.jsonl", 0), ("other.jsonl", 1)):
        with JsonLinesRecorder(traces / name, {"world": "steady-load --seed 7", "trace_hash": name}) as recorder:
            recorder((*STORED[:10], offset, *STORED[11:]))
    with JsonLinesRecorder(traces / "hole.jsonl") as recorder:
        for number in range(3):
            recorder((number, *STORED[1:]))
    told = (traces / "hole.jsonl").read_text().splitlines(keepends=True)
    (traces / "hole.jsonl").write_text("".join([*told[:2], *told[3:]]))
    place = built(spark, traces, tmp_path / "out")
    reasons = {each["file"]: each["reason"] for each in place.read()["set_aside"]}
    words = {
        "deep/cut.parquet": "not a Parquet file, or is damaged or was not closed",
        "text.parquet": "not a Parquet file",
        "empty.jsonl": "does not begin with a header",
        "newer.jsonl": "schema version 3",
        "copy.parquet": "the same events as a.parquet",
        "one.jsonl": "as other.jsonl is, and their events are not the same",
        "other.jsonl": "as one.jsonl is, and their events are not the same",
        "hole.jsonl": "its end mark counts 3",
    }
    assert set(reasons) == set(words)
    assert {file for file, reason in reasons.items() if words[file] not in reason} == set()
    assert not [reason for reason in reasons.values() if str(traces) in reason], "files are named as in the table"
    events = tables_at(spark, tmp_path / "out")["events"].collect()
    assert [row["world"] for row in events] == [world_id("a.parquet")]
    with pytest.raises(LearnerError, match=r"not every trace is whole and true: copy\.parquet: .* and 6 others"):
        built(spark, traces, tmp_path / "strict", strict=True)


@pytest.mark.slow
def test_a_new_trace_costs_its_own_share_and_a_changed_one_is_read_again(
    spark: SparkSession, traces: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"

    def paths() -> dict[str, set[str]]:
        return {name: set(entry.paths) for name, entry in built(spark, traces, out).entries().items()}

    def worlds_there() -> list[str]:
        return sorted(row["name"] for row in tables_at(spark, out)["worlds"].collect())

    first = paths()
    with ParquetRecorder(traces / "b.parquet") as recorder:
        recorder((5, *STORED[1:]))
    second = paths()
    assert all(first[name] < second[name] for name in NEW), "what was there is as it was, and there is more"
    assert worlds_there() == ["a.parquet", "b.parquet"]
    assert tables_at(spark, out)["events"].where("kind = 'MessageStored'").count() == 2
    with ParquetRecorder(traces / "b.parquet") as recorder:
        for slice_number in (5, 6):
            recorder((slice_number, *STORED[1:]))
    third = paths()
    assert all(first[name] < third[name] for name in NEW)
    assert not third["events"] & (second["events"] - first["events"])
    assert tables_at(spark, out)["events"].count() == 3
    (traces / "a.parquet").unlink()
    assert not paths()["events"] & first["events"]
    assert worlds_there() == ["b.parquet"]


def test_of_two_worlds_with_one_number_the_one_that_is_there_stays(
    spark: SparkSession, traces: Path, tmp_path: Path
) -> None:
    names = ["steady-load --seed 93458931", "steady-load --seed 54068612"]
    assert {world_id(name) for name in names} == {4484689171177616}, "two of the few seeds for which that is so"
    files = {name: traces / f"{letter}.jsonl" for name, letter in zip(names, "zy", strict=True)}
    for name, file in files.items():
        with JsonLinesRecorder(file, {"world": name, "trace_hash": name}) as recorder:
            recorder(STORED)
        (told,) = built(spark, traces, tmp_path / "out").read()["set_aside"] or [None]
        assert (told is None) is (name == names[0])
    assert told["file"] == "y.jsonl"
    assert f"its world {names[1]!r} has the number of the world {names[0]!r}, 4484689171177616" in told["reason"]
    there = tables_at(spark, tmp_path / "out")["worlds"].select("name").orderBy("name").collect()
    assert [row["name"] for row in there] == ["a.parquet", names[0]]


@pytest.mark.slow
@pytest.mark.parametrize("little", [True, False])
def test_little_data_is_planned_once_in_one_part_and_the_session_is_as_it_was_afterwards(
    spark: SparkSession, traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, little: bool
) -> None:
    if not little:
        monkeypatch.setattr(sys.modules["mqlab_spark.build"], "TRACE_BYTES_PER_SHUFFLE_PARTITION", 100)
    names = ("spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions")
    before = [spark.conf.get(name) for name in names]
    meanwhile = []
    built(spark, traces, tmp_path / "out", lambda *_: meanwhile.append([spark.conf.get(name) for name in names]))
    parts = -(-(traces / "a.parquet").stat().st_size // 100)
    assert meanwhile[-1] == (["false", "1"] if little else ["true", str(parts)])
    assert [spark.conf.get(name) for name in names] == before


@pytest.mark.slow
def test_only_what_is_asked_is_built_with_what_it_is_made_from_and_what_is_there_already(
    spark: SparkSession, traces: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert build(spark, traces, out, only=["hold_outcomes"]).entries().keys() == {
        "events", "traces", "holds", "hold_outcomes"
    }  # fmt: skip
    with pytest.raises(LearnerError, match=r"'audit' was not built at .*\n?.*--only audit"):
        tables_at(spark, out)["audit"]
    with pytest.raises(LearnerError, match="there is no table 'audits'"):
        tables_at(spark, out)["audits"]
    with pytest.raises(LearnerError, match=r"there is no table 'audits'(.|\n)*order_violations"):
        build(spark, traces, out, only=["audits"])
    with ParquetRecorder(traces / "b.parquet") as recorder:
        recorder((4, *STORED[1:]))
    found = tables_at(spark, built(spark, traces, out).where)
    assert found.keys() == {"events", "traces", "holds", "hold_outcomes", "worlds"}
    assert sorted(row["name"] for row in found["worlds"].collect()) == ["a.parquet", "b.parquet"]
    catalogue = Place(out).read()
    Place(out).write({**catalogue, "reader": "old"})
    again = built(spark, traces, out).entries()
    assert again.keys() == found.keys(), "what an older reader has made is made again, all of it"


@pytest.mark.slow
def test_many_groups_of_files_make_one_file_of_a_small_kind_and_many_batches_become_one(
    spark: SparkSession, traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bronze, "MOST_GROUP_BYTES", 1)
    monkeypatch.setattr(sys.modules["mqlab_spark.build"], "MOST_BATCHES", 1)
    out = tmp_path / "out"
    built(spark, traces, out)
    for number, name in enumerate(("b", "c")):
        with ParquetRecorder(traces / f"{name}.parquet") as recorder:
            recorder((number, *STORED[1:]))
    place = built(spark, traces, out)
    assert [len(entry.paths) for entry in place.entries().values()] == [1] * len(NEW)
    parts = [path.relative_to(out / place.entries()["events"].paths[0]) for path in out.rglob("kind=*/*")]
    assert [part.as_posix() for part in parts] == ["kind=MessageStored/part-all.parquet"]
    tables = tables_at(spark, out)
    stored = tables["events"].join(tables["traces"], "world").select("name", "slice").orderBy("name").collect()
    assert [tuple(row) for row in stored] == [("a.parquet", 3), ("b.parquet", 0), ("c.parquet", 1)]
