"""A connection with its streams: what both sides do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.errors import ProtocolError
from mqlab.protocol.v2.protobuf import name_of
from mqlab.rpc.frame import RpcFrame, decode_frame
from mqlab.rpc.status import RpcError, StatusCode
from mqlab.sim import Transport
from mqlab.trace.events.remoting import (
    FrameRefused,
    RequestReceived,
    RequestSent,
    ResponseReceived,
    ResponseSent,
)

if TYPE_CHECKING:
    from mqlab.sim import Node

NO_CODE = 0
"""The request code in events of calls, which have names instead."""


class RpcConnection:
    """One side of a connection; a subclass says what a frame that came is for."""

    is_client = False

    def __init__(self, node: Node, endpoint: Transport) -> None:
        self.node = node
        self.endpoint = endpoint
        self.paths: dict[int, str] = {}
        """The call of each open stream, which later frames of it do not say in bytes."""
        self._written = 0
        self._read_frames = 0
        endpoint.on_frame = self._read
        endpoint.on_close = self.closed

    @property
    def connection_id(self) -> int:
        """The number of the connection in its world."""
        return self.endpoint.connection_id

    @property
    def remote_address(self) -> str:
        """The other side, "ip:port"."""
        return self.endpoint.remote

    @property
    def is_active(self) -> bool:
        """Whether frames can be written."""
        return self.endpoint.open

    def write(self, frame: RpcFrame) -> None:
        """Send a frame; RpcError when the connection has ended."""
        endpoint = self.endpoint
        if not endpoint.open:
            raise RpcError(StatusCode.UNAVAILABLE, f"the connection to {self.remote_address} is closed")
        world = self.node.world
        self._written += 1
        if world.hooks.on and (frame.message is not None or frame.status is not None):
            world.hooks.emit(self._event(frame, self._written, sent=True))
        if endpoint.as_bytes:
            data = frame.encode()
            endpoint.put(data, len(data))
        else:
            endpoint.put(frame, len(frame.encode()) if endpoint.counts_bytes else 0)

    def close(self) -> None:
        """Close the connection; what was written before still arrives."""
        if self.endpoint.open:
            self.endpoint.close()
            self.closed()

    def closed(self) -> None:
        """The connection has ended: so have its streams."""
        raise NotImplementedError(f"{type(self).__name__} must define closed()")

    def handle(self, frame: RpcFrame) -> None:
        """A frame has come."""
        raise NotImplementedError(f"{type(self).__name__} must define handle()")

    def _read(self, frame: Any) -> None:
        self._read_frames += 1
        if type(frame) is not RpcFrame:
            try:
                frame = decode_frame(frame, self.paths, is_answer=self.is_client)
            except (ProtocolError, ValueError, KeyError, AttributeError) as error:
                self.refused(str(error))
                self.close()
                return
        world = self.node.world
        if world.hooks.on and (frame.message is not None or frame.status is not None):
            world.hooks.emit(self._event(frame, self._read_frames, sent=False))
        self.handle(frame)

    def refused(self, reason: str) -> None:
        """Tell that the frame that has just come is no good."""
        hooks, endpoint = self.node.hooks, self.endpoint
        if hooks.on:
            hooks.emit(
                FrameRefused(endpoint.connection_id, self._read_frames, endpoint.local, endpoint.remote, reason)
            )

    def _event(self, frame: RpcFrame, number: int, *, sent: bool) -> tuple[Any, ...]:
        endpoint = self.endpoint
        where = (endpoint.connection_id, number, endpoint.local, endpoint.remote, frame.stream_id)
        size = body_bytes(frame.message)
        if frame.is_answer:
            answer = ResponseSent if sent else ResponseReceived
            return answer(*where, *_says(frame), size)
        request = RequestSent if sent else RequestReceived
        return request(*where, NO_CODE, frame.method, frame.metadata is None or not frame.ends, size)


def _says(frame: RpcFrame) -> tuple[int, str]:
    """The code of an answer and its name: RocketMQ's if it has one, else what it brings."""
    message = frame.message
    if message is None:
        assert frame.status is not None
        return int(frame.status), f"{frame.method} ended: {frame.status.name}"
    status = getattr(message, "status", None)
    if status is not None:
        return int(status.code), name_of(status.code)
    return NO_CODE, "MESSAGE" if getattr(message, "message", None) is not None else "DELIVERY_TIMESTAMP"


def body_bytes(message: tuple[Any, ...] | None) -> int:
    """How many bytes of message bodies something holds."""
    held = getattr(message, "messages", None)
    if held is None:
        one = getattr(message, "message", None)
        held = (one,) if one is not None else ()
    return sum(len(each.body) for each in held)
