"""The edge for 5.x clients: gRPC's own server, and the calls that come through it.

grpcio speaks HTTP/2 with the clients. Each part of a call becomes what a 5.x client of the world writes at once
(`mqlab.rpc.frame`), over one connection for each program outside; what the proxy answers is taken apart again. So the
proxy sees connections with streams, as always.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from mqlab.errors import MissingExtraError
from mqlab.protocol.v2.service import (
    ACK_MESSAGE,
    CHANGE_INVISIBLE_DURATION,
    FORWARD_MESSAGE_TO_DEAD_LETTER_QUEUE,
    HEARTBEAT,
    RECEIVE_MESSAGE,
    RPCS,
)
from mqlab.rpc.frame import answer_parts, request_bytes, reset_bytes
from mqlab.rpc.status import StatusCode
from mqlab.serving.gate import IDLE_SECONDS as IDLE_CONNECTION_SECONDS
from mqlab.serving.line import MOST_UNSENT_BYTES
from mqlab.serving.tls import HANDSHAKE_SECONDS

if TYPE_CHECKING:
    from mqlab.serving.edge import Edge

IDLE_SECONDS = 5
"""So long after its last call a program counts as connected; one that lives has a standing stream open."""

MOST_HEARTBEATS = 32

CANCELLED_SECONDS = 0.05
"""The end of what a client says comes a moment before the news that it has cancelled the call."""

IN_TURN_SECONDS = 0.1
"""How long a call waits at most for what its client said before in a standing stream."""

LAST_SECONDS = 5.0
"""How long calls have to end when the serving does."""

A_MESSAGE = b"\x12"
"""So a part of an answer to ReceiveMessage begins that brings a message."""

SETTLING = {ACK_MESSAGE.path, CHANGE_INVISIBLE_DURATION.path, FORWARD_MESSAGE_TO_DEAD_LETTER_QUEUE.path}
"""What a client says of a message that it got; official clients say it of each one by itself."""

Status = tuple[StatusCode, str]
CUT_OFF: Status = (StatusCode.UNAVAILABLE, "the connection was closed by the proxy")


class Call:
    """One call: what the world has answered and the client has not taken yet."""

    def __init__(self, peer: Peer, path: str, stream_id: int) -> None:
        self.path = path
        self.stream_id = stream_id
        self.ended = False
        self.said_last: bytes | None = None
        """In a standing stream what the client has said last: its settings."""
        self._peer = peer
        self._answers: asyncio.Queue[bytes | Status] = asyncio.Queue()
        self._waiting_bytes = 0

    def answered(self, part: bytes | Status) -> None:
        """Something for the client; a client that does not take its answers is cut off."""
        if isinstance(part, bytes):
            self._waiting_bytes += len(part)
            if self._waiting_bytes > MOST_UNSENT_BYTES:
                self._peer.reset(self)
                part = CUT_OFF
        self._answers.put_nowait(part)

    async def next(self) -> bytes | Status:
        """The next thing for the client: a message, or how the call has ended."""
        part = await self._answers.get()
        if isinstance(part, bytes):
            self._waiting_bytes -= len(part)
        return part

    async def read(self, requests: AsyncIterator[bytes], context: Any) -> None:
        """Bring what the client says to the world, the opening together with the first message."""
        metadata = _metadata(context)
        opening: dict[str, str] | None = metadata
        if self.path not in RPCS:
            # What it says has no form that anybody knows.
            self._peer.bring(request_bytes(self.stream_id, self.path, metadata, None, ends=True))
            return
        one = not RPCS[self.path].client_streams
        first_said = asyncio.Event()
        if not one:
            self._peer.first_said = first_said
        async for message in requests:
            await self._peer.may_read.wait()
            if one:
                await self._peer.in_turn()
            first_said.set()
            self._peer.bring(request_bytes(self.stream_id, self.path, opening, message, ends=one))
            opening = None
            if self.path == HEARTBEAT.path:
                self._peer.heartbeat(metadata, message)
            elif self.path in SETTLING:
                self._peer.unsettled = max(0, self._peer.unsettled - 1)
            if one:
                return
            self.said_last = message
        await asyncio.sleep(CANCELLED_SECONDS)
        if not context.cancelled():
            self._peer.bring(request_bytes(self.stream_id, self.path, opening, None, ends=True))

    def was_read(self, reading: asyncio.Future[None]) -> None:
        """The client will say nothing more; an error in reading is the end of the call."""
        error = None if reading.cancelled() else reading.exception()
        if error is not None:
            self._answers.put_nowait((StatusCode.INTERNAL, f"{type(error).__name__}: {error}"))


class Peer:
    """One program outside: a connection of the world, and its calls."""

    def __init__(self, edge: Edge, address: str, name: str) -> None:
        self.number = 0
        self.name = name
        self.may_read = asyncio.Event()
        self.calls: dict[int, Call] = {}
        self._edge = edge
        self._address = address
        self._last_stream = -1
        self._heartbeats: dict[bytes, dict[str, str]] = {}
        self._idle: asyncio.TimerHandle | None = None
        self.open = False
        self.unsettled = 0
        """How many messages it got that it has not acknowledged yet, or put off, since somebody asked last."""
        self.first_said = asyncio.Event()
        """Set when something was said in the standing stream that was opened last."""
        self.first_said.set()

    async def in_turn(self) -> None:
        """Wait for what was said before: grpcio may hand over a call before the first words of a stream opened earlier,
        and a proxy answers no call of a client whose settings it has not heard.
        """
        with suppress(TimeoutError):
            await asyncio.wait_for(self.first_said.wait(), IN_TURN_SECONDS)

    def come_in(self) -> bool:
        """Connect to the world; False at the end of the serving."""
        if not self._edge.admit(self):
            return False
        self.open = True
        self.hold(self._edge.held)
        came_to = "127.0.0.1"
        self._edge.bring(
            "come_in", {"number": self.number, "address": self._address, "remote": self.name, "came_to": came_to}
        )
        return True

    def begin(self, path: str) -> Call:
        """Open a call."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        self._last_stream += 2
        call = self.calls[self._last_stream] = Call(self, path, self._last_stream)
        return call

    def finish(self, call: Call) -> None:
        """A call is over for its client; the world is told, if it does not know."""
        if not call.ended:
            self.reset(call)
        self.calls.pop(call.stream_id, None)
        if not self.calls and self.open:
            self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self.hang_up)

    def reset(self, call: Call) -> None:
        """The client does not want the answer any more."""
        call.ended = True
        if self.open:
            self.bring(reset_bytes(call.stream_id))

    def bring(self, data: bytes) -> None:
        """Something for the world."""
        self._edge.bring_data(self, data)

    def hang_up(self) -> None:
        """The program has gone."""
        if self.open:
            self.open = False
            if self._edge.leave(self):
                self._edge.bring("hang_up", {"number": self.number, "broken": False})

    # -- as a line ----------------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Give the parts of an answer to their calls."""
        for stream_id, part in answer_parts(data):
            call = self.calls.get(stream_id)
            if call is not None and not call.ended:
                call.ended = not isinstance(part, bytes)
                if call.path == RECEIVE_MESSAGE.path and isinstance(part, bytes) and part.startswith(A_MESSAGE):
                    self.unsettled += 1
                call.answered(part)

    def end(self, broken: bool) -> None:
        """The world has closed the connection: its calls end."""
        self.open = False
        for call in list(self.calls.values()):
            if not call.ended:
                call.ended = True
                call.answered(CUT_OFF)

    def hold(self, held: bool) -> None:
        """Read nothing while the world is behind; or read again."""
        if held:
            self.may_read.clear()
        else:
            self.may_read.set()

    def heartbeat(self, metadata: dict[str, str], message: bytes) -> None:
        """The client has said that it is alive."""
        self._heartbeats.pop(message, None)
        self._heartbeats[message] = metadata
        while len(self._heartbeats) > MOST_HEARTBEATS:
            del self._heartbeats[next(iter(self._heartbeats))]

    def said_again(self, now_us: int) -> list[bytes]:
        """The settings and heartbeats that the client would send again by now; answers to the latter go to nobody."""
        said = [
            request_bytes(call.stream_id, call.path, None, call.said_last, ends=False)
            for call in self.calls.values()
            if call.said_last is not None and not call.ended
        ]
        for message, metadata in self._heartbeats.items() if self.calls else ():
            self._last_stream += 2
            said.append(request_bytes(self._last_stream, HEARTBEAT.path, metadata, message, ends=True))
        return said


