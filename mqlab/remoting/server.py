"""The serving side of remoting: a port, the channels that came in through it, and calls back to the clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.command import RemotingCommand
from mqlab.remoting.config import RemotingServerConfig
from mqlab.remoting.dispatch import RemotingDispatch
from mqlab.remoting.endpoint_channel import EndpointChannel
from mqlab.remoting.response_future import InvokeCallback
from mqlab.sim import PoolJob, Transport

if TYPE_CHECKING:
    from mqlab.remoting.channel import Channel
    from mqlab.sim import Node


class RemotingServer(RemotingDispatch):
    """Accepts connections at a port and lets processors answer the requests that come.

    Java: org.apache.rocketmq.remoting.netty.NettyRemotingServer. Differs from RocketMQ: no TLS and no proxy protocol.
    """

    def __init__(
        self, node: Node, port: int, name: str = "RemotingServer", config: RemotingServerConfig | None = None
    ) -> None:
        self.config = config or RemotingServerConfig()
        pool = node.pool(f"{name}PublicExecutor", self.config.server_callback_executor_threads or 4)
        super().__init__(
            node, pool, self.config.server_oneway_semaphore_value, self.config.server_async_semaphore_value
        )
        self.name = name
        self.port = port
        self.channels: dict[Channel, None] = {}

    def start(self) -> None:
        """Listen at the port from now on."""
        self.node.listen(self.port, self.accept)

    async def leave(self) -> None:
        """Shut down; with `enable_shutdown_gracefully` only after answering GO_AWAY to every request for a while.

        What a client sends meanwhile is not processed; clients of a version after 5.3.1 send it once more elsewhere.
        """
        if self.config.enable_shutdown_gracefully and not self.shutting_down:
            self.shutting_down = True
            await self.node.sleep(self.config.shutdown_wait_time_seconds * 1_000)
        self.shutdown()

    def shutdown(self) -> None:
        """Close the port and all channels, at once."""
        self.shutting_down = True
        self.stop_scan()
        self.node.stop_listening(self.port)
        for channel in list(self.channels):
            channel.close()

    def accept(self, transport: Transport) -> None:
        """Take in a connection: over a link of the world, as the port does, or over whatever else carries it."""
        idle_seconds = self.config.server_channel_max_idle_time_seconds
        channel = EndpointChannel(self.node, transport, self.on_command, self._closed, idle_seconds)
        self.channels[channel] = None
        self.channel_connected(channel)

    def _closed(self, channel: Channel) -> None:
        self.channels.pop(channel, None)
        self.channel_closed(channel)

    async def invoke_sync(self, channel: Channel, request: RemotingCommand, timeout_ms: int) -> RemotingCommand:
        """Ask the client at the other end of a channel and wait for its answer."""
        return await self.invoke_sync_on_channel(channel, request, timeout_ms)

    def invoke_async(
        self, channel: Channel, request: RemotingCommand, timeout_ms: int, callback: InvokeCallback
    ) -> None:
        """Ask the client at the other end of a channel; `callback(response_future)` is called once."""
        self.invoke_on_channel(channel, request, timeout_ms, callback)

    def invoke_oneway(self, channel: Channel, request: RemotingCommand, timeout_ms: int) -> None:
        """Tell the client at the other end of a channel something; there is no answer."""
        self.invoke_oneway_on_channel(channel, request, timeout_ms)

    def __repr__(self) -> str:
        return f"<{self.name} {self.node.spec.ip}:{self.port}: {len(self.channels)} channels>"


def waiting_request(job: PoolJob) -> tuple[Channel, RemotingCommand] | None:
    """The channel and the request of a job in a processor's pool; None if the job is something else.

    With `pool.take_older_than` this lets a server answer requests that have waited too long for a thread.
    """
    args = job.args
    if len(args) == 3 and isinstance(args[2], RemotingCommand):
        return args[1], args[2]
    return None
