"""The answer to a pop: its status, and its messages with the receipt handles that the client makes for them."""

from __future__ import annotations

from enum import Enum

from mqlab.client.consumer.pull_api_wrapper import decoded
from mqlab.errors import MQBrokerException, ProtocolError, RemotingCommandException
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.extra_info import (
    ReceiptHandle,
    message_key,
    parse_msg_offset_info,
    parse_order_count_info,
    parse_start_offset_info,
    queue_key,
    retry_flag,
)
from mqlab.protocol.headers import PopMessageResponseHeader
from mqlab.protocol.message import MessageConst, MessageExt


class PopStatus(Enum):
    """How a pop ended (org.apache.rocketmq.client.consumer.PopStatus)."""

    FOUND = "FOUND"
    NO_NEW_MSG = "NO_NEW_MSG"
    POLLING_FULL = "POLLING_FULL"
    POLLING_NOT_FOUND = "POLLING_NOT_FOUND"

    def __str__(self) -> str:
        return self.value


STATUS_BY_CODE = {
    int(ResponseCode.SUCCESS): PopStatus.FOUND,
    int(ResponseCode.POLLING_FULL): PopStatus.POLLING_FULL,
    int(ResponseCode.POLLING_TIMEOUT): PopStatus.POLLING_NOT_FOUND,
    int(ResponseCode.PULL_NOT_FOUND): PopStatus.POLLING_NOT_FOUND,
}


class PopResult:
    """What a pop brought (org.apache.rocketmq.client.consumer.PopResult); times in ms.

    `rest_num` is how many messages were left in the queues.
    """

    __slots__ = ("invisible_time", "msg_found_list", "pop_status", "pop_time", "rest_num")

    def __init__(self, pop_status: PopStatus, header: PopMessageResponseHeader) -> None:
        self.pop_status = pop_status
        self.rest_num = header.rest_num
        self.pop_time = header.pop_time
        self.invisible_time = header.invisible_time
        self.msg_found_list: list[MessageExt] = []

    def __repr__(self) -> str:
        return (
            f"PopResult [popStatus={self.pop_status},msgFoundList={len(self.msg_found_list)},"
            f"restNum={self.rest_num}]"
        )


def process_pop_response(
    response: RemotingCommand, broker_name: str, address: str, topic: str, *, order: bool = False
) -> PopResult:
    """The result in an answer; MQBrokerException for any code that is no pop status.

    RemotingCommandException when the answer cannot be read, or says nothing of one of its messages.

    Java: org.apache.rocketmq.client.impl.MQClientAPIImpl.processPopResponse. Differs from RocketMQ: light queues (LMQ)
    are absent.
    """
    status = STATUS_BY_CODE.get(response.code)
    if status is None:
        raise MQBrokerException(response.code, response.remark or "", address)
    try:
        header = response.header_as(PopMessageResponseHeader)
        result = PopResult(status, header)
        if status is PopStatus.FOUND:
            result.msg_found_list = decoded(response.body or b"")
            _give_handles(result.msg_found_list, header, broker_name, order)
    except ProtocolError as error:
        raise RemotingCommandException(address, str(error)) from error
    except LookupError as error:
        raise RemotingCommandException(address, f"the answer names no offset for the message at {error}") from error
    for message in result.msg_found_list:
        message.properties.setdefault(MessageConst.FIRST_POP_TIME, str(header.pop_time))
        message.broker_name = broker_name
        message.topic = topic
    return result


def _give_handles(
    messages: list[MessageExt], header: PopMessageResponseHeader, broker_name: str, order: bool
) -> None:
    """Write POP_CK into the messages that the broker has not given one: it fills in those of its retry topics.

    The n-th message of a queue has the n-th offset that the answer names for the queue.
    """
    starts = parse_start_offset_info(header.start_offset_info)
    offsets = parse_msg_offset_info(header.msg_offset_info)
    counts = parse_order_count_info(header.order_count_info) if order else {}
    taken: dict[str, int] = {}
    for message in messages:
        if MessageConst.POP_CK in message.properties:
            continue
        key = queue_key(message.topic, message.queue_id)
        place = taken.get(key, 0)
        taken[key] = place + 1
        if header.start_offset_info:
            start, queue_offset = starts[key], offsets[key][place]
        else:
            start, queue_offset = starts.setdefault(key, message.queue_offset), message.queue_offset
        message.properties[MessageConst.POP_CK] = ReceiptHandle(
            start,
            header.pop_time,
            header.invisible_time,
            header.revive_qid,
            retry_flag(message.topic),
            broker_name,
            message.queue_id,
            queue_offset,
        ).encode()
        if counts:
            count = counts.get(message_key(message.topic, message.queue_id, message.queue_offset), counts.get(key, 0))
            if count > 0:
                message.reconsume_times = count
