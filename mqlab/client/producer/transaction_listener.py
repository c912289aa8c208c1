"""Transaction listeners: the application's code that does the local part of a transaction, and remembers it."""

from __future__ import annotations

from collections.abc import Coroutine
from enum import Enum
from typing import TYPE_CHECKING, Any

from mqlab.client.producer.send_result import SendResult

if TYPE_CHECKING:
    from mqlab.protocol.message import Message, MessageExt


class LocalTransactionState(Enum):
    """What became of the local part (org.apache.rocketmq.client.producer.LocalTransactionState)."""

    COMMIT_MESSAGE = "COMMIT_MESSAGE"
    ROLLBACK_MESSAGE = "ROLLBACK_MESSAGE"
    UNKNOW = "UNKNOW"

    def __str__(self) -> str:
        return self.value


TransactionAnswer = LocalTransactionState | None | Coroutine[Any, Any, LocalTransactionState | None]


class TransactionListener:
    """What a TransactionMQProducer asks of its application (org.apache.rocketmq.client.producer.TransactionListener).

    Both methods may be plain or `async`. An error, None and UNKNOW all mean that nobody knows yet: the broker asks.
    """

    def execute_local_transaction(self, message: Message, argument: Any) -> TransactionAnswer:
        """Do the local part, now that the half message is stored; `message.transaction_id` names the transaction."""
        raise NotImplementedError(f"{type(self).__name__} must define execute_local_transaction()")

    def check_local_transaction(self, message: MessageExt) -> TransactionAnswer:
        """Say what became of the local part of this message's transaction, which may be another process's."""
        raise NotImplementedError(f"{type(self).__name__} must define check_local_transaction()")


class TransactionSendResult(SendResult):
    """Where a half message went, and what its producer told the broker next.

    Java: org.apache.rocketmq.client.producer.TransactionSendResult.
    """

    __slots__ = ("local_transaction_state",)

    def __init__(self, sent: SendResult, local_transaction_state: LocalTransactionState) -> None:
        super().__init__(*(getattr(sent, name) for name in (
            "send_status", "msg_id", "offset_msg_id", "message_queue", "queue_offset", "transaction_id", "region_id",
            "trace_on", "recall_handle",
        )))  # fmt: skip
        self.local_transaction_state = local_transaction_state

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, localTransactionState={self.local_transaction_state}]"
