"""What hears the answer to an asynchronous pull."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mqlab.client.call_back import OutcomeCallback, call_back
from mqlab.errors import LearnerError, MQBrokerException, RemotingException
from mqlab.trace.events.client import PullCallbackFailed

if TYPE_CHECKING:
    from mqlab.client.consumer.pull.default_mq_pull_consumer_impl import DefaultMQPullConsumerImpl
    from mqlab.client.consumer.pull_api_wrapper import PullResult
    from mqlab.protocol.heartbeat import SubscriptionData
    from mqlab.protocol.message import MessageQueue
    from mqlab.remoting import ResponseFuture


class PullCallback(OutcomeCallback):
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
        return call_back(self._callback, result, error, self._report)

    def _outcome(self, future: ResponseFuture) -> tuple[PullResult | None, Exception | None]:
        if future.response is None:
            return None, future.error
        wrapper = self._owner.pull_api_wrapper
        try:
            result = wrapper.process_pull_response(future.response, self._address)
        except (MQBrokerException, RemotingException) as error:
            return None, error
        return wrapper.process_pull_result(self._queue, result, self._subscription), None

    def _report(self, mistake: Exception) -> None:
        hooks = self._owner.node.hooks
        if hooks.on:
            reason = f"{type(mistake).__name__}: {mistake}"
            hooks.emit(PullCallbackFailed(self._owner.group_name, *self._queue, reason))