class RpcEdge:
    """gRPC's servers of the proxies of a world."""

    def __init__(self, edge: Edge) -> None:
        try:
            import grpc
            import grpc.aio
        except ImportError:
            raise MissingExtraError("grpcio", "serve") from None
        self._grpc = grpc
        self._edge = edge
        self._servers: dict[tuple[str, bool], asyncio.Task[tuple[Any, int]]] = {}
        self._stopping: list[asyncio.Future[None]] = []
        self.came_from: dict[int, str] = {}
        """The program behind each relay, by the port from which the relay reaches grpcio."""
        self._peers: dict[tuple[str, str], Peer] = {}
        self._codes = {code.value[0]: code for code in grpc.StatusCode}

    async def port(self, address: str, is_tls: bool) -> int:
        """Where grpcio takes the calls for a proxy, for relays alone; it begins with the first one."""
        key = (address, is_tls)
        if key not in self._servers:
            self._servers[key] = asyncio.ensure_future(self._open(address, is_tls))
        return (await asyncio.shield(self._servers[key]))[1]

    async def _open(self, address: str, is_tls: bool) -> tuple[Any, int]:
        grpc = self._grpc
        server = grpc.aio.server(
            options=[
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", 16 << 20),
                ("grpc.max_send_message_length", -1),
                ("grpc.max_connection_idle_ms", int(IDLE_CONNECTION_SECONDS * 1_000)),
                ("grpc.server_handshake_timeout_ms", int(HANDSHAKE_SECONDS * 1_000)),
            ]
        )
        server.add_generic_rpc_handlers((self._handler(address),))
        if is_tls:
            key, chain, _ = self._edge.tls.certificate()
            port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, chain)]))
        else:
            port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        return server, port

    def leave(self) -> None:
        """Close the ports, and tell who is connected to go elsewhere (GOAWAY); calls that have begun go on."""
        self._stopping = [asyncio.ensure_future(self._stop(made)) for made in self._servers.values()]

    async def close(self) -> None:
        """End all calls. One that grpcio ends itself leaves a traceback in the terminal."""
        for peer in self._peers.values():
            peer.end(broken=False)
        if not self._stopping:
            self.leave()
        await asyncio.gather(*self._stopping)

    async def _stop(self, made: asyncio.Task[tuple[Any, int]]) -> None:
        server, _ = await made
        await server.stop(LAST_SECONDS)

    def _handler(self, address: str) -> Any:
        grpc, serve = self._grpc, partial(self._serve, address)

        class Handler(grpc.GenericRpcHandler):  # type: ignore[misc,name-defined]
            """Takes every call there is."""

            def service(self, details: Any) -> Any:
                return grpc.stream_stream_rpc_method_handler(partial(serve, details.method))

        return Handler()

    def _peer(self, address: str, context: Any) -> Peer | None:
        port = context.peer().rpartition(":")[2]
        name = self.came_from.get(int(port)) if port else None
        if name is None:
            # No relay: another program of this machine has found grpcio's own port, or its client has just gone.
            return None
        peer = self._peers.get((address, name))
        if peer is None or not peer.open:
            peer = Peer(self._edge, address, name)
            if not peer.come_in():
                return None
            self._peers = {key: known for key, known in self._peers.items() if known.open}
            self._peers[address, name] = peer
        return peer

    async def _serve(
        self, address: str, path: str, requests: AsyncIterator[bytes], context: Any
    ) -> AsyncIterator[bytes]:
        peer = self._peer(address, context)
        if peer is None:
            await context.abort(self._grpc.StatusCode.UNAVAILABLE, CUT_OFF[1])
            return
        call = peer.begin(path)
        reading = asyncio.ensure_future(call.read(requests, context))
        reading.add_done_callback(call.was_read)
        try:
            while True:
                part = await call.next()
                if isinstance(part, bytes):
                    yield part
                    continue
                code, description = part
                if code != StatusCode.OK:
                    await context.abort(self._codes[int(code)], description)
                return
        finally:
            reading.cancel()
            peer.finish(call)


def _metadata(context: Any) -> dict[str, str]:
    """What opens a call, as text; its deadline as a `grpc-timeout` in ms."""
    metadata = {
        key: " ".join(str(value).split("\n"))
        for key, value in context.invocation_metadata() or ()
        if isinstance(value, str)
    }
    remaining_s = context.time_remaining()
    if remaining_s is not None and remaining_s < 99_999:
        metadata["grpc-timeout"] = f"{max(0, round(remaining_s * 1_000))}m"
    return metadata
