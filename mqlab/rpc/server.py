"""The serving side: a port, the connections that came in through it, and the calls on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mqlab.errors import ProtocolError
from mqlab.protocol.v2.service import RPCS, UNIMPLEMENTED
from mqlab.rpc.connection import RpcConnection
from mqlab.rpc.frame import RpcFrame
from mqlab.rpc.status import RpcError, StatusCode
from mqlab.trace.events.proxy import RpcCancelled

if TYPE_CHECKING:
    from mqlab.protocol.v2.service import Rpc
    from mqlab.sim import Node, Transport

NO_DEADLINE_MS = 365 * 24 * 3_600_000
"""What is left of a call without a deadline: a year."""


_UNITS_NS = {"H": 3_600_000_000_000, "M": 60_000_000_000, "S": 1_000_000_000, "m": 1_000_000, "u": 1_000, "n": 1}


def timeout_us(text: str) -> int:
    """What a `grpc-timeout` says, in us: at most eight digits and a unit; ProtocolError for anything else.

    Source: gRPC over HTTP/2, "Timeout"; io.grpc.internal.GrpcUtil.TimeoutMarshaller.
    """
    digits, unit = text[:-1], text[-1:]
    if unit not in _UNITS_NS or not (digits.isascii() and digits.isdigit()) or len(digits) > 8:
        raise ProtocolError(f"malformed grpc-timeout {text!r}: wanted are at most 8 digits and one of H M S m u n")
    return int(digits) * _UNITS_NS[unit] // 1_000


class ServerStream:
    """A call as its server sees it (io.grpc.stub.ServerCallStreamObserver)."""

    def __init__(self, connection: ServerConnection, rpc: Rpc, frame: RpcFrame) -> None:
        self.connection = connection
        self.rpc = rpc
        self.stream_id = frame.stream_id
        self.metadata: Mapping[str, str] = frame.metadata or {}
        self.over = False
        """Whether nothing can be written any more: it was ended, cancelled, or its connection is gone."""
        self.on_message: Callable[[Any], None] = _ignore
        self.on_end: Callable[[], None] = _nothing
        """Called when the client has said all, or the call was cancelled."""
        node = connection.node
        timeout = self.metadata.get("grpc-timeout")
        self._deadline_us = node.now_us() + timeout_us(timeout) if timeout is not None else -1

    @property
    def remaining_ms(self) -> int:
        """How long the client will still wait."""
        if self._deadline_us < 0:
            return NO_DEADLINE_MS
        return max(0, self._deadline_us - self.connection.node.now_us()) // 1_000

    def write(self, message: Any) -> None:
        """Send a message; RpcError when the call was cancelled or its connection has ended."""
        self._put(RpcFrame(self.stream_id, self.rpc.path, True, None, message))

    def answer(self, message: Any) -> None:
        """Send the last message, and end the call well."""
        self._put(RpcFrame(self.stream_id, self.rpc.path, True, None, message, True, StatusCode.OK))
        self._over()

    def end(self, code: StatusCode = StatusCode.OK, description: str = "") -> None:
        """End the call with this status."""
        self._put(RpcFrame(self.stream_id, self.rpc.path, True, None, None, True, code, description))
        self._over()

    def _put(self, frame: RpcFrame) -> None:
        if self.over:
            raise RpcError(StatusCode.CANCELLED, f"{self.rpc.name} was cancelled by its client")
        self.connection.write(frame)

    def heard(self, frame: RpcFrame) -> None:
        """A frame of the client has come."""
        if frame.message is not None:
            self.on_message(frame.message)
        if frame.reset:
            hooks = self.connection.node.hooks
            if hooks.on:
                connection = self.connection
                hooks.emit(
                    RpcCancelled(
                        connection.connection_id, connection.remote_address, self.stream_id, self.rpc.name
                    )
                )
            self.cancelled()
        elif frame.ends and self.rpc.client_streams:
            self.on_end()

    def cancelled(self) -> None:
        """The client has gone, or does not want the answer any more."""
        if not self.over:
            self._over()
            self.on_end()

    def _over(self) -> None:
        self.over = True
        self.connection.streams.pop(self.stream_id, None)
        self.connection.paths.pop(self.stream_id, None)


def _ignore(message: Any) -> None:
    """Who hears messages of a stream that nobody serves."""


def _nothing() -> None:
    """What happens when a stream ends and nobody cares."""


class ServerConnection(RpcConnection):
    """The server's side of a connection."""

    def __init__(self, server: RpcServer, endpoint: Transport) -> None:
        super().__init__(server.node, endpoint)
        self.streams: dict[int, ServerStream] = {}
        self._server = server

    def handle(self, frame: RpcFrame) -> None:
        """Open a stream, or give a frame to its stream."""
        stream = self.streams.get(frame.stream_id)
        if frame.malformed:
            self._cannot_read(frame, stream)
            return
        if stream is None:
            if frame.metadata is None:
                return
            rpc = RPCS.get(frame.path)
            if rpc is None:
                name = frame.path[1:]
                known = frame.path in UNIMPLEMENTED
                refused = f"Method {name} is unimplemented" if known else f"Method not found: {name}"
                self.write(
                    RpcFrame(frame.stream_id, frame.path, True, None, None, True, StatusCode.UNIMPLEMENTED, refused)
                )
                return
            try:
                stream = ServerStream(self, rpc, frame)
            except ProtocolError as error:
                self.write(
                    RpcFrame(frame.stream_id, frame.path, True, None, None, True, StatusCode.INTERNAL, str(error))
                )
                return
            self.streams[frame.stream_id] = stream
            self.paths[frame.stream_id] = frame.path
            self._server.serve(stream)
        stream.heard(frame)

    def _cannot_read(self, frame: RpcFrame, stream: ServerStream | None) -> None:
        """End a call whose message is none, and no other, in silence (io.grpc.internal.ServerImpl, internalClose)."""
        if stream is None and frame.metadata is None:
            return
        self.refused(frame.malformed)
        self.write(RpcFrame(frame.stream_id, frame.path, True, None, None, True, StatusCode.UNKNOWN))
        if stream is not None:
            stream.cancelled()

    def closed(self) -> None:
        """Cancel every call of a connection that has closed."""
        self._server.connections.pop(self, None)
        for stream in list(self.streams.values()):
            stream.cancelled()


class RpcServer:
    """Accepts connections at a port; `serve(stream)` is called for each call and says who hears it.

    Java: org.apache.rocketmq.proxy.grpc.GrpcServer. Differs from RocketMQ: HTTP/2 without packed headers, settings,
    windows and pings, without TLS, and connections on which nothing moves stay.
    """

    def __init__(self, node: Node, port: int, serve: Callable[[ServerStream], None]) -> None:
        self.node = node
        self.port = port
        self.serve = serve
        self.connections: dict[ServerConnection, None] = {}

    def start(self) -> None:
        """Listen at the port from now on."""
        self.node.listen(self.port, self.accept)

    def accept(self, transport: Transport) -> None:
        """Take in a connection: over a link of the world, as the port does, or over whatever else carries it."""
        self.connections[ServerConnection(self, transport)] = None

    def shutdown(self) -> None:
        """Close the port and all connections."""
        self.node.stop_listening(self.port)
        for connection in list(self.connections):
            connection.close()

    def __repr__(self) -> str:
        return f"<RpcServer {self.node.spec.ip}:{self.port}: {len(self.connections)} connections>"
