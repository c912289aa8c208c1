"""The one way to a file: folders of this machine, of HDFS and of S3, each reached by its address.

    there = folder("s3a://lake/traces")             # or /mnt/traces, file:///mnt/traces, hdfs://namenode:8020/traces
    for file in there.files(".parquet"):            # path below the folder, size, state
        with there.open(file.path) as stream:       # seekable, as pyarrow.parquet wants it
            ...
    spark.read.parquet(there.spark())               # what Spark is told

Spark reaches each store by itself, and Python by what Arrow takes: on this machine nothing but Python; on HDFS
hdfs-native, which reads Hadoop's own configuration and speaks the NameNode's protocol without Java; on S3 s3fs, which
finds credentials, region and endpoint where the AWS command line does. A folder comes to Spark's tasks as its address.

A small file can be made by one of many (`create`) and replaced in one step (`swap`): on these two stand the catalogue
of a place for tables, and the lease of who builds there (`mqlab_spark.lease`).
"""

from __future__ import annotations

import os
import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from stat import S_ISREG
from typing import Any, NamedTuple

from pyarrow import fs

from mqlab.errors import LearnerError, MissingExtraError

PATIENCE_S = 10
"""A NameNode that does not answer for so long is not there; its client alone would go on trying for minutes."""

S3_READ_AHEAD = 5 * 1024 * 1024
"""Bytes that are fetched at once where a file is read in order; s3fs uploads no smaller parts."""

ANY = "*"
"""The state of a file that may be in any state, and not be there at all."""


class File(NamedTuple):
    """A file below a folder: its path from there, its bytes, and a state that differs when it is written anew."""

    path: str
    size: int
    state: str


class Seen(NamedTuple):
    """What a small file held, and the state that it was in then."""

    data: bytes
    state: str


class ChangedError(OSError):
    """A file is no longer in the state in which the writer saw it: somebody else has written it."""


class Folder(ABC):
    """A folder of one store; `address` is its name, with which `folder` finds it again.

    `arrow` is the store as a file system of pyarrow, and `root` the folder's path in it. Paths that methods take and
    give are below the folder, with / between their parts.
    """

    arrow: fs.FileSystem
    is_local = False

    def __init__(self, address: str, root: str) -> None:
        self.address = address
        self.root = root

    def __reduce__(self) -> tuple[Callable[[str], Folder], tuple[str]]:
        return _again, (self.address,)

    def __repr__(self) -> str:
        return f"folder({self.address!r})"

    def at(self, path: str = "") -> str:
        """The path in the store's file system of something below the folder."""
        return f"{self.root.rstrip('/')}/{path}" if path else self.root

    def spark(self, path: str = "") -> str:
        """What Spark is told to read or write something below the folder."""
        return f"{self.address.rstrip('/')}/{path}" if path else self.address

    def open(self, path: str) -> Any:
        """A file for reading, seekable, as pyarrow opens it. FileNotFoundError if there is none."""
        return self.arrow.open_input_file(self.at(path))

    def files(self, *endings: str) -> list[File]:
        """All files below the folder whose names end so, by path; none where there is no folder."""
        return sorted(file for file in self._list() if not endings or file.path.endswith(endings))

    def below(self, path: str) -> Folder:
        """A folder below this one."""
        return _again(f"{self.address.rstrip('/')}/{path}")

    def parent(self) -> tuple[Folder, str]:
        """The folder above, and the name of this one in it."""
        above, _, name = self.address.rstrip("/").rpartition("/")
        return _again(above or "/"), name

    def reach(self) -> None:  # noqa: B027  a folder of this machine is always reached
        """LearnerError when the store does not answer, or does not let us in."""

    @abstractmethod
    def _list(self) -> Iterator[File]: ...

    @abstractmethod
    def stat(self, path: str) -> File | None:
        """The file at a path; None if there is none, or a folder."""

    @abstractmethod
    def look(self, path: str) -> Seen | None:
        """What a small file holds; None if there is none."""

    @abstractmethod
    def create(self, path: str, data: bytes) -> bool:
        """Make a small file that is not there yet; False if it is: of many who try at once, one makes it."""

    @abstractmethod
    def swap(self, path: str, data: bytes, state: str | None = ANY) -> str:
        """Make or replace a small file in one step: who reads it has the old content or the new, whole.

        With a state, only the file that is still in it is replaced; None is the state of a file that is not there.
        Returns the new state. ChangedError if somebody else has written it: S3 itself compares; on HDFS and on this
        machine it is looked at just before, so that there a lease must keep others from writing (`mqlab_spark.lease`).
        """

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""

    def _compare(self, path: str, state: str | None) -> None:
        if state != ANY:
            now = self.stat(path)
            if (now.state if now else None) != state:
                raise ChangedError(f"{self.spark(path)} was written by somebody else")


