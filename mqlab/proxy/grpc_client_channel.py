"""How a proxy reaches a client by itself: over the client's standing stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.rpc import RpcError

if TYPE_CHECKING:
    from mqlab.protocol.v2.service import TelemetryCommand
    from mqlab.rpc import ServerStream


class GrpcClientChannel:
    """The way to one client (org.apache.rocketmq.proxy.grpc.v2.channel.GrpcClientChannel).

    As in RocketMQ a stream that has ended is found out only by what was to be written to it, which is lost.
    """

    __slots__ = ("_observer", "client_id")

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self._observer: ServerStream | None = None

    @property
    def is_active(self) -> bool:
        """Whether there is a stream that is not known to have ended."""
        return self._observer is not None

    def set_client_observer(self, stream: ServerStream) -> None:
        """Write to this stream from now on: the client has told its settings over it."""
        self._observer = stream

    def write_telemetry_command(self, command: TelemetryCommand) -> None:
        """Tell the client something; nobody hears of it when that fails."""
        if self._observer is None:
            return
        try:
            self._observer.write(command)
        except RpcError:
            self._observer = None
