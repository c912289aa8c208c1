"""A gate: a listening socket, and what is known of a connection before its first byte has come.

asyncio's own server makes a transport at once, which has read the first bytes when it is known that they are TLS. So a
gate accepts by itself, and an arrival looks at the first byte and leaves it where it is.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqlab.serving.tls import FIRST_BYTE

if TYPE_CHECKING:
    from mqlab.serving.edge import Edge

AT_ONCE = 100
"""So many are taken in before others have their turn."""

NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
NO_ROOM_SECONDS = 1.0
"""When this machine has no room for one more connection, it tries again so much later, as asyncio does."""

IDLE_SECONDS = 120.0
"""Over which nothing comes for so long, that connection is closed (serverChannelMaxIdleTimeSeconds)."""

LAST_SECONDS = 1.0
"""So long a client may take the last that it was sent."""


class Arrival:
    """A connection that a program outside has made to a port, from its first moment to its last."""

    def __init__(self, edge: Edge, sock: socket.socket, remote: tuple[Any, ...]) -> None:
        self.edge = edge
        self.socket = sock
        self.remote = written(remote)
        """Where it came from."""
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when its socket is closed."""
        self._arriving: asyncio.Task[bool] | None = None

    def come_in(self) -> None:
        """Begin: wait for the first byte, and go on as it says."""
        self._arriving = asyncio.get_running_loop().create_task(self._arrive())
        self._arriving.add_done_callback(self._arrived)

    async def _arrive(self) -> bool:
        """Whether it was let through; OSError where it failed, as a handshake may."""
        async with asyncio.timeout(IDLE_SECONDS):
            first = await _first_byte(self.socket)
        if first is None or not self.edge.tls.admits(first == FIRST_BYTE):
            return False
        await self.open(first == FIRST_BYTE)
        return True

    def _arrived(self, arriving: asyncio.Task[bool]) -> None:
        self._arriving = None
        error = None if arriving.cancelled() else arriving.exception()
        if error is None and not arriving.cancelled() and arriving.result():
            return
        self.lost(error)
        self.socket.close()
        if error is not None and not isinstance(error, OSError):
            raise error

    async def open(self, is_tls: bool) -> None:
        """Let it through."""
        raise NotImplementedError

    def lost(self, error: BaseException | None) -> None:
        """It has ended, in good order or not."""
        self.edge.left(self)
        if not self.gone.done():
            self.gone.set_result(None)

    def close(self) -> None:
        """End it when what it was sent has been taken, but soon."""
        raise NotImplementedError

    def abort(self) -> None:
        """End it at once."""
        raise NotImplementedError

    def give_up(self) -> None:
        """End it as long as it has no transport."""
        if self._arriving is not None:
            self._arriving.cancel()


class Gate:
    """Takes in whoever connects to a listening socket."""

    def __init__(
        self, edge: Edge, listening: socket.socket, arrival: Callable[[socket.socket, tuple[Any, ...]], Arrival]
    ) -> None:
        self._edge = edge
        self._listening = listening
        self._arrival = arrival
        self._loop = asyncio.get_running_loop()
        self._retry: asyncio.TimerHandle | None = None
        self._open()

    def _open(self) -> None:
        self._retry = None
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                sock, remote = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                self._loop.remove_reader(self._listening)
                self._retry = self._loop.call_later(NO_ROOM_SECONDS, self._open)
                return
            sock.setblocking(False)
            arrival = self._arrival(sock, remote)
            if self._edge.enter(arrival):
                arrival.come_in()
            else:
                sock.close()

    def close(self) -> None:
        """Take nobody in any more."""
        if self._retry is not None:
            self._retry.cancel()
        self._loop.remove_reader(self._listening)


async def _first_byte(sock: socket.socket) -> int | None:
    """What a connection begins with, which stays to be read; None at its end."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            peeked = sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            readable = loop.create_future()
            loop.add_reader(sock, _set, readable)
            try:
                await readable
            finally:
                loop.remove_reader(sock)
            continue
        return peeked[0] if peeked else None


def _set(readable: asyncio.Future[None]) -> None:
    if not readable.done():
        readable.set_result(None)


def written(address: tuple[Any, ...]) -> str:
    """An address of a socket as text: "127.0.0.1:10911", "[::1]:10911"."""
    return f"{host_of(address)}:{address[1]}"


def host_of(address: tuple[Any, ...]) -> str:
    """The host of it: "127.0.0.1", "[::1]"."""
    return f"[{address[0]}]" if ":" in address[0] else str(address[0])
