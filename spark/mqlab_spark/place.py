"""A place for tables: a directory of this machine or of a cluster's file system, with a catalogue of what is whole.

    OUT/catalogue.json                  which directories hold each table, how many rows they have, and of which traces
    OUT/silver/messages/batch_key=<key>/    the part of a table that is of one batch of traces, as Spark wrote it
    OUT/_building                       is there while somebody builds

Tables are read through the catalogue, which names new ones when all of them are whole, in one step. So what is
half-written is never read, and a build that was killed goes on with the tables that it had not finished (`building`).
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyarrow import fs
from pyspark.errors import PySparkException

from mqlab.errors import LearnerError

CATALOGUE = "catalogue.json"
LOCK = "_building"
TABLES_VERSION = 2
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
    """A directory for tables; `where` is a path, or an address such as hdfs://... or s3://..."""

    def __init__(self, where: str | Path) -> None:
        self.where = str(where).rstrip("/")
        self.is_local = "://" not in self.where or self.where.startswith("file://")
        if self.is_local:
            self.where = os.path.abspath(self.where.removeprefix("file://"))
            self.files: fs.FileSystem = fs.LocalFileSystem()
            self.root = self.where
        else:
            self.files, self.root = fs.FileSystem.from_uri(self.where)

    def read(self) -> dict[str, Any]:
        """The catalogue; LearnerError when it is none, or of another version. An empty one where nothing was built."""
        path = f"{self.root}/{CATALOGUE}"
        if self.files.get_file_info(path).type == fs.FileType.NotFound:
            return {"version": TABLES_VERSION, "files": {}, "tables": {}, "set_aside": []}
        with self.files.open_input_stream(path) as stream:
            text = stream.read()
        try:
            found = json.loads(text)
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
        """Replace the catalogue in one step."""
        path = f"{self.root}/{CATALOGUE}"
        self.files.create_dir(self.root, recursive=True)
        with saying_no_room(f"the catalogue {path} cannot be written"):
            with self.files.open_output_stream(f"{path}.new") as stream:
                stream.write(json.dumps(catalogue, indent=1, sort_keys=True).encode())
            self.files.move(f"{path}.new", path)

    def entries(self) -> dict[str, Entry]:
        """The tables that are whole, by name."""
        found = {}
        for name, table in self.read()["tables"].items():
            batches = [table["batches"][batch] for batch in sorted(table["batches"])]
            paths = tuple(batch["path"] for batch in batches)
            found[name] = Entry(paths, sum(batch["rows"] for batch in batches), table["columns"])
        return found

    def address(self, path: str) -> str:
        """What Spark is told to read or write a directory of this place."""
        return f"file://{self.where}/{path}" if self.is_local else f"{self.where}/{path}"

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
        """Build alone: LearnerError while somebody else builds here.

        What a killed build of this machine left is taken over. On a cluster's file system two builds that begin within
        the same moment may both think that they are alone.
        """
        self.files.create_dir(self.root, recursive=True)
        path = f"{self.root}/{LOCK}"
        self._take(path)
        try:
            yield
        finally:
            with suppress(FileNotFoundError):
                self.files.delete_file(path)

    def _take(self, path: str) -> None:
        me = json.dumps({"host": socket.gethostname(), "pid": os.getpid()}).encode()
        if self.files.get_file_info(path).type != fs.FileType.NotFound:
            with self.files.open_input_stream(path) as stream:
                owner = _owner(stream.read())
            if not _is_dead(owner):
                raise LearnerError(
                    f"somebody builds into {self.where}: process {owner.get('pid')} on {owner.get('host')}",
                    f"wait until it has ended; if it died, remove {path}",
                )
            self.files.delete_file(path)
        if not self.is_local:
            with self.files.open_output_stream(path) as stream:
                stream.write(me)
            return
        try:
            with open(path, "xb") as file:
                file.write(me)
        except FileExistsError:
            raise LearnerError(f"somebody builds into {self.where}", "wait until it has ended") from None


def _owner(text: bytes) -> dict[str, Any]:
    try:
        owner = json.loads(text)
    except ValueError:
        owner = {}
    return owner if isinstance(owner, dict) else {}


def _is_dead(owner: dict[str, Any]) -> bool:
    """Is it known that the process has ended? Of another machine nobody knows."""
    if owner.get("host") != socket.gethostname() or type(owner.get("pid")) is not int:
        return False
    if owner["pid"] == os.getpid():
        return False
    try:
        os.kill(owner["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
