"""What hears the answer to an asynchronous pull."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from mqlab.errors import LearnerError, MQBrokerException, SimulationError
from mqlab.trace.events.client import PullCallbackFailed

if TYPE_CHECKING:
    from mqlab.protocol.heartbeat import SubscriptionData
    from mqlab.protocol.message import MessageQueue
    from mqlab.remoting import ResponseFuture

    from .default_mq_pull_consumer_impl import DefaultMQPullConsumerImpl
    from .pull_api_wrapper import PullResult


class PullCallback:
    """Hears how an asynchronous pull ended; both methods may be `async`.

    Java: org.apache.rocketmq.client.consumer.PullCallback.
    """

    def on_success(self, result: PullResult) -> object:
        """The broker answered; `result.pull_status` says what."""

    def on_exception(self, error: Exception) -> object:
        """No answer came, or an error."""


PullCallbackFunction = Callable[["PullResult | None", Exception | None], object]
"""callback(result, error): one of the two is None."""


def checked_pull_callback(callback: object) -> PullCallback | PullCallbackFunction:
    """The callback, if it is one."""
    if isinstance(callback, PullCallback) or callable(callback):
        return callback
    raise LearnerError(f"{callback!r} is not a callback", "write a function callback(result, error)")


class PullAnswer:
    """Waits for the answer to one asynchronous pull, decodes it, and tells the application."""

    __slots__ = ("_address", "_callback", "_owner", "_queue", "_subscription")

    def __init__(
        self,
        owner: DefaultMQPullConsumerImpl,
        queue: MessageQueue,
        subscription: SubscriptionData,
        address: str,
        callback: PullCallback | PullCallbackFunction,
    ) -> None:
        self._owner = owner
        self._queue = queue
        self._subscription = subscription
        self._address = address
        self._callback = callback

    def __call__(self, future: ResponseFuture) -> object:
        result, error = self._outcome(future)
        try:
            answer = self._tell(result, error)
        except SimulationError:
            raise
        except Exception as mistake:  # noqa: BLE001  # RocketMQ swallows it as well; here at least an event tells
            self._report(mistake)
            return None
        return self._finish(answer) if isinstance(answer, Coroutine) else None

    def _outcome(self, future: ResponseFuture) -> tuple[PullResult | None, Exception | None]:
        if future.response is None:
            return None, future.error
        try:
            result = self._owner.pull_api_wrapper.process_pull_response(future.response, self._address)
        except MQBrokerException as error:
            return None, error
        return self._owner.take_in(self._queue, result, self._subscription), None

    def _tell(self, result: PullResult | None, error: Exception | None) -> object:
        callback = self._callback
        if not isinstance(callback, PullCallback):
            return callback(result, error)
        if result is not None:
            return callback.on_success(result)
        assert error is not None
        return callback.on_exception(error)

    async def _finish(self, callback: Coroutine[Any, Any, object]) -> None:
        try:
            await callback
        except SimulationError:
            raise
        except Exception as mistake:  # noqa: BLE001  # as above
            self._report(mistake)

    def _report(self, mistake: Exception) -> None:
        hooks = self._owner.node.hooks
        if hooks.on:
            reason = f"{type(mistake).__name__}: {mistake}"
            hooks.emit(PullCallbackFailed(self._owner.group_name, *self._queue, reason))
