"""What a proxy asks of brokers on behalf of its clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.consumer.pop.pop_result import PopResult, process_pop_response
from mqlab.errors import MQBrokerException, MqlabError
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.extra_info import ReceiptHandle
from mqlab.protocol.headers.client import ConsumerSendMsgBackRequestHeader
from mqlab.protocol.headers.pop import (
    AckMessageRequestHeader,
    ChangeInvisibleTimeRequestHeader,
    ChangeInvisibleTimeResponseHeader,
    PopMessageRequestHeader,
)
from mqlab.protocol.v2.definition import Code
from mqlab.proxy.errors import GrpcProxyException, ProxyException

if TYPE_CHECKING:
    from mqlab.client.mq_client_api import MQClientAPIImpl
    from mqlab.client.producer.send_result import SendResult
    from mqlab.protocol.headers import EndTransactionRequestHeader, RecallMessageRequestHeader
    from mqlab.protocol.headers.send import SendMessageRequestHeaderV2
    from mqlab.protocol.message import Message
    from mqlab.proxy.message_queue_selector import AddressableMessageQueue
    from mqlab.proxy.topic_route_service import TopicRouteService

DEFAULT_TIMEOUT_MS = 2_000
"""What a call to a broker may take unless the client said something else (MessagingProcessor.DEFAULT_TIMEOUT_MILLS)."""


class ClusterMessageService:
    """Typed calls to brokers (org.apache.rocketmq.proxy.service.message.ClusterMessageService).

    Raises the Remoting* errors of a call, and MQBrokerException for a broker's refusal. Differs from RocketMQ: one
    client, so one connection to each broker, where a proxy there spreads its calls over six.
    """

    def __init__(self, routes: TopicRouteService, api: MQClientAPIImpl) -> None:
        self._routes = routes
        self._api = api
        self._remoting_client = api.remoting_client

    async def send_message(
        self, queue: AddressableMessageQueue, message: Message, header: SendMessageRequestHeaderV2
    ) -> SendResult:
        """Send a message to the broker that was chosen; the future of its answer."""
        address = queue.broker_addr
        response = await self._api.send_message(address, message, header, DEFAULT_TIMEOUT_MS)
        return self._api.process_send_response(queue.message_queue, message, response, address)

    async def recall_message(
        self, broker_name: str, header: RecallMessageRequestHeader, timeout_ms: int = DEFAULT_TIMEOUT_MS
    ) -> str:
        """Take a message back that waits at a broker; its unique key, or MQBrokerException when that refuses."""
        address = await self._resolve_broker_addr(broker_name)
        return await self._api.recall_message(address, header, timeout_ms)

    async def end_transaction_oneway(
        self, broker_name: str, header: EndTransactionRequestHeader, timeout_ms: int = DEFAULT_TIMEOUT_MS
    ) -> None:
        """Tell a broker how a transaction ended, and hear nothing of it."""
        address = await self._resolve_broker_addr(broker_name)
        self._api.end_transaction_oneway(address, header, "end transaction from proxy", timeout_ms)

    async def pop_message(
        self, queue: AddressableMessageQueue, header: PopMessageRequestHeader, timeout_ms: int
    ) -> PopResult:
        """Pop messages from the broker that was chosen; the future of its answer."""
        request = RemotingCommand.request(RequestCode.POP_MESSAGE, header)
        response = await self._remoting_client.invoke_sync(queue.broker_addr, request, timeout_ms)
        broker_name = queue.message_queue.broker_name
        return process_pop_response(response, broker_name, queue.broker_addr, header.topic, order=bool(header.order))

    async def ack_message(
        self, handle: ReceiptHandle, topic: str, group: str, timeout_ms: int = DEFAULT_TIMEOUT_MS
    ) -> bool:
        """Acknowledge a message; False when the broker does not take it."""
        header = AckMessageRequestHeader(
            group, handle.real_topic(topic, group), handle.queue_id, handle.encode(), handle.queue_offset
        )
        address = await self._address(handle)
        request = RemotingCommand.request(RequestCode.ACK_MESSAGE, header)
        response = await self._remoting_client.invoke_sync(address, request, timeout_ms)
        return response.code == 0

    async def change_invisible_time(
        self, handle: ReceiptHandle, topic: str, group: str, invisible_ms: int, timeout_ms: int = DEFAULT_TIMEOUT_MS
    ) -> ReceiptHandle | None:
        """Let a message be invisible from now on for so long: its new handle, None when the broker refuses.

        Java: org.apache.rocketmq.client.impl.MQClientAPIImpl.changeInvisibleTimeAsync.
        """
        real = handle.real_topic(topic, group)
        header = ChangeInvisibleTimeRequestHeader(
            group, real, handle.queue_id, handle.encode(), handle.queue_offset, invisible_ms
        )
        address = await self._address(handle)
        request = RemotingCommand.request(RequestCode.CHANGE_MESSAGE_INVISIBLETIME, header)
        response = await self._remoting_client.invoke_sync(address, request, timeout_ms)
        if response.code != 0:
            return None
        return handle.changed(real, *response.header_as(ChangeInvisibleTimeResponseHeader))

    async def send_message_back(
        self, handle: ReceiptHandle, header: ConsumerSendMsgBackRequestHeader, timeout_ms: int = DEFAULT_TIMEOUT_MS
    ) -> None:
        """Give a message back to its broker; MQBrokerException when it is not taken."""
        address = await self._address(handle)
        request = RemotingCommand.request(RequestCode.CONSUMER_SEND_MSG_BACK, header)
        response = await self._remoting_client.invoke_sync(address, request, timeout_ms)
        if response.code != 0:
            raise MQBrokerException(response.code, response.remark or "", address)

    async def _address(self, handle: ReceiptHandle) -> str:
        """Where the broker of a handle is; GrpcProxyException when nobody knows."""
        return await self._resolve_broker_addr(handle.broker_name, Code.INVALID_RECEIPT_HANDLE)

    async def _resolve_broker_addr(self, broker_name: str, unknown: Code = Code.BAD_REQUEST) -> str:
        """Where a broker is; GrpcProxyException, for a name that nobody knows with the code `unknown`."""
        try:
            address = await self._routes.broker_addr(broker_name)
        except MqlabError as error:
            raise ProxyException(unknown, f"cannot find broker {broker_name}") from error
        if address is None:
            raise GrpcProxyException(Code.INTERNAL_SERVER_ERROR, f"broker {broker_name} has no master")
        return address
