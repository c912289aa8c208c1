"""A small ordered key-value store on the disk of a node: a sorted map in memory, and a log of every change to it."""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

from mqlab.sim.disk import Disk, DiskFull, File

_FRAME = struct.Struct(">II")
_ENTRY = struct.Struct(">BHI")
_PUT, _DELETE = 1, 0
COMPACT_BYTES = 32 * 1024
"""A log that is longer than this, and than twice what it keeps, is written anew: a length that worlds of some hundred
messages reach.
"""


class OrderedStore:
    """Keys in the order of their bytes, each with a value; what was flushed is there again after a restart.

    A change is a frame at the end of the log: a checksum (CRC-32), the length, and the puts and deletes of one batch,
    which come into force together or not at all. Opening it reads the log from its start and stops at the first frame
    that is torn, so a loss of power takes the newest changes that were not flushed, and never one out of the middle.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path
        self._disk = disk
        self._values: dict[bytes, bytes] = {}
        self._keys: list[bytes] = []
        self._live_bytes = 0
        self._end = 0
        self._log: File | None = None

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: bytes) -> bool:
        return key in self._values

    @property
    def log_bytes(self) -> int:
        """How long the log is."""
        return self._end

    # -- life -------------------------------------------------------------------------------------------------------

    def open(self) -> int:
        """Read the log, and cut off what is torn at its end; how many bytes that were."""
        half_written = self._new_path
        if self._disk.exists(half_written):
            self._disk.remove(half_written)
        self._log = self._disk.open(self.path)
        data = self._log.read(0, self._log.size)
        self._end = self._replay(data)
        torn = len(data) - self._end
        if torn:
            self._log.truncate(self._end)
        return len(data[self._end :].rstrip(b"\0"))

    def _replay(self, data: bytes) -> int:
        """Do again all that stands in whole frames; where the last of them ends."""
        at = 0
        while at + _FRAME.size <= len(data):
            checksum, size = _FRAME.unpack_from(data, at)
            frame = data[at + _FRAME.size : at + _FRAME.size + size]
            if not size or len(frame) < size or zlib.crc32(frame) != checksum:
                break
            self._apply(*_read_frame(frame))
            at += _FRAME.size + size
        return at

    # -- changing ---------------------------------------------------------------------------------------------------

    def write(self, puts: Sequence[tuple[bytes, bytes]], deletes: Sequence[bytes] = ()) -> None:
        """Change several keys at once; DiskFull with nothing changed. It is safe from a loss of power after `flush`."""
        assert self._log is not None
        if not puts and not deletes:
            return
        frame = _frame(puts, deletes)
        self._log.write(self._end, frame)
        self._end += len(frame)
        self._apply(puts, deletes)

    def flush(self) -> None:
        """Make every change so far safe, and give space back when most of the log is of the past."""
        assert self._log is not None
        self._log.flush()
        if self._end > COMPACT_BYTES and self._end > 2 * self._live_bytes:
            self._compact()

    def _apply(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> None:
        for key, value in puts:
            old = self._values.get(key)
            if old is None:
                insort(self._keys, key)
                self._live_bytes += len(key)
            self._live_bytes += len(value) - len(old or b"")
            self._values[key] = value
        for key in deletes:
            old = self._values.pop(key, None)
            if old is not None:
                del self._keys[bisect_left(self._keys, key)]
                self._live_bytes -= len(key) + len(old)

    @property
    def _new_path(self) -> str:
        return f"{self.path}.new"

    def _compact(self) -> None:
        """Write what is there into a new log and put that in the old one's place; a full disk leaves the old one."""
        puts = [(key, self._values[key]) for key in self._keys]
        frame = _frame(puts, ()) if puts else b""
        try:
            log = self._disk.open(self._new_path)
            log.write(0, frame)
        except DiskFull:
            self._disk.remove(self._new_path)
            return
        log.flush()
        self._disk.rename(self._new_path, self.path)
        self._log, self._end = log, len(frame)

    # -- reading ----------------------------------------------------------------------------------------------------

    def get(self, key: bytes) -> bytes | None:
        """The value of a key; None without one."""
        return self._values.get(key)

    def scan(self, lower: bytes, upper: bytes, most: int) -> list[tuple[bytes, bytes]]:
        """The first `most` pairs with lower <= key < upper, in order."""
        begin = bisect_left(self._keys, lower)
        end = min(bisect_left(self._keys, upper), begin + most)
        return [(key, self._values[key]) for key in self._keys[begin:end]]

    def __repr__(self) -> str:
        return f"<OrderedStore {self.path}: {len(self)} keys, {self._end} bytes of log>"


def _frame(puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes]) -> bytes:
    parts = [_ENTRY.pack(_PUT, len(key), len(value)) + key + value for key, value in puts]
    parts += [_ENTRY.pack(_DELETE, len(key), 0) + key for key in deletes]
    body = b"".join(parts)
    return _FRAME.pack(zlib.crc32(body), len(body)) + body


def _read_frame(frame: bytes) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
    puts: list[tuple[bytes, bytes]] = []
    deletes: list[bytes] = []
    at = 0
    while at < len(frame):
        kind, key_size, value_size = _ENTRY.unpack_from(frame, at)
        at += _ENTRY.size
        key = frame[at : at + key_size]
        at += key_size
        if kind == _PUT:
            puts.append((key, frame[at : at + value_size]))
            at += value_size
        else:
            deletes.append(key)
    return puts, deletes
