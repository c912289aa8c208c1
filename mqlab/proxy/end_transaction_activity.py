"""A producer says how a transaction ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.headers import EndTransactionRequestHeader
from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.protocol.v2.definition import Code, TransactionResolution, TransactionSource
from mqlab.protocol.v2.service import EndTransactionRequest, EndTransactionResponse
from mqlab.proxy.errors import GrpcProxyException, ProxyException
from mqlab.proxy.grpc_validator import validate_topic
from mqlab.proxy.response_builder import OK
from mqlab.trace.events.transaction import EndTransactionRelayed

if TYPE_CHECKING:
    from mqlab.proxy.cluster_message_service import ClusterMessageService
    from mqlab.proxy.cluster_transaction_service import ClusterTransactionService
    from mqlab.proxy.proxy_context import ProxyContext
    from mqlab.sim import Node

_STATES = {
    TransactionResolution.COMMIT: (MessageSysFlag.TRANSACTION_COMMIT, "COMMIT_MESSAGE"),
    TransactionResolution.ROLLBACK: (MessageSysFlag.TRANSACTION_ROLLBACK, "ROLLBACK_MESSAGE"),
}
_UNKNOW = (MessageSysFlag.TRANSACTION_NOT_TYPE, "UNKNOW")


class EndTransactionActivity:
    """Answers EndTransaction.

    Java: org.apache.rocketmq.proxy.grpc.v2.transaction.EndTransactionActivity and
    org.apache.rocketmq.proxy.processor.TransactionProcessor. The proxy knows for 30 s where a half message lies; it
    passes the end on one-way, so its OK says only that it has known. Whoever knows the transaction id may end a
    transaction, and ends it once: any end, also one that says neither commit nor rollback, makes the proxy forget it.
    """

    def __init__(self, node: Node, messages: ClusterMessageService, transactions: ClusterTransactionService) -> None:
        self._node = node
        self._messages = messages
        self._transactions = transactions

    async def end_transaction(self, ctx: ProxyContext, request: EndTransactionRequest) -> EndTransactionResponse:
        """Tell the broker of a half message how its transaction ended; GrpcProxyException when it is not known."""
        validate_topic(request.topic)
        if not request.transaction_id.strip():
            raise GrpcProxyException(Code.INVALID_TRANSACTION_ID, "transaction id cannot be empty")
        topic = request.topic.name
        data = self._transactions.take(topic, request.transaction_id)
        if data is None:
            raise ProxyException(Code.INTERNAL_SERVER_ERROR, "cannot found transaction data")
        bits, local_state = _STATES.get(request.resolution, _UNKNOW)
        from_check = request.source == TransactionSource.SOURCE_SERVER_CHECK
        header = EndTransactionRequestHeader(
            producer_group=topic,
            tran_state_table_offset=data.tran_state_table_offset,
            commit_log_offset=data.commit_log_offset,
            commit_or_rollback=bits,
            msg_id=request.message_id,
            from_transaction_check=from_check,
            transaction_id=request.transaction_id,
            topic=topic,
        )
        if self._node.hooks.on:
            self._node.hooks.emit(
                EndTransactionRelayed(
                    topic, request.message_id, topic, data.tran_state_table_offset, data.broker_name, ctx.client_id,
                    local_state, from_check,
                )
            )  # fmt: skip
        await self._messages.end_transaction_oneway(data.broker_name, header)
        return EndTransactionResponse(OK)