# -- this machine -----------------------------------------------------------------------------------------------------


class LocalFolder(Folder):
    """A folder of this machine, or one that it has mounted."""

    is_local = True

    def __init__(self, address: str) -> None:
        path = os.path.abspath(address.removeprefix("file:").replace("///", "/", 1))
        super().__init__(path, path)
        self.arrow = fs.LocalFileSystem()

    def spark(self, path: str = "") -> str:
        return f"file://{self.at(path)}"

    def _list(self) -> Iterator[File]:
        for directory, _, names in os.walk(self.root):
            for name in names:
                found = self.stat(Path(directory, name).relative_to(self.root).as_posix())
                if found is not None:
                    yield found

    def stat(self, path: str) -> File | None:
        try:
            state = os.stat(self.at(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return File(path, state.st_size, _local_state(state)) if S_ISREG(state.st_mode) else None

    def look(self, path: str) -> Seen | None:
        try:
            with open(self.at(path), "rb") as file:
                return Seen(file.read(), _local_state(os.fstat(file.fileno())))
        except FileNotFoundError:
            return None

    def create(self, path: str, data: bytes) -> bool:
        os.makedirs(os.path.dirname(self.at(path)), exist_ok=True)
        try:
            file = open(self.at(path), "xb")  # noqa: SIM115  what fails after it is there removes it
        except FileExistsError:
            return False
        try:
            with file:
                file.write(data)
        except BaseException:
            self.remove(path)
            raise
        return True

    def swap(self, path: str, data: bytes, state: str | None = ANY) -> str:
        os.makedirs(os.path.dirname(self.at(path)), exist_ok=True)
        new = f"{self.at(path)}.new"
        try:
            with open(new, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                now = _local_state(os.fstat(file.fileno()))
            self._compare(path, state)
            os.replace(new, self.at(path))
        except BaseException:
            self.remove(f"{path}.new")
            raise
        return now

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            os.remove(self.at(path))


def _local_state(state: os.stat_result) -> str:
    return f"{state.st_mtime_ns}-{state.st_ino}"


# -- HDFS -------------------------------------------------------------------------------------------------------------


class HdfsFolder(Folder):
    """A folder of HDFS. Without a host in its address it is that of Hadoop's configuration (HADOOP_CONF_DIR)."""

    def __init__(self, address: str) -> None:
        _require("hdfs-native", "hdfs_native")
        authority, path = _parts(address)
        super().__init__(f"hdfs://{authority}{path}", path)
        self._host, _, port = authority.partition(":")
        self._port = int(port or 0)
        store = _hdfs()(host=self._host or None, port=self._port or None)
        self.arrow = fs.PyFileSystem(fs.FSSpecHandler(store))
        self._client = store.client

    def reach(self) -> None:
        try:
            if self._port:
                socket.create_connection((self._host, self._port), PATIENCE_S).close()
            with _plainly():
                self._client.get_file_info("/")
        except (OSError, ValueError) as problem:
            raise LearnerError(
                f"{self.address} cannot be reached: {problem}",
                "write hdfs://NAMENODE:8020/..., or set HADOOP_CONF_DIR to where core-site.xml lies",
            ) from None

    def _list(self) -> Iterator[File]:
        with suppress(FileNotFoundError), _plainly():
            for each in self._client.list_status(self.root, True):
                if not each.isdir:
                    yield File(each.path[len(self.at("-")) - 1 :], each.length, _hdfs_state(each))

    def stat(self, path: str) -> File | None:
        with suppress(FileNotFoundError), _plainly():
            found = self._client.get_file_info(self.at(path))
            return None if found.isdir else File(path, found.length, _hdfs_state(found))
        return None

    def look(self, path: str) -> Seen | None:
        found = self.stat(path)
        with suppress(FileNotFoundError), _plainly():
            return found and Seen(self._client.read(self.at(path)).read(), found.state)
        return None

    def create(self, path: str, data: bytes) -> bool:
        try:
            self._write(self.at(path), data, overwrite=False)
        except FileExistsError:
            return False
        return True

    def swap(self, path: str, data: bytes, state: str | None = ANY) -> str:
        new = f"{self.at(path)}.new"
        self._write(new, data, overwrite=True)
        self._compare(path, state)
        with _plainly():
            now = _hdfs_state(self._client.get_file_info(new))
            self._client.rename(new, self.at(path), True)
        return now

    def _write(self, path: str, data: bytes, *, overwrite: bool) -> None:
        from hdfs_native import WriteOptions

        options = WriteOptions()
        options.overwrite = overwrite
        with _plainly():
            file = self._client.create(path, options)
            try:
                file.write(data)
                file.close()
            except BaseException:
                self._client.delete(path)
                raise

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError), _plainly():
            self._client.delete(self.at(path))


@cache
def _hdfs() -> Any:
    """HDFS as a file system of fsspec that takes paths alone: its own takes addresses, and ends each at a # or a ?."""
    from hdfs_native.fsspec import HdfsFileSystem

    return type("Hdfs", (HdfsFileSystem,), {"_strip_protocol": classmethod(lambda _, path: path)})


def _hdfs_state(status: Any) -> str:
    return f"{status.modification_time}-{status.length}"


@contextmanager
def _plainly() -> Iterator[None]:
    """OSError with the first line of what HDFS says, instead of a RuntimeError with all of Java's stack."""
    try:
        yield
    except (FileExistsError, FileNotFoundError, PermissionError):
        raise
    except (OSError, RuntimeError) as problem:
        raise OSError(str(problem).partition("\\n")[0].partition("\n")[0]) from None


# -- S3 ---------------------------------------------------------------------------------------------------------------


class S3Folder(Folder):
    """A folder of an S3 bucket: what begins with its path. Spark is told s3a://, whichever name it was given."""

    def __init__(self, address: str) -> None:
        _require("s3fs", "s3fs")
        from s3fs import S3FileSystem

        bucket, path = _parts(address)
        super().__init__(f"s3a://{bucket}{path.rstrip('/')}", f"{bucket}{path}".rstrip("/"))
        self._bucket = bucket
        # What other processes write is seen at once.
        self._store = S3FileSystem(use_listings_cache=False, default_block_size=S3_READ_AHEAD)
        self.arrow = fs.PyFileSystem(fs.FSSpecHandler(self._store))

    def reach(self) -> None:
        from botocore.exceptions import BotoCoreError, NoCredentialsError

        try:
            self._store.call_s3("head_bucket", Bucket=self._bucket)
        except NoCredentialsError:
            hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE: where the AWS command line looks"
            raise LearnerError(f"there are no credentials for {self.address}", hint) from None
        except (OSError, BotoCoreError) as problem:
            raise LearnerError(
                f"{self.address} cannot be reached: {problem}",
                "is the bucket called so, and is it there? AWS_ENDPOINT_URL names an S3 that is not Amazon's",
            ) from None

    def _list(self) -> Iterator[File]:
        for name, found in self._store.find(self.root, detail=True).items():
            # Hadoop marks a directory by an empty object whose name ends in a slash.
            if name != self.root and not name.endswith("/"):
                yield File(name[len(self.root) + 1 :], found["size"], found["ETag"])

    def stat(self, path: str) -> File | None:
        with suppress(FileNotFoundError):
            found = self._store.info(self.at(path))
            return None if found["type"] != "file" else File(path, found["size"], found["ETag"])
        return None

    def look(self, path: str) -> Seen | None:
        from fsspec.asyn import sync

        async def get() -> Seen:
            answer = await self._store._call_s3("get_object", Bucket=self._bucket, Key=self._key(path))
            async with answer["Body"] as body:
                return Seen(await body.read(), answer["ETag"])

        with suppress(FileNotFoundError):
            seen: Seen = sync(self._store.loop, get)
            return seen
        return None

    def _key(self, path: str) -> str:
        return self.at(path)[len(self._bucket) + 1 :]

    def create(self, path: str, data: bytes) -> bool:
        try:
            self.swap(path, data, None)
        except ChangedError:
            return False
        return True

    def swap(self, path: str, data: bytes, state: str | None = ANY) -> str:
        condition = {} if state == ANY else {"IfNoneMatch": "*"} if state is None else {"IfMatch": state}
        try:
            # Not pipe_file: of 100 MiB it would make several requests, which have no condition.
            put = self._store.call_s3("put_object", Bucket=self._bucket, Key=self._key(path), Body=data, **condition)
            return str(put["ETag"])
        except OSError as problem:
            told = getattr(problem.__cause__, "response", {}).get("Error", {}).get("Code")
            if state == ANY or told not in S3_REFUSALS:
                raise
            # A request whose answer was lost is sent again, and the second time meets what the first has written.
            now = self.look(path)
            if now is not None and now.data == data:
                return now.state
            raise ChangedError(f"{self.spark(path)} was written by somebody else") from None

    def remove(self, path: str) -> None:
        self._store.call_s3("delete_object", Bucket=self._bucket, Key=self._key(path))


S3_REFUSALS = ("PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey")
"""What S3 says when a file is not, or while somebody else writes is perhaps not, in the state that was asked for."""


# -- addresses --------------------------------------------------------------------------------------------------------

STORES: dict[str, Callable[[str], Folder]] = {"file": LocalFolder, "hdfs": HdfsFolder, "s3": S3Folder, "s3a": S3Folder}
"""What an address may begin with; without any of them it is a path of this machine."""
KNOWN = ", ".join(f"{scheme}://" for scheme in STORES)


def folder(address: str | Path) -> Folder:
    """The folder at an address, whether or not there is anything in it yet.

    LearnerError when no store is called so, or when it does not answer; MissingExtraError without its library.
    """
    found = _again(str(address))
    found.reach()
    return found


def _again(address: str) -> Folder:
    """The folder at an address that was reached before: a task of Spark need not ask whether it is there."""
    told = re.match(r"([a-z][a-z0-9+.-]*)://|(file):", address)
    scheme = told[told.lastindex or 0] if told else "file"
    if scheme not in STORES:
        raise LearnerError(f"mqlab cannot reach {address}", f"give a path, or an address that begins with {KNOWN}")
    return STORES[scheme](address)


def files_at(address: str | Path, *endings: str) -> tuple[Folder, list[File]]:
    """The files that an address means, with the folder that they all lie in, by path.

    They are all files with these endings below a folder; or the one file at the address, however it ends; or, where
    parts of the address are patterns (* ? [), the files that they fit. None where nothing is.
    """
    told = str(address)
    parts = told.split("/")
    fixed = next((n for n, part in enumerate(parts) if any(sign in part for sign in "*?[")), len(parts))
    if fixed < len(parts) and not os.path.exists(told):
        there = folder("/".join(parts[:fixed]) or ("/" if fixed else "."))
        pattern = "/".join(parts[fixed:])
        return there, [file for file in there.files() if _fits(file.path, pattern)]
    there = folder(told)
    one = there.stat("")
    if one is not None:
        above, name = there.parent()
        return above, [one._replace(path=name)]
    return there, there.files(*endings)


def _fits(path: str, pattern: str) -> bool:
    return path.count("/") == pattern.count("/") and PurePosixPath(path).match(pattern)


def _parts(address: str) -> tuple[str, str]:
    """The host or bucket of an address, and the path behind it."""
    authority, _, path = address.partition("://")[2].partition("/")
    return authority, f"/{path}".rstrip("/") or "/"


def _require(package: str, module: str) -> None:
    if find_spec(module) is None:
        raise MissingExtraError(package, "storage")
