"""One request that waits for its reply."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mqlab.client.call_back import OutcomeCallback, call_back
from mqlab.sim import Future, WaitTimeout
from mqlab.trace.events.reply import ReplyGivenUp, RequestCallbackFailed

if TYPE_CHECKING:
    from mqlab.protocol.message import MessageExt
    from mqlab.sim import Node


class RequestCallback(OutcomeCallback):
    """Hears how an asynchronous request ended (org.apache.rocketmq.client.producer.RequestCallback)."""

    def on_success(self, message: MessageExt | None) -> object:
        """The reply has come; None from releases that tell of the send, too (see `request_ends_when_sent`)."""

    def on_exception(self, error: Exception) -> object:
        """No reply came in time, or the request could not be sent."""


RequestCallbackFunction = Callable[["MessageExt | None", Exception | None], object]
"""callback(reply, error): one of the two is None."""


class RequestResponseFuture:
    """A request, and its reply once that is there (org.apache.rocketmq.client.producer.RequestResponseFuture)."""

    def __init__(
        self,
        node: Node,
        topic: str,
        correlation_id: str,
        timeout_ms: int,
        callback: RequestCallback | RequestCallbackFunction | None = None,
    ) -> None:
        self._node = node
        self.topic = topic
        self.correlation_id = correlation_id
        self.timeout_ms = timeout_ms
        self.callback = callback
        self.begin_us = node.now_us()
        self.response_message: MessageExt | None = None
        self.send_request_ok = True
        self.cause: Exception | None = None
        self.callback_mistake: Exception | None = None
        """What the application's callback raised."""
        self._latch: Future[None] = Future("the reply to a request")

    @property
    def expires_us(self) -> int:
        """The first moment at which the request has waited for longer than its time-out."""
        return self.begin_us + self.timeout_ms * 1_000 + 1

    def waited_ms(self) -> int:
        """For how long the request has been out."""
        return (self._node.now_us() - self.begin_us) // 1_000

    def release(self) -> None:
        """Let the caller go on, with or without a reply."""
        self._latch.try_set_result(None)

    def put_response_message(self, reply: MessageExt | None) -> None:
        """The reply is there; or, with None, it will not come."""
        self.response_message = reply
        self.release()

    async def wait_response_message(self, timeout_ms: int) -> MessageExt | None:
        """The reply, or None when it is not there in so many ms."""
        with suppress(WaitTimeout):
            await self._node.wait(self._latch, timeout_ms)
        return self.response_message

    def execute_request_callback(self) -> Coroutine[Any, Any, None] | None:
        """Tell the application's callback what is known; a coroutine when the callback is one.

        What it raises is kept as `callback_mistake`.
        Java: org.apache.rocketmq.client.producer.RequestResponseFuture.executeRequestCallback.
        """
        if self.callback is None:
            return None
        reply = self.response_message if self.cause is None else None
        return call_back(self.callback, reply, self.cause, self._report)

    def _report(self, mistake: Exception) -> None:
        self.callback_mistake = mistake
        if self._node.hooks.on:
            reason = f"{type(mistake).__name__}: {mistake}"
            self._node.hooks.emit(RequestCallbackFailed(self.topic, self.correlation_id, reason))

    def tell_given_up(self, error: Exception) -> None:
        """Tell the listeners that nobody waits for the reply any more."""
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(ReplyGivenUp(self.topic, self.correlation_id, self.waited_ms(), str(error)))
