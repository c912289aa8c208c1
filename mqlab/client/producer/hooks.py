"""Hooks around sending: they see every message before and after, or may forbid it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlab.client.producer.send_result import SendResult
    from mqlab.protocol.message import Message, MessageQueue


@dataclass
class CheckForbiddenContext:
    """What a hook sees that may forbid a message (org.apache.rocketmq.client.hook.CheckForbiddenContext)."""

    name_srv_addr: str | None
    group: str
    message: Message
    message_queue: MessageQueue
    broker_address: str
    communication_mode: str
    unit_mode: bool


@dataclass
class SendMessageContext:
    """What a hook sees of one attempt (org.apache.rocketmq.client.hook.SendMessageContext)."""

    producer_group: str
    message: Message
    message_queue: MessageQueue
    broker_address: str
    born_host: str
    communication_mode: str
    msg_type: str = "NORMAL_MSG"
    send_result: SendResult | None = None
    error: Exception | None = None
    mq_trace_context: object = None
    """What the hook of the message trace keeps from before the attempt until after it."""


class SendMessageHook:
    """Looks at messages around each attempt; what it raises changes nothing.

    Java: org.apache.rocketmq.client.hook.SendMessageHook.
    """

    name = "SendMessageHook"

    def send_message_before(self, context: SendMessageContext) -> None:
        """Called before the attempt."""

    def send_message_after(self, context: SendMessageContext) -> None:
        """Called after it, with its result or error.

        An asynchronous attempt calls it twice: without either when the request was handed to remoting, and with the
        outcome when the send has ended. A one-way attempt has no result.
        """


@dataclass
class EndTransactionContext:
    """What a hook sees of the end of a transaction, be it after the local part or after a question of the broker.

    `transaction_state` is the name of a LocalTransactionState.

    Java: org.apache.rocketmq.client.hook.EndTransactionContext.
    """

    producer_group: str
    message: Message
    broker_address: str | None
    msg_id: str
    transaction_id: str | None
    transaction_state: str
    from_transaction_check: bool


class EndTransactionHook:
    """Looks at each outcome before the broker is told; what it raises changes nothing.

    Java: org.apache.rocketmq.client.hook.EndTransactionHook.
    """

    name = "EndTransactionHook"

    def end_transaction(self, context: EndTransactionContext) -> None:
        """Called before the broker is told."""


class CheckForbiddenHook:
    """May forbid a message by raising an MQClientException (org.apache.rocketmq.client.hook.CheckForbiddenHook)."""

    name = "CheckForbiddenHook"

    def check_forbidden(self, context: CheckForbiddenContext) -> None:
        """Called before every attempt, before the other hooks."""
