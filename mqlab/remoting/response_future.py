"""The response table's entries: one for each request that waits for its answer."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING

from mqlab.errors import RemotingException, RemotingSendRequestException
from mqlab.protocol.command import RemotingCommand
from mqlab.sim import Future

if TYPE_CHECKING:
    from mqlab.remoting.channel import Channel
    from mqlab.sim import Semaphore

InvokeCallback = Callable[["ResponseFuture"], object]
"""What an asynchronous caller gives: called once with the future, which has either a response or an error."""


class ResponseFuture:
    """A request on its way, and what became of it (org.apache.rocketmq.remoting.netty.ResponseFuture).

    Completed once: by the answer, by a failure of the connection, or by the scan of the response table; `response` or
    `error` says how. The callback is what an asynchronous caller gave, or the future that a synchronous one waits for.
    """

    __slots__ = (
        "_callback",
        "_semaphore",
        "begin_us",
        "channel",
        "done",
        "error",
        "is_sync",
        "opaque",
        "request",
        "response",
        "send_request_ok",
        "sent_again",
        "timeout_ms",
    )

    def __init__(
        self,
        channel: Channel | None,
        request: RemotingCommand,
        timeout_ms: int,
        begin_us: int,
        callback: InvokeCallback | Future[RemotingCommand],
        semaphore: Semaphore | None = None,
    ) -> None:
        self.channel = channel
        self.request = request
        self.opaque = request.opaque
        self.timeout_ms = timeout_ms
        self.begin_us = begin_us
        self.send_request_ok = False
        self.sent_again = False
        self.response: RemotingCommand | None = None
        self.error: RemotingException | None = None
        self.done = False
        self.is_sync = type(callback) is Future
        """Whether a task waits for the answer, so that there is nothing to run on a callback thread."""
        self._callback = callback
        self._semaphore = semaphore

    def expires_us(self) -> int:
        """When the scan of the response table may remove this entry: a second after its time-out."""
        return self.begin_us + self.timeout_ms * 1_000 + 1_000_000

    def hold_permit(self, semaphore: Semaphore) -> None:
        """Keep a permit of this semaphore until the callback has run."""
        self._semaphore = semaphore

    def execute_callback(self) -> Coroutine[object, object, None] | None:
        """Tell the caller, and give the permit back when its callback has ended."""
        callback = self._callback
        if isinstance(callback, Future):
            semaphore, self._semaphore = self._semaphore, None
            if semaphore is not None:
                semaphore.release()
            if callback.done:
                return None
            if self.response is not None:
                callback.set_result(self.response)
            else:
                callback.set_exception(self._send_error())
            return None
        result: object = None
        try:
            result = callback(self)
        finally:
            if result is None or not isinstance(result, Coroutine):
                self._release()
        return None if result is None or not isinstance(result, Coroutine) else self._finish(result)

    def _send_error(self) -> RemotingException:
        """To a synchronous caller whatever ends its call but its own time-out is a failure to send."""
        error = self.error
        assert error is not None
        if isinstance(error, RemotingSendRequestException):
            return error
        failure = RemotingSendRequestException(self.channel.remote_address if self.channel is not None else "")
        failure.__cause__ = error
        return failure

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
