"""A directory of this machine, with the methods of a disk: for reading and writing real store directories.

Files are opened by position (pread, pwrite) and only when something is read or written, so that looking at a directory
never changes it.
"""

from __future__ import annotations

import os
import shutil
import struct
from collections import OrderedDict
from collections.abc import Callable

from mqlab.errors import LearnerError
from mqlab.sim.disk import DiskFull, Paths

_OPEN_FILES = 128
_SCAN_BYTES = 1 << 20


class ReadOnlyDisk(LearnerError):
    """Something was to be changed in a directory that was opened for reading."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is opened read-only", "work on a copy: MemoryDisk.from_directory(path)")
        self.path = path


class RealFile:
    """A file of this machine, read and written by position."""

    def __init__(self, disk: RealDisk, path: str) -> None:
        self._disk = disk
        self.path = path

    @property
    def size(self) -> int:
        """The file's size in bytes; 0 for a link to nothing."""
        return self._disk.stat(self.path).st_size if self._disk.exists(self.path) else 0

    def read(self, offset: int, n: int) -> bytes:
        """The `n` bytes at `offset`, or as many as there are before the end of the file."""
        return os.pread(self._disk.descriptor(self.path), n, offset)

    def write(self, offset: int, data: bytes) -> None:
        """Write `data` at `offset`; ReadOnlyDisk on a read-only disk, DiskFull when the machine has no space."""
        self._disk.check_writable(self.path)
        descriptor = self._disk.descriptor(self.path)
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(descriptor, data[written:], offset + written)
        except OSError as error:
            raise self._disk.as_disk_full(self.path, error) from error

    def data_end(self) -> int:
        """The offset behind the last byte that is not zero."""
        end = self.size
        while end > 0:
            start = max(0, end - _SCAN_BYTES)
            data = self.read(start, end - start).rstrip(b"\0")
            if data:
                return start + len(data)
            end = start
        return 0

    def flush(self) -> None:
        """Let the machine write its page cache of this file to the disk."""
        if not self._disk.read_only:
            os.fsync(self._disk.descriptor(self.path))

    def truncate(self, size: int) -> None:
        """Set the size; what lies behind a smaller one is gone."""
        self._disk.check_writable(self.path)
        os.ftruncate(self._disk.descriptor(self.path), size)


