"""A place for tables: a folder of this machine, of HDFS or of S3, with a catalogue of what is whole.

    OUT/catalogue.json            which directory holds each table, how many rows it has, and what it was made from
    OUT/silver/messages/<key>/    a table, as Spark wrote it
    OUT/_builders/                who builds here (`mqlab_spark.lease`)

Tables are read through the catalogue, which names new ones when all of them are whole, in one step. So what is
half-written is never read, and a build that was killed goes on with the tables that it had not finished (`building`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyarrow import fs
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from mqlab.errors import LearnerError
from mqlab_spark.lease import Lease, take
from mqlab_spark.schema import WORLD
from mqlab_spark.storage import ANY, ChangedError, folder
from mqlab_spark.tables import TRACES

CATALOGUE = "catalogue.json"
BUILDERS = "_builders"
TABLES_VERSION = 1
"""Rises when a table can no longer be read as it was: a column renamed, removed or given another type."""


NO_ROOM = ("No space left on device", "Disk quota exceeded", "File too large")


@contextmanager
def saying_no_room(what: str) -> Iterator[None]:
    """LearnerError instead of the long error in which Spark or Arrow wraps that a disk is full."""
    try:
        yield
    except (OSError, Py4JError, PySparkException) as problem:
        told = str(problem)
        words = next((words for words in NO_ROOM if words in told), None)
        if words is None:
            raise
        raise LearnerError(
            f"{what}: {words.lower()}", "make room and run the same command again: it keeps the tables that are whole"
        ) from None


class Entry(NamedTuple):
    """One table of a place: its directory there, its rows, the key of what it was made from, its columns' types."""

    path: str
    rows: int
    key: str
    columns: dict[str, str]


class Place:
    """A folder for tables at a path or an address (`mqlab_spark.storage`); LearnerError when it cannot be reached."""

    def __init__(self, where: str | Path) -> None:
        self.folder = folder(where)
        self.where = self.folder.address
        self.files: fs.FileSystem = self.folder.arrow
        self.root = self.folder.root
        self._state: str | None = ANY
        self._lease: Lease | None = None

    def read(self) -> dict[str, Any]:
        """The catalogue; LearnerError when it is none, or of another version. An empty one where nothing was built."""
        path = self.folder.spark(CATALOGUE)
        seen = self.folder.look(CATALOGUE)
        self._state = seen.state if seen else None
        if seen is None:
            return {"version": TABLES_VERSION, "tables": {}, "set_aside": []}
        try:
            found = json.loads(seen.data)
            version = found["version"]
        except (ValueError, KeyError, TypeError):
            raise LearnerError(f"{path} is no catalogue of tables", "build into another directory") from None
        if version != TABLES_VERSION:
            raise LearnerError(
                f"{self.where} has tables of version {version}, this mqlab reads version {TABLES_VERSION}",
                "build them again into another directory",
            )
        return cast("dict[str, Any]", found)

    def write(self, catalogue: dict[str, Any]) -> None:
        """Replace the catalogue in one step. LearnerError when it is no longer the one that was read here, if one was:
        somebody else has built here meanwhile, who thought that this process was dead.
        """
        text = json.dumps(catalogue, indent=1, sort_keys=True).encode()
        if self._lease is not None:
            self._lease.check()
        with saying_no_room(f"the catalogue {self.folder.spark(CATALOGUE)} cannot be written"):
            try:
                self._state = self.folder.swap(CATALOGUE, text, self._state)
            except ChangedError as problem:
                raise LearnerError(str(problem), "run the same command again when the other has ended") from None

    def entries(self) -> dict[str, Entry]:
        """The tables that are whole, by name."""
        return {name: Entry(**fields) for name, fields in self.read()["tables"].items()}

    def address(self, path: str) -> str:
        """What Spark is told to read or write a directory of this place."""
        return self.folder.spark(path)

    def exists(self, path: str) -> bool:
        """Is there anything at this path of the place?"""
        return bool(self.files.get_file_info(f"{self.root}/{path}").type != fs.FileType.NotFound)

    def remove_others(self, layers: tuple[str, ...]) -> None:
        """Remove directories of tables that the catalogue does not name: what killed and older builds left."""
        wanted = {entry.path for entry in self.entries().values()}
        for layer in layers:
            selector = fs.FileSelector(f"{self.root}/{layer}", allow_not_found=True, recursive=False)
            for table in self.files.get_file_info(selector):
                if table.type != fs.FileType.Directory:
                    continue
                for made in self.files.get_file_info(fs.FileSelector(table.path, recursive=False)):
                    if f"{layer}/{table.base_name}/{made.base_name}" not in wanted:
                        self.files.delete_dir(made.path)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Build alone: LearnerError while somebody else builds here, or when there is no room to say that we do.

        What a dead build left is taken over, at once where it was one of this machine, else when it has been silent for
        `lease.LEASE_S`.
        """
        with saying_no_room(f"nothing can be built into {self.where}"):
            lease = take(self.folder.below(BUILDERS), f"builds into {self.where}")
        self._lease = lease
        try:
            yield
        finally:
            self._lease = None
            lease.end()


_opened: set[str] = set()
"""The places whose tables were opened in this process."""


def hashes_in_tables(world: str) -> set[str]:
    """The trace hashes that the tables which were opened in this process say of a world."""
    from pyarrow import dataset

    found: set[str] = set()
    for where in sorted(_opened):
        place = Place(where)
        entry = place.entries().get(TRACES)
        if entry is not None:
            told = dataset.dataset(f"{place.root}/{entry.path}", filesystem=place.files, format="parquet")
            found.update(told.to_table(["trace_hash"], filter=dataset.field(WORLD) == world)["trace_hash"].to_pylist())
    return found - {None}


def tables_at(spark: SparkSession, where: str | Path) -> dict[str, DataFrame]:
    """The tables of a place by name; LearnerError where there are none."""
    place = Place(where)
    entries = place.entries()
    if not entries:
        raise LearnerError(f"there are no tables at {where}", "build them: python -m mqlab_spark build TRACES OUT")
    _opened.add(place.where)
    return {name: spark.read.parquet(place.address(entry.path)) for name, entry in entries.items()}
