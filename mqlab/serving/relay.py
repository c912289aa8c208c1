"""A relay: a connection of a 5.x client, carried on to gRPC's own server behind the gate.

grpcio listens at ports of its own, to which only this machine leads: one for plain HTTP/2 and, from the first client
that wants it, one for TLS, which grpcio ends. So a relay reads nothing of what it carries.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any, cast

from mqlab.serving.gate import LAST_SECONDS, Arrival

if TYPE_CHECKING:
    from mqlab.serving.edge import Edge
    from mqlab.serving.rpc_edge import RpcEdge


class Relay(Arrival):
    """Two sockets; each is read only as far as the other takes it."""

    def __init__(
        self, edge: Edge, calls: RpcEdge, address: str, sock: socket.socket, remote: tuple[Any, ...]
    ) -> None:
        super().__init__(edge, sock, remote)
        self._calls = calls
        self._address = address
        self._client, self._grpcio = Half(self), Half(self)
        self._client.other, self._grpcio.other = self._grpcio, self._client
        self._port = 0

    async def open(self, is_tls: bool) -> None:
        """Connect to grpcio. It shall be known whose connection that is before the first call comes."""
        loop, port = asyncio.get_running_loop(), await self._calls.port(self._address, is_tls)
        inner, _ = await loop.create_connection(lambda: self._grpcio, "127.0.0.1", port)
        self._port = inner.get_extra_info("sockname")[1]
        self._calls.came_from[self._port] = self.remote
        await loop.connect_accepted_socket(lambda: self._client, self.socket)
        if self._grpcio.transport is None:
            raise ConnectionResetError
        self._grpcio.transport.resume_reading()

    def half_ended(self, other: Half) -> None:
        """One side has ended: so does the other."""
        if other.transport is None:
            self.lost(None)
        else:
            other.close()

    def lost(self, error: BaseException | None) -> None:
        """Nothing is left of it."""
        self._break()
        self._calls.came_from.pop(self._port, None)
        super().lost(error)

    def close(self) -> None:
        """End it from inside: the client still gets what grpcio has sent."""
        if self._grpcio.transport is None:
            self.give_up()
        else:
            self._grpcio.transport.close()

    def abort(self) -> None:
        """Break both connections."""
        self.give_up()
        self._break()

    def _break(self) -> None:
        for half in (self._client, self._grpcio):
            if half.transport is not None:
                half.transport.abort()


class Half(asyncio.Protocol):
    """One of the two."""

    other: Half

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self.transport: asyncio.Transport | None = None
        """None before it is connected, and after its end."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read, if what comes can be written."""
        self.transport = cast("asyncio.Transport", transport)
        if self.other.transport is None:
            self.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        """Carry it on."""
        if self.other.transport is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        """Too much waits to be taken here: the other side is not read."""
        if self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """It is taken again."""
        if self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """The end of this one."""
        self.transport = None
        self._relay.half_ended(self.other)

    def close(self) -> None:
        """End it when the last was taken, but soon."""
        if self.transport is not None:
            self.transport.close()
            asyncio.get_running_loop().call_later(LAST_SECONDS, self.transport.abort)
