"""Listeners: the application's code that consumes messages."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Coroutine, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from mqlab.arguments import check_takes
from mqlab.errors import LearnerError

if TYPE_CHECKING:
    from mqlab.protocol.message import MessageExt, MessageQueue
    from mqlab.sim import Node

StatusT = TypeVar("StatusT", bound=Enum)


class ListenerRaised(UserWarning):
    """A listener raised an error. RocketMQ goes on and delivers again later, so nobody else would see it."""


def warn_that_listener_raised(
    group: str,
    error: Exception,
    told: set[str],
    what: str = "the listener",
    hint: str = "The message comes again later, as after RECONSUME_LATER.",
) -> None:
    """Warn of an error of a listener, once for each kind and place; `told` remembers them."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" in line {place.tb_lineno} of {place.tb_frame.f_code.co_name}" if place is not None else ""
    text = f"{what} of group {group!r} raised {type(error).__name__}: {error}{where}"
    if text not in told:
        told.add(text)
        warnings.warn_explicit(f"{text}. {hint}", ListenerRaised, "mqlab", 1)


class ListenerReturnedNone(UserWarning):
    """A listener returned None, as a function without a `return` does. RocketMQ takes that for a failure, silently."""


def warn_that_listener_returned_none(group: str, told: set[str], failure: Enum, success: Enum) -> None:
    """Warn once that RocketMQ takes None from a listener for `failure`; `told` remembers it."""
    text = (
        f"the listener of group {group!r} returned None, as a function without a return statement does. RocketMQ takes "
        f"that as {failure.value}, so the same message comes again. Where it is consumed, "
        f"return {type(success).__name__}.{success.name}"
    )
    if text not in told:
        told.add(text)
        warnings.warn_explicit(text, ListenerReturnedNone, "mqlab", 1)


class ConsumeConcurrentlyStatus(Enum):
    """What a concurrent listener returns (org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus)."""

    CONSUME_SUCCESS = "CONSUME_SUCCESS"
    RECONSUME_LATER = "RECONSUME_LATER"

    def __str__(self) -> str:
        return self.value


CONSUME_SUCCESS = ConsumeConcurrentlyStatus.CONSUME_SUCCESS
RECONSUME_LATER = ConsumeConcurrentlyStatus.RECONSUME_LATER

ALL_ACKNOWLEDGED = 0x7FFF_FFFF


class ConsumeConcurrentlyContext:
    """What a concurrent listener may look at and set (ConsumeConcurrentlyContext).

    `ack_index`: the messages up to this index (from 0) are consumed, the others count as failed.
    `delay_level_when_next_consume`: -1 straight to the dead letters, 0 as the broker chooses, above that the delay
    level.

    Java: org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext.
    """

    __slots__ = ("_node", "ack_index", "delay_level_when_next_consume", "message_queue")

    def __init__(self, node: Node, message_queue: MessageQueue) -> None:
        self._node = node
        self.message_queue = message_queue
        self.delay_level_when_next_consume = 0
        self.ack_index = ALL_ACKNOWLEDGED

    async def sleep(self, ms: float) -> None:
        """`await context.sleep(100)` in a coroutine listener: consuming takes 100 ms of the world's time."""
        await self._node.sleep(ms)


ConcurrentlyResult = ConsumeConcurrentlyStatus | None
MessageListenerFunction = Callable[
    [Sequence["MessageExt"], ConsumeConcurrentlyContext],
    ConcurrentlyResult | Coroutine[Any, Any, ConcurrentlyResult],
]
"""listener(messages, context) -> status, as a plain function or as a coroutine function."""


class MessageListenerConcurrently:
    """A concurrent listener as a class; a plain function does as well (MessageListenerConcurrently).

    Java: org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently.
    """

    def consume_message(
        self, messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConcurrentlyResult | Coroutine[Any, Any, ConcurrentlyResult]:
        """Consume these messages, one unless consume_message_batch_max_size is larger.

        An error, None, or RECONSUME_LATER mean: deliver again later.
        """
        raise NotImplementedError(f"{type(self).__name__} must define consume_message()")


def listener_function(group: str, listener: object) -> MessageListenerFunction:
    """The function to call for a listener of any kind; LearnerError if it takes no messages and no context."""
    if not isinstance(listener, MessageListenerConcurrently) and not callable(listener):
        raise LearnerError(
            f"{listener!r} is not a listener",
            "write a function listener(messages, context) that returns CONSUME_SUCCESS",
        )
    function = listener.consume_message if isinstance(listener, MessageListenerConcurrently) else listener
    check_takes(f"the listener of group {group!r}", function, "messages", "context")
    return function


def checked_status(group: str, status: object, kind: type[StatusT]) -> StatusT | None:
    """What a listener returned, if it is a status of this kind or None; LearnerError says what to return instead."""
    if status is None or isinstance(status, kind):
        return status
    names = " or ".join(f"{kind.__name__}.{member.name}" for member in kind)
    raise LearnerError(f"the listener of group {group!r} returned {status!r}", f"return {names}")
