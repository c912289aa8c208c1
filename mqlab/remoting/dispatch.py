"""What both sides of remoting share: processors for requests that come, and the response table for those that go.

Java: org.apache.rocketmq.remoting.netty.NettyRemotingAbstract.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, NamedTuple

from mqlab.errors import SimulationError
from mqlab.protocol.codes import V5_3_1, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.remoting.calls import GO_AWAY, RemotingCalls
from mqlab.remoting.processor import AbortProcessException, RequestProcessor, RPCHook
from mqlab.sim import EndpointClosed, Future, Pool
from mqlab.trace.events.remoting import ProcessorFailed, RequestRefused

if TYPE_CHECKING:
    from mqlab.remoting.channel import Channel
    from mqlab.remoting.processor import ChannelEventListener
    from mqlab.sim import Node

BUSY = "system busy, start flow control for a while"
"""The text that a server gives when it has no room for a request."""


class ProcessorEntry(NamedTuple):
    """A processor with the pool that it runs in and the time that each request keeps a thread of that pool."""

    processor: RequestProcessor
    pool: Pool
    service_us: int


class RemotingDispatch(RemotingCalls):
    """Takes in commands of all channels: requests go to processors, responses to those who wait for them.

    Java: org.apache.rocketmq.remoting.netty.NettyRemotingAbstract.processRequestCommand.
    """

    def __init__(self, node: Node, public_pool: Pool, oneway_permits: int, async_permits: int) -> None:
        super().__init__(node, public_pool, oneway_permits, async_permits)
        self.processor_table: dict[int, ProcessorEntry] = {}
        self.default_processor: ProcessorEntry | None = None
        self.rpc_hooks: list[RPCHook] = []
        self.channel_listeners: list[ChannelEventListener] = []
        self.shutting_down = False

    # -- processors -------------------------------------------------------------------------------------------------

    def register_processor(
        self, code: int, processor: RequestProcessor, pool: Pool | None = None, service_us: int = 0
    ) -> None:
        """Let `processor` answer requests of this code; each keeps a thread of `pool` for `service_us`."""
        self.processor_table[int(code)] = ProcessorEntry(processor, pool or self.public_pool, service_us)

    def register_default_processor(
        self, processor: RequestProcessor, pool: Pool | None = None, service_us: int = 0
    ) -> None:
        """Let `processor` answer requests of all codes that have no processor of their own."""
        self.default_processor = ProcessorEntry(processor, pool or self.public_pool, service_us)

    def on_command(self, channel: Channel, command: RemotingCommand) -> None:
        """Take in one command from a channel: the answer to a request, or a request for one of the processors."""
        if command.flag & 1:
            self.process_response(channel, command)
            return
        request = command
        entry = self.processor_table.get(request.code, self.default_processor)
        if entry is None:
            self.refuse(
                channel, request, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {request.code} not supported"
            )
            return
        if self.shutting_down and request.version > V5_3_1:
            self.refuse(channel, request, GO_AWAY, "please go away")
            return
        rejected = entry.processor.reject_request()
        if rejected is not None:
            self.refuse(channel, request, ResponseCode.SYSTEM_BUSY, f"[REJECTREQUEST]{rejected or BUSY}")
            return
        if not entry.pool.submit(self._run, entry.processor, channel, request, service_us=entry.service_us):
            self.refuse(channel, request, ResponseCode.SYSTEM_BUSY, f"[OVERLOAD]{BUSY}")

    def refuse(self, channel: Channel, request: RemotingCommand, response_code: int, remark: str) -> None:
        """Answer a request that no processor will see; one-way requests are dropped."""
        hooks = self.node.hooks
        if hooks.on:
            hooks.emit(
                RequestRefused(
                    channel.connection_id,
                    channel.remote_address,
                    request.opaque,
                    request.code,
                    int(response_code),
                    remark,
                )
            )
        self.respond(channel, request, RemotingCommand.response(response_code, remark))

    def respond(self, channel: Channel, request: RemotingCommand, response: RemotingCommand) -> None:
        """Write the answer to a request, unless nobody wants it or the channel is gone."""
        if not request.flag & 2:
            response.opaque = request.opaque
            response.flag |= 1
            try:
                channel.write(response, keep=False)
            except EndpointClosed:
                return

    def _run(
        self, processor: RequestProcessor, channel: Channel, request: RemotingCommand
    ) -> Coroutine[object, object, None] | None:
        try:
            if self.rpc_hooks:
                refusal = self._do_before_request(channel, request)
                if refusal is not None:
                    self.refuse(channel, request, refusal.response_code, refusal.remark)
                    return None
            result = processor.process_request(channel, request)
        except SimulationError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a processor raises becomes its answer
            self._answer_error(channel, request, error)
            return None
        if type(result) is RemotingCommand:
            if self.rpc_hooks:
                self._answer(channel, request, result)
            else:
                self.respond(channel, request, result)
        elif type(result) is Future:
            self._answer_when_done(channel, request, result)
        elif result is not None:
            return self._answer_coroutine(channel, request, result)  # type: ignore[arg-type]  # the only kind left
        return None

    def _do_before_request(self, channel: Channel, request: RemotingCommand) -> AbortProcessException | None:
        """Show a request to the hooks; the error with which one of them refuses it."""
        try:
            for hook in self.rpc_hooks:
                hook.do_before_request(channel.remote_address, request)
        except AbortProcessException as refusal:
            return refusal
        except SimulationError:
            raise
        except Exception:
            # As in RocketMQ the hooks are then shown an error without a text, before the client gets one with it.
            self._do_after_response(channel, request, RemotingCommand.response(ResponseCode.SYSTEM_ERROR))
            raise
        return None

    def _do_after_response(self, channel: Channel, request: RemotingCommand, response: RemotingCommand | None) -> None:
        for hook in self.rpc_hooks:
            hook.do_after_response(channel.remote_address, request, response)

    def _answer(self, channel: Channel, request: RemotingCommand, response: RemotingCommand | None) -> None:
        if self.rpc_hooks:
            try:
                self._do_after_response(channel, request, response)
            except SimulationError:
                raise
            except Exception as error:  # noqa: BLE001  # whatever a hook raises becomes the answer
                self._answer_error(channel, request, error)
                return
        if response is not None:
            self.respond(channel, request, response)

    def _answer_later(self, channel: Channel, request: RemotingCommand, future: Future[RemotingCommand | None]) -> None:
        if isinstance(future.error, Exception):
            self._answer_error(channel, request, future.error)
        else:
            self._answer(channel, request, future.result())

    async def _answer_coroutine(
        self,
        channel: Channel,
        request: RemotingCommand,
        coroutine: Coroutine[object, object, RemotingCommand | Future[RemotingCommand | None] | None],
    ) -> None:
        try:
            response = await coroutine
        except SimulationError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a processor raises becomes its answer
            self._answer_error(channel, request, error)
        else:
            if isinstance(response, Future):
                self._answer_when_done(channel, request, response)
            else:
                self._answer(channel, request, response)

    def _answer_when_done(
        self, channel: Channel, request: RemotingCommand, future: Future[RemotingCommand | None]
    ) -> None:
        future.add_done_callback(lambda done: self._answer_later(channel, request, done))

    def _answer_error(self, channel: Channel, request: RemotingCommand, error: Exception) -> None:
        """Let an error be the answer, which no hook sees: a processor's, or that of a hook."""
        reason = f"{type(error).__name__}: {error}"
        hooks = self.node.hooks
        if hooks.on:
            hooks.emit(ProcessorFailed(channel.remote_address, request.opaque, request.code, reason))
        if isinstance(error, AbortProcessException):
            response = RemotingCommand.response(error.response_code, error.remark)
        else:
            response = RemotingCommand.response(ResponseCode.SYSTEM_ERROR, reason)
        self.respond(channel, request, response)

    # -- channels ---------------------------------------------------------------------------------------------------

    def channel_connected(self, channel: Channel) -> None:
        """Tell the listeners about a new connection."""
        for listener in self.channel_listeners:
            listener.on_connect(channel)

    def channel_closed(self, channel: Channel) -> None:
        """Fail what waits for the channel and tell the listeners that it has ended."""
        self.fail_fast(channel)
        for listener in self.channel_listeners:
            listener.on_close(channel)
