"""What both sides of remoting share: processors for requests that come, and the response table for those that go.

Java: org.apache.rocketmq.remoting.netty.NettyRemotingAbstract.
"""

from __future__ import annotations

from collections.abc import Coroutine
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from mqlab.errors import (
    RemotingException,
    RemotingSendRequestException,
    RemotingTimeoutException,
    RemotingTooMuchRequestException,
    SimulationError,
)
from mqlab.protocol.codes import ResponseCode, code_name
from mqlab.protocol.command import RemotingCommand
from mqlab.sim import EndpointClosed, Future, Pool, Semaphore, Timer
from mqlab.trace.events.remoting import ProcessorFailed, RequestFailed, RequestRefused, RequestTimedOut, ResponseDropped

from .processor import AbortProcessException, RequestProcessor, RPCHook
from .response_future import InvokeCallback, ResponseFuture

if TYPE_CHECKING:
    from mqlab.sim import Node

    from .channel import Channel
    from .processor import ChannelEventListener

SCAN_FIRST_MS = 3_000
SCAN_PERIOD_MS = 1_100
"""The scan is asked for every second, but RocketMQ's timer wheel turns in ticks of 100 ms and always takes one more."""

BUSY = "system busy, start flow control for a while"
"""The text that a server gives when it has no room for a request."""


@lru_cache(maxsize=512)
def _answer_label(request_code: int) -> str:
    return f"the answer to {code_name(request_code)}"


class ProcessorEntry(NamedTuple):
    """A processor with the pool that it runs in and the time that each request keeps a thread of that pool."""

    processor: RequestProcessor
    pool: Pool
    service_us: int


