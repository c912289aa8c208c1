"""Taking in a reply that a broker pushes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.producer.request_future_holder import RequestFutureHolder
from mqlab.errors import SimulationError
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.compression import decompress
from mqlab.protocol.headers import ReplyMessageRequestHeader
from mqlab.protocol.message import MessageConst, MessageExt
from mqlab.protocol.properties import decode_properties
from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.trace.events.reply import ReplyArrived

if TYPE_CHECKING:
    from mqlab.sim import Node

FAILED = "process reply message fail"


async def receive_reply_message(node: Node, request: RemotingCommand) -> RemotingCommand:
    """Give a reply to the request that waits for it, and tell the broker that it has come.

    The answer is SUCCESS as well when nobody waits for it any more. The callback of an asynchronous request runs before
    the answer; what it raises makes that SYSTEM_ERROR.

    Java: org.apache.rocketmq.client.impl.ClientRemotingProcessor.receiveReplyMessage.
    """
    arrived_ms = node.now_ms()
    header = request.header_as(ReplyMessageRequestHeader)
    try:
        reply = _message(header, request.body or b"", arrived_ms)
        await _process_reply_message(node, reply)
    except SimulationError:
        raise
    except Exception:  # noqa: BLE001  # whatever goes wrong, the broker gets the same words
        return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, FAILED)
    return RemotingCommand.response(ResponseCode.SUCCESS)


def _message(header: ReplyMessageRequestHeader, body: bytes, arrived_ms: int) -> MessageExt:
    if header.sys_flag & MessageSysFlag.COMPRESSED:
        body = decompress(header.sys_flag, body)
    properties = decode_properties(header.properties)
    properties[MessageConst.REPLY_MESSAGE_ARRIVE_TIME] = str(arrived_ms)
    return MessageExt(
        header.topic,
        body,
        header.flag,
        properties,
        header.queue_id,
        born_timestamp=header.born_timestamp,
        born_host=header.born_host,
        store_timestamp=header.store_timestamp,
        store_host=header.store_host,
        reconsume_times=header.reconsume_times or 0,
    )


async def _process_reply_message(node: Node, reply: MessageExt) -> None:
    """Java: org.apache.rocketmq.client.impl.ClientRemotingProcessor.processReplyMessage."""
    correlation_id = reply.properties[MessageConst.CORRELATION_ID]
    future = RequestFutureHolder.of(node).remove(correlation_id)
    if node.hooks.on:
        waited_ms = -1 if future is None else future.waited_ms()
        node.hooks.emit(ReplyArrived(reply.topic, correlation_id, reply.born_host, future is not None, waited_ms))
    if future is None:
        return
    future.put_response_message(reply)
    told = future.execute_request_callback()
    if told is not None:
        await told
    if future.callback_mistake is not None:
        raise future.callback_mistake
