"""A sparse file in memory: what a file on the simulated disk is made of.

It holds memory only where something was written, and knows which of its 4 KiB pages a power loss could still take back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

PAGE_BYTES = 4096
"""The unit in which a machine writes its page cache to the disk, and in which space is used up."""

_CHUNK_BITS = 16
_CHUNK_BYTES = 1 << _CHUNK_BITS
_CHUNK_MASK = _CHUNK_BYTES - 1
_SMALLEST_BYTES = 256
_NO_CHUNK = bytearray()
_ZEROS = memoryview(bytes(_CHUNK_BYTES))


class File(Protocol):
    """A file of fixed logical size that is read and written by position."""

    path: str

    @property
    def size(self) -> int:
        """How many bytes it has, written or not."""
        ...

    def read(self, offset: int, n: int) -> bytes:
        """So many bytes from there; what was never written reads as zeros."""
        ...

    def write(self, offset: int, data: bytes) -> None:
        """Write bytes there; they are safe from a power loss after a flush."""
        ...

    def flush(self) -> None:
        """Make everything written so far safe."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file off there."""
        ...

    def data_end(self) -> int:
        """Where the last written byte ends."""
        ...


class Space(Protocol):
    """What a file needs of the disk that it lies on: room, and the time."""

    now_ms: Callable[[], int]

    def charge(self, path: str, n: int) -> None:
        """Take space for a file; DiskFull if it is not there."""
        ...

    def charge_if_room(self, n: int) -> bool:
        """Take space if it is there; whether it was."""
        ...

    def release(self, n: int) -> None:
        """Give the space of `n` bytes back to the disk."""
        ...


class MemoryFile:
    """A sparse file in memory, with the pages that a power loss could still take back.

    Bytes that were never written read as zeros. An append touches one chunk and no table: what lies behind
    `_synced_end` was all zeros at the last flush, so only pages that are written over need their old image kept.
    """

    __slots__ = ("_backing", "_backing_size", "_chunks", "_disk", "_end", "_old", "_run_start",
                 "_synced_end", "_tail", "_tail_index", "_tail_room", "mtime_ms", "path", "size")  # fmt: skip

    def __init__(self, disk: Space, path: str, size: int, backing: File | None = None) -> None:
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
        self._run_start = self._backing_size
        """Bytes from here to `_end` were appended one behind the other; earlier dirty pages are in `_old`."""
        self._tail = _NO_CHUNK
        self._tail_index = -1
        self._tail_room = 0

    # -- reading ----------------------------------------------------------------------------------------------------

    def read(self, offset: int, n: int) -> bytes:
        """The `n` bytes at `offset`, or as many as there are before the end of the file."""
        if offset + n > self.size:
            n = max(0, self.size - offset)
        start = offset & _CHUNK_MASK
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
            part = bytes(chunk[start : start + take]) if chunk is not None else self._read_backing(offset, take)
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
        if offset == self._end and stop <= self._tail_room and offset >> _CHUNK_BITS == self._tail_index:
            self._tail[start:stop] = data
            self._end = offset + len(data)
        elif data:
            self._write_slow(offset, data)

    def _write_slow(self, offset: int, data: bytes) -> None:
        end = offset + len(data)
        self._make_room(offset, end)
        if offset > self._end:
            self._keep_old_pages(self._run_start, self._end)
            self._run_start = self._end = offset
        if offset < self._run_start:
            self._keep_old_pages(offset, min(end, self._run_start))
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
            chunk.extend(_ZEROS[: size - len(chunk)])
        if index == self._tail_index:
            self._set_tail(index)

    def _keep_old_pages(self, offset: int, end: int) -> None:
        """Note what the pages of [offset, end) held at the last flush."""
        for page in range(offset // PAGE_BYTES, (end + PAGE_BYTES - 1) // PAGE_BYTES if end > offset else 0):
            if page not in self._old:
                self._old[page] = self._synced_page(page)

    def _synced_page(self, page: int) -> bytes | None:
        """What a page held at the last flush if nothing that was there then was written over; None for zeros."""
        start = page * PAGE_BYTES
        if start >= self._synced_end:
            return None
        kept = self.read(start, min(PAGE_BYTES, self._synced_end - start))
        return kept.ljust(PAGE_BYTES, b"\0") if kept.count(0) != len(kept) else None

    # -- page cache -------------------------------------------------------------------------------------------------

    @property
    def dirty_pages(self) -> list[int]:
        """The numbers of the 4 KiB pages that were written and not flushed, in order."""
        appended = range(self._run_start // PAGE_BYTES, (self._end + PAGE_BYTES - 1) // PAGE_BYTES)
        return sorted({*self._old, *(appended if self._end > self._run_start else ())})

    @property
    def appended_from(self) -> int:
        """From where on bytes were appended since the last flush, which a power loss could take."""
        return self._run_start

    def flush(self) -> None:
        """Make all that was written safe from a power loss (MappedByteBuffer.force)."""
        if self._old or self._run_start != self._end:
            self._all_synced()
            self.mtime_ms = self._disk.now_ms()

    def lose_power(self, choose: Callable[[str, int], int]) -> tuple[int, int]:
        """Let each dirty page survive (1) or not (0) as `choose("disk/<path>", 2)` says; pages kept and lost."""
        pages = self.dirty_pages
        lost = [page for page in pages if not choose(f"disk/{self.path}", 2)]
        images = [self._old[page] if page in self._old else self._synced_page(page) for page in lost]
        for page, image in zip(lost, images, strict=True):
            self._put_page(page, image or bytes(PAGE_BYTES))
        self._all_synced()
        return len(pages) - len(lost), len(lost)

    def _all_synced(self) -> None:
        self._old.clear()
        self._synced_end = self._run_start = self._end

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
            image = self._old.get(size // PAGE_BYTES)
            if image is not None:
                self._old[size // PAGE_BYTES] = image[: size % PAGE_BYTES].ljust(PAGE_BYTES, b"\0")
            self._end = min(self._end, size)
            self._run_start = min(self._run_start, size)
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
        self._synced_end = self._run_start = self._end

    def written_chunks(self) -> list[tuple[int, bytes]]:
        """(offset, bytes) of every stretch that holds data, in order: what an export writes, and nothing of the
        holes.
        """
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
            written = len(self._chunks[index].rstrip(b"\0"))
            if written:
                end = (index << _CHUNK_BITS) + written
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
        dirty = len(self.dirty_pages)
        return f"<MemoryFile {self.path}: {self.size} bytes, {self.allocated_bytes()} on disk, {dirty} pages dirty>"


def _in_pages(n: int) -> int:
    return (n + PAGE_BYTES - 1) // PAGE_BYTES * PAGE_BYTES
