"""Ending a transaction: a half message is let go, or forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.errors import RequestError
from mqlab.broker.put_message_answers import STORED_CODES, answer_when_put, refusal
from mqlab.broker.transaction.half_messages import committed, number, real_topic_of, unique_key_of
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import EndTransactionRequestHeader
from mqlab.protocol.message import MessageConst, MessageExt
from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.remoting import Channel, RequestProcessor
from mqlab.store import BrokerRole, PutMessageResult, PutMessageStatus
from mqlab.trace.events.transaction import TransactionEnded

if TYPE_CHECKING:
    from mqlab.broker.transaction.transaction_services import TransactionServices
    from mqlab.remoting.processor import Processed

LOCAL_STATES = {
    MessageSysFlag.TRANSACTION_NOT_TYPE: "UNKNOW",
    MessageSysFlag.TRANSACTION_COMMIT: "COMMIT_MESSAGE",
    MessageSysFlag.TRANSACTION_ROLLBACK: "ROLLBACK_MESSAGE",
}
"""What the number in the header says, in the words of a producer (LocalTransactionState)."""

_OTHER_WORDS = {
    PutMessageStatus.CREATE_MAPPED_FILE_FAILED: "Create mapped file failed.",
    PutMessageStatus.SERVICE_NOT_AVAILABLE: "Service not available now.",
    PutMessageStatus.PUT_TO_REMOTE_BROKER_FAIL: "put to remote broker fail",
}
"""Where a refused commit reads otherwise than a refused send; both are one-way, and a trace alone shows it."""


class EndTransactionProcessor(RequestProcessor):
    """END_TRANSACTION (org.apache.rocketmq.broker.processor.EndTransactionProcessor).

    Producers send it one-way, so they never read the answer; a proxy's clients do. That a transaction is ended a second
    time is not noticed: its message is stored twice.
    """

    def __init__(self, transactions: TransactionServices) -> None:
        self._transactions = transactions
        self._broker = transactions.broker
        self._node = transactions.broker.node

    def process_request(self, channel: Channel, request: RemotingCommand) -> Processed:
        """Store a committed message where it belongs; note the half message as done with."""
        if self._broker.message_store_config.broker_role is BrokerRole.SLAVE:
            return RemotingCommand.response(ResponseCode.SLAVE_NOT_AVAILABLE)
        header = request.header_as(EndTransactionRequestHeader)
        if header.commit_or_rollback not in (MessageSysFlag.TRANSACTION_COMMIT, MessageSysFlag.TRANSACTION_ROLLBACK):
            self._emit(header, 0)
            return None
        try:
            half = self._half_message(header)
            if header.commit_or_rollback == MessageSysFlag.TRANSACTION_ROLLBACK:
                return self._done(header, half)
            inner = committed(half, header.commit_log_offset)
        except RequestError as error:
            self._emit(header, error.code)
            return RemotingCommand.response(error.code, error.remark)
        except ValueError as problem:
            # Only whoever writes into RMQ_SYS_TRANS_HALF_TOPIC by hand gets here; in RocketMQ it ends as an exception.
            self._emit(header, int(ResponseCode.SYSTEM_ERROR))
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, f"java.lang.NullPointerException: {problem}")
        outcome = self._broker.message_store.put_message(inner)
        return answer_when_put(outcome, "the answer to a commit", self._answer, header, half)

    def _half_message(self, header: EndTransactionRequestHeader) -> MessageExt:
        """The half message that a request is about; RequestError if it is not there, or is another one.

        Java: org.apache.rocketmq.broker.processor.EndTransactionProcessor.checkPrepareMessage.
        """
        half = self._broker.message_store.look_message_by_offset(header.commit_log_offset, decompress=False)
        if half is None:
            raise RequestError(ResponseCode.SYSTEM_ERROR, "Find prepared transaction message failed")
        if not header.from_transaction_check and self._comes_too_late(half):
            raise RequestError(ResponseCode.ILLEGAL_OPERATION, "")
        if half.properties.get(MessageConst.PRODUCER_GROUP) != header.producer_group:
            raise RequestError(ResponseCode.SYSTEM_ERROR, "The producer group wrong")
        if half.queue_offset != header.tran_state_table_offset:
            raise RequestError(ResponseCode.SYSTEM_ERROR, "The transaction state table offset wrong")
        return half

    def _comes_too_late(self, half: MessageExt) -> bool:
        """Has the message an immunity time of its own, and is that over? Then only an answer to a check counts.

        Java: org.apache.rocketmq.broker.processor.EndTransactionProcessor.rejectCommitOrRollback.
        """
        own_immunity = half.properties.get(MessageConst.CHECK_IMMUNITY_TIME_IN_SECONDS)
        if not own_immunity:
            return False
        immune_ms = max(number(own_immunity) * 1_000, self._broker.broker_config.transaction_time_out)
        return self._node.now_ms() - half.born_timestamp > immune_ms

    def _answer(
        self, result: PutMessageResult, header: EndTransactionRequestHeader, half: MessageExt
    ) -> RemotingCommand:
        if result.status in STORED_CODES:
            if result.is_ok:
                self._broker.stats.put(real_topic_of(half), 1, result.wrote_bytes)
            return self._done(header, half)
        broker = self._broker
        code, remark = refusal(result, broker.message_store_config, broker.describe_disk_use())
        self._emit(header, code)
        return RemotingCommand.response(code, _OTHER_WORDS.get(result.status, remark))

    def _done(self, header: EndTransactionRequestHeader, half: MessageExt) -> RemotingCommand:
        self._transactions.ops.delete_prepare_message(half.queue_offset)
        self._transactions.metrics.add(real_topic_of(half), -1)
        self._emit(header, 0, half)
        return RemotingCommand.response(ResponseCode.SUCCESS)

    def _emit(self, header: EndTransactionRequestHeader, code: int, half: MessageExt | None = None) -> None:
        if self._node.hooks.on:
            self._node.hooks.emit(
                TransactionEnded(
                    real_topic_of(half) if half is not None else header.topic or "",
                    unique_key_of(half) if half is not None else header.transaction_id or header.msg_id,
                    header.producer_group,
                    header.tran_state_table_offset,
                    LOCAL_STATES.get(header.commit_or_rollback, str(header.commit_or_rollback)),
                    bool(header.from_transaction_check),
                    int(code),
                )
            )
