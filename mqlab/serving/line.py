"""A line: one connection to a program outside, between its socket and the world."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any, cast

from mqlab.protocol.errors import CommandError
from mqlab.serving.gate import LAST_SECONDS, Arrival, host_of, written
from mqlab.serving.goodbye import Goodbye
from mqlab.serving.signs_of_life import SignsOfLife
from mqlab.serving.tls import HANDSHAKE_SECONDS

if TYPE_CHECKING:
    from mqlab.serving.edge import Edge

MOST_UNREAD_BYTES = 16 << 20
"""So much may wait at the edge for the world to take it in; then nothing more is read from sockets."""

MOST_UNSENT_BYTES = 32 << 20
"""A client for which so much waits does not read: its connection is broken."""


class Line(Arrival, asyncio.Protocol):
    """Carries bytes from a socket to the edge's inbox, and back; what it may hold is bounded both ways.

    A client that does not take its answers is not read from either, until it does. TLS is ended by the transport.
    """

    def __init__(self, edge: Edge, address: str, sock: socket.socket, remote: tuple[Any, ...]) -> None:
        super().__init__(edge, sock, remote)
        self._address = address
        self.number = 0
        self.unsettled = 0
        """Always none: what was pulled does not come again by itself."""
        self._signs_of_life = SignsOfLife()
        self.transport: asyncio.Transport | None = None
        """None until it is known whether it is TLS, and as long as the two shake hands."""
        self._world_is_behind = False
        self._client_is_behind = False
        self._goodbye: Goodbye | None = None

    def come_in(self) -> None:
        """The world sees the connection at once, as a server does that has accepted it."""
        self.edge.admit(self)
        self.hold(self.edge.held)
        came_to = host_of(self.socket.getsockname())
        self._do("come_in", address=self._address, remote=self.remote, came_to=came_to)
        super().come_in()

    async def open(self, is_tls: bool) -> None:
        """Make the transport; with TLS first shake hands."""
        loop = asyncio.get_running_loop()
        if is_tls:
            await loop.connect_accepted_socket(
                lambda: self,
                self.socket,
                ssl=self.edge.tls.certificate().context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=LAST_SECONDS,
            )
        else:
            await loop.connect_accepted_socket(lambda: self, self.socket)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It can be read and written."""
        self.transport = cast("asyncio.Transport", transport)
        self._read_or_not()

    def data_received(self, data: bytes) -> None:
        """Bytes for the world; while the serving ends, requests are answered here."""
        if self.edge.closing and self._signs_of_life.begun is not None:
            data = self._say_goodbye(data)
        else:
            self._signs_of_life.watch(data, self.edge.lab.world.now_us)
        if data:
            self.edge.bring_data(self, data)

    def _say_goodbye(self, data: bytes) -> bytes:
        """Tell a client that still asks to go elsewhere; what the world shall hear of it nevertheless."""
        if self._goodbye is None:
            self._goodbye = Goodbye(self._signs_of_life.begun or b"")
        try:
            for_world, for_client = self._goodbye.hear(data)
        except CommandError:
            self.abort()
            return b""
        if for_client:
            self.write(for_client)
        return for_world

    def connection_lost(self, exc: Exception | None) -> None:
        """The end, from whichever side."""
        self.lost(exc)

    def lost(self, error: BaseException | None) -> None:
        """Tell the world, if it does not know."""
        if self.edge.leave(self):
            self._do("hang_up", broken=error is not None)
        super().lost(error)

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
        if self.transport is None:
            return
        if self._world_is_behind or self._client_is_behind:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Send what the world has sent, which it does only to who has spoken; what nobody reads is let go."""
        if self.transport is None or self.transport.is_closing():
            return
        self.transport.write(data)
        if self.transport.get_write_buffer_size() > MOST_UNSENT_BYTES:
            self.transport.abort()

    def end(self, broken: bool) -> None:
        """The world has closed its side, in good order or not."""
        if broken:
            self.abort()
        else:
            self.close()

    def close(self) -> None:
        """Close when the client has taken the last, but soon."""
        if self.transport is None:
            self.give_up()
        else:
            self.transport.close()
            asyncio.get_running_loop().call_later(LAST_SECONDS, self.transport.abort)

    def abort(self) -> None:
        """Break it."""
        if self.transport is None:
            self.give_up()
        else:
            self.transport.abort()

    def said_again(self, now_us: int) -> list[bytes]:
        """What the client would have said by now to show that it lives."""
        return self._signs_of_life.said_again(now_us)

    def _do(self, verb: str, **arguments: Any) -> None:
        self.edge.bring(verb, {"number": self.number, **arguments})


class LineOut(Line):
    """A connection that the world makes to an address outside. Nobody there is spoken for in a jump or at the end."""

    def __init__(self, edge: Edge, number: int, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._target = (host.strip("[]"), int(port))
        family = socket.AF_INET6 if ":" in self._target[0] else socket.AF_INET
        super().__init__(edge, address, socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP), self._target)
        self.socket.setblocking(False)
        self.number = number

    def come_in(self) -> None:
        """Connect; the world hears of it when somebody is there, or nobody."""
        Arrival.come_in(self)

    async def _arrive(self) -> bool:
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_connect(self.socket, self._target)
        except (ValueError, OverflowError) as error:
            raise OSError(f"{self._target} is no address") from error
        await loop.create_connection(lambda: self, sock=self.socket)
        return True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The world hears of it before anything comes."""
        self._do("reached", local=written(transport.get_extra_info("sockname")))
        super().connection_made(transport)
        self.hold(self.edge.held)

    def data_received(self, data: bytes) -> None:
        """Bytes for the world."""
        self.edge.bring_data(self, data)
