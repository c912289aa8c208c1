"""The response table's entries: one for each request that waits for its answer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING

from mqlab.errors import RemotingException
from mqlab.protocol.command import RemotingCommand

if TYPE_CHECKING:
    from mqlab.sim import Semaphore

    from .channel import Channel

InvokeCallback = Callable[["ResponseFuture"], object]
"""What an asynchronous caller gives: called once with the future, which has either a response or an error."""


class ResponseFuture:
    """A request on its way, and what became of it (org.apache.rocketmq.remoting.netty.ResponseFuture).

    Completed once: by the answer, by a failure of the connection, or by the scan of the response table; `response` or
    `error` says how. Differs from RocketMQ: the waiting thread of a synchronous call is one more callback here.
    """

    __slots__ = (
        "_callback",
        "_semaphore",
        "begin_us",
        "callback_on_thread",
        "channel",
        "done",
        "error",
        "opaque",
        "request",
        "response",
        "send_request_ok",
        "timeout_ms",
    )

    def __init__(
        self,
        channel: Channel | None,
        request: RemotingCommand,
        timeout_ms: int,
        begin_us: int,
        callback: InvokeCallback,
        semaphore: Semaphore | None = None,
        callback_on_thread: bool = True,
    ) -> None:
        self.channel = channel
        self.request = request
        self.opaque = request.opaque
        self.timeout_ms = timeout_ms
        self.begin_us = begin_us
        self.send_request_ok = False
        self.response: RemotingCommand | None = None
        self.error: RemotingException | None = None
        self.done = False
        self.callback_on_thread = callback_on_thread
        self._callback = callback
        self._semaphore = semaphore

    def expires_us(self) -> int:
        """When the scan of the response table may remove this entry: a second after its time-out."""
        return self.begin_us + self.timeout_ms * 1_000 + 1_000_000

    def settle(self, response: RemotingCommand | None, error: RemotingException | None) -> bool:
        """Note the outcome; False if there was one already."""
        if self.done:
            return False
        self.done = True
        self.response = response
        self.error = error
        return True

    def hold_permit(self, semaphore: Semaphore) -> None:
        """Keep a permit of this semaphore until the callback has run."""
        self._semaphore = semaphore

    def execute_callback(self) -> Coroutine[object, object, None] | None:
        """Tell the caller, and give the permit back when its callback has ended."""
        result: object = None
        try:
            result = self._callback(self)
        finally:
            if not isinstance(result, Coroutine):
                self._release()
        return self._finish(result) if isinstance(result, Coroutine) else None

    async def _finish(self, callback: Coroutine[object, object, object]) -> None:
        try:
            await callback
        finally:
            self._release()

    def _release(self) -> None:
        semaphore, self._semaphore = self._semaphore, None
        if semaphore is not None:
            semaphore.release()

    def __repr__(self) -> str:
        state = "waiting" if not self.done else f"error {self.error}" if self.error else f"response {self.response!r}"
        return f"<ResponseFuture opaque={self.opaque} code={self.request.code}: {state}>"
