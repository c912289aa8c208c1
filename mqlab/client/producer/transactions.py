"""What a producer does for transactions: the half message, the local part, its outcome, and questions about it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from mqlab.client.consumer.listener import warn_that_listener_raised
from mqlab.client.producer.hooks import EndTransactionContext
from mqlab.client.producer.send_kernel import SYNC
from mqlab.client.producer.send_result import SEND_OK, SendResult
from mqlab.client.producer.transaction_listener import LocalTransactionState, TransactionSendResult
from mqlab.errors import LearnerError, MQBrokerException, MQClientException, RemotingException, SimulationError
from mqlab.protocol.headers import EndTransactionRequestHeader
from mqlab.protocol.message import MessageConst
from mqlab.protocol.message_id import decode_message_id
from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.trace.events.client import SendHookFailed
from mqlab.trace.events.transaction import LocalTransactionExecuted, LocalTransactionRemembered

if TYPE_CHECKING:
    from mqlab.client.producer.transaction_mq_producer import TransactionMQProducer
    from mqlab.protocol.headers import CheckTransactionStateRequestHeader
    from mqlab.protocol.message import Message, MessageExt

END_AFTER_CHECK_TIMEOUT_MS = 3_000

UNKNOW = LocalTransactionState.UNKNOW

STATE_BITS = {
    LocalTransactionState.COMMIT_MESSAGE: MessageSysFlag.TRANSACTION_COMMIT,
    LocalTransactionState.ROLLBACK_MESSAGE: MessageSysFlag.TRANSACTION_ROLLBACK,
    LocalTransactionState.UNKNOW: MessageSysFlag.TRANSACTION_NOT_TYPE,
}


class Transactions:
    """The transactions of one producer in one life of its process.

    Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl, from sendMessageInTransaction to
    endTransaction.
    """

    def __init__(self, producer: TransactionMQProducer) -> None:
        self._producer = producer
        self._node = producer.node
        self._group = producer.producer_group
        self._told: set[str] = set()
        self._check_executor = producer.node.pool(
            "checkExecutor", producer.check_thread_pool_max_size, producer.check_request_hold_max
        )

    # -- sending ----------------------------------------------------------------------------------------------------

    async def send(self, message: Message, argument: Any) -> TransactionSendResult:
        """Send, do the local part, and tell the broker its outcome, which it may never hear: it asks then."""
        properties = message.properties
        properties.pop(MessageConst.DELAY_TIME_LEVEL, None)
        properties[MessageConst.TRANSACTION_PREPARED] = "true"
        properties[MessageConst.PRODUCER_GROUP] = self._group
        try:
            sent = await self._producer.impl.send_default_impl(message, SYNC, self._producer.send_msg_timeout)
        except (MQClientException, MQBrokerException, RemotingException) as error:
            raise MQClientException(f"send message Exception: {error}") from error
        assert sent is not None
        if sent.send_status is SEND_OK:
            state, reason = await self._execute(message, sent, argument)
        else:
            # It is stored, but perhaps not for long: the local part is not done at all.
            state, reason = LocalTransactionState.ROLLBACK_MESSAGE, ""
        self._end(message, sent, state, reason)
        return TransactionSendResult(sent, state)

    async def _execute(
        self, message: Message, sent: SendResult, argument: Any
    ) -> tuple[LocalTransactionState, str]:
        if sent.transaction_id is not None:
            message.properties[MessageConst.TRANSACTION_ID] = sent.transaction_id
        message.transaction_id = message.properties.get(MessageConst.UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
        listener = self._producer.transaction_listener
        assert listener is not None
        state, reason = await self._ask(
            lambda: listener.execute_local_transaction(message, argument), "execute_local_transaction"
        )
        if self._node.hooks.on:
            self._node.hooks.emit(
                LocalTransactionExecuted(message.topic, sent.msg_id, self._group, state.value, reason)
            )
        return state, reason

    def _end(self, message: Message, sent: SendResult, state: LocalTransactionState, reason: str) -> None:
        """Tell the broker the outcome, one-way.

        Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.endTransaction.
        """
        broker_name = sent.message_queue.broker_name
        header = EndTransactionRequestHeader(
            self._group,
            sent.queue_offset,
            decode_message_id(sent.offset_msg_id).offset,
            STATE_BITS[state],
            sent.msg_id,
            False,
            sent.transaction_id,
            message.topic,
            broker_name,
        )
        instance = self._producer.impl.instance
        address = instance.routes.find_broker_address_in_publish(broker_name)
        remark = f"executeLocalTransactionBranch exception: {reason}" if reason else None
        self._show_end(message, sent.msg_id, address, state, is_check=False)
        self._tell(address, header, remark, self._producer.send_msg_timeout)

    def _tell(
        self, address: str | None, header: EndTransactionRequestHeader, remark: str | None, timeout_ms: int
    ) -> None:
        try:
            self._producer.impl.instance.api.end_transaction_oneway(address, header, remark, timeout_ms)
        except RemotingException:
            # The broker will ask.
            return

    def _show_end(
        self, message: Message, msg_id: str, address: str | None, state: LocalTransactionState, *, is_check: bool
    ) -> None:
        """Let the hooks see an outcome before the broker is told.

        Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.doExecuteEndTransactionHook.
        """
        for hook in self._producer.end_transaction_hooks:
            context = EndTransactionContext(
                self._group, message, address, msg_id, message.transaction_id, state.value, is_check
            )
            try:
                hook.end_transaction(context)
            except SimulationError:
                raise
            except Exception as mistake:  # noqa: BLE001  # RocketMQ swallows it as well; here at least an event tells
                if self._node.hooks.on:
                    reason = f"{type(mistake).__name__}: {mistake}"
                    self._node.hooks.emit(SendHookFailed(message.topic, msg_id, hook.name, reason))

    # -- questions of a broker ----------------------------------------------------------------------------------------

    def check_transaction_state(
        self, address: str, message: MessageExt, header: CheckTransactionStateRequestHeader
    ) -> None:
        """A broker asks: a thread of the check pool asks the listener, and answers; without room it is not answered.

        Java: org.apache.rocketmq.client.impl.producer.DefaultMQProducerImpl.checkTransactionState.
        """
        self._check_executor.submit(self._check, address, message, header)

    async def _check(
        self, address: str, message: MessageExt, header: CheckTransactionStateRequestHeader
    ) -> None:
        listener = self._producer.transaction_listener
        if listener is None:
            return
        state, reason = await self._ask(lambda: listener.check_local_transaction(message), "check_local_transaction")
        unique_key = message.properties.get(MessageConst.UNIQ_CLIENT_MESSAGE_ID_KEYIDX) or message.msg_id
        if self._node.hooks.on:
            self._node.hooks.emit(
                LocalTransactionRemembered(
                    message.topic, unique_key, self._group, state.value, header.tran_state_table_offset, reason
                )
            )
        end = EndTransactionRequestHeader(
            self._group,
            header.tran_state_table_offset,
            header.commit_log_offset,
            STATE_BITS[state],
            unique_key,
            True,
            header.transaction_id,
            header.topic,
            header.bname,
        )
        remark = f"checkLocalTransactionState Exception: {reason}" if reason else None
        self._show_end(message, unique_key, address, state, is_check=True)
        self._tell(address, end, remark, END_AFTER_CHECK_TIMEOUT_MS)

    # -- the listener -----------------------------------------------------------------------------------------------

    async def _ask(self, call: Callable[[], Any], what: str) -> tuple[LocalTransactionState, str]:
        """What the listener says, and the error for which it says nothing (else an empty text)."""
        try:
            said = call()
            if isinstance(said, Coroutine):
                said = await said
        except SimulationError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a listener raises means that it does not know
            warn_that_listener_raised(
                self._group, error, self._told, f"{what} of the transaction listener",
                "The broker takes it for UNKNOW, and asks later.",
            )  # fmt: skip
            return UNKNOW, f"{type(error).__name__}: {error}"
        if said is None:
            return UNKNOW, ""
        if not isinstance(said, LocalTransactionState):
            raise LearnerError(
                f"{what} of the transaction listener of group {self._group!r} returned {said!r}",
                "return LocalTransactionState.COMMIT_MESSAGE, .ROLLBACK_MESSAGE or .UNKNOW",
            )
        return said, ""