class RealDisk:
    """A directory of this machine as a disk; with `read_only` every change raises ReadOnlyDisk.

    `used_bytes` and `capacity_bytes` are those of the partition. At most 128 files are held open at a time.
    """

    is_slow = False
    is_hung = False
    slow_us = 0

    def __init__(self, root: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self._descriptors: OrderedDict[str, int] = OrderedDict()
        self._locks: list[int] = []
        self.root = os.fspath(root)
        self.read_only = read_only
        if not os.path.isdir(self.root):
            if read_only:
                raise LearnerError(f"there is no directory {self.root}", "give the path of an existing directory")
            os.makedirs(self.root)

    def real_path(self, path: str) -> str:
        """The machine's name of a file."""
        return os.path.join(self.root, *path.split("/")) if path else self.root

    def stat(self, path: str) -> os.stat_result:
        """What the machine says of a file, or of the link when that leads to nothing."""
        real = self.real_path(path)
        return os.stat(real) if os.path.exists(real) else os.lstat(real)

    def check_writable(self, path: str) -> None:
        """ReadOnlyDisk if nothing may be changed here."""
        if self.read_only:
            raise ReadOnlyDisk(self.real_path(path))

    def descriptor(self, path: str) -> int:
        """An open file descriptor of a file; the one used longest ago is closed when there are too many."""
        descriptors = self._descriptors
        if path in descriptors:
            descriptors.move_to_end(path)
            return descriptors[path]
        if len(descriptors) >= _OPEN_FILES:
            os.close(descriptors.popitem(last=False)[1])
        flags = os.O_RDONLY if self.read_only else os.O_RDWR
        descriptor = descriptors[path] = os.open(self.real_path(path), flags | getattr(os, "O_CLOEXEC", 0))
        return descriptor

    def as_disk_full(self, path: str, error: OSError) -> Exception:
        """DiskFull for the machine's "no space left", any other error as it is."""
        import errno

        return DiskFull(path, self.capacity_bytes) if error.errno in (errno.ENOSPC, errno.EDQUOT) else error

    def lock(self, path: str) -> None:
        """Take the lock of a file, which one program has at a time, for as long as this disk is used.

        LearnerError when another one has it; a broker of Java's takes the lock of its store's file "lock", too.
        """
        import fcntl

        self.open(path)
        locked = os.open(self.real_path(path), os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
        try:
            if hasattr(fcntl, "F_OFD_SETLK"):
                # The lock of this descriptor; that of a process would end when any other of the file is closed.
                fcntl.fcntl(locked, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))
            else:
                fcntl.lockf(locked, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
        except OSError:
            os.close(locked)
            raise LearnerError(
                f"another program works on {self.root}", "end that one, or give another directory"
            ) from None
        self._locks.append(locked)

    def close(self) -> None:
        """Close all files; the disk can be used again."""
        while self._descriptors:
            os.close(self._descriptors.popitem()[1])

    def __enter__(self) -> RealDisk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
        self.unlock()

    def unlock(self) -> None:
        """Give the locks back."""
        while self._locks:
            os.close(self._locks.pop())

    # -- the tree ---------------------------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        """Is there a file or a folder of that name?"""
        return os.path.exists(self.real_path(path))

    def is_dir(self, path: str) -> bool:
        """Is it a folder?"""
        return os.path.isdir(self.real_path(path))

    def list(self, path: str) -> Paths:
        """The names in a folder, sorted; empty when there is no such folder."""
        return sorted(os.listdir(self.real_path(path))) if self.is_dir(path) else []

    def files(self) -> Paths:
        """The paths of all files, sorted; links are followed, but never in a circle.

        A link to nothing counts as a file, a pipe or a socket does not.
        """
        found: Paths = []
        self._add_files("", (), found)
        return sorted(found)

    def _add_files(self, folder: str, above: tuple[str, ...], found: Paths) -> None:
        real = os.path.realpath(self.real_path(folder))
        if real in above:
            return
        for name in os.listdir(real):
            path = f"{folder}/{name}" if folder else name
            if self.is_dir(path):
                self._add_files(path, (*above, real), found)
            elif os.path.isfile(self.real_path(path)) or not self.exists(path):
                found.append(path)

    def open(self, path: str, size: int = 0) -> RealFile:
        """The file of that name; a missing one is made, sparse, with `size` as its logical size."""
        real = self.real_path(path)
        if not os.path.exists(real) and not (self.read_only and os.path.islink(real)):
            self.check_writable(path)
            os.makedirs(os.path.dirname(real), exist_ok=True)
            with open(real, "wb") as out:
                out.truncate(size)
        return RealFile(self, path)

    def _forget(self, path: str) -> None:
        if path in self._descriptors:
            os.close(self._descriptors.pop(path))

    def remove(self, path: str) -> None:
        """Delete a file; FileNotFoundError if there is none."""
        self.check_writable(path)
        self._forget(path)
        os.remove(self.real_path(path))

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, in the place of the one that had it."""
        self.check_writable(old)
        self._forget(old)
        self._forget(new)
        os.makedirs(os.path.dirname(self.real_path(new)), exist_ok=True)
        os.replace(self.real_path(old), self.real_path(new))

    def rmtree(self, path: str) -> None:
        """Delete a folder with all that is in it; nothing happens when there is none."""
        self.check_writable(path)
        if self.is_dir(path):
            self.close()
            shutil.rmtree(self.real_path(path))

    def read_bytes(self, path: str) -> bytes:
        """The whole content of a file."""
        with open(self.real_path(path), "rb") as file:
            return file.read()

    def write_bytes(self, path: str, data: bytes, *, flush: bool = False) -> None:
        """Make `data` the whole content of a file; it is safe from a power loss only with `flush`."""
        file = self.open(path)
        file.write(0, data)
        file.truncate(len(data))
        if flush:
            file.flush()

    def mtime_ms(self, path: str) -> int:
        """When a file last changed, ms since 1970."""
        return self.stat(path).st_mtime_ns // 1_000_000

    # -- space and time ---------------------------------------------------------------------------------------------

    @property
    def capacity_bytes(self) -> int:
        """The size of the partition."""
        return shutil.disk_usage(self.root).total

    @property
    def used_bytes(self) -> int:
        """What is taken of the partition, by whomever."""
        return shutil.disk_usage(self.root).used

    async def settle(self) -> None:
        """Nothing to wait for: a real flush takes its real time."""

    async def crawl(self) -> None:
        """Nothing to wait for, either."""

    def tell_of_speed(self, changed: Callable[[], None]) -> None:
        """There is nothing to tell: how quick a real disk is, nobody sets."""
