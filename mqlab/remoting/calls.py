"""The calling half of both sides of remoting: the response table, three ways to call, two semaphores, the scan.

Java: the calling half of org.apache.rocketmq.remoting.netty.NettyRemotingAbstract.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING

from mqlab.errors import (
    RemotingException,
    RemotingSendRequestException,
    RemotingTimeoutException,
    RemotingTooMuchRequestException,
)
from mqlab.protocol.codes import ResponseCode, code_name
from mqlab.protocol.command import RemotingCommand
from mqlab.remoting.response_future import InvokeCallback, ResponseFuture
from mqlab.sim import EndpointClosed, Future, Pool, Semaphore, Timer
from mqlab.trace.events.remoting import RequestFailed, RequestTimedOut, ResponseDropped

if TYPE_CHECKING:
    from mqlab.remoting.channel import Channel
    from mqlab.sim import Node

GO_AWAY = int(ResponseCode.GO_AWAY)

SCAN_FIRST_MS = 3_000
SCAN_PERIOD_MS = 1_100
"""The scan is asked for every second, but RocketMQ's timer wheel turns in ticks of 100 ms and always takes one more."""


@lru_cache(maxsize=512)
def _answer_label(request_code: int) -> str:
    return f"the answer to {code_name(request_code)}"


class RemotingCalls:
    """Sends requests over channels and finds, for each answer that comes, who waits for it.

    An entry leaves the response table when its answer comes, when it cannot be sent or its channel ends, or when the
    scan finds it too old. Only asynchronous and one-way calls could pile up without end, since their callers go on at
    once; so these are what the two semaphores count (a synchronous call takes an asynchronous permit, one for each
    thread that waits).

    Java: org.apache.rocketmq.remoting.netty.NettyRemotingAbstract.
    """

    def __init__(self, node: Node, public_pool: Pool, oneway_permits: int, async_permits: int) -> None:
        self.node = node
        self.public_pool = public_pool
        self.semaphore_oneway = Semaphore(oneway_permits, "the one-way semaphore")
        self.semaphore_async = Semaphore(async_permits, "the async semaphore")
        self.response_table: dict[int, ResponseFuture] = {}
        self._opaque: count[int] = node.life.singletons.setdefault("RemotingCommand.request_id", count())
        self._scan_origin_us = node.now_us() + SCAN_FIRST_MS * 1_000
        self._scan_timer: Timer | None = None

    # -- the response table -----------------------------------------------------------------------------------------

    def next_opaque(self) -> int:
        """A number for a new request: one counter for the whole process.

        Java: org.apache.rocketmq.remoting.protocol.RemotingCommand.createNewRequestId.
        """
        return next(self._opaque)

    def process_response(self, channel: Channel, response: RemotingCommand) -> None:
        """Give an answer to whoever waits for it; one that nobody waits for is dropped.

        Java: org.apache.rocketmq.remoting.netty.NettyRemotingAbstract.processResponseCommand.
        """
        future = self.response_table.pop(response.opaque, None)
        if future is None:
            hooks = self.node.hooks
            if hooks.on:
                hooks.emit(
                    ResponseDropped(channel.connection_id, channel.remote_address, response.opaque, response.code)
                )
            return
        if response.code == GO_AWAY and self.send_again_elsewhere(future):
            return
        self.complete(future, response, None)

    def send_again_elsewhere(self, future: ResponseFuture) -> bool:
        """Take over a request whose server is leaving; False leaves the answer GO_AWAY to the caller."""
        return False

    def complete(
        self, future: ResponseFuture, response: RemotingCommand | None, error: RemotingException | None
    ) -> None:
        """Settle a future and run its callback in the public pool (here and now if that takes no more jobs).

        A synchronous caller needs no thread to itself, but the answer waits while callbacks hold all of them.
        """
        if future.done:
            return
        future.done = True
        future.response = response
        future.error = error
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

        Java: org.apache.rocketmq.remoting.netty.NettyRemotingAbstract.invokeAsyncImpl.
        """
        semaphore = self.semaphore_async
        begin_us = self.node.world.now_us
        if semaphore.try_acquire():
            self.send_over(ResponseFuture(channel, request, timeout_ms, begin_us, callback, semaphore), channel)
            return
        future = ResponseFuture(channel, request, timeout_ms, begin_us, callback)
        if timeout_ms <= 0:
            self.complete(future, None, self._no_permit(channel, timeout_ms))
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
        if (self.node.now_us() - future.begin_us) // 1_000 >= future.timeout_ms:
            timeout_ms = future.timeout_ms
            late = RemotingTimeoutException(channel.remote_address, timeout_ms, "invokeAsyncImpl call timeout")
            self.complete(future, None, late)
        else:
            self.send_over(future, channel)

    def _give_up_permit(self, permit: Future[None], future: ResponseFuture) -> None:
        self.semaphore_async.abandon(permit)
        assert future.channel is not None
        self._report_timeout(future, by_scan=False)
        self.complete(future, None, self._no_permit(future.channel, future.timeout_ms))

    def _no_permit(self, channel: Channel, timeout_ms: int) -> RemotingException:
        """Why a request could not have a permit: too much asked at once, or nothing came free in time."""
        if timeout_ms <= 0:
            return RemotingTooMuchRequestException("invokeAsyncImpl invoke too fast")
        semaphore = self.semaphore_async
        text = (
            f"invokeAsyncImpl tryAcquire semaphore timeout, {timeout_ms}ms, waiting thread nums: "
            f"{semaphore.waiting} semaphoreAsyncValue: {semaphore.permits}"
        )
        return RemotingTimeoutException(channel.remote_address, timeout_ms, text)

    def send_over(self, future: ResponseFuture, channel: Channel) -> None:
        """Give a request its number, enter it into the response table and write it."""
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
        """End a future because its request could not be sent or its channel has ended.

        Java: org.apache.rocketmq.remoting.netty.NettyRemotingAbstract.requestFail.
        """
        self.response_table.pop(future.opaque, None)
        future.send_request_ok = False
        address = future.channel.remote_address if future.channel is not None else ""
        hooks = self.node.hooks
        if hooks.on and not future.done:
            connection = future.channel.connection_id if future.channel is not None else 0
            hooks.emit(RequestFailed(connection, address, future.opaque, future.request.code, reason))
        self.complete(future, None, RemotingSendRequestException(address))

    def fail_fast(self, channel: Channel) -> None:
        """A channel has ended: what waits for answers from it will wait in vain.

        Java: org.apache.rocketmq.remoting.netty.NettyRemotingAbstract.failFast.
        """
        for future in [future for future in self.response_table.values() if future.channel is channel]:
            self.fail(future, "the channel was closed before the answer came")

    async def invoke_sync_on_channel(
        self, channel: Channel, request: RemotingCommand, timeout_ms: int
    ) -> RemotingCommand:
        """Send a request over a channel and wait for the answer.

        A time-out is raised at once; the entry in the response table stays until the scan removes it. A call that gets
        no permit within its time-out is a RemotingSendRequestException. As in RocketMQ the wait for a permit is not
        taken off the wait for the answer, which has the whole time-out again; if the scan ends that one first, it is a
        RemotingSendRequestException, too.

        Java: org.apache.rocketmq.remoting.netty.NettyRemotingAbstract.invokeSyncImpl.
        """
        left_ms = timeout_ms
        if not self.semaphore_async.try_acquire():
            left_ms = await self.wait_for_permit(channel, timeout_ms)
        answer, timer = self.begin_sync(channel, request, timeout_ms, left_ms)
        try:
            return await answer
        finally:
            timer.cancel()

    def begin_sync(
        self, channel: Channel, request: RemotingCommand, timeout_ms: int, left_ms: int
    ) -> tuple[Future[RemotingCommand], Timer]:
        """Send a request that has a permit: the future of its answer, and its time-out, to be cancelled after that."""
        answer: Future[RemotingCommand] = Future(_answer_label(request.code))
        timer = self.node.timeout(
            timeout_ms, self._sync_timed_out, answer, channel, request, timeout_ms, name="time-out of a request"
        )
        begin_us = self.node.world.now_us
        self.send_over(ResponseFuture(channel, request, left_ms, begin_us, answer, self.semaphore_async), channel)
        return answer, timer

    async def wait_for_permit(self, channel: Channel, timeout_ms: int) -> int:
        """Wait for a permit; the ms that are left then."""
        begin_us = self.node.now_us()
        if not await self.semaphore_async.acquire(1, timeout_ms):
            raise RemotingSendRequestException(channel.remote_address) from self._no_permit(channel, timeout_ms)
        return timeout_ms - (self.node.now_us() - begin_us) // 1_000

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
        """Send a request that is never answered, while there is a permit for it.

        Without a permit: RemotingTimeoutException, or RemotingTooMuchRequestException for a time-out of 0. Differs from
        RocketMQ: a write is done when it returns, so a permit is never out for longer than that, and nobody waits for
        one; the error reaches the caller, which Netty would only note in a log.

        Java: org.apache.rocketmq.remoting.netty.NettyRemotingAbstract.invokeOnewayImpl.
        """
        request.mark_oneway()
        if not self.semaphore_oneway.try_acquire():
            if timeout_ms <= 0:
                raise RemotingTooMuchRequestException("invokeOnewayImpl invoke too fast")
            text = (
                f"invokeOnewayImpl tryAcquire semaphore timeout, {timeout_ms}ms, waiting thread nums: "
                f"{self.semaphore_oneway.waiting} semaphoreOnewayValue: {self.semaphore_oneway.permits}"
            )
            raise RemotingTimeoutException(channel.remote_address, timeout_ms, text)
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
