"""The calls of a client that pops, each a typed method: the part of MQClientAPIImpl that the others never need."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from mqlab.errors import MQBrokerException, ProtocolError, RemotingCommandException
from mqlab.protocol.assignment import (
    MessageQueueAssignment,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    SetMessageRequestModeRequestBody,
)
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.extra_info import ReceiptHandle, parse_handle, retry_flag
from mqlab.protocol.headers import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
    PopMessageRequestHeader,
)
from mqlab.protocol.pop_check_point import BatchAck, BatchAckMessageRequestBody, bits_of

if TYPE_CHECKING:
    from mqlab.protocol.heartbeat import MessageModel
    from mqlab.remoting import RemotingClient
    from mqlab.remoting.response_future import InvokeCallback


class AckStatus(Enum):
    """Whether a broker took an acknowledgement (org.apache.rocketmq.client.consumer.AckStatus)."""

    OK = "OK"
    NO_EXIST = "NO_EXIST"

    def __str__(self) -> str:
        return self.value


class AckResult(NamedTuple):
    """The answer to an acknowledgement, or to the wish for another invisible time, with the handle that counts then.

    Java: org.apache.rocketmq.client.consumer.AckResult.
    """

    status: AckStatus
    extra_info: str = ""
    pop_time: int = 0


class PopClientAPI:
    """Typed calls to brokers that Pop needs (org.apache.rocketmq.client.impl.MQClientAPIImpl).

    Methods with a callback send and return: `callback(response_future)` is called once. Time-outs are in ms.
    """

    def __init__(self, remoting_client: RemotingClient) -> None:
        self._remoting = remoting_client

    # -- who shall pop ----------------------------------------------------------------------------------------------

    async def query_assignment(
        self, address: str, topic: str, group: str, client_id: str, strategy: str, model: MessageModel, timeout_ms: int
    ) -> list[MessageQueueAssignment] | None:
        """The queues that this member shall pull or pop; None when the broker cannot tell, so that all stays as it is.

        MQBrokerException when it refuses; RemotingCommandException when its answer cannot be read.
        """
        body = QueryAssignmentRequestBody(topic, group, client_id, strategy, model).encode()
        request = RemotingCommand.request(RequestCode.QUERY_ASSIGNMENT, None, body)
        response = await self._call(address, request, timeout_ms)
        try:
            return QueryAssignmentResponseBody.decode(response.body).message_queue_assignments
        except ProtocolError as error:
            raise RemotingCommandException(address, str(error)) from error

    async def set_message_request_mode(
        self, address: str, topic: str, group: str, mode: str, pop_share_queue_num: int, timeout_ms: int
    ) -> None:
        """Let a group "PULL" or "POP" a topic; MQBrokerException when the broker refuses."""
        body = SetMessageRequestModeRequestBody(topic, group, mode, pop_share_queue_num).encode()
        request = RemotingCommand.request(RequestCode.SET_MESSAGE_REQUEST_MODE, None, body)
        await self._call(address, request, timeout_ms)

    async def _call(self, address: str, request: RemotingCommand, timeout_ms: int) -> RemotingCommand:
        response = await self._remoting.invoke_sync(address, request, timeout_ms)
        if response.code != 0:
            raise MQBrokerException(response.code, response.remark or "", address)
        return response

    # -- messages ---------------------------------------------------------------------------------------------------

    def pop_message_async(
        self, address: str, header: PopMessageRequestHeader, timeout_ms: int, callback: InvokeCallback
    ) -> None:
        """Ask a broker for messages of any queue; `process_pop_response` reads the answer."""
        request = RemotingCommand.request(RequestCode.POP_MESSAGE, header)
        self._remoting.invoke_async(address, request, timeout_ms, callback)

    def ack_message_async(
        self, address: str, header: AckMessageRequestHeader, timeout_ms: int, callback: InvokeCallback
    ) -> None:
        """Say that a message is done; `process_ack_response` reads the answer."""
        request = RemotingCommand.request(RequestCode.ACK_MESSAGE, header)
        self._remoting.invoke_async(address, request, timeout_ms, callback)

    def batch_ack_message_async(
        self,
        address: str,
        topic: str,
        group: str,
        extra_infos: Sequence[str],
        timeout_ms: int,
        callback: InvokeCallback,
    ) -> None:
        """Say that several messages of one broker are done, in one request; `process_ack_response` reads the answer."""
        body = batch_ack_body(topic, group, extra_infos).encode()
        request = RemotingCommand.request(RequestCode.BATCH_ACK_MESSAGE, None, body)
        self._remoting.invoke_async(address, request, timeout_ms, callback)

    def change_invisible_time_async(
        self, address: str, header: ChangeInvisibleTimeRequestHeader, timeout_ms: int, callback: InvokeCallback
    ) -> None:
        """Ask for another invisible time; `process_change_invisible_time_response` reads the answer."""
        request = RemotingCommand.request(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)
        self._remoting.invoke_async(address, request, timeout_ms, callback)

    def process_ack_response(self, response: RemotingCommand) -> AckResult:
        """Whether the broker took an acknowledgement."""
        return AckResult(AckStatus.OK if response.code == 0 else AckStatus.NO_EXIST)

    def process_change_invisible_time_response(
        self, response: RemotingCommand, header: ChangeInvisibleTimeRequestHeader, broker_name: str, address: str
    ) -> AckResult:
        """The new handle of the message; RemotingCommandException when the answer cannot be read."""
        if response.code != 0:
            return AckResult(AckStatus.NO_EXIST)
        try:
            said = response.header_as(ChangeInvisibleTimeResponseHeader)
        except ProtocolError as error:
            raise RemotingCommandException(address, str(error)) from error
        handle = ReceiptHandle(
            header.offset,
            said.pop_time,
            said.invisible_time,
            said.revive_qid,
            retry_flag(header.topic),
            broker_name,
            header.queue_id,
            header.offset,
        )
        return AckResult(AckStatus.OK, handle.encode(), said.pop_time)


def batch_ack_body(topic: str, group: str, extra_infos: Sequence[str]) -> BatchAckMessageRequestBody:
    """The acknowledgements of several handles, one entry for each batch in which they were popped.

    Java: org.apache.rocketmq.client.impl.MQClientAPIImpl.batchAckMessageAsync. ExtraInfoError for a text that is no
    handle.
    """
    handles = [parse_handle(text) for text in extra_infos]
    batches: dict[tuple[str, int, int, int], list[ReceiptHandle]] = {}
    for handle in handles:
        key = (handle.retry, handle.queue_id, handle.start_offset, handle.pop_time)
        batches.setdefault(key, []).append(handle)
    acks = [
        BatchAck(
            group=group,
            topic=topic,
            retry=batch[0].retry,
            start_offset=batch[0].start_offset,
            queue_id=batch[0].queue_id,
            revive_queue_id=batch[0].revive_qid,
            pop_time=batch[0].pop_time,
            invisible_time=batch[0].invisible_time,
            bit_set=bits_of(handle.queue_offset - handle.start_offset for handle in batch),
        )
        for batch in batches.values()
    ]
    return BatchAckMessageRequestBody(handles[0].broker_name if handles else "", acks)
