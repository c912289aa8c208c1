"""The rarer requests of brokers, imported when the first one comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol import headers as h
from mqlab.protocol.bodies import GetConsumerStatusBody, ResetOffsetBody
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.errors import RecordError
from mqlab.protocol.message import MessageConst
from mqlab.protocol.record import decode_record

if TYPE_CHECKING:
    from mqlab.client.mq_client_instance import MQClientInstance
    from mqlab.remoting import Channel

NO_CODE_SET = "not set any response code"
"""What stands in an answer of RocketMQ that got its code and no text."""


async def answer(instance: MQClientInstance, request: RemotingCommand) -> RemotingCommand | None:
    """The answer to a request of a broker; None to a one-way one.

    Java: org.apache.rocketmq.client.impl.ClientRemotingProcessor.processRequest.
    """
    code = request.code
    if code == RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT:
        from mqlab.client.reply_message import receive_reply_message

        return await receive_reply_message(instance.node, request)
    if code == RequestCode.GET_CONSUMER_RUNNING_INFO:
        return await _running_info(instance, request)
    if code == RequestCode.CONSUME_MESSAGE_DIRECTLY:
        return await _consume_directly(instance, request)
    if code == RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT:
        return _consumer_status(instance, request)
    await _reset_offset(instance, request)
    return None


def check_transaction_state(instance: MQClientInstance, channel: Channel, request: RemotingCommand) -> None:
    """Ask the producer of the message's group; what cannot be read, and a group that is not here, is passed over.

    Java: org.apache.rocketmq.client.impl.ClientRemotingProcessor.checkTransactionState.
    """
    header = request.header_as(h.CheckTransactionStateRequestHeader)
    try:
        message = decode_record(request.body or b"")
    except RecordError:
        return
    message.transaction_id = message.properties.get(MessageConst.UNIQ_CLIENT_MESSAGE_ID_KEYIDX)
    producer = instance.producer_table.get(message.properties.get(MessageConst.PRODUCER_GROUP, ""))
    if producer is not None:
        producer.check_transaction_state(channel.remote_address, message, header)


def _not_here(group: str) -> RemotingCommand:
    remark = f"The Consumer Group <{group}> not exist in this consumer"
    return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, remark)


async def _running_info(instance: MQClientInstance, request: RemotingCommand) -> RemotingCommand:
    group = request.header_as(h.GetConsumerRunningInfoRequestHeader).consumer_group
    consumer = instance.consumer_table.get(group)
    if consumer is None:
        return _not_here(group)
    info = await consumer.consumer_running_info()
    return RemotingCommand.response(ResponseCode.SUCCESS, NO_CODE_SET, body=info.encode())


async def _consume_directly(instance: MQClientInstance, request: RemotingCommand) -> RemotingCommand:
    header = request.header_as(h.ConsumeMessageDirectlyResultRequestHeader)
    message = decode_record(request.body or b"")
    consumer = instance.consumer_table.get(header.consumer_group)
    consuming = consumer.consume_message_directly(message, header.broker_name) if consumer is not None else None
    if consuming is None:
        return _not_here(header.consumer_group)
    result = await consuming
    return RemotingCommand.response(ResponseCode.SUCCESS, NO_CODE_SET, body=result.encode())


def _consumer_status(instance: MQClientInstance, request: RemotingCommand) -> RemotingCommand:
    header = request.header_as(h.GetConsumerStatusRequestHeader)
    consumer = instance.consumer_table.get(header.group)
    body = GetConsumerStatusBody()
    if consumer is not None:
        body.message_queue_table = dict(consumer.consumer_status(header.topic))
    return RemotingCommand.response(ResponseCode.SUCCESS, NO_CODE_SET, body=body.encode())


async def _reset_offset(instance: MQClientInstance, request: RemotingCommand) -> None:
    header = request.header_as(h.ResetOffsetRequestHeader)
    table = ResetOffsetBody.decode(request.body).offset_table if request.body else {}
    consumer = instance.consumer_table.get(header.group)
    moving = consumer.reset_offset(header.topic, table) if consumer is not None else None
    if moving is not None:
        await moving
