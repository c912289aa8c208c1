"""The disk of a node: sparse files in memory, a page cache that a power loss can tear, and a limit on space.

A file has a logical size and holds memory only where something was written, so ten thousand queue files of 6 MB cost
little. What was written but not flushed sits in the page cache: a process that is killed loses none of it, a machine
that loses its power keeps some of those 4 KiB pages and loses others. Times are ms since 1970, sizes and offsets bytes.
"""

from __future__ import annotations

import os
from bisect import bisect_left, insort
from collections.abc import Callable
from typing import Protocol

from mqlab.errors import MqlabError
from mqlab.sim.future import Future
from mqlab.sim.memory_file import PAGE_BYTES, File, MemoryFile
from mqlab.sim.traps import sleep_us, wait_at_most

__all__ = ["PAGE_BYTES", "Disk", "DiskFull", "File", "MemoryDisk", "MemoryFile", "Paths"]

Paths = list[str]
"""Names or paths, sorted. (A class with a method `list` cannot say list[str] behind it.)"""


class DiskFull(MqlabError):
    """A write found no space left on the disk; nothing of it was written."""

    def __init__(self, path: str, capacity_bytes: int) -> None:
        super().__init__(
            f"no space left on the disk ({capacity_bytes} bytes) for {path}\n"
            "  What to do: give it room, lab.act('fill_disk', node=..., free_bytes=10_000_000), or remove files"
        )
        self.path = path
        self.capacity_bytes = capacity_bytes


class Disk(Protocol):
    """What a component may do with the disk of its node; paths are relative, with "/" between their parts."""

    @property
    def used_bytes(self) -> int:
        """How many bytes the files take."""
        ...

    @property
    def capacity_bytes(self) -> int | None:
        """How many bytes there are; None means without end."""
        ...

    @property
    def is_slow(self) -> bool:
        """Does a flush take time now?"""
        ...

    @property
    def is_hung(self) -> bool:
        """Does every flush wait?"""
        ...

    def exists(self, path: str) -> bool:
        """Is there a file or a folder of that name?"""
        ...

    def is_dir(self, path: str) -> bool:
        """Is it a folder?"""
        ...

    def list(self, path: str) -> Paths:
        """The names in a folder, sorted."""
        ...

    def open(self, path: str, size: int = 0) -> File:
        """The file of that name; a missing one is made."""
        ...

    def remove(self, path: str) -> None:
        """Delete a file; FileNotFoundError if there is none."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Give a file another name."""
        ...

    def rmtree(self, path: str) -> None:
        """Delete a folder with all that is in it."""
        ...

    def read_bytes(self, path: str) -> bytes:
        """The whole content of a file."""
        ...

    def write_bytes(self, path: str, data: bytes, *, flush: bool = False) -> None:
        """Make `data` the whole content of a file."""
        ...

    def mtime_ms(self, path: str) -> int:
        """When a file last changed."""
        ...

    async def settle(self) -> None:
        """Wait as long as a flush takes."""
        ...

    @property
    def slow_us(self) -> int:
        """How long a write or a read takes that the page cache cannot do alone; 0 on a disk that is quick."""
        ...

    async def crawl(self) -> None:
        """Wait as long as such a write or read takes."""
        ...

    def tell_of_speed(self, changed: Callable[[], None]) -> None:
        """Call back when the disk gets slow or quick; this is told instead of whoever was told before."""
        ...


def used_share(disk: Disk) -> float:
    """How full a disk is, from 0 to 1; one without end is empty."""
    return disk.used_bytes / disk.capacity_bytes if disk.capacity_bytes else 0.0


