"""Bringing a half message back that was put aside: the broker asks about it anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.put_message_answers import answer_when_put
from mqlab.broker.transaction.half_messages import QUEUE_ID
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.errors import MessageIdError
from mqlab.protocol.headers import ResumeCheckHalfMessageRequestHeader
from mqlab.protocol.message import MessageConst
from mqlab.protocol.message_id import decode_message_id
from mqlab.protocol.properties import DECODED_MAP_CAPACITY, encode_properties
from mqlab.protocol.topics import RMQ_SYS_TRANS_HALF_TOPIC
from mqlab.remoting import Channel, RequestProcessor
from mqlab.store import MessageExtBrokerInner, PutMessageResult

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.remoting.processor import Processed

FAILED = "Put message back to RMQ_SYS_TRANS_HALF_TOPIC failed."
RAISED = "Exception was thrown when putting message back to RMQ_SYS_TRANS_HALF_TOPIC."


class ResumeCheckProcessor(RequestProcessor):
    """RESUME_CHECK_HALF_MESSAGE: a message of TRANS_CHECK_MAX_TIME_TOPIC becomes a half message again, asked 0 times.

    As in RocketMQ any message of the log is taken, and it stays where it lay.
    Java: org.apache.rocketmq.broker.processor.AdminBrokerProcessor.resumeCheckHalfMessage.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._broker = broker

    def process_request(self, channel: Channel, request: RemotingCommand) -> Processed:
        """Store the message with this offset message id among the half messages."""
        header = request.header_as(ResumeCheckHalfMessageRequestHeader)
        try:
            offset = decode_message_id(header.msg_id or "").offset
        except MessageIdError:
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, RAISED)
        message = self._broker.message_store.look_message_by_offset(offset)
        if message is None:
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, RAISED)
        properties = {**message.properties, MessageConst.TRANSACTION_CHECK_TIMES: "0"}
        text = encode_properties(properties, DECODED_MAP_CAPACITY)
        properties[MessageConst.WAIT_STORE_MSG_OK] = "false"
        inner = MessageExtBrokerInner(
            RMQ_SYS_TRANS_HALF_TOPIC, message.body, QUEUE_ID, message.flag, message.sys_flag, properties, text,
            message.born_timestamp, message.born_host, message.store_host, message.reconsume_times,
        )  # fmt: skip
        return answer_when_put(self._broker.message_store.put_message(inner), "the answer to a resumed check", _answer)


def _answer(result: PutMessageResult) -> RemotingCommand:
    if result.is_ok:
        return RemotingCommand.response(ResponseCode.SUCCESS)
    return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, FAILED)