class RemotingDispatch:
    """Takes in commands of all channels: requests go to processors, responses to those who wait for them."""

    def __init__(self, node: Node, public_pool: Pool, oneway_permits: int, async_permits: int) -> None:
        self.node = node
        self.public_pool = public_pool
        self.semaphore_oneway = Semaphore(oneway_permits, "the one-way semaphore")
        self.semaphore_async = Semaphore(async_permits, "the async semaphore")
        self.processor_table: dict[int, ProcessorEntry] = {}
        self.default_processor: ProcessorEntry | None = None
        self.response_table: dict[int, ResponseFuture] = {}
        self.rpc_hooks: list[RPCHook] = []
        self.channel_listeners: list[ChannelEventListener] = []
        self.shutting_down = False
        self._opaque: count[int] = node.life.singletons.setdefault("RemotingCommand.request_id", count())
        self._scan_origin_us = node.now_us() + SCAN_FIRST_MS * 1_000
        self._scan_timer: Timer | None = None

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
        """Take in one command from a channel."""
        if command.flag & 1:
            self._process_response(channel, command)
        else:
            self._process_request(channel, command)

    def _process_request(self, channel: Channel, request: RemotingCommand) -> None:
        entry = self.processor_table.get(request.code, self.default_processor)
        if entry is None:
            self.refuse(
                channel, request, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {request.code} not supported"
            )
            return
        if self.shutting_down:
            self.refuse(channel, request, ResponseCode.GO_AWAY, "please go away")
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
                    channel.connection_id, channel.remote_address, request.opaque, request.code, response_code, remark
                )
            )
        self.respond(channel, request, RemotingCommand.response(response_code, remark))

    def respond(self, channel: Channel, request: RemotingCommand, response: RemotingCommand) -> None:
        """Write the answer to a request, unless nobody wants it or the channel is gone."""
        if not request.flag & 2 and channel.is_active:
            response.opaque = request.opaque
            response.flag |= 1
            channel.write(response)

    def _run(
        self, processor: RequestProcessor, channel: Channel, request: RemotingCommand
    ) -> Coroutine[object, object, None] | None:
        try:
            for hook in self.rpc_hooks:
                hook.do_before_request(channel.remote_address, request)
            result = processor.process_request(channel, request)
        except SimulationError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a processor raises becomes its answer
            self._answer_error(channel, request, error)
            return None
        if type(result) is RemotingCommand:
            self._answer(channel, request, result)
        elif type(result) is Future:
            result.add_done_callback(lambda future: self._answer_later(channel, request, future))
        elif result is not None:
            return self._answer_coroutine(channel, request, result)  # type: ignore[arg-type]  # the only kind left
        return None

    def _answer(self, channel: Channel, request: RemotingCommand, response: RemotingCommand | None) -> None:
        for hook in self.rpc_hooks:
            hook.do_after_response(channel.remote_address, request, response)
        if response is not None:
            self.respond(channel, request, response)

    def _answer_later(self, channel: Channel, request: RemotingCommand, future: Future[RemotingCommand | None]) -> None:
        if isinstance(future.error, Exception):
            self._answer_error(channel, request, future.error)
        else:
            self._answer(channel, request, future.result())

    async def _answer_coroutine(
        self, channel: Channel, request: RemotingCommand, coroutine: Coroutine[object, object, RemotingCommand | None]
    ) -> None:
        try:
            response = await coroutine
        except SimulationError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a processor raises becomes its answer
            self._answer_error(channel, request, error)
        else:
            self._answer(channel, request, response)

    def _answer_error(self, channel: Channel, request: RemotingCommand, error: Exception) -> None:
        reason = f"{type(error).__name__}: {error}"
        hooks = self.node.hooks
        if hooks.on:
            hooks.emit(ProcessorFailed(channel.remote_address, request.opaque, request.code, reason))
        if isinstance(error, AbortProcessException):
            response = RemotingCommand.response(error.response_code, error.remark)
        else:
            response = RemotingCommand.response(ResponseCode.SYSTEM_ERROR, reason)
        self._answer(channel, request, response)

    # -- the response table -----------------------------------------------------------------------------------------

    def next_opaque(self) -> int:
        """A number for a new request: one counter for the whole process."""
        return next(self._opaque)

    def _process_response(self, channel: Channel, response: RemotingCommand) -> None:
        future = self.response_table.pop(response.opaque, None)
        if future is None:
            hooks = self.node.hooks
            if hooks.on:
                hooks.emit(
                    ResponseDropped(channel.connection_id, channel.remote_address, response.opaque, response.code)
                )
            return
        self.complete(future, response, None)

    def complete(
        self, future: ResponseFuture, response: RemotingCommand | None, error: RemotingException | None
    ) -> None:
        """Settle a future and run its callback in the public pool (here and now if that takes no more jobs).

        A synchronous caller needs no thread to itself, but the answer waits while callbacks hold all of them.
        """
        if not future.settle(response, error):
            return
        pool = self.public_pool
        if (future.is_sync and pool.busy < pool.threads) or not pool.submit(future.execute_callback):
            future.execute_callback()

    def invoke_on_channel(
        self,
        channel: Channel,
        request: RemotingCommand,
        timeout_ms: int,
        callback: InvokeCallback | Future[RemotingCommand],
    ) -> None:
        """Send a request over a channel and call back once with its ResponseFuture, whatever becomes of it.

        While there is no permit, the request waits for one in its turn, within its time-out.
        """
        semaphore = self.semaphore_async
        begin_us = self.node.world.now_us
        if semaphore.try_acquire():
            self._send(ResponseFuture(channel, request, timeout_ms, begin_us, callback, semaphore), channel)
            return
        future = ResponseFuture(channel, request, timeout_ms, begin_us, callback)
        if timeout_ms <= 0:
            self.complete(future, None, RemotingTooMuchRequestException("invokeAsyncImpl invoke too fast"))
            return
        permit = semaphore.acquire_later()
        timer = self.node.timeout(timeout_ms, self._give_up_permit, permit, future, name="time-out of a permit")
        permit.add_done_callback(lambda _: self._permit_came(timer, future, channel))

    def _permit_came(self, timer: Timer, future: ResponseFuture, channel: Channel) -> None:
        timer.cancel()
        if future.done:
            self.semaphore_async.release()
            return
        future.hold_permit(self.semaphore_async)
        spent_ms = (self.node.now_us() - future.begin_us) // 1_000
        if spent_ms >= future.timeout_ms:
            self.complete(future, None, RemotingTimeoutException(channel.remote_address, future.timeout_ms))
        else:
            self._send(future, channel)

    def _give_up_permit(self, permit: Future[None], future: ResponseFuture) -> None:
        self.semaphore_async.abandon(permit)
        assert future.channel is not None
        self._report_timeout(future, by_scan=False)
        self.complete(future, None, RemotingTimeoutException(future.channel.remote_address, future.timeout_ms))

    def _send(self, future: ResponseFuture, channel: Channel) -> None:
        request = future.request
        request.opaque = future.opaque = next(self._opaque)
        self.response_table[future.opaque] = future
        if self._scan_timer is None:
            self._arm_scan()
        try:
            channel.write(request)
        except EndpointClosed:
            self.fail(future, "the channel is closed")
        else:
            future.send_request_ok = True

    def fail(self, future: ResponseFuture, reason: str) -> None:
        """End a future because its request could not be sent or its channel has ended."""
        self.response_table.pop(future.opaque, None)
        future.send_request_ok = False
        address = future.channel.remote_address if future.channel is not None else ""
        hooks = self.node.hooks
        if hooks.on and not future.done:
            connection = future.channel.connection_id if future.channel is not None else 0
            hooks.emit(RequestFailed(connection, address, future.opaque, future.request.code, reason))
        self.complete(future, None, RemotingSendRequestException(address))

    def fail_fast(self, channel: Channel) -> None:
        """A channel has ended: what waits for answers from it will wait in vain."""
        for future in [future for future in self.response_table.values() if future.channel is channel]:
            self.fail(future, "the channel was closed before the answer came")

    async def invoke_sync_on_channel(
        self, channel: Channel, request: RemotingCommand, timeout_ms: int
    ) -> RemotingCommand:
        """Send a request over a channel and wait for the answer.

        A time-out is raised at once; the entry in the response table stays until the scan removes it.
        """
        answer: Future[RemotingCommand] = Future(_answer_label(request.code))
        timer = self.node.timeout(
            timeout_ms, self._sync_timed_out, answer, channel, request, timeout_ms, name="time-out of a request"
        )
        self.invoke_on_channel(channel, request, timeout_ms, answer)
        try:
            return await answer
        finally:
            timer.cancel()

    def _sync_timed_out(
        self, answer: Future[RemotingCommand], channel: Channel, request: RemotingCommand, timeout_ms: int
    ) -> None:
        if answer.done:
            return
        hooks = self.node.hooks
        if hooks.on:
            hooks.emit(
                RequestTimedOut(
                    channel.connection_id, channel.remote_address, request.opaque, request.code, timeout_ms, False
                )
            )
        answer.set_exception(RemotingTimeoutException(channel.remote_address, timeout_ms))

    def invoke_oneway_on_channel(self, channel: Channel, request: RemotingCommand, timeout_ms: int) -> None:
        """Send a request that is never answered; RemotingTooMuchRequestException when there is no permit for it."""
        request.mark_oneway()
        if not self.semaphore_oneway.try_acquire():
            if timeout_ms <= 0:
                raise RemotingTooMuchRequestException("invokeOnewayImpl invoke too fast")
            raise RemotingTimeoutException(channel.remote_address, timeout_ms)
        try:
            request.opaque = next(self._opaque)
            channel.write(request)
        except EndpointClosed:
            raise RemotingSendRequestException(channel.remote_address) from None
        finally:
            self.semaphore_oneway.release()

    # -- the scan ---------------------------------------------------------------------------------------------------

    def _arm_scan(self) -> None:
        now_us = self.node.now_us()
        due_us = self._scan_origin_us
        if due_us <= now_us:
            period_us = SCAN_PERIOD_MS * 1_000
            due_us += ((now_us - due_us) // period_us + 1) * period_us
        self._scan_timer = self.node.call_later(
            (due_us - now_us) / 1_000, self._scan_response_table, name="response table scan"
        )

    def _scan_response_table(self) -> None:
        self._scan_timer = None
        now_us = self.node.now_us()
        for future in [future for future in self.response_table.values() if future.expires_us() <= now_us]:
            del self.response_table[future.opaque]
            if not future.done:
                self._report_timeout(future, by_scan=True)
            address = future.channel.remote_address if future.channel is not None else ""
            self.complete(future, None, RemotingTimeoutException(address, future.timeout_ms))
        if self.response_table:
            self._arm_scan()

    def _report_timeout(self, future: ResponseFuture, by_scan: bool) -> None:
        hooks = self.node.hooks
        if hooks.on and future.channel is not None:
            channel = future.channel
            hooks.emit(
                RequestTimedOut(
                    channel.connection_id,
                    channel.remote_address,
                    future.opaque,
                    future.request.code,
                    future.timeout_ms,
                    by_scan,
                )
            )

    def stop_scan(self) -> None:
        """Let the scan end (at shutdown)."""
        if self._scan_timer is not None:
            self._scan_timer.cancel()
            self._scan_timer = None

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
