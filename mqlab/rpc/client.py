"""The calling side: one connection for each address, and calls as streams on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mqlab.rpc.connection import NO_CODE, RpcConnection
from mqlab.rpc.frame import RpcFrame
from mqlab.rpc.status import RpcError, StatusCode
from mqlab.sim import ConnectionRefused, ConnectTimeout, Future, Timer, Transport, WaitTimeout
from mqlab.trace.events.remoting import RequestFailed, RequestTimedOut

if TYPE_CHECKING:
    from mqlab.protocol.v2.service import Rpc
    from mqlab.sim import Node

CONNECT_TIMEOUT_MS = 20_000
"""How long gRPC tries to make a connection; a call's own deadline is nearly always shorter."""

OnMessage = Callable[[Any], None]
OnEnd = Callable[["RpcError | None"], None]


class ClientStream:
    """A call: what it sends, and who hears what comes (io.grpc.stub.StreamObserver, both of a call in one).

    `on_end` is called once, with the error when the call did not end well.
    """

    def __init__(
        self, connection: ClientConnection, rpc: Rpc, stream_id: int, on_message: OnMessage, on_end: OnEnd
    ) -> None:
        self.connection = connection
        self.rpc = rpc
        self.stream_id = stream_id
        self.ended = False
        self._half_closed = False
        self._on_message = on_message
        self._on_end = on_end
        self._timer: Timer | None = None

    def begin(self, metadata: Mapping[str, str], message: Any, timeout_ms: int | None) -> None:
        """Open the stream; without further messages to come it is half-closed at once."""
        if timeout_ms is not None:
            metadata = {**metadata, "grpc-timeout": f"{timeout_ms}m"}
            self._timer = self.connection.node.timeout(timeout_ms, self._late, timeout_ms, name="deadline of a call")
        self._half_closed = not self.rpc.client_streams
        self._put(RpcFrame(self.stream_id, self.rpc.path, False, metadata, message, self._half_closed))

    def write(self, message: Any) -> None:
        """Send one more message; RpcError when the call has ended."""
        if self.ended or self._half_closed:
            raise RpcError(StatusCode.CANCELLED, f"{self.rpc.name} has ended")
        self._put(RpcFrame(self.stream_id, self.rpc.path, False, None, message))

    def complete(self) -> None:
        """Nothing more will be sent."""
        if not self.ended and not self._half_closed and self.connection.is_active:
            self._half_closed = True
            self._put(RpcFrame(self.stream_id, self.rpc.path, False, None, None, True))

    def _put(self, frame: RpcFrame) -> None:
        self.connection.write(frame)

    def heard(self, frame: RpcFrame) -> None:
        """A frame of the server has come."""
        if frame.message is not None:
            self._on_message(frame.message)
        if frame.reset:
            self.end(RpcError(StatusCode.CANCELLED, "the server reset the stream"))
        elif frame.status is not None:
            self.end(None if frame.status == StatusCode.OK else RpcError(frame.status, frame.description))

    def end(self, error: RpcError | None) -> None:
        """The call is over, whatever the server may still say."""
        if self.ended:
            return
        self.ended = True
        if self._timer is not None:
            self._timer.cancel()
        self.connection.streams.pop(self.stream_id, None)
        self.connection.paths.pop(self.stream_id, None)
        self._on_end(error)

    def _late(self, timeout_ms: int) -> None:
        connection = self.connection
        hooks = connection.node.hooks
        if hooks.on:
            hooks.emit(
                RequestTimedOut(
                    connection.connection_id, connection.remote_address, self.stream_id, NO_CODE, timeout_ms, False
                )
            )
        if connection.is_active:
            connection.write(RpcFrame(self.stream_id, self.rpc.path, False, reset=True))
        self.end(RpcError(StatusCode.DEADLINE_EXCEEDED, f"{self.rpc.name} was not answered within {timeout_ms} ms"))


class ClientConnection(RpcConnection):
    """The client's side of a connection."""

    is_client = True

    def __init__(self, node: Node, endpoint: Transport) -> None:
        super().__init__(node, endpoint)
        self.streams: dict[int, ClientStream] = {}
        self._next_stream_id = 1

    def open(self, rpc: Rpc, on_message: OnMessage, on_end: OnEnd) -> ClientStream:
        """A new stream; `begin` sends its first frame."""
        stream = ClientStream(self, rpc, self._next_stream_id, on_message, on_end)
        self.streams[stream.stream_id] = stream
        self.paths[stream.stream_id] = rpc.path
        self._next_stream_id += 2
        return stream

    def handle(self, frame: RpcFrame) -> None:
        """Give a frame to its stream; what comes for one that has ended is dropped."""
        stream = self.streams.get(frame.stream_id)
        if stream is not None:
            stream.heard(frame)

    def closed(self) -> None:
        """End every call with UNAVAILABLE."""
        hooks = self.node.hooks
        for stream in list(self.streams.values()):
            if hooks.on:
                hooks.emit(
                    RequestFailed(
                        self.connection_id, self.remote_address, stream.stream_id, NO_CODE, "the connection has ended"
                    )
                )
            stream.end(RpcError(StatusCode.UNAVAILABLE, f"the connection to {self.remote_address} has ended"))