class MemoryDisk:
    """The simulated disk of one machine: a tree of sparse files, with a capacity and a page cache.

    Set `capacity_bytes` to let writes end in DiskFull, `flush_us` to let a flush take time; `hang()` stops flushes
    until `unhang()`, `set_slow(us)` makes flushes slow and what a store does beside its page cache. `now_ms` is the
    machine's clock, used for the files' times of change.
    """

    def __init__(self, name: str, now_ms: Callable[[], int]) -> None:
        self.name = name
        self.now_ms = now_ms
        self.capacity_bytes: int | None = None
        self.used_bytes = 0
        self.flush_us = 0
        self.slow_us = 0
        self._hung: Future[None] | None = None
        self._quick: Future[None] | None = None
        self._speed_changed: Callable[[], None] | None = None
        self._files: dict[str, MemoryFile] = {}
        self._folders: dict[str, list[str]] = {"": []}

    # -- the tree ---------------------------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        """Is there a file or a folder of that name?"""
        return path in self._files or path in self._folders

    def is_dir(self, path: str) -> bool:
        """Is it a folder? A folder comes with its first file and stays until `rmtree`."""
        return path in self._folders

    def list(self, path: str) -> Paths:
        """The names in a folder, sorted; empty when there is no such folder."""
        return list(self._folders.get(path, ()))

    def open(self, path: str, size: int = 0) -> MemoryFile:
        """The file of that name; a missing one is made, empty, with `size` as its logical size."""
        file = self._files.get(path)
        if file is None:
            if path in self._folders:
                raise IsADirectoryError(path)
            self._check_parents(path)
            file = MemoryFile(self, path, size)
            self._add(path, file)
        return file

    def _check_parents(self, path: str) -> None:
        """NotADirectoryError when a file stands where a folder above this path should be."""
        folder = path.rpartition("/")[0]
        while folder not in self._folders:
            if folder in self._files:
                raise NotADirectoryError(folder)
            folder = folder.rpartition("/")[0]

    def _add(self, path: str, file: MemoryFile) -> None:
        self._files[path] = file
        child = path
        while True:
            folder, _, name = child.rpartition("/")
            known = folder in self._folders
            names = self._folders.setdefault(folder, [])
            at = bisect_left(names, name)
            if at == len(names) or names[at] != name:
                insort(names, name)
            if known:
                return
            child = folder

    def _drop_name(self, path: str) -> None:
        folder, _, name = path.rpartition("/")
        self._folders[folder].remove(name)

    def _file(self, path: str) -> MemoryFile:
        try:
            return self._files[path]
        except KeyError:
            raise FileNotFoundError(f"no file {path!r} on the disk of {self.name}") from None

    def remove(self, path: str) -> None:
        """Delete a file; FileNotFoundError if there is none."""
        file = self._file(path)
        self.release(file.allocated_bytes())
        del self._files[path]
        self._drop_name(path)

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, in the place of the one that had it."""
        file = self._file(old)
        if new in self._files:
            self.remove(new)
        del self._files[old]
        self._drop_name(old)
        file.path = new
        self._add(new, file)

    def rmtree(self, path: str) -> None:
        """Delete a folder with all that is in it; nothing happens when there is none."""
        if path not in self._folders:
            return
        for name in self.list(path):
            child = f"{path}/{name}" if path else name
            if child in self._folders:
                self.rmtree(child)
            else:
                self.remove(child)
        if path:
            del self._folders[path]
            self._drop_name(path)

    def read_bytes(self, path: str) -> bytes:
        """The whole content of a file."""
        file = self._file(path)
        return file.read(0, file.size)

    def write_bytes(self, path: str, data: bytes, *, flush: bool = False) -> None:
        """Make `data` the whole content of a file; it is safe from a power loss only with `flush`."""
        file = self.open(path)
        file.write(0, data)
        if file.size != len(data):
            file.truncate(len(data))
        if flush:
            file.flush()

    def mtime_ms(self, path: str) -> int:
        """When a file last changed: at its making, a flush, or the first write to new space."""
        return self._file(path).mtime_ms

    def files(self) -> Paths:
        """The paths of all files, sorted."""
        return sorted(self._files)

    # -- space ------------------------------------------------------------------------------------------------------

    def charge(self, path: str, n: int) -> None:
        """Take `n` bytes of space for a file; DiskFull if they are not there."""
        if self.capacity_bytes is not None and n > 0 and self.used_bytes + n > self.capacity_bytes:
            raise DiskFull(path, self.capacity_bytes)
        self.used_bytes += n

    def charge_if_room(self, n: int) -> bool:
        """Take `n` bytes of space if they are there."""
        if self.capacity_bytes is not None and self.used_bytes + n > self.capacity_bytes:
            return False
        self.used_bytes += n
        return True

    def release(self, n: int) -> None:
        """Give `n` bytes of space back."""
        self.used_bytes -= n

    # -- faults -----------------------------------------------------------------------------------------------------

    def power_loss(self, choose: Callable[[str, int], int]) -> tuple[int, int]:
        """Lose what was not flushed, page by page as `choose(point, 2)` decides (0 lost, 1 kept); pages kept and lost.

        Files are asked in the order of their paths, pages in the order of their numbers; the point is "disk/<path>".
        """
        kept = lost = 0
        for path in self.files():
            file_kept, file_lost = self._files[path].lose_power(choose)
            kept += file_kept
            lost += file_lost
        return kept, lost

    def hang(self) -> None:
        """Let every flush wait from now on, as on a disk that has stopped answering."""
        if self._hung is None:
            self._hung = Future(f"the disk of {self.name} to answer again")

    def unhang(self) -> None:
        """Let the flushes that wait go on."""
        if self._hung is not None:
            hung, self._hung = self._hung, None
            hung.set_result(None)

    @property
    def is_hung(self) -> bool:
        """Has the disk stopped answering?"""
        return self._hung is not None

    @property
    def is_slow(self) -> bool:
        """Does a flush take time now? Then `await settle()` before it."""
        return self.flush_us > 0 or self._hung is not None or self.slow_us > 0

    async def settle(self) -> None:
        """Wait as long as a flush takes: until the disk answers, `flush_us`, and as long as it is slow."""
        while self._hung is not None:
            await self._hung
        if self.flush_us:
            await sleep_us(self.flush_us)
        await self.crawl()

    def set_slow(self, us: int) -> None:
        """Let every flush take `us` longer from now on, and every write into a commit log and read of old messages take
        `us`; 0 ends it, also for what is under way.
        """
        self.slow_us = us
        over, self._quick = self._quick, Future(f"the disk of {self.name} to be quick again") if us else None
        if over is not None:
            over.set_result(None)
        if self._speed_changed is not None:
            self._speed_changed()

    async def crawl(self) -> None:
        """Wait as long as a write or a read takes that the page cache cannot do alone: `slow_us`, or until the disk's
        speed is another.
        """
        if self._quick is not None:
            await wait_at_most(self._quick, self.slow_us)

    def tell_of_speed(self, changed: Callable[[], None]) -> None:
        """Call back when the disk gets slow or quick; this is told instead of whoever was told before."""
        self._speed_changed = changed

    # -- in and out -------------------------------------------------------------------------------------------------

    @classmethod
    def over_directory(cls, path: str | os.PathLike[str], now_ms: Callable[[], int] = lambda: 0) -> MemoryDisk:
        """A disk that reads a directory of this machine as it needs it and keeps all changes in memory.

        The directory is never written to, and must stay as it is meanwhile.
        """
        from mqlab.sim.real_disk import RealDisk

        real = RealDisk(path, read_only=True)
        disk = cls(str(path), now_ms)
        for name in real.files():
            source = real.open(name)
            file = MemoryFile(disk, name, source.size, source)
            file.mtime_ms = real.mtime_ms(name)
            disk._add(name, file)
        return disk

    @classmethod
    def from_directory(cls, path: str | os.PathLike[str], now_ms: Callable[[], int] = lambda: 0) -> MemoryDisk:
        """A copy in memory of a directory of this machine."""
        disk = cls.over_directory(path, now_ms)
        for name in disk.files():
            disk._files[name].load()
        return disk

    def export_to(self, path: str | os.PathLike[str]) -> None:
        """Write all files into a directory of this machine, sparse: holes take no space there either."""
        for name in self.files():
            file = self._files[name]
            target = os.path.join(path, *name.split("/"))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as out:
                for offset, data in file.written_chunks():
                    out.seek(offset)
                    out.write(data)
                out.truncate(file.size)

    def __repr__(self) -> str:
        limit = f" of {self.capacity_bytes}" if self.capacity_bytes is not None else ""
        return f"<MemoryDisk {self.name}: {len(self._files)} files, {self.used_bytes}{limit} bytes used>"
