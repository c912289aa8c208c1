"""Hooks around consuming: they see every call of the listener before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlab.protocol.message import MessageExt, MessageQueue


class ConsumeReturnType(Enum):
    """How a listener came back (org.apache.rocketmq.client.consumer.listener.ConsumeReturnType)."""

    SUCCESS = "SUCCESS"
    TIME_OUT = "TIME_OUT"
    EXCEPTION = "EXCEPTION"
    RETURNNULL = "RETURNNULL"
    FAILED = "FAILED"


@dataclass
class ConsumeMessageContext:
    """What a hook sees of one call of the listener (org.apache.rocketmq.client.hook.ConsumeMessageContext)."""

    consumer_group: str
    messages: Sequence[MessageExt]
    message_queue: MessageQueue
    success: bool = False
    status: str = ""
    return_type: ConsumeReturnType | None = None
    mq_trace_context: object = None
    """What the hook of the message trace keeps from before the call until after it."""


def return_type(status: object, failed: bool, error: Exception | None, timed_out: bool) -> ConsumeReturnType:
    """How a listener came back: `failed` if its status asks for another delivery, `timed_out` after consumeTimeout."""
    if status is None:
        return ConsumeReturnType.EXCEPTION if error else ConsumeReturnType.RETURNNULL
    if timed_out:
        return ConsumeReturnType.TIME_OUT
    return ConsumeReturnType.FAILED if failed else ConsumeReturnType.SUCCESS


class ConsumeMessageHook:
    """Looks at messages around each call of the listener (org.apache.rocketmq.client.hook.ConsumeMessageHook)."""

    name = "ConsumeMessageHook"

    def consume_message_before(self, context: ConsumeMessageContext) -> None:
        """Called before the listener."""

    def consume_message_after(self, context: ConsumeMessageContext) -> None:
        """Called after the listener."""


def show_what_was_handed_out(
    hooks: Sequence[ConsumeMessageHook], group: str, messages: Sequence[MessageExt], queue: MessageQueue
) -> None:
    """Call the hooks for messages that an application has pulled: they count as consumed at once, with success."""
    if hooks:
        context = ConsumeMessageContext(group, messages, queue)
        for hook in hooks:
            hook.consume_message_before(context)
        context.status = "CONSUME_SUCCESS"
        context.success = True
        for hook in hooks:
            hook.consume_message_after(context)
