"""Bronze: the events of traces as Parquet, a directory for each kind of event with that kind's own columns.

    bronze/events/batch_key=<key>/kind=PullHeld/part-00000.parquet

Spark's tasks read groups of files (`contract`), and write what they have themselves, so no event ever lies in a row of
all columns. A part is called by its group, and gets its name when it is whole: a task that is done twice writes the
same bytes under the same name.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import fs, parquet
from pyspark.sql import SparkSession

from mqlab.errors import ProtocolError
from mqlab_spark.contract import kind_schema, read_events
from mqlab_spark.place import Place
from mqlab_spark.schema import WORLD
from mqlab_spark.storage import Folder

GROUPS = 32
LEAST_GROUP_BYTES = 4 * 1024 * 1024
MOST_GROUP_BYTES = 64 * 1024 * 1024
"""How many bytes of traces one task reads: of little data little, and never so much that a task takes minutes."""

ROW_GROUP_ROWS = 65_536
RISING = ("ts_us", "slice", "cause_slice")
"""Numbers that rise from row to row, hardly two of them alike: differences are small, a dictionary would not be."""
COMPRESSION_LEVEL = 6
"""Of zstd: 8 % less than its first level for 0.02 us an event; behind it little comes."""

SMALL_BYTES = 8 * 1024 * 1024
"""A kind of event that has less is one file."""

Work = dict[str, Any]
"""What a task is told to do, and what it tells of that; made of what JSON has."""


class Source(NamedTuple):
    """A trace to be read: its path below the directory of all, its bytes, and the number of its world."""

    file: str
    bytes: int
    world: int


class Taken(NamedTuple):
    """What came of reading: the events of each file that is whole and true, and why each other one is not."""

    events: dict[str, int]
    aside: dict[str, str]


def write_events(spark: SparkSession, reading: Folder, sources: Sequence[Source], place: Place, path: str) -> Taken:
    """Write the events of these traces to a directory of the place, those of files that are whole and true.

    OSError, or what Spark makes of it, where something cannot be written.
    """
    groups = _groups(sources)
    works: list[Work] = [
        {"number": number, "files": [(each.file, each.world) for each in group]} for number, group in enumerate(groups)
    ]
    told = in_tasks(spark, works, partial(_write_group, reading, place.where, path))
    parts: dict[str, list[Work]] = defaultdict(list)
    for part in sorted((part for each in told for part in each["parts"]), key=lambda part: part["name"]):
        parts[part["kind"]].append(part)
    scattered = [
        {"kind": kind, "names": [part["name"] for part in several]}
        for kind, several in sorted(parts.items())
        if len(several) > 1 and sum(part["bytes"] for part in several) < SMALL_BYTES
    ]
    if scattered:
        in_tasks(spark, scattered, partial(_merge, place.where, path), tasks=len(groups))
    _remove_unfinished(place, path)
    events = {file: rows for each in told for file, rows in each["events"].items()}
    return Taken(events, {file: reason for each in told for file, reason in each["aside"].items()})


def in_tasks(
    spark: SparkSession, works: Sequence[Work], do: Callable[[Work], Work], tasks: int | None = None
) -> list[Work]:
    """Do each of these works in a task of Spark, and return what each told."""
    texts = spark.createDataFrame(pa.table({"work": [json.dumps(work) for work in works]}))

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            told = [json.dumps(do(json.loads(work))) for work in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_arrays([pa.array(told, pa.string())], ["told"])

    spread = texts.repartition(min(len(works), tasks or len(works)))
    return [json.loads(row["told"]) for row in spread.mapInArrow(run, "told string").collect()]


def _groups(sources: Sequence[Source]) -> list[list[Source]]:
    """The sources in groups of about as many bytes, in the order of their worlds."""
    total = sum(each.bytes for each in sources)
    most = min(max(total // GROUPS, LEAST_GROUP_BYTES), MOST_GROUP_BYTES)
    groups: list[list[Source]] = []
    filled = most
    for each in sorted(sources, key=lambda each: each.world):
        if filled + each.bytes > most:
            groups.append([])
            filled = 0
        groups[-1].append(each)
        filled += each.bytes
    return groups


# -- in the tasks ------------------------------------------------------------------------------------------------------


def _write_group(reading: Folder, where_to: str, path: str, work: Work) -> Work:
    """Write the parts of one group of files; what it tells: the events of each file, the files set aside, the parts."""
    place = Place(where_to)
    aside: dict[str, str] = {}
    while True:
        parts = _Parts(place, path, work["number"])
        events: dict[str, int] = {}
        try:
            for file, world in work["files"]:
                if file not in aside:
                    events[file] = _copy(reading, file, world, parts)
            return {"events": events, "aside": aside, "parts": parts.finish()}
        except ProtocolError as problem:
            # What was written has events of this file, so the group is written again: without it, and without all
            # others of the same sort, for which the rest is looked through first.
            aside[file] = str(problem)
            files = [file for file, _ in work["files"]]
            aside.update(_untrue(reading, files[files.index(file) + 1 :]))
        finally:
            parts.abandon()


def _copy(reading: Folder, file: str, world: int, parts: _Parts) -> int:
    rows = 0
    for batch in read_events(reading, file):
        rows += len(batch.order["slice"])
        for kind, table in batch.tables.items():
            parts.add(kind, table.add_column(0, WORLD, pa.repeat(pa.scalar(world, pa.int64()), table.num_rows)))
    return rows


def _untrue(reading: Folder, files: Iterable[str]) -> dict[str, str]:
    found = {}
    for file in files:
        try:
            for _ in read_events(reading, file):
                pass
        except ProtocolError as problem:
            found[file] = str(problem)
    return found


def _merge(where: str, path: str, work: Work) -> Work:
    """Make one part of all parts of a kind."""
    place = Place(where)
    directory = f"{place.root}/{path}/kind={work['kind']}"
    part = _Part(place.files, directory, "part-all.parquet", work["kind"])
    for name in work["names"]:
        with place.files.open_input_file(f"{directory}/{name}") as stream:
            part.add(parquet.read_table(stream))
    part.finish()
    for name in work["names"]:
        place.files.delete_file(f"{directory}/{name}")
    return {}


class _Parts:
    """The parts that a group is written to, one for each kind."""

    def __init__(self, place: Place, path: str, number: int) -> None:
        self._place = place
        self._path = f"{place.root}/{path}"
        self._name = f"part-{number:05}.parquet"
        self._parts: dict[str, _Part] = {}

    def add(self, kind: str, table: pa.Table) -> None:
        part = self._parts.get(kind)
        if part is None:
            part = self._parts[kind] = _Part(self._place.files, f"{self._path}/kind={kind}", self._name, kind)
        part.add(table)

    def finish(self) -> list[Work]:
        """Give every part its name; returns what each has."""
        told = []
        for kind in sorted(self._parts):
            told.append({"kind": kind, "name": self._name, "bytes": self._parts[kind].finish()})
            del self._parts[kind]
        return told

    def abandon(self) -> None:
        """Remove what has no name yet."""
        for part in self._parts.values():
            part.abandon()
        self._parts.clear()


_attempts: Iterator[int] = count()


class _Part:
    """One file, written in row groups; its name is hidden until it is whole."""

    def __init__(self, files: fs.FileSystem, directory: str, name: str, kind: str) -> None:
        files.create_dir(directory, recursive=True)
        self._files = files
        self._path = f"{directory}/{name}"
        self._hidden = f"{directory}/_{name}.{_task()}-{next(_attempts)}.unfinished"
        self._schema = pa.schema([(WORLD, pa.int64()), *kind_schema(kind)])
        self._stream = files.open_output_stream(self._hidden)
        self._writer = parquet.ParquetWriter(
            self._stream, self._schema, compression="zstd", compression_level=COMPRESSION_LEVEL,
            use_dictionary=[name for name in self._schema.names if name not in RISING],
            column_encoding={name: "DELTA_BINARY_PACKED" for name in self._schema.names if name in RISING},
            write_page_index=True, store_schema=False,
        )  # fmt: skip
        self._pending: list[pa.Table] = []
        self._rows = 0

    def add(self, table: pa.Table) -> None:
        self._pending.append(table)
        self._rows += table.num_rows
        if self._rows >= ROW_GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._pending:
            self._writer.write_table(pa.concat_tables(self._pending), row_group_size=ROW_GROUP_ROWS)
        self._pending, self._rows = [], 0

    def finish(self) -> int:
        """Give it its name; returns its bytes."""
        self._flush()
        self._writer.close()
        size = self._stream.tell()
        self._stream.close()
        if self._files.get_file_info(self._path).type != fs.FileType.NotFound:
            # An earlier attempt of the task has got so far; not every store moves a file onto another.
            self._files.delete_file(self._path)
        self._files.move(self._hidden, self._path)
        return int(size)

    def abandon(self) -> None:
        with suppress(OSError):
            self._writer.close()
        with suppress(OSError):
            self._stream.close()
        self._files.delete_file(self._hidden)


def _task() -> int:
    """The number of this attempt of a task: two attempts of one task do not write the same hidden file."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.taskAttemptId()


def _remove_unfinished(place: Place, path: str) -> None:
    """Remove what attempts left that were broken off."""
    below = fs.FileSelector(f"{place.root}/{path}", recursive=True, allow_not_found=True)
    for each in place.files.get_file_info(below):
        if each.type == fs.FileType.File and each.base_name.endswith(".unfinished"):
            place.files.delete_file(each.path)
