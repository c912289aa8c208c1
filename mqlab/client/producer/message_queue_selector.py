"""Selectors: the application's own choice of a queue, for messages that must stay in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mqlab.protocol.hashing import java_string_hash

if TYPE_CHECKING:
    from mqlab.protocol.message import Message, MessageQueue

MessageQueueSelector = Callable[[Sequence["MessageQueue"], "Message", Any], "MessageQueue | None"]
"""(queues, message, argument) -> the queue (org.apache.rocketmq.client.producer.MessageQueueSelector)."""


def select_message_queue_by_hash(queues: Sequence[MessageQueue], message: Message, argument: Any) -> MessageQueue:
    """The queue whose number is the argument's hash: equal arguments share a queue while the number of queues stays.

    A text hashes as in Java, a whole number to itself.

    Java: org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash.
    """
    value = argument if isinstance(argument, int) else java_string_hash(str(argument))
    return queues[abs(value) % len(queues)]