class RpcClient:
    """Calls servers by address, over one connection each (org.apache.rocketmq.client.java.rpc.RpcClientImpl).

    An address is "ip:port", or several joined by ";": the first one that answers, until its connection ends (gRPC's
    pick_first). Every failed call is an RpcError: UNAVAILABLE, DEADLINE_EXCEEDED, or what the server says.
    """

    def __init__(self, node: Node, metadata: Mapping[str, str]) -> None:
        self.node = node
        self._metadata = metadata
        self.sign: Callable[[], Mapping[str, str]] | None = None
        """Says the headers with which a call is signed that is made now, beside those that each call has."""
        self._connections: dict[str, ClientConnection] = {}
        self._connecting: dict[str, Future[ClientConnection]] = {}
        self._shut_down = False

    async def unary(self, address: str, rpc: Rpc, request: Any, timeout_ms: int) -> Any:
        """Ask once and wait for the one answer."""
        return (await self.server_stream(address, rpc, request, timeout_ms))[0]

    async def server_stream(self, address: str, rpc: Rpc, request: Any, timeout_ms: int) -> list[Any]:
        """Ask once and wait until the server has said all: its messages, in their order."""
        begin_us = self.node.now_us()
        connection = await self._connection(address, timeout_ms)
        left_ms = timeout_ms - (self.node.now_us() - begin_us) // 1_000
        said: list[Any] = []
        answer: Future[list[Any]] = Future(f"the answer to {rpc.name}")

        def ended(error: RpcError | None) -> None:
            if error is None and said:
                answer.set_result(said)
            else:
                answer.set_exception(error or RpcError(StatusCode.INTERNAL, "there was no answer"))

        connection.open(rpc, said.append, ended).begin(self._headers(), request, max(1, left_ms))
        return await answer

    async def open(
        self, address: str, rpc: Rpc, message: Any, timeout_ms: int, on_message: OnMessage, on_end: OnEnd
    ) -> ClientStream:
        """Open a stream that stays, with a first message; `timeout_ms` is for the connection."""
        stream = (await self._connection(address, timeout_ms)).open(rpc, on_message, on_end)
        stream.begin(self._headers(), message, None)
        return stream

    def _headers(self) -> Mapping[str, str]:
        return self._metadata if self.sign is None else {**self._metadata, **self.sign()}

    async def _connection(self, address: str, timeout_ms: int) -> ClientConnection:
        connection = self._connections.get(address)
        if connection is not None and connection.is_active:
            return connection
        made = self._connecting.get(address)
        if made is None:
            made = self._connecting[address] = Future(f"a connection to {address}")
            self.node.spawn(self._connect(address, made), f"connect to {address}")
        try:
            connection = await self.node.wait(made, timeout_ms)
        except WaitTimeout:
            raise RpcError(StatusCode.DEADLINE_EXCEEDED, f"no connection to {address} in {timeout_ms} ms") from None
        if not connection.is_active:
            raise RpcError(StatusCode.UNAVAILABLE, f"the connection to {address} has ended")
        return connection

    async def _connect(self, address: str, made: Future[ClientConnection]) -> None:
        reasons: list[str] = []
        for one in address.split(";"):
            try:
                endpoint = await self.node.connect(one, CONNECT_TIMEOUT_MS)
                break
            except (ConnectionRefused, ConnectTimeout) as error:
                reasons.append(str(error))
        else:
            del self._connecting[address]
            made.set_exception(RpcError(StatusCode.UNAVAILABLE, "; ".join(reasons)))
            return
        del self._connecting[address]
        if self._shut_down:
            endpoint.close()
            made.set_exception(RpcError(StatusCode.UNAVAILABLE, "the client has been shut down"))
            return
        self._connections[address] = connection = ClientConnection(self.node, endpoint)
        made.set_result(connection)

    def shutdown(self) -> None:
        """Close all connections; calls that wait for an answer fail."""
        self._shut_down = True
        for connection in list(self._connections.values()):
            connection.close()
