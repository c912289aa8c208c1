"""What a client says again and again, so that its broker knows of it: said for it while time jumps.

In a jump the world's time goes by in which the client has no chance to say anything, and it would be taken for dead:
its heartbeats, the renewals of its locks and its questions for routes would be missing. The edge says them again, as
often as the client would have.
"""

from __future__ import annotations

import struct
from collections import deque

from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import FRAME_MAX_LENGTH, RemotingCommand
from mqlab.protocol.errors import CommandError

_LENGTHS = struct.Struct(">ii")
_LAST_AGAIN = (RequestCode.HEART_BEAT, RequestCode.GET_ROUTEINFO_BY_TOPIC)
_WATCHED = (*_LAST_AGAIN, RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ)
_MARKS = tuple(f'"code":{int(code)}'.encode() for code in _WATCHED)
_FIXED = tuple(struct.pack(">h", int(code)) for code in _WATCHED)
ROCKETMQ_HEADER = 1
"""The serialize type of headers that are not JSON; they begin with the code."""

RENEWED_WITHIN_US = 25_000_000
"""A client renews its locks every 20 s; a lock that was renewed longer ago was given up."""

MOST_LOCKS = 32


class SignsOfLife:
    """Watches the bytes of one connection for the heartbeats and lock renewals in them."""

    def __init__(self) -> None:
        self._begun = bytearray()
        """The bytes of a frame that has not come to its end."""
        self._last: dict[int, bytes] = {}
        self._locks: deque[tuple[int, bytes]] = deque(maxlen=MOST_LOCKS)
        self._lost = False

    def watch(self, data: bytes, now_us: int) -> None:
        """Look at bytes that came from the client at this time of the world."""
        if self._lost:
            return
        if self._begun:
            self._begun += data
            data = bytes(self._begun) if self._is_whole(self._begun) else b""
            if not data:
                return
            self._begun.clear()
        at = 0
        while len(data) - at >= _LENGTHS.size:
            length, header = _LENGTHS.unpack_from(data, at)
            if not 4 <= length <= FRAME_MAX_LENGTH:
                # No frame: the broker will close the connection.
                self._lost = True
                return
            end = at + 4 + length
            if end > len(data):
                break
            self._look_at(data, at, end, header, now_us)
            at = end
        self._begun += data[at:]

    @staticmethod
    def _is_whole(begun: bytearray) -> bool:
        return len(begun) >= 4 and len(begun) >= 4 + int.from_bytes(begun[:4], "big")

    def _look_at(self, data: bytes, at: int, end: int, header: int, now_us: int) -> None:
        start, size = at + _LENGTHS.size, header & 0xFFFFFF
        if header >> 24 == ROCKETMQ_HEADER:
            seen = data[start : start + 2] in _FIXED
        else:
            seen = any(data.find(mark, start, start + size) >= 0 for mark in _MARKS)
        if not seen:
            return
        frame = data[at:end]
        try:
            code = RemotingCommand.decode(frame).code
        except CommandError:
            return
        if code in _LAST_AGAIN:
            self._last[code] = frame
        elif code == RequestCode.LOCK_BATCH_MQ:
            self._locks.append((now_us, frame))
        elif code == RequestCode.UNLOCK_BATCH_MQ:
            self._locks.clear()

    def said_again(self, now_us: int) -> list[bytes]:
        """The frames that the client would say again by now, as requests that nobody answers; none in the middle of a
        frame.
        """
        if self._begun or self._lost:
            return []
        locks = dict.fromkeys(frame for at_us, frame in self._locks if now_us - at_us <= RENEWED_WITHIN_US)
        self._locks.clear()
        self._locks.extend((now_us, frame) for frame in locks)
        frames = [*self._last.values(), *locks]
        return [RemotingCommand.decode(frame).mark_oneway().encode() for frame in frames]
