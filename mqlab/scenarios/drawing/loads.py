"""What listeners of a drawn world do: they look at what they get, take their time, and want some messages again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.client import (
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    DefaultMQPushConsumer,
    MessageListenerOrderly,
)
from mqlab.client.consumer.message_selector import MessageSelector
from mqlab.scenarios.drawing.kinds import ALL, CONDITIONS
from mqlab.scenarios.numbered import (
    KEY,
    LATER,
    SUCCESS,
    WrongBody,
    number_of,
    numbered_message,
    reading_time_ms,
)

if TYPE_CHECKING:
    from mqlab.protocol.message import MessageExt
    from mqlab.sim import Node

OFTEN_SLOW_MS = range(500, 3_001)
"""A listener that may take so long does so for one message in four; one that may take more, or less, rarely does."""


def wanted(says: Mapping[str, Any]) -> str | MessageSelector:
    """What a group subscribes to, as its line says it: by tags, or by a condition."""
    condition = CONDITIONS.get(says.get("wants", ALL))
    return says.get("tags", "*") if condition is None else MessageSelector.by_sql(condition)


def look_at(message: MessageExt) -> None:
    """Raise WrongBody for a message that is not the one which was sent.

    Those that a producer has batched by itself have the keys of all of them (ProduceAccumulator), so it is the body
    that says which one this is.
    """
    keys = (message.keys or "").split()
    if len(keys) < 2:
        number_of(message)
        return
    written = message.body.split(b" ", 3)[2:3]
    key = b"".join(written).decode("ascii", "replace")
    if key not in keys or message.body != numbered_message("", int(key.removeprefix(KEY)), len(message.body)).body:
        raise WrongBody(message)


def listener(consumer: DefaultMQPushConsumer, says: dict[str, Any]) -> Callable[..., Any]:
    """A listener that looks at the bodies, takes its time, and wants one message in `refuse_one_in` once more."""

    async def listen(
        messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus | None:
        for message in messages:
            look_at(message)
        await context.sleep(_working_time_ms(consumer, says))
        return await _failed(consumer, says["fails"], messages, context) if refuses(consumer.node, says) else SUCCESS

    return listen


def _working_time_ms(consumer: DefaultMQPushConsumer, says: Mapping[str, Any]) -> int:
    """How long a listener takes for a message: often seconds, so that faults find listeners at work."""
    slow_ms = says["slow_ms"]
    return reading_time_ms(consumer, slow_ms, very_slow_in_40=10 if slow_ms in OFTEN_SLOW_MS else 1)


async def _failed(
    consumer: DefaultMQPushConsumer, how: str, messages: Sequence[MessageExt], context: ConsumeConcurrentlyContext
) -> ConsumeConcurrentlyStatus | None:
    """What a listener does that wants a message once more: it says so, forgets to say anything, fails, says how many of
    a batch went well, or when it is to come again, or gives the message back by hand.
    """
    if how == "raises":
        raise OutOfStock
    if how == "none":
        return None
    if how == "partly":
        context.ack_index = len(messages) // 2 - 1
        return SUCCESS
    if how == "soon":
        context.delay_level_when_next_consume = 1
    elif how == "by-hand":
        for message in messages:
            await consumer.send_message_back(message, 1)
        return SUCCESS
    return LATER


class OutOfStock(Exception):
    """What a listener raises that cannot do its work now."""


class InOrder(MessageListenerOrderly):
    """The same in order: what it refuses comes again after a moment, before all behind it."""

    def __init__(self, consumer: DefaultMQPushConsumer, says: dict[str, Any]) -> None:
        self._consumer = consumer
        self._says = says

    async def consume_message(
        self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext
    ) -> ConsumeOrderlyStatus:
        """Read the messages, and say whether that went well."""
        for message in messages:
            look_at(message)
        await context.sleep(_working_time_ms(self._consumer, self._says))
        by_hand = self._says["commits"] == "by-hand"
        context.auto_commit = not by_hand
        if refuses(self._consumer.node, self._says):
            if self._says["fails"] == "raises":
                raise OutOfStock
            return ConsumeOrderlyStatus.ROLLBACK if by_hand else ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        return ConsumeOrderlyStatus.COMMIT if by_hand else ConsumeOrderlyStatus.SUCCESS


def refuses(node: Node, says: Mapping[str, Any]) -> bool:
    """Is this the one in `refuse_one_in` that is wanted once more?"""
    one_in: int = says["refuse_one_in"]
    return one_in > 0 and node.choose("refuse", one_in) == 0
