"""Orderly listeners: each queue is consumed by one thread at a time, message after message."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mqlab.protocol.message import MessageExt, MessageQueue
    from mqlab.sim import Node


class ConsumeOrderlyStatus(Enum):
    """What an orderly listener returns (org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus)."""

    SUCCESS = "SUCCESS"
    ROLLBACK = "ROLLBACK"
    COMMIT = "COMMIT"
    SUSPEND_CURRENT_QUEUE_A_MOMENT = "SUSPEND_CURRENT_QUEUE_A_MOMENT"

    def __str__(self) -> str:
        return self.value


class ConsumeOrderlyContext:
    """What an orderly listener may look at and set (ConsumeOrderlyContext).

    Without `auto_commit` SUCCESS commits nothing, until COMMIT does. `suspend_current_queue_time_millis` -1 means the
    consumer's own setting.

    Java: org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyContext.
    """

    __slots__ = ("_node", "auto_commit", "message_queue", "suspend_current_queue_time_millis")

    def __init__(self, node: Node, message_queue: MessageQueue) -> None:
        self._node = node
        self.message_queue = message_queue
        self.auto_commit = True
        self.suspend_current_queue_time_millis = -1

    async def sleep(self, ms: float) -> None:
        """`await context.sleep(100)` in a coroutine listener: consuming takes 100 ms of the world's time."""
        await self._node.sleep(ms)


OrderlyResult = ConsumeOrderlyStatus | None
OrderlyListenerFunction = Callable[
    [Sequence["MessageExt"], ConsumeOrderlyContext], OrderlyResult | Coroutine[Any, Any, OrderlyResult]
]


class MessageListenerOrderly:
    """An orderly listener (org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly)."""

    def consume_message(
        self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext
    ) -> OrderlyResult | Coroutine[Any, Any, OrderlyResult]:
        """Consume these messages; an error, None or SUSPEND_CURRENT_QUEUE_A_MOMENT mean: the same again in a moment."""
        raise NotImplementedError(f"{type(self).__name__} must define consume_message()")
