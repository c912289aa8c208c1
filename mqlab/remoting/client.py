"""The calling side of remoting: a table of channels by address, the choice of a name server, three ways to call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.errors import (
    RemotingConnectException,
    RemotingSendRequestException,
    RemotingTimeoutException,
    RemotingTooMuchRequestException,
)
from mqlab.protocol.command import RemotingCommand
from mqlab.remoting.config import RemotingClientConfig
from mqlab.remoting.dispatch import RemotingDispatch
from mqlab.remoting.endpoint_channel import EndpointChannel
from mqlab.remoting.response_future import InvokeCallback, ResponseFuture
from mqlab.sim import ConnectionRefused, ConnectTimeout, Future, Timer, WaitTimeout
from mqlab.trace.events.remoting import NameServerChosen

if TYPE_CHECKING:
    from mqlab.remoting.channel import Channel
    from mqlab.sim import Node

MIN_CLOSE_TIMEOUT_MS = 100
"""A synchronous call that had more time than this, or a quarter of its budget, closes its channel on time-out."""

NAME_SERVER_INDEX_BOUND = 999


class RemotingClient(RemotingDispatch):
    """Calls other nodes by address, over one channel each (org.apache.rocketmq.remoting.netty.NettyRemotingClient).

    An address of None means the name server: the one chosen at present while its channel is alive, else the next of
    the list, which is shuffled when it is set. Differs from RocketMQ: no TLS, no SOCKS proxy. The channel table needs
    no lock, since nothing happens between two awaits; whoever asks for a channel that is being made waits for that one.
    """

    def __init__(self, node: Node, config: RemotingClientConfig | None = None, name: str = "RemotingClient") -> None:
        self.config = config or RemotingClientConfig()
        threads = self.config.client_callback_executor_threads
        pool = node.pool(f"{name}PublicExecutor", threads if threads > 0 else node.spec.cores)
        super().__init__(
            node, pool, self.config.client_oneway_semaphore_value, self.config.client_async_semaphore_value
        )
        self.name = name
        self.channel_table: dict[str, Channel] = {}
        self.name_server_addresses: list[str] = []
        self.name_server_chosen: str | None = None
        self.started = False
        self._connecting: dict[str, Future[Channel]] = {}
        self._left: list[Channel] = []
        self._name_server_index: int | None = None
        self._name_server_origin_us = 0
        self._name_server_timer: Timer | None = None

    # -- name servers -----------------------------------------------------------------------------------------------

    def update_name_server_address_list(self, addresses: list[str]) -> None:
        """Use these name servers ("ip:port") from now on, in an order that is drawn.

        The same ones again, in whatever order, change nothing. The present choice stays if it is among them, else its
        channel is closed.

        Java: org.apache.rocketmq.remoting.netty.NettyRemotingClient.updateNameServerAddressList.
        """
        unique = list(dict.fromkeys(addresses))
        if not unique or sorted(unique) == sorted(self.name_server_addresses):
            return
        for k in range(len(unique) - 1, 0, -1):
            other = self.node.choose("name-server-order", k + 1)
            unique[k], unique[other] = unique[other], unique[k]
        self.name_server_addresses = unique
        if self.name_server_chosen is not None and self.name_server_chosen not in unique:
            channel = self.channel_table.get(self.name_server_chosen)
            self.name_server_chosen = None
            if channel is not None:
                channel.close()
        if self.started:
            self._reach_name_servers()

    def _reach_name_servers(self) -> None:
        """Connect to every name server; while one cannot be reached, try again on a grid of connect time-outs."""
        self._name_server_timer = None
        if self.shutting_down:
            return
        for address in self.name_server_addresses:
            if self._active(address) is None:
                self._connect(address)
                self._watch_name_servers()

    def _watch_name_servers(self) -> None:
        if self._name_server_timer is None and self.started and not self.shutting_down:
            period_us = self.config.connect_timeout_millis * 1_000
            since = (self.node.now_us() - self._name_server_origin_us) % period_us
            self._name_server_timer = self.node.call_later(
                (period_us - since) / 1_000, self._reach_name_servers, name="name server scan"
            )

    def _choose_name_server(self) -> str:
        chosen = self.name_server_chosen
        if chosen is not None and self._active(chosen) is not None:
            return chosen
        addresses = self.name_server_addresses
        if not addresses:
            raise RemotingConnectException("null")
        if self._name_server_index is None:
            self._name_server_index = self.node.choose("name-server-index", NAME_SERVER_INDEX_BOUND)
        self._name_server_index += 1
        self.name_server_chosen = addresses[self._name_server_index % len(addresses)]
        if self.node.hooks.on:
            self.node.hooks.emit(NameServerChosen(chosen or "", self.name_server_chosen))
        return self.name_server_chosen

    # -- channels ---------------------------------------------------------------------------------------------------

    def _active(self, address: str) -> Channel | None:
        channel = self.channel_table.get(address)
        return channel if channel is not None and channel.is_active else None

    def _connect(self, address: str) -> Future[Channel]:
        """The channel that is being made to an address; whoever asks meanwhile gets the same one."""
        future = self._connecting.get(address)
        if future is None:
            future = self._connecting[address] = Future(f"a connection to {address}")
            self.node.spawn(self._make_channel(address, future), f"connect to {address}")
        return future

    async def _make_channel(self, address: str, future: Future[Channel]) -> None:
        try:
            endpoint = await self.node.connect(address, self.config.connect_timeout_millis)
        except (ConnectionRefused, ConnectTimeout):
            del self._connecting[address]
            future.set_exception(RemotingConnectException(address))
            return
        del self._connecting[address]
        if self.shutting_down:
            endpoint.close()
            future.set_exception(RemotingConnectException(address))
            return
        idle_seconds = self.config.client_channel_max_idle_time_seconds
        channel = EndpointChannel(self.node, endpoint, self.on_command, self._closed, idle_seconds)
        self.channel_table[address] = channel
        future.set_result(channel)
        self.node.call_soon(self.channel_connected, channel, name="channel event")

    def _closed(self, channel: Channel) -> None:
        address = channel.remote_address
        if self.channel_table.get(address) is channel:
            del self.channel_table[address]
        elif channel in self._left:
            self._left.remove(channel)
        if address in self.name_server_addresses:
            self._watch_name_servers()
        self.channel_closed(channel)

    def close_channel(self, address: str) -> None:
        """Close the channel to an address, if there is one.

        Java: org.apache.rocketmq.remoting.netty.NettyRemotingClient.closeChannel.
        """
        channel = self.channel_table.get(address)
        if channel is not None:
            channel.close()

    def is_channel_writable(self, address: str) -> bool:
        """Whether there is a live channel to an address."""
        return self._active(address) is not None

    async def _get_or_create_channel(self, address: str) -> Channel:
        channel = self._active(address)
        if channel is not None:
            return channel
        try:
            channel = await self.node.wait(self._connect(address), self.config.connect_timeout_millis)
        except WaitTimeout:
            raise RemotingConnectException(address) from None
        if not channel.is_active:
            raise RemotingConnectException(address)
        return channel

    # -- calls ------------------------------------------------------------------------------------------------------

    async def invoke_sync(self, address: str | None, request: RemotingCommand, timeout_ms: int) -> RemotingCommand:
        """Send a request and wait for its answer, all within one time budget: connecting counts too.

        Raises RemotingConnectException, RemotingSendRequestException or RemotingTimeoutException. A failure to send
        closes the channel, and so does a time-out unless connecting had left hardly any time for the answer.

        Java: org.apache.rocketmq.remoting.netty.NettyRemotingClient.invokeSync.
        """
        target = address or self._choose_name_server()
        left_ms = timeout_ms
        channel = self._active(target)
        if channel is None:
            begin_us = self.node.now_us()
            channel = await self._get_or_create_channel(target)
            left_ms -= (self.node.now_us() - begin_us) // 1_000
        if left_ms <= 0:
            raise RemotingTimeoutException(target, timeout_ms, f"invokeSync call the addr[{target}] timeout")
        for hook in self.rpc_hooks:
            hook.do_before_request(target, request)
        try:
            # What invoke_sync_on_channel does, without a coroutine of its own: this is on the way of every message.
            permit_ms = left_ms
            if not self.semaphore_async.try_acquire():
                permit_ms = await self.wait_for_permit(channel, left_ms)
            answer, timer = self.begin_sync(channel, request, left_ms, permit_ms)
            try:
                response = await answer
            finally:
                timer.cancel()
        except RemotingSendRequestException:
            channel.close()
            raise
        except RemotingTimeoutException:
            had_time = left_ms > MIN_CLOSE_TIMEOUT_MS or left_ms > timeout_ms / 4
            if self.config.client_close_socket_if_timeout and had_time:
                channel.close()
            raise
        for hook in self.rpc_hooks:
            hook.do_after_response(target, request, response)
        return response

    def invoke_async(
        self, address: str | None, request: RemotingCommand, timeout_ms: int, callback: InvokeCallback
    ) -> None:
        """Send a request; `callback(response_future)` is called once, with the answer or with what went wrong.

        Nothing is raised here: a failed connection also arrives at the callback, as RocketMQ 5 does it.

        Java: org.apache.rocketmq.remoting.netty.NettyRemotingClient.invokeAsync.
        """
        begin_us = self.node.now_us()
        try:
            target = address or self._choose_name_server()
        except RemotingConnectException as error:
            future = ResponseFuture(None, request, timeout_ms, begin_us, callback)
            self.complete(future, None, error)
            return
        channel = self._active(target)
        if channel is not None:
            self._invoke_async_on(channel, target, request, timeout_ms, callback)
            return

        def connected(outcome: Future[Channel]) -> None:
            left_ms = timeout_ms - (self.node.now_us() - begin_us) // 1_000
            if outcome.error is not None or not outcome.result().is_active:
                future = ResponseFuture(None, request, timeout_ms, begin_us, callback)
                self.complete(future, None, RemotingConnectException(target))
            elif left_ms < 0:
                future = ResponseFuture(outcome.result(), request, timeout_ms, begin_us, callback)
                late = RemotingTooMuchRequestException(f"invokeAsync call the addr[{target}] timeout")
                self.complete(future, None, late)
            else:
                self._invoke_async_on(outcome.result(), target, request, left_ms, callback)

        self._connect(target).add_done_callback(connected)

    def _invoke_async_on(
        self, channel: Channel, address: str, request: RemotingCommand, timeout_ms: int, callback: InvokeCallback
    ) -> None:
        hooks = self.rpc_hooks
        if not hooks:
            self.invoke_on_channel(channel, request, timeout_ms, callback)
            return
        for hook in hooks:
            hook.do_before_request(address, request)

        def hooked(future: ResponseFuture) -> object:
            if future.response is not None:
                for hook in hooks:
                    hook.do_after_response(address, request, future.response)
            return callback(future)

        self.invoke_on_channel(channel, request, timeout_ms, hooked)

    def send_again_elsewhere(self, future: ResponseFuture) -> bool:
        """A server that leaves has answered GO_AWAY: send the request once more, over a new channel to its address.

        The old channel leaves the table but stays open for what still waits on it. A second GO_AWAY is a failure to
        send; so is the first with `enable_reconnect_for_go_away` off.

        Java: org.apache.rocketmq.remoting.netty.NettyRemotingClient.invokeImpl.
        """
        channel = future.channel
        assert channel is not None
        address = channel.remote_address
        if future.sent_again or not self.config.enable_reconnect_for_go_away:
            self.complete(future, None, RemotingSendRequestException(address))
            return True
        future.sent_again = True
        if self.channel_table.get(address) is channel:
            del self.channel_table[address]
            self._left.append(channel)

        def connected(outcome: Future[Channel]) -> None:
            if outcome.error is not None or not outcome.result().is_active:
                self.complete(future, None, RemotingSendRequestException(address))
                return
            future.channel = outcome.result()
            self.send_over(future, future.channel)

        current = self._active(address)
        if current is None:
            self._connect(address).add_done_callback(connected)
        else:
            future.channel = current
            self.send_over(future, current)
        return True

    def invoke_oneway(self, address: str | None, request: RemotingCommand, timeout_ms: int) -> None:
        """Send a request that nobody answers; when no connection can be made it is dropped in silence.

        Java: org.apache.rocketmq.remoting.netty.NettyRemotingClient.invokeOneway.
        """
        target = address or self._choose_name_server()
        channel = self._active(target)
        if channel is not None:
            self._invoke_oneway_on(channel, target, request, timeout_ms)
            return

        def connected(outcome: Future[Channel]) -> None:
            if outcome.error is None and outcome.result().is_active:
                self._invoke_oneway_on(outcome.result(), target, request, timeout_ms)

        self._connect(target).add_done_callback(connected)

    def _invoke_oneway_on(self, channel: Channel, address: str, request: RemotingCommand, timeout_ms: int) -> None:
        for hook in self.rpc_hooks:
            hook.do_before_request(address, request)
        try:
            self.invoke_oneway_on_channel(channel, request, timeout_ms)
        except RemotingSendRequestException:
            channel.close()
            raise

    # -- start and end ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Connect to every name server, and keep connected; calls work without it, each connecting when it needs to.

        Java: org.apache.rocketmq.remoting.netty.NettyRemotingClient.start.
        """
        self.started = True
        self._name_server_origin_us = self.node.now_us()
        self._reach_name_servers()

    def shutdown(self) -> None:
        """Close all channels and end the scans."""
        self.shutting_down = True
        self.stop_scan()
        if self._name_server_timer is not None:
            self._name_server_timer.cancel()
            self._name_server_timer = None
        for channel in [*self.channel_table.values(), *self._left]:
            channel.close()
        self.public_pool.shutdown()

    def __repr__(self) -> str:
        return f"<{self.name} on {self.node.name}: channels to {', '.join(self.channel_table) or 'nobody'}>"
