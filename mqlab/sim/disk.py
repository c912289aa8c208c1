"""The disk of a node: sparse files in memory, a page cache that a power loss can tear, and a limit on space.

A file has a logical size and holds memory only where something was written, so ten thousand queue files of 6 MB cost little.
What was written but not flushed sits in the page cache: a process that is killed loses none of it, a machine that loses its
power keeps some of those 4 KiB pages and loses others. Times are ms since 1970, sizes and offsets bytes.
"""

from __future__ import annotations

import os
from bisect import bisect_left, insort
from collections.abc import Callable
from typing import Protocol

from ..errors import MqlabError
from .future import Future
from .task import sleep_us

PAGE_BYTES = 4096
"""The unit in which a machine writes its page cache to the disk, and in which space is used up."""

_CHUNK_BITS = 16
_CHUNK_BYTES = 1 << _CHUNK_BITS
_CHUNK_MASK = _CHUNK_BYTES - 1
_SMALLEST_BYTES = 256
_NO_CHUNK = bytearray()


class DiskFull(MqlabError):
    """A write found no space left on the disk; nothing of it was written."""

    def __init__(self, path: str, capacity_bytes: int) -> None:
        super().__init__(f"no space left on the disk ({capacity_bytes} bytes) for {path}")
        self.path = path
        self.capacity_bytes = capacity_bytes


class File(Protocol):
    """A file of fixed logical size that is read and written by position."""

    path: str

    @property
    def size(self) -> int: ...
    def read(self, offset: int, n: int) -> bytes: ...
    def write(self, offset: int, data: bytes) -> None: ...
    def flush(self) -> None: ...
    def truncate(self, size: int) -> None: ...
    def data_end(self) -> int: ...


class Disk(Protocol):
    """What a component may do with the disk of its node; paths are relative, with "/" between their parts."""

    @property
    def used_bytes(self) -> int: ...
    @property
    def capacity_bytes(self) -> int | None: ...
    @property
    def is_slow(self) -> bool: ...
    def exists(self, path: str) -> bool: ...
    def is_dir(self, path: str) -> bool: ...
    def list(self, path: str) -> list[str]: ...
    def open(self, path: str, size: int = 0) -> File: ...
    def remove(self, path: str) -> None: ...
    def rename(self, old: str, new: str) -> None: ...
    def rmtree(self, path: str) -> None: ...
    def read_bytes(self, path: str) -> bytes: ...
    def write_bytes(self, path: str, data: bytes, *, flush: bool = False) -> None: ...
    def mtime_ms(self, path: str) -> int: ...
    async def settle(self) -> None: ...


