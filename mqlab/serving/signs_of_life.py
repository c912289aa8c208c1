"""What a client says again and again, so that its broker knows of it: said for it while time jumps.

In a jump the world's time goes by in which the client has no chance to say anything, and it would be taken for dead:
its heartbeats, the renewals of its locks and its questions for routes would be missing. The edge says them again, as
often as the client would have.
"""

from __future__ import annotations

import struct
from collections import deque

from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.errors import CommandError
from mqlab.remoting.frame_reader import FrameReader

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
        self._frames = FrameReader()
        self._last: dict[int, bytes] = {}
        self._locks: deque[tuple[int, bytes]] = deque(maxlen=MOST_LOCKS)
        self._lost = False

    def watch(self, data: bytes, now_us: int) -> None:
        """Look at bytes that came from the client at this time of the world."""
        if self._lost:
            return
        self._frames.receive_data(data)
        try:
            while (frame := self._frames.next_frame()) is not None:
                if _may_be_watched(frame):
                    self._look_at(frame, now_us)
        except CommandError:
            # No frame, or no command: the broker will close the connection.
            self._lost = True

    def _look_at(self, frame: bytes, now_us: int) -> None:
        code = RemotingCommand.decode(frame).code
        if code in _LAST_AGAIN:
            self._last[code] = frame
        elif code == RequestCode.LOCK_BATCH_MQ:
            self._locks.append((now_us, frame))
        elif code == RequestCode.UNLOCK_BATCH_MQ:
            self._locks.clear()

    @property
    def begun(self) -> bytes | None:
        """What has come of a frame that is not whole yet; None where what comes are no frames."""
        return None if self._lost else self._frames.begun

    def said_again(self, now_us: int) -> list[bytes]:
        """The frames that the client would say again by now, as requests that nobody answers; none in the middle of a
        frame.
        """
        if self._frames.is_amid or self._lost:
            return []
        locks = dict.fromkeys(frame for at_us, frame in self._locks if now_us - at_us <= RENEWED_WITHIN_US)
        self._locks.clear()
        self._locks.extend((now_us, frame) for frame in locks)
        frames = [*self._last.values(), *locks]
        return [RemotingCommand.decode(frame).mark_oneway().encode() for frame in frames]


def _may_be_watched(frame: bytes) -> bool:
    """Is its code one of those? It looks at the header's text alone, as most frames are of no interest here."""
    kind, size = frame[4], int.from_bytes(frame[5:8], "big")
    header = frame[8 : 8 + size]
    return header[:2] in _FIXED if kind == ROCKETMQ_HEADER else any(mark in header for mark in _MARKS)
