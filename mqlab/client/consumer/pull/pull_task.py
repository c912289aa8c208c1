"""The pull task: what the application does with one queue, again and again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from mqlab.arguments import check_takes
from mqlab.errors import LearnerError

if TYPE_CHECKING:
    from mqlab.client.consumer.pull.default_mq_pull_consumer import DefaultMQPullConsumer
    from mqlab.protocol.message import MessageQueue

PULL_NEXT_DELAY_TIME_MILLIS = 200


class PullTaskContext:
    """What a pull task may look at and set.

    Java: org.apache.rocketmq.client.consumer.PullTaskContext.
    """

    __slots__ = ("_delay_ms", "pull_consumer")

    def __init__(self, pull_consumer: DefaultMQPullConsumer) -> None:
        self.pull_consumer = pull_consumer
        self._delay_ms = PULL_NEXT_DELAY_TIME_MILLIS

    @property
    def pull_next_delay_time_millis(self) -> int:
        """How long after its end the task begins again: 200 ms unless the task sets another time."""
        return self._delay_ms

    @pull_next_delay_time_millis.setter
    def pull_next_delay_time_millis(self, ms: int) -> None:
        if type(ms) is not int:
            raise LearnerError(f"a delay is a whole number of ms, not {ms!r}", "write 100 for a tenth of a second")
        self._delay_ms = ms

    def set_pull_next_delay_time_millis(self, ms: int) -> None:
        """Let the task begin again so many ms after its end."""
        self.pull_next_delay_time_millis = ms

    async def sleep(self, ms: float) -> None:
        """`await context.sleep(100)` in a coroutine task: handling takes 100 ms of the world's time."""
        await self.pull_consumer.node.sleep(ms)


PullTaskFunction = Callable[["MessageQueue", PullTaskContext], "Awaitable[object] | object"]
"""task(queue, context), as a coroutine function, or as a plain function when it waits for nothing."""


class PullTaskCallback:
    """A pull task as a class; a plain function does as well.

    Java: org.apache.rocketmq.client.consumer.PullTaskCallback.
    """

    def do_pull_task(self, queue: MessageQueue, context: PullTaskContext) -> Awaitable[object] | object:
        """Pull from this queue and handle what came; the method may be `async`."""
        raise NotImplementedError(f"{type(self).__name__} must define do_pull_task()")


def pull_task_function(group: str, callback: object) -> PullTaskFunction:
    """The function to call for a pull task of any kind; LearnerError if it takes no queue and no context."""
    if not isinstance(callback, PullTaskCallback) and not callable(callback):
        raise LearnerError(f"{callback!r} is not a pull task", "write a function: async def task(queue, context)")
    function = callback.do_pull_task if isinstance(callback, PullTaskCallback) else callback
    check_takes(f"the pull task of group {group!r}", function, "queue", "context")
    return function