class MemoryFile:
    """A sparse file in memory, with the pages that a power loss could still take back.

    Bytes that were never written read as zeros. An append touches one chunk and no table: what lies behind `_synced_end` was
    all zeros at the last flush, so only pages that are written over need their old image kept.
    """

    __slots__ = ("_backing", "_backing_size", "_chunks", "_disk", "_end", "_old", "_synced_end", "_tail", "_tail_index",
                 "_tail_room", "mtime_ms", "path", "size")  # fmt: skip

    def __init__(self, disk: MemoryDisk, path: str, size: int, backing: File | None = None) -> None:
        self._disk = disk
        self.path = path
        self.size = size
        self.mtime_ms = disk.now_ms()
        self._backing = backing
        self._backing_size = size if backing is not None else 0
        self._chunks: dict[int, bytearray] = {}
        self._old: dict[int, bytes | None] = {}
        """Page number -> what a written-over page held at the last flush; None for zeros."""
        self._end = self._backing_size
        self._synced_end = self._backing_size
        self._tail = _NO_CHUNK
        self._tail_index = -1
        self._tail_room = 0

    # -- reading ----------------------------------------------------------------------------------------------------

    def read(self, offset: int, n: int) -> bytes:
        """The `n` bytes at `offset`, or as many as there are before the end of the file."""
        if offset + n > self.size:
            n = max(0, self.size - offset)
        start = offset & _CHUNK_MASK
        if start + n <= _CHUNK_BYTES:
            chunk = self._chunks.get(offset >> _CHUNK_BITS)
            if chunk is not None and start + n <= len(chunk):
                return bytes(chunk[start : start + n])
        return self._read_slow(offset, n)

    def _read_slow(self, offset: int, n: int) -> bytes:
        parts = []
        while n > 0:
            start = offset & _CHUNK_MASK
            take = min(n, _CHUNK_BYTES - start)
            chunk = self._chunks.get(offset >> _CHUNK_BITS)
            if chunk is None:
                part = self._read_backing(offset, take)
            else:
                part = bytes(chunk[start : start + take])
            parts.append(part if len(part) == take else part + bytes(take - len(part)))
            offset += take
            n -= take
        return b"".join(parts)

    def _read_backing(self, offset: int, n: int) -> bytes:
        if self._backing is None or offset >= self._backing_size:
            return b""
        return self._backing.read(offset, min(n, self._backing_size - offset))

    # -- writing ----------------------------------------------------------------------------------------------------

    def write(self, offset: int, data: bytes) -> None:
        """Write `data` at `offset`, behind the end too (the file grows); raises DiskFull with nothing written."""
        start = offset & _CHUNK_MASK
        stop = start + len(data)
        if offset >= self._end and stop <= self._tail_room and offset >> _CHUNK_BITS == self._tail_index:
            self._tail[start:stop] = data
            self._end = offset + len(data)
        elif data:
            self._write_slow(offset, data)

    def _write_slow(self, offset: int, data: bytes) -> None:
        end = offset + len(data)
        self._make_room(offset, end)
        if offset < self._end:
            self._keep_old_pages(offset, end)
        view = memoryview(data)
        at = offset
        while at < end:
            index, start = at >> _CHUNK_BITS, at & _CHUNK_MASK
            take = min(end - at, _CHUNK_BYTES - start)
            self._chunks[index][start : start + take] = view[at - offset : at - offset + take]
            at += take
        self.size = max(self.size, end)
        self.mtime_ms = self._disk.now_ms()
        if end > self._end:
            self._end = end
            self._set_tail((end - 1) >> _CHUNK_BITS)

    def _set_tail(self, index: int) -> None:
        self._tail_index = index
        self._tail = self._chunks.get(index, _NO_CHUNK)
        self._tail_room = min(len(self._tail), self.size - (index << _CHUNK_BITS))

    def _make_room(self, offset: int, end: int) -> None:
        """Let the chunks reach over [offset, end), at once or not at all."""
        growth: list[tuple[int, int]] = []
        needed = 0
        for index in range(offset >> _CHUNK_BITS, ((end - 1) >> _CHUNK_BITS) + 1):
            have = len(self._chunks.get(index, _NO_CHUNK))
            need = min(_CHUNK_BYTES, end - (index << _CHUNK_BITS))
            if need > have or index not in self._chunks:
                growth.append((index, need))
                needed += _in_pages(need) - _in_pages(have)
        if growth:
            self._disk.charge(self.path, needed)
            for index, need in growth:
                self._grow(index, need)

    def _grow(self, index: int, need: int) -> None:
        chunk = self._chunks.get(index)
        if chunk is None:
            chunk = self._chunks[index] = bytearray(self._read_backing(index << _CHUNK_BITS, _CHUNK_BYTES))
        size = _SMALLEST_BYTES
        while size < need:
            size *= 2
        if size > PAGE_BYTES and not self._disk.charge_if_room(size - _in_pages(need)):
            size = _in_pages(need)
        if size > len(chunk):
            chunk.extend(bytes(size - len(chunk)))
        if index == self._tail_index:
            self._set_tail(index)

    def _keep_old_pages(self, offset: int, end: int) -> None:
        last = min(end, self._synced_end)
        for page in range(offset // PAGE_BYTES, (last + PAGE_BYTES - 1) // PAGE_BYTES):
            if page not in self._old:
                self._old[page] = self._synced_page(page)

    def _synced_page(self, page: int) -> bytes | None:
        """What a page held at the last flush, as long as only appends went to it since."""
        start = page * PAGE_BYTES
        kept = self.read(start, min(PAGE_BYTES, self._synced_end - start))
        return kept.ljust(PAGE_BYTES, b"\0") if kept.count(0) != len(kept) else None

    # -- page cache -------------------------------------------------------------------------------------------------

    @property
    def dirty_pages(self) -> list[int]:
        """The numbers of the 4 KiB pages that were written and not flushed, in order."""
        appended = range(self._synced_end // PAGE_BYTES, (self._end + PAGE_BYTES - 1) // PAGE_BYTES)
        return sorted({*self._old, *(appended if self._end > self._synced_end else ())})

    def flush(self) -> None:
        """Make all that was written safe from a power loss (MappedByteBuffer.force)."""
        if self._old or self._synced_end != self._end:
            self._old.clear()
            self._synced_end = self._end
            self.mtime_ms = self._disk.now_ms()

    def lose_power(self, choose: Callable[[str, int], int]) -> tuple[int, int]:
        """Let each dirty page survive (1) or not (0) as `choose("disk/<path>", 2)` says; pages kept and lost."""
        pages = self.dirty_pages
        lost = [page for page in pages if not choose(f"disk/{self.path}", 2)]
        images = [self._old[page] if page in self._old else self._synced_page(page) for page in lost]
        for page, image in zip(lost, images, strict=True):
            self._put_page(page, image or bytes(PAGE_BYTES))
        self._old.clear()
        self._synced_end = self._end
        return len(pages) - len(lost), len(lost)

    def _put_page(self, page: int, image: bytes) -> None:
        start = page * PAGE_BYTES
        chunk = self._chunks[start >> _CHUNK_BITS]
        at = start & _CHUNK_MASK
        room = max(0, min(len(chunk) - at, PAGE_BYTES, self.size - start))
        chunk[at : at + room] = image[:room]

    def truncate(self, size: int) -> None:
        """Set the logical size; what lies behind a smaller one is gone, also from the page cache."""
        if size < self.size:
            self._backing_size = min(self._backing_size, size)
            for index in sorted(i for i in self._chunks if i << _CHUNK_BITS >= size):
                self._disk.release(_in_pages(len(self._chunks.pop(index))))
            boundary = self._chunks.get(size >> _CHUNK_BITS)
            if boundary is not None:
                keep = size & _CHUNK_MASK
                boundary[keep:] = bytes(max(0, len(boundary) - keep))
            for page in [p for p in self._old if p * PAGE_BYTES >= size]:
                del self._old[page]
            self._end = min(self._end, size)
            self._synced_end = min(self._synced_end, size)
        self.size = size
        self.mtime_ms = self._disk.now_ms()
        self._set_tail(self._tail_index)

    # -- in and out -------------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read all data of the file behind this one into memory, so that it is no longer needed."""
        backing, self._backing = self._backing, None
        if backing is None:
            return
        for offset in range(0, self._backing_size, _CHUNK_BYTES):
            index = offset >> _CHUNK_BITS
            if index not in self._chunks:
                data = backing.read(offset, min(_CHUNK_BYTES, self._backing_size - offset)).rstrip(b"\0")
                if data:
                    self._disk.charge(self.path, _in_pages(len(data)))
                    self._chunks[index] = bytearray(data)
        self._backing_size = 0
        last = max(self._chunks, default=-1)
        self._end = (last << _CHUNK_BITS) + len(self._chunks[last]) if last >= 0 else 0
        self._synced_end = self._end

    def written_chunks(self) -> list[tuple[int, bytes]]:
        """(offset, bytes) of every stretch that holds data, in order: what an export writes, and nothing of the holes."""
        indexes = set(self._chunks) | set(range((self._backing_size + _CHUNK_MASK) >> _CHUNK_BITS))
        stretches = []
        for index in sorted(indexes):
            data = self.read(index << _CHUNK_BITS, _CHUNK_BYTES).rstrip(b"\0")
            if data:
                stretches.append((index << _CHUNK_BITS, data))
        return stretches

    def data_end(self) -> int:
        """The offset behind the last byte that is not zero."""
        for index in sorted(self._chunks, reverse=True):
            data = self._chunks[index].rstrip(b"\0")
            if data:
                end = (index << _CHUNK_BITS) + len(data)
                break
        else:
            end = 0
        if self._backing is not None:
            behind = min(self._backing.data_end(), self._backing_size)
            while behind > end:
                index = (behind - 1) >> _CHUNK_BITS
                start = index << _CHUNK_BITS
                if index not in self._chunks and (data := self._backing.read(start, behind - start).rstrip(b"\0")):
                    return start + len(data)
                behind = start
        return end

    def allocated_bytes(self) -> int:
        """The space that the file takes on the disk."""
        return sum(_in_pages(len(chunk)) for chunk in self._chunks.values())

    def __repr__(self) -> str:
        return f"<MemoryFile {self.path}: {self.size} bytes, {self.allocated_bytes()} on disk, {len(self.dirty_pages)} pages dirty>"


class MemoryDisk:
    """The simulated disk of one machine: a tree of sparse files, with a capacity and a page cache.

    Set `capacity_bytes` to let writes end in DiskFull, `flush_us` to let a flush take time; `hang()` stops flushes until
    `unhang()`. `now_ms` is the machine's clock, used for the files' times of change.
    """

    def __init__(self, name: str, now_ms: Callable[[], int]) -> None:
        self.name = name
        self.now_ms = now_ms
        self.capacity_bytes: int | None = None
        self.used_bytes = 0
        self.flush_us = 0
        self._hung: Future[None] | None = None
        self._files: dict[str, MemoryFile] = {}
        self._folders: dict[str, list[str]] = {"": []}

    # -- the tree ---------------------------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        """Is there a file or a folder of that name?"""
        return path in self._files or path in self._folders

    def is_dir(self, path: str) -> bool:
        """Is it a folder? A folder comes with its first file and stays until `rmtree`."""
        return path in self._folders

    def list(self, path: str) -> list[str]:
        """The names in a folder, sorted; empty when there is no such folder."""
        return list(self._folders.get(path, ()))

    def open(self, path: str, size: int = 0) -> MemoryFile:
        """The file of that name; a missing one is made, empty, with `size` as its logical size."""
        file = self._files.get(path)
        if file is None:
            if path in self._folders:
                raise IsADirectoryError(path)
            file = MemoryFile(self, path, size)
            self._add(path, file)
        return file

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

    def files(self) -> list[str]:
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
    def is_slow(self) -> bool:
        """Does a flush take time now? Then `await settle()` before it."""
        return self.flush_us > 0 or self._hung is not None

    async def settle(self) -> None:
        """Wait as long as a flush takes: until the disk answers, and `flush_us`."""
        while self._hung is not None:
            await self._hung
        if self.flush_us:
            await sleep_us(self.flush_us)

    # -- in and out -------------------------------------------------------------------------------------------------

    @classmethod
    def over_directory(cls, path: str | os.PathLike[str], now_ms: Callable[[], int] = lambda: 0) -> MemoryDisk:
        """A disk that reads a directory of this machine as it needs it and keeps all changes in memory.

        The directory is never written to, and must stay as it is meanwhile.
        """
        from .real_disk import RealDisk

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


def _in_pages(n: int) -> int:
    return (n + PAGE_BYTES - 1) // PAGE_BYTES * PAGE_BYTES
