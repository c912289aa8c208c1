"""A line: one connection to a program outside, between its socket and the world."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from mqlab.serving.signs_of_life import SignsOfLife

if TYPE_CHECKING:
    from mqlab.serving.edge import Edge

MOST_UNREAD_BYTES = 16 << 20
"""So much may wait at the edge for the world to take it in; then nothing more is read from sockets."""

MOST_UNSENT_BYTES = 32 << 20
"""A client for which so much waits does not read: its connection is broken."""


class Line(asyncio.Protocol):
    """Carries bytes from a socket to the edge's inbox, and back; what it may hold is bounded both ways.

    A client that does not take its answers is not read from either, until it does.
    """

    def __init__(self, edge: Edge, address: str) -> None:
        self._edge = edge
        self._address = address
        self.number = 0
        self._signs_of_life = SignsOfLife()
        self.transport: asyncio.Transport
        self._world_is_behind = False
        self._client_is_behind = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Come in, unless there are too many already."""
        self.transport = cast("asyncio.Transport", transport)
        if not self._edge.admit(self):
            self.transport.abort()
            return
        remote, local = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self.hold(self._edge.held)
        self._do("come_in", address=self._address, remote=_written(remote), came_to=_host(local))

    def data_received(self, data: bytes) -> None:
        """Bytes for the world."""
        self._signs_of_life.watch(data, self._edge.lab.world.now_us)
        self._edge.bring_data(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The end, from whichever side."""
        if self._edge.leave(self):
            self._do("hang_up", broken=exc is not None)

    def pause_writing(self) -> None:
        """The client does not take what it is sent: nothing more is read from it."""
        self._client_is_behind = True
        self._read_or_not()

    def resume_writing(self) -> None:
        """It takes things again."""
        self._client_is_behind = False
        self._read_or_not()

    def hold(self, held: bool) -> None:
        """Read nothing while the world is behind; or read again."""
        self._world_is_behind = held
        self._read_or_not()

    def _read_or_not(self) -> None:
        if self._world_is_behind or self._client_is_behind:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Send what the world has sent, if there is still somebody."""
        if self.transport.is_closing():
            return
        self.transport.write(data)
        if self.transport.get_write_buffer_size() > MOST_UNSENT_BYTES:
            self.transport.abort()

    def end(self, broken: bool) -> None:
        """The world has closed its side, in good order or not."""
        if broken:
            self.transport.abort()
        else:
            self.transport.close()

    def said_again(self, now_us: int) -> list[bytes]:
        """What the client would have said by now to show that it lives."""
        return self._signs_of_life.said_again(now_us)

    def _do(self, verb: str, **arguments: Any) -> None:
        self._edge.bring(verb, {"number": self.number, **arguments})


def _written(address: tuple[Any, ...]) -> str:
    return f"{_host(address)}:{address[1]}"


def _host(address: tuple[Any, ...]) -> str:
    return f"[{address[0]}]" if ":" in address[0] else str(address[0])
