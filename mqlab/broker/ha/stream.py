"""The bytes on a replication connection, of one direction and of the other.

    slave to master     8    i64: the end of the slave's commit log
    master to slave    12    i64: where the piece lies in the log; i32: its length; then the piece itself

A piece of no bytes is a heartbeat, and says where the next piece will lie. No piece reaches over the end of a file.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

_REPORT = Struct(">q")
_HEADER = Struct(">qi")

REPORT_HEADER_SIZE = _REPORT.size
TRANSFER_HEADER_SIZE = _HEADER.size

READ_MAX_BUFFER_SIZE = 4 << 20
"""A slave of RocketMQ reads into so much: no piece is larger."""


class TransferFrame(NamedTuple):
    """A piece of the master's commit log and where it lies there."""

    physic_offset: int
    body: bytes


def encode_report(max_offset: int) -> bytes:
    """What a slave reports: the end of its log."""
    return _REPORT.pack(max_offset)


def encode_frame(physic_offset: int, body: bytes) -> bytes:
    """A piece of the log as it travels; without a body it is a heartbeat."""
    return _HEADER.pack(physic_offset, len(body)) + body


class ReportReader:
    """Takes in a slave's bytes, however they were cut.

    Java: org.apache.rocketmq.store.ha.DefaultHAConnection.ReadSocketService.
    """

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> list[int]:
        """The reports that are complete with these bytes, oldest first."""
        buffer = self._buffer + data
        whole = len(buffer) - len(buffer) % REPORT_HEADER_SIZE
        self._buffer = buffer[whole:]
        return [offset for (offset,) in _REPORT.iter_unpack(buffer[:whole])]


class TransferReader:
    """Takes in a master's bytes, however they were cut.

    Java: org.apache.rocketmq.store.ha.DefaultHAClient.dispatchReadRequest.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Note these bytes, which follow those before."""
        self._buffer += data

    def next_offset(self) -> int | None:
        """Where the next piece lies; None before its header has come whole."""
        return int(_HEADER.unpack_from(self._buffer)[0]) if len(self._buffer) >= TRANSFER_HEADER_SIZE else None

    def is_damaged(self) -> bool:
        """Can what comes next be no piece, since it says that it has less than nothing, or more than RocketMQ reads?"""
        if len(self._buffer) < TRANSFER_HEADER_SIZE:
            return False
        return not 0 <= _HEADER.unpack_from(self._buffer)[1] <= READ_MAX_BUFFER_SIZE

    def next_frame(self) -> TransferFrame | None:
        """The next piece; None before it has come whole."""
        if len(self._buffer) < TRANSFER_HEADER_SIZE:
            return None
        offset, size = _HEADER.unpack_from(self._buffer)
        end = TRANSFER_HEADER_SIZE + size
        if len(self._buffer) < end:
            return None
        frame = TransferFrame(offset, bytes(self._buffer[TRANSFER_HEADER_SIZE:end]))
        del self._buffer[:end]
        return frame
