"""Cutting a stream of bytes into frames and commands: bytes in, commands out, and no connection in sight."""

from __future__ import annotations

import struct

from mqlab.protocol.command import FRAME_MAX_LENGTH, RemotingCommand
from mqlab.protocol.errors import CommandError

_LENGTH = struct.Struct(">i")
LEAST_LENGTH = 4
"""What a length field counts at least: the field with the length of the header."""


class FrameReader:
    """Puts the bytes of one connection together again, however the network has cut them.

    Java: org.apache.rocketmq.remoting.netty.NettyDecoder.
    """

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def receive_data(self, data: bytes) -> None:
        """Take in what has come."""
        self._buffer += data

    @property
    def begun(self) -> bytes:
        """What has come of a frame that is not whole yet."""
        return bytes(self._buffer)

    @property
    def is_amid(self) -> bool:
        """Whether some of a frame has come, and not all of it."""
        return bool(self._buffer)

    def next_command(self) -> RemotingCommand | None:
        """The next command; None while some of it has not come yet.

        CommandError when the bytes are no command: then the connection is of no more use.
        """
        frame = self.next_frame()
        return None if frame is None else RemotingCommand.decode(frame)

    def next_frame(self) -> bytes | None:
        """The bytes of the next command, from its length field on; None while some of them have not come yet.

        CommandError when the length cannot be that of a frame.
        """
        buffer = self._buffer
        if len(buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(buffer)
        size = _LENGTH.size + length
        if length < LEAST_LENGTH:
            raise CommandError(f"the length field says {length} bytes, a frame has at least {LEAST_LENGTH} after it")
        if size > FRAME_MAX_LENGTH:
            raise CommandError(f"a frame of {size} bytes is over the limit of {FRAME_MAX_LENGTH}")
        if len(buffer) < size:
            return None
        frame = bytes(buffer[:size])
        del buffer[:size]
        return frame
