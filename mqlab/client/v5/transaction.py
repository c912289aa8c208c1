"""Transactions of 5.x producers: a message that is delivered only after its commit, and questions about its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from enum import Enum
from typing import TYPE_CHECKING, Any

from mqlab.arguments import check_takes
from mqlab.client.consumer.listener import warn_that_listener_raised
from mqlab.client.v5.errors import ClientException, check_status
from mqlab.client.v5.message import Message, MessageView
from mqlab.errors import LearnerError, SimulationError
from mqlab.protocol.v2 import definition as v2
from mqlab.protocol.v2 import service
from mqlab.sim import public_call
from mqlab.trace.events.transaction import LocalTransactionRemembered, TransactionResolved

if TYPE_CHECKING:
    from mqlab.client.v5.producer import ProducerImpl, SendReceipt
    from mqlab.protocol.v2.definition import Endpoints

MAX_MESSAGE_NUM = 1
"""A transaction has one message."""


class TransactionResolution(Enum):
    """What a checker says of a transaction (org.apache.rocketmq.client.apis.producer.TransactionResolution)."""

    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    UNKNOWN = "UNKNOWN"

    def __str__(self) -> str:
        return self.value


TransactionChecker = Callable[[MessageView], "TransactionResolution | Awaitable[TransactionResolution]"]
"""A function of one message, plain or `async`; raising an error means that it does not know."""

_RESOLUTIONS = {
    TransactionResolution.COMMIT: (v2.TransactionResolution.COMMIT, "COMMIT_MESSAGE"),
    TransactionResolution.ROLLBACK: (v2.TransactionResolution.ROLLBACK, "ROLLBACK_MESSAGE"),
}
UNKNOW = "UNKNOW"


def checked_checker(checker: object) -> TransactionChecker:
    """The checker, if it can be called with one message."""
    if not callable(checker):
        raise LearnerError("the transaction checker cannot be called", "give a function: def checker(message): ...")
    check_takes("the transaction checker", checker, "message")
    return checker


class Transaction:
    """A transaction that has begun (org.apache.rocketmq.client.apis.producer.Transaction, TransactionImpl).

        transaction = producer.begin_transaction()
        await producer.send(Message("Transfers", "100 from A to B"), transaction)
        ...                                    # what shall come about together with the message
        await transaction.commit()

    It is for one message. Nobody hears of one that is neither committed nor rolled back: the broker asks then.
    """

    call_name = "transaction"

    def __init__(self, producer: ProducerImpl) -> None:
        self.node = producer.node
        self._producer = producer
        self._messages = 0
        self._sent: tuple[Message, SendReceipt] | None = None

    def try_add_message(self, message: Message) -> None:
        """Take a message in; ClientException for a second one, and for a kind that no transaction can have.

        Java: org.apache.rocketmq.client.java.impl.producer.TransactionImpl.tryAddMessage.
        """
        if self._messages >= MAX_MESSAGE_NUM:
            raise ClientException(f"Message in transaction has exceeded the threshold: {MAX_MESSAGE_NUM}")
        if message.message_type is not v2.MessageType.NORMAL:
            raise ClientException(
                "Transactional message should not set messageGroup, deliveryTimestamp, lite and priority"
            )
        self._messages += 1

    def try_add_receipt(self, message: Message, receipt: SendReceipt) -> None:
        """The message is stored as a half message."""
        self._sent = message, receipt

    @public_call
    async def commit(self) -> None:
        """Let the message be delivered; ClientException when no proxy has taken that, or the proxy has forgotten it.

        Nothing is tried again: the broker will ask. Java:
        org.apache.rocketmq.client.java.impl.producer.TransactionImpl.commit.
        """
        await self._end(TransactionResolution.COMMIT)

    @public_call
    async def rollback(self) -> None:
        """Let the message be forgotten; ClientException as for `commit`."""
        await self._end(TransactionResolution.ROLLBACK)

    async def _end(self, resolution: TransactionResolution) -> None:
        if self._sent is None:
            raise ClientException("Transactional message has not been sent yet")
        message, receipt = self._sent
        if self.node.hooks.on:
            local_state = _RESOLUTIONS[resolution][1]
            self.node.hooks.emit(TransactionResolved(message.topic, receipt.message_id, local_state))
        assert receipt.endpoints is not None
        await end_transaction(
            self._producer, receipt.endpoints, message.topic, receipt.message_id, receipt.transaction_id, resolution,
            v2.TransactionSource.SOURCE_CLIENT,
        )  # fmt: skip

    def __repr__(self) -> str:
        state = f"of {self._sent[1].message_id}" if self._sent is not None else "without a message"
        return f"<Transaction {state}>"


async def end_transaction(
    producer: ProducerImpl,
    endpoints: Endpoints,
    topic: str,
    message_id: str,
    transaction_id: str,
    resolution: TransactionResolution,
    source: v2.TransactionSource,
) -> None:
    """Tell a proxy once how a transaction ended; ClientException when it does not take it.

    Java: org.apache.rocketmq.client.java.impl.producer.ProducerImpl.endTransaction.
    """
    request = service.EndTransactionRequest(
        v2.Resource(name=topic), message_id, transaction_id, _RESOLUTIONS[resolution][0], source
    )
    response = await producer.call(endpoints, service.END_TRANSACTION, request)
    check_status(response.status)


class OrphanedTransactions:
    """Answers what proxies ask about transactions, one question after the other in a thread of its own.

    Java: org.apache.rocketmq.client.java.impl.producer.ProducerImpl.onRecoverOrphanedTransactionCommand. A checker that
    does not know (UNKNOWN, None, an error) lets the question go unanswered, and so does a producer without a checker.
    """

    def __init__(self, producer: ProducerImpl, checker: TransactionChecker) -> None:
        self._producer = producer
        self._node = producer.node
        self._checker = checker
        self._told: set[str] = set()
        self._executor = producer.node.pool("CommandExecutor", 1)

    def ask(self, endpoints: Endpoints, command: service.RecoverOrphanedTransactionCommand) -> None:
        """A proxy asks; the answer goes to the same proxy."""
        self._executor.submit(self._recover, endpoints, command)

    async def _recover(self, endpoints: Endpoints, command: service.RecoverOrphanedTransactionCommand) -> None:
        message = MessageView(command.message, v2.Broker(endpoints=endpoints), None)
        resolution, reason = await self._check(message)
        local_state = UNKNOW if resolution is TransactionResolution.UNKNOWN else _RESOLUTIONS[resolution][1]
        if self._node.hooks.on:
            self._node.hooks.emit(
                LocalTransactionRemembered(
                    message.topic, message.message_id, message.topic, local_state, message.queue_offset, reason
                )
            )
        if resolution is TransactionResolution.UNKNOWN:
            return
        try:
            await end_transaction(
                self._producer, endpoints, message.topic, message.message_id, command.transaction_id, resolution,
                v2.TransactionSource.SOURCE_SERVER_CHECK,
            )  # fmt: skip
        except ClientException:
            # As in Java nobody is told; the broker asks again.
            return

    async def _check(self, message: MessageView) -> tuple[TransactionResolution, str]:
        """What the checker says, and the error for which it says nothing (else an empty text)."""
        try:
            said: Any = self._checker(message)
            if isinstance(said, Coroutine):
                said = await said
        except SimulationError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a checker raises means that it does not know
            warn_that_listener_raised(
                message.topic, error, self._told, "the transaction checker of topic", "The broker asks again later."
            )
            return TransactionResolution.UNKNOWN, f"{type(error).__name__}: {error}"
        if said is None:
            return TransactionResolution.UNKNOWN, ""
        if not isinstance(said, TransactionResolution):
            raise LearnerError(
                f"the transaction checker returned {said!r}",
                "return TransactionResolution.COMMIT, .ROLLBACK or .UNKNOWN",
            )
        return said, ""
