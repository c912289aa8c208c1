"""What a broker answers to a pop, read: messages with their receipt handles."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from mqlab.errors import MQBrokerException
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.extra_info import (
    ReceiptHandle,
    message_key,
    parse_msg_offset_info,
    parse_order_count_info,
    parse_start_offset_info,
    queue_key,
    retry_flag,
)
from mqlab.protocol.headers.pop import PopMessageRequestHeader, PopMessageResponseHeader
from mqlab.protocol.record import scan_records

if TYPE_CHECKING:
    from mqlab.protocol.command import RemotingCommand
    from mqlab.protocol.message import MessageExt


class PopStatus(Enum):
    """What came of a pop (org.apache.rocketmq.client.consumer.PopStatus)."""

    FOUND = "FOUND"
    POLLING_FULL = "POLLING_FULL"
    POLLING_NOT_FOUND = "POLLING_NOT_FOUND"


class PopResult(NamedTuple):
    """The messages of a pop; each has its handle in the property POP_CK."""

    status: PopStatus
    messages: list[MessageExt]


_STATUS = {
    int(ResponseCode.SUCCESS): PopStatus.FOUND,
    int(ResponseCode.POLLING_FULL): PopStatus.POLLING_FULL,
    int(ResponseCode.POLLING_TIMEOUT): PopStatus.POLLING_NOT_FOUND,
    int(ResponseCode.PULL_NOT_FOUND): PopStatus.POLLING_NOT_FOUND,
}


def read_pop_answer(
    response: RemotingCommand, request: PopMessageRequestHeader, broker_name: str, address: str
) -> PopResult:
    """The result in the answer to a pop; MQBrokerException for a refusal, ProtocolError for what cannot be read.

    Java: org.apache.rocketmq.client.impl.MQClientAPIImpl.processPopResponse.
    """
    status = _STATUS.get(response.code)
    if status is None:
        raise MQBrokerException(response.code, response.remark or "", address)
    if status is not PopStatus.FOUND:
        return PopResult(status, [])
    header = response.header_as(PopMessageResponseHeader)
    messages = list(scan_records(response.body or b""))
    starts = parse_start_offset_info(header.start_offset_info)
    offsets = parse_msg_offset_info(header.msg_offset_info)
    counts = parse_order_count_info(header.order_count_info)
    own_offsets: dict[str, list[int]] = {}
    for message in messages:
        own_offsets.setdefault(queue_key(message.topic, message.queue_id), []).append(message.queue_offset)
    for message in messages:
        if "POP_CK" not in message.properties:
            key = queue_key(message.topic, message.queue_id)
            place = sorted(own_offsets[key]).index(message.queue_offset)
            message.properties["POP_CK"] = ReceiptHandle(
                starts[key], header.pop_time, header.invisible_time, header.revive_qid, retry_flag(message.topic),
                broker_name, message.queue_id, offsets[key][place],
            ).encode()  # fmt: skip
            if request.order:
                named = message_key(message.topic, message.queue_id, message.queue_offset)
                message.reconsume_times = counts.get(named, counts.get(key, 0)) or message.reconsume_times
        message.properties.setdefault("1ST_POP_TIME", str(header.pop_time))
        message.broker_name = broker_name
        message.topic = request.topic
    return PopResult(status, messages)
