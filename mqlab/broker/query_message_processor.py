"""Looking messages up, by key or by place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import (
    UNIQUE_KEY_QUERY,
    QueryMessageRequestHeader,
    QueryMessageResponseHeader,
    ViewMessageRequestHeader,
)
from mqlab.remoting import Channel, RequestProcessor

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts

DEFAULT_QUERY_MAX_NUM = 32


class QueryMessageProcessor(RequestProcessor):
    """QUERY_MESSAGE and VIEW_MESSAGE_BY_ID (org.apache.rocketmq.broker.processor.QueryMessageProcessor).

    The index keeps hashes of keys only: who asked must compare the keys of what comes back.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._store = broker.message_store

    def process_request(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """Answer one of the two."""
        if request.code == RequestCode.QUERY_MESSAGE:
            return self._query_message(request)
        return self._view_message_by_id(request)

    def _query_message(self, request: RemotingCommand) -> RemotingCommand:
        header = request.header_as(QueryMessageRequestHeader)
        max_num = DEFAULT_QUERY_MAX_NUM if request.ext_field(UNIQUE_KEY_QUERY) == "true" else header.max_num
        result = self._store.query_message(
            header.topic, header.key, max_num, header.begin_timestamp, header.end_timestamp
        )
        if not result.messages:
            return RemotingCommand.response(
                ResponseCode.QUERY_NOT_FOUND,
                "can not find message, maybe time range not correct",
                QueryMessageResponseHeader(0, 0),
            )
        answer = QueryMessageResponseHeader(result.index_last_update_timestamp, result.index_last_update_phyoffset)
        return RemotingCommand.response(ResponseCode.SUCCESS, None, answer, result.body)

    def _view_message_by_id(self, request: RemotingCommand) -> RemotingCommand:
        offset = request.header_as(ViewMessageRequestHeader).offset
        record = self._store.select_one_message_by_offset(offset)
        if record is None:
            return RemotingCommand.response(
                ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {offset}"
            )
        return RemotingCommand.response(ResponseCode.SUCCESS, None, None, record)
