"""Channels over the connections of a world, whatever carries them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqlab.protocol.codes import code_name
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.errors import CommandError
from mqlab.remoting.channel import Channel
from mqlab.remoting.frame_reader import FrameReader
from mqlab.sim import EndpointClosed, Transport
from mqlab.trace.events.remoting import (
    ChannelIdle,
    FrameRefused,
    RequestReceived,
    RequestSent,
    ResponseReceived,
    ResponseSent,
)

if TYPE_CHECKING:
    from mqlab.remoting.channel import CloseHandler, CommandHandler
    from mqlab.sim import Node


class EndpointChannel(Channel):
    """A channel over a transport: counts and tells of frames, encodes where they are bytes, closes what is idle.

    Differs from RocketMQ: a write is done when it returns, so there are no write buffers and no low or high water mark.

    Java: org.apache.rocketmq.remoting.netty.NettyRemotingClient.ChannelWrapper.
    """

    __slots__ = (
        "_counts_bytes",
        "_endpoint",
        "_idle_us",
        "_on_close",
        "_on_command",
        "_reader",
        "connection_id",
        "frames_read",
        "frames_written",
        "last_active_us",
        "local_address",
        "node",
        "remote_address",
    )

    def __init__(
        self, node: Node, endpoint: Transport, on_command: CommandHandler, on_close: CloseHandler, max_idle_seconds: int
    ) -> None:
        self.node = node
        self.connection_id = endpoint.connection_id
        """The number of the connection in its world, the same on both sides."""
        self.local_address = endpoint.local
        self.remote_address = endpoint.remote
        self.frames_read = 0
        self.frames_written = 0
        self.last_active_us = node.now_us()
        self._endpoint = endpoint
        self._on_command = on_command
        self._on_close = on_close
        self._idle_us = max_idle_seconds * 1_000_000
        self._counts_bytes = endpoint.counts_bytes
        self._reader: FrameReader | None = None
        """Made when bytes come: in most worlds commands travel as they are."""
        endpoint.on_frame = self._read
        endpoint.on_close = self._ended
        if self._idle_us:
            node.call_later(max_idle_seconds * 1_000, self._look_for_idleness, name="idle check")

    @property
    def is_active(self) -> bool:
        """Whether commands can be written."""
        return self._endpoint.open

    def write(self, command: RemotingCommand, *, keep: bool = True) -> None:
        """Send a command as it is now; EndpointClosed when the channel is not active."""
        endpoint = self._endpoint
        if not endpoint.open:
            raise EndpointClosed(f"the channel {self.local_address} -> {self.remote_address} is closed")
        world = self.node.world
        self.last_active_us = world.now_us
        self.frames_written += 1
        if world.hooks.on:
            world.hooks.emit(self._sent(command))
        if not self._counts_bytes:
            endpoint.put(command.snapshot() if keep else command, 0)
        elif endpoint.as_bytes:
            frame = command.encode()
            endpoint.put(frame, len(frame))
        else:
            endpoint.put(command.snapshot(), len(command.encode()))

    def _read(self, frame: Any) -> None:
        world = self.node.world
        self.last_active_us = world.now_us
        if type(frame) is not RemotingCommand:
            self._read_bytes(frame)
            return
        self.frames_read += 1
        if world.hooks.on:
            world.hooks.emit(self._received(frame))
        self._on_command(self, frame)

    def _read_bytes(self, data: bytes) -> None:
        reader = self._reader = self._reader or FrameReader()
        reader.receive_data(data)
        while self._endpoint.open:
            try:
                command = reader.next_command()
            except CommandError as error:
                self._refuse(error)
                return
            if command is None:
                return
            self._read(command)

    def _refuse(self, error: CommandError) -> None:
        self.frames_read += 1
        hooks = self.node.hooks
        if hooks.on:
            hooks.emit(
                FrameRefused(
                    self.connection_id, self.frames_read, self.local_address, self.remote_address, error.reason
                )
            )
        self.close()

    def outer_address(self, address: str) -> str:
        """How whoever is at the other end reaches a process at an address of the world."""
        return self._endpoint.outer_address(address)

    def close(self) -> None:
        """Close the connection; what was written before still arrives."""
        if self._endpoint.open:
            self._endpoint.close()
            self._on_close(self)

    def _ended(self) -> None:
        self._on_close(self)

    def _look_for_idleness(self) -> None:
        if not self._endpoint.open:
            return
        node = self.node
        idle_us = node.now_us() - self.last_active_us
        if idle_us < self._idle_us:
            node.call_later((self._idle_us - idle_us) / 1_000, self._look_for_idleness, name="idle check")
            return
        if node.hooks.on:
            node.hooks.emit(
                ChannelIdle(self.connection_id, self.local_address, self.remote_address, self._idle_us // 1_000)
            )
        self.close()

    def _sent(self, command: RemotingCommand) -> RequestSent | ResponseSent:
        where = (self.connection_id, self.frames_written, self.local_address, self.remote_address, command.opaque)
        code = command.code
        if command.flag & 1:
            return ResponseSent(*where, code, code_name(code, True), len(command.body or b""))
        return RequestSent(*where, code, code_name(code), command.is_oneway, len(command.body or b""))

    def _received(self, command: RemotingCommand) -> RequestReceived | ResponseReceived:
        where = (self.connection_id, self.frames_read, self.local_address, self.remote_address, command.opaque)
        code = command.code
        if command.flag & 1:
            return ResponseReceived(*where, code, code_name(code, True), len(command.body or b""))
        return RequestReceived(*where, code, code_name(code), command.is_oneway, len(command.body or b""))

    def __repr__(self) -> str:
        state = "active" if self.is_active else "closed"
        return f"<Channel {self.local_address} -> {self.remote_address}: {state}>"
