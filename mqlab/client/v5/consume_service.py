"""How received messages come to the listener: each by itself, or in order.

Java: org.apache.rocketmq.client.java.impl.consumer.ConsumeService, StandardConsumeService, FifoConsumeService.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from mqlab.arguments import check_takes
from mqlab.client.consumer.listener import (
    checked_status,
    warn_that_listener_raised,
    warn_that_listener_returned_none,
)
from mqlab.client.consumer.listener_call import ListenerCall
from mqlab.errors import LearnerError
from mqlab.sim import Future
from mqlab.trace.events.client import ConsumeFinished, ConsumeStarted

if TYPE_CHECKING:
    from mqlab.client.v5.message import MessageView
    from mqlab.client.v5.process_queue import ProcessQueue
    from mqlab.sim import Node, Pool


class ConsumeResult(Enum):
    """What a listener returns (org.apache.rocketmq.client.apis.consumer.ConsumeResult)."""

    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"

    def __str__(self) -> str:
        return self.value


MessageListener = Callable[["MessageView"], "ConsumeResult | Awaitable[ConsumeResult]"]
"""A function of one message, plain or `async`; raising an error is a failure."""


def checked_listener(group: str, listener: object) -> MessageListener:
    """The listener, if it can be called with one message."""
    if not callable(listener):
        raise LearnerError(
            f"the listener of group {group!r} cannot be called", "give a function: def listener(message): ..."
        )
    check_takes(f"the listener of group {group!r}", listener, "message")
    return listener


class ConsumeService:
    """Calls the listener in a pool of threads, and tells the process queue what it said."""

    def __init__(self, node: Node, group: str, listener: MessageListener, pool: Pool) -> None:
        self.node = node
        self._group = group
        self.listener = listener
        self._pool = pool
        self._told: set[str] = set()

    def consume(self, queue: ProcessQueue, messages: Sequence[MessageView]) -> None:
        """Take what a process queue has received."""
        raise NotImplementedError(f"{type(self).__name__} must define consume()")

    def call(self, message: MessageView) -> Future[ConsumeResult] | None:
        """Give a message to the listener as soon as a thread is free: what it will say.

        None when the consumer is shutting down: no listener is called any more, and nothing waits for one.
        """
        result: Future[ConsumeResult] = Future(f"the listener of {self._group}")
        return result if self._pool.submit(_Call(self, message, result).run) else None

    def started(self, message: MessageView) -> None:
        """The listener is called."""
        if self.node.hooks.on:
            self.node.hooks.emit(ConsumeStarted(*self._which(message), 1, message.delivery_attempt - 1))

    def finished(self, message: MessageView, call: ListenerCall, said: object) -> ConsumeResult:
        """The listener has ended: what it said; FAILURE if it raised something, or said nothing."""
        status: ConsumeResult | None = ConsumeResult.FAILURE
        if call.error is not None:
            hint = "The message comes again later, as after FAILURE."
            warn_that_listener_raised(self._group, call.error, self._told, hint=hint)
        else:
            status = checked_status(self._group, said, ConsumeResult)
        if status is None:
            status = ConsumeResult.FAILURE
            warn_that_listener_returned_none(self._group, self._told, status, ConsumeResult.SUCCESS)
        if self.node.hooks.on:
            cost_us = self.node.world.now_us - call.began_us
            self.node.hooks.emit(ConsumeFinished(*self._which(message), status.value, cost_us))
        return status

    def _which(self, message: MessageView) -> tuple[str, str, str, int, int, str]:
        """The group and the message, as both events have them."""
        return (
            self._group, message.topic, message.broker_name, message.queue_id, message.queue_offset, message.message_id
        )  # fmt: skip


class _Call(ListenerCall):
    """Gives one message to the listener."""

    __slots__ = ("_message", "_result", "_service")

    def __init__(self, service: ConsumeService, message: MessageView, result: Future[ConsumeResult]) -> None:
        super().__init__()
        self._service = service
        self._message = message
        self._result = result

    def run(self) -> Coroutine[Any, Any, None] | None:
        """Call the listener; a coroutine listener keeps the thread until it has ended."""
        self._service.started(self._message)
        return self.call(self._service.node, self._service.listener, self._message)

    def finish(self, said: object) -> None:
        """Say what the listener has said."""
        self._result.set_result(self._service.finished(self._message, self, said))


class StandardConsumeService(ConsumeService):
    """Every message by itself, as many at a time as there are threads."""

    def consume(self, queue: ProcessQueue, messages: Sequence[MessageView]) -> None:
        """Give all messages to the listener; a damaged one is given back unseen."""
        for message in messages:
            if message.corrupted:
                queue.discard_message(message)
                continue
            called = self.call(message)
            if called is not None:
                called.add_done_callback(
                    lambda result, message=message: queue.erase_message(message, result.result())  # type: ignore[misc]
                )


class FifoConsumeService(ConsumeService):
    """One message after the other: the next one begins when the last one is settled.

    With the accelerator message groups go side by side, each in its own order.

    Java: org.apache.rocketmq.client.java.impl.consumer.FifoConsumeService.
    """

    def __init__(self, node: Node, group: str, listener: MessageListener, pool: Pool, *, accelerator: bool) -> None:
        super().__init__(node, group, listener, pool)
        self._accelerator = accelerator

    def consume(self, queue: ProcessQueue, messages: Sequence[MessageView]) -> None:
        """Begin with the first message, of each message group if they go side by side."""
        lines: dict[str | None, list[MessageView]] = {}
        for message in messages:
            lines.setdefault(message.message_group if self._accelerator else None, []).append(message)
        for line in lines.values():
            self.node.spawn(self._consume_iteratively(queue, line), "consume in order")

    async def _consume_iteratively(self, queue: ProcessQueue, messages: list[MessageView]) -> None:
        for message in messages:
            if message.corrupted:
                queue.discard_fifo_message(message)
                continue
            called = self.call(message)
            if called is None:
                return
            await queue.erase_fifo_message(message, await called)
