"""A place for tables: a folder of this machine, of HDFS or of S3, with a catalogue of what is whole.

    OUT/catalogue.json                      which directories hold each table, their rows, and of which traces they are
    OUT/silver/messages/batch_key=<key>/    the part of a table that is of one batch of traces, as Spark wrote it
    OUT/_builders/                          who builds here (`mqlab_spark.lease`)

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

from mqlab.errors import LearnerError
from mqlab_spark.lease import Lease, take
from mqlab_spark.storage import ANY, ChangedError, folder

CATALOGUE = "catalogue.json"
BUILDERS = "_builders"
TABLES_VERSION = 3
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
    """One table of a place: its directories there, its rows, its columns' types."""

    paths: tuple[str, ...]
    rows: int
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
            return {"version": TABLES_VERSION, "files": {}, "tables": {}, "set_aside": []}
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
        # Without indentation: json indents in Python, and a catalogue of 100,000 files is written with each table.
        text = json.dumps(catalogue, sort_keys=True).encode()
        if self._lease is not None:
            self._lease.check()
        with saying_no_room(f"the catalogue {self.folder.spark(CATALOGUE)} cannot be written"):
            try:
                self._state = self.folder.swap(CATALOGUE, text, self._state)
            except ChangedError as problem:
                raise LearnerError(str(problem), "run the same command again when the other has ended") from None

    def entries(self) -> dict[str, Entry]:
        """The tables that are whole, by name."""
        found = {}
        for name, table in self.read()["tables"].items():
            batches = [table["batches"][batch] for batch in sorted(table["batches"])]
            paths = tuple(batch["path"] for batch in batches)
            found[name] = Entry(paths, sum(batch["rows"] for batch in batches), dict(table["columns"]))
        return found

    def address(self, path: str) -> str:
        """What Spark is told to read or write a directory of this place."""
        return self.folder.spark(path)

    def exists(self, path: str) -> bool:
        """Is there anything at this path of the place?"""
        return bool(self.files.get_file_info(f"{self.root}/{path}").type != fs.FileType.NotFound)

    def remove_others(self, layers: tuple[str, ...]) -> None:
        """Remove directories of tables that the catalogue does not name: what killed and older builds left."""
        wanted = {path for entry in self.entries().values() for path in entry.paths}
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
