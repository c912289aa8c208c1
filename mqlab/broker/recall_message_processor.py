"""Taking a timer message back before it is due: by a message in the same slot that says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.errors import RequestError, rejected
from mqlab.broker.put_message_answers import STORED_CODES, answer_when_put
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import RecallMessageRequestHeader, RecallMessageResponseHeader
from mqlab.protocol.message import MessageConst
from mqlab.protocol.properties import NEW_MAP_CAPACITY, encode_properties
from mqlab.protocol.recall_message_handle import InvalidRecallHandle, RecallMessageHandle
from mqlab.protocol.sysflag import PermName
from mqlab.remoting import Channel, RequestProcessor
from mqlab.store import BrokerRole, MessageExtBrokerInner, PutMessageResult
from mqlab.store.timer.timer_message import build_delete_key

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.remoting.processor import Processed

RECALL_MESSAGE_TAG = "_RECALL_TAG_"
_NOT_AVAILABLE = "recall failed, broker service not available"
_NOT_SET = "not set any response code"
"""RocketMQ never writes over the text that an answer begins with."""


class RecallMessageProcessor(RequestProcessor):
    """RECALL_MESSAGE (org.apache.rocketmq.broker.processor.RecallMessageProcessor); off unless recallMessageEnable."""

    def __init__(self, broker: BrokerParts) -> None:
        self._broker = broker
        self._node = broker.node

    def process_request(self, channel: Channel, request: RemotingCommand) -> Processed:
        """Put the message that takes another one back into the timer's topic, for the same slot."""
        try:
            header = request.header_as(RecallMessageRequestHeader)
            handle = self._checked(header)
        except RequestError as error:
            response = rejected(self._node.hooks, channel, request, error)
            response.add_ext_fields({"MSG_REGION": self._broker.broker_config.region_id})
            return response
        inner = self._build_message(channel, header, handle)
        outcome = self._broker.message_store.put_message(inner)
        return answer_when_put(outcome, "the answer to a recall", self._answer, inner, handle)

    def _checked(self, header: RecallMessageRequestHeader) -> RecallMessageHandle:
        """What the handle says; RequestError when the message cannot be taken back, in RocketMQ's order of checks."""
        broker, config, now_ms = self._broker, self._broker.broker_config, self._node.now_ms()
        if not config.recall_message_enable:
            raise RequestError(ResponseCode.NO_PERMISSION, "recall failed, operation is forbidden")
        if broker.message_store_config.broker_role is BrokerRole.SLAVE:
            raise RequestError(ResponseCode.SLAVE_NOT_AVAILABLE, _NOT_AVAILABLE)
        closed = not PermName.is_writeable(config.broker_permission)
        if now_ms < config.start_accept_send_request_time_stamp or (
            closed and not config.allow_recall_when_broker_not_writeable
        ):
            raise RequestError(ResponseCode.SERVICE_NOT_AVAILABLE, _NOT_AVAILABLE)
        if broker.topic_config_manager.select_topic_config(header.topic) is None:
            raise RequestError(ResponseCode.TOPIC_NOT_EXIST, f"recall failed, the topic[{header.topic}] not exist")
        try:
            handle = RecallMessageHandle.decode(header.recall_handle)
        except InvalidRecallHandle as error:
            raise RequestError(ResponseCode.ILLEGAL_OPERATION, str(error)) from None
        if handle.topic != header.topic:
            raise RequestError(ResponseCode.ILLEGAL_OPERATION, "recall failed, topic not match")
        if handle.broker_name != config.broker_name:
            raise RequestError(ResponseCode.ILLEGAL_OPERATION, _NOT_AVAILABLE)
        digits = handle.timestamp
        left_ms = (int(digits) if digits.isascii() and digits.isdigit() else -1) - now_ms
        if not 0 < left_ms < broker.message_store_config.timer_max_delay_sec * 1_000:
            raise RequestError(ResponseCode.ILLEGAL_OPERATION, "recall failed, timestamp invalid")
        return handle

    def _build_message(
        self, channel: Channel, header: RecallMessageRequestHeader, handle: RecallMessageHandle
    ) -> MessageExtBrokerInner:
        now_ms = self._node.now_ms()
        properties = {
            MessageConst.TAGS: RECALL_MESSAGE_TAG,
            MessageConst.TIMER_DEL_UNIQKEY: build_delete_key(handle.topic, handle.message_id),
            MessageConst.UNIQ_CLIENT_MESSAGE_ID_KEYIDX: handle.message_id,
            MessageConst.TIMER_DELIVER_MS: handle.timestamp,
            MessageConst.BORN_TIMESTAMP: str(now_ms),
            MessageConst.TRACE_CONTEXT: "",
            MessageConst.PRODUCER_GROUP: header.producer_group or "null",
        }
        return MessageExtBrokerInner(
            handle.topic,
            b"0",
            properties=properties,
            properties_string=encode_properties(properties, NEW_MAP_CAPACITY),
            born_timestamp=now_ms,
            born_host=channel.remote_address,
            store_host=self._broker.store_host,
        )

    def _answer(
        self, result: PutMessageResult, inner: MessageExtBrokerInner, handle: RecallMessageHandle
    ) -> RemotingCommand:
        if result.status in STORED_CODES:
            header = RecallMessageResponseHeader(handle.message_id)
            response = RemotingCommand.response(ResponseCode.SUCCESS, _NOT_SET, header)
            if result.is_ok:
                self._broker.stats.put(inner.topic, 1, result.wrote_bytes)
        else:
            response = RemotingCommand.response(ResponseCode.SYSTEM_ERROR, "recall failed, execute error")
        response.add_ext_fields({"MSG_REGION": self._broker.broker_config.region_id})
        return response
