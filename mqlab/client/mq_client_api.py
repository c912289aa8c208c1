"""The calls that a client makes, each a typed method: what RocketMQ keeps in MQClientAPIImpl."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from mqlab.client.producer.send_result import SendResult, SendStatus
from mqlab.client.top_addressing import TopAddressing
from mqlab.errors import MQBrokerException, MQClientException, ProtocolError, RemotingCommandException
from mqlab.protocol.batch import MessageBatch
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.group_bodies import (
    CheckClientRequestBody,
    GetConsumerListByGroupResponseBody,
    LockBatchRequestBody,
    LockBatchResponseBody,
    UnlockBatchRequestBody,
)
from mqlab.protocol.headers import (
    IS_SUB_CHANGE,
    IS_SUPPORT_HEART_BEAT_V2,
    ConsumerSendMsgBackRequestHeader,
    GetConsumerListByGroupRequestHeader,
    GetEarliestMsgStoretimeRequestHeader,
    GetEarliestMsgStoretimeResponseHeader,
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    GetRouteInfoRequestHeader,
    HeartbeatRequestHeader,
    PullMessageRequestHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    RecallMessageRequestHeader,
    RecallMessageResponseHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
    UnregisterClientRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from mqlab.protocol.json_body import JsonBody
from mqlab.protocol.message import Message, MessageExt, MessageQueue
from mqlab.protocol.route import TopicRouteData
from mqlab.protocol.sysflag import PullSysFlag
from mqlab.protocol.topics import REPLY_MESSAGE_FLAG
from mqlab.remoting import RemotingClient, RemotingClientConfig

if TYPE_CHECKING:
    from mqlab.client.client_config import ClientConfig
    from mqlab.client.pop_client_api import PopClientAPI
    from mqlab.protocol.headers import EndTransactionRequestHeader
    from mqlab.protocol.heartbeat import HeartbeatData, SubscriptionData
    from mqlab.remoting.response_future import InvokeCallback
    from mqlab.sim import Node, Task

SEND_MESSAGE_V2 = int(RequestCode.SEND_MESSAGE_V2)
SEND_BATCH_MESSAGE = int(RequestCode.SEND_BATCH_MESSAGE)
SEND_REPLY_MESSAGE_V2 = int(RequestCode.SEND_REPLY_MESSAGE_V2)

SEND_STATUS = {
    int(ResponseCode.SUCCESS): SendStatus.SEND_OK,
    int(ResponseCode.FLUSH_DISK_TIMEOUT): SendStatus.FLUSH_DISK_TIMEOUT,
    int(ResponseCode.FLUSH_SLAVE_TIMEOUT): SendStatus.FLUSH_SLAVE_TIMEOUT,
    int(ResponseCode.SLAVE_NOT_AVAILABLE): SendStatus.SLAVE_NOT_AVAILABLE,
}


HeaderT = TypeVar("HeaderT", bound=tuple[Any, ...])
BodyT = TypeVar("BodyT", bound=JsonBody)


def _header(cls: type[HeaderT], response: RemotingCommand, address: str) -> HeaderT:
    """The typed header of an answer; RemotingCommandException when it cannot be read."""
    try:
        return response.header_as(cls)
    except ProtocolError as error:
        raise RemotingCommandException(address, str(error)) from error


def _body(cls: type[BodyT], response: RemotingCommand, address: str) -> BodyT:
    """The object in the body of an answer; RemotingCommandException when it cannot be read."""
    try:
        return cls.decode(response.body)
    except ProtocolError as error:
        raise RemotingCommandException(address, str(error)) from error


class OffsetNotFoundException(MQBrokerException):
    """The broker knows no offset of this group for this queue."""


class HeartbeatV2Result(NamedTuple):
    """The answer to a heartbeat of the second form (org.apache.rocketmq.remoting.common.HeartbeatV2Result)."""

    version: int
    is_sub_change: bool
    is_support_v2: bool


class MQClientAPIImpl:
    """Typed calls to name servers and brokers (org.apache.rocketmq.client.impl.MQClientAPIImpl).

    Every method raises the Remoting* errors of its call; an answer with another code than success is an
    MQBrokerException, from a name server an MQClientException. Time-outs are in ms.
    """

    def __init__(self, node: Node, config: ClientConfig) -> None:
        self.config = config
        remoting = RemotingClientConfig(
            client_callback_executor_threads=config.client_callback_executor_threads,
            client_oneway_semaphore_value=config.client_oneway_semaphore_value,
            client_async_semaphore_value=config.client_async_semaphore_value,
            connect_timeout_millis=config.connect_timeout_millis,
            client_channel_max_idle_time_seconds=config.client_channel_max_idle_time_seconds,
            client_close_socket_if_timeout=config.client_close_socket_if_timeout,
        )
        self.remoting_client = RemotingClient(node, remoting, "NettyClient")
        if config.credentials is not None:
            from mqlab.auth.session_credentials import AclClientRPCHook

            self.remoting_client.rpc_hooks.append(AclClientRPCHook(config.credentials))
        self.top_addressing: TopAddressing | None = None
        if config.namesrv_addr is None and config.namesrv_domain is not None:
            self.top_addressing = TopAddressing(node, config.namesrv_domain, config.unit_name)
        self.name_srv_addr: str | None = None
        self._first_fetch: Task | None = None
        self._pop: PopClientAPI | None = None

    def start(self) -> None:
        """Start the network client, and ask the address server if there is one to ask."""
        if self.top_addressing is not None:
            self._first_fetch = self.remoting_client.node.spawn(self.fetch_name_server_addr(), "fetch name servers")
        self.remoting_client.start()

    async def fetch_name_server_addr(self) -> None:
        """Ask the address server where the name servers are, and use what it says from now on.

        Java: org.apache.rocketmq.client.impl.MQClientAPIImpl.fetchNameServerAddr.
        """
        assert self.top_addressing is not None
        addresses = await self.top_addressing.fetch_ns_addr()
        if addresses and addresses != self.name_srv_addr:
            self.remoting_client.update_name_server_address_list(addresses.split(";"))
            self.name_srv_addr = addresses

    @property
    def pop(self) -> PopClientAPI:
        """The calls that Pop needs, imported when one is first made."""
        if self._pop is None:
            from mqlab.client.pop_client_api import PopClientAPI

            self._pop = PopClientAPI(self.remoting_client)
        return self._pop

    def shutdown(self) -> None:
        """Close all connections; calls that wait for an answer fail."""
        self.remoting_client.shutdown()

    def _address(self, address: str) -> str:
        if not self.config.vip_channel_enabled:
            return address
        ip, _, port = address.rpartition(":")
        if not port.isdecimal():
            return address
        return f"{ip}:{int(port) - 2}"

    async def _call(self, address: str, request: RemotingCommand, timeout_ms: int) -> RemotingCommand:
        response = await self.remoting_client.invoke_sync(self._address(address), request, timeout_ms)
        if response.code != 0:
            raise MQBrokerException(response.code, response.remark or "", address)
        return response

    # -- the name server --------------------------------------------------------------------------------------------

    async def get_topic_route_info_from_name_server(self, topic: str, timeout_ms: int) -> TopicRouteData:
        """The route of a topic; MQClientException with TOPIC_NOT_EXIST when there is none."""
        if self._first_fetch is not None:
            await self._first_fetch.join()
            self._first_fetch = None
        request = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic))
        response = await self.remoting_client.invoke_sync(None, request, timeout_ms)
        if response.code != 0 or response.body is None:
            raise MQClientException(response.remark or "", response.code)
        return _body(TopicRouteData, response, "name server")

    # -- the client's own life --------------------------------------------------------------------------------------

    async def send_heartbeat(self, address: str, heartbeat: HeartbeatData, timeout_ms: int) -> int:
        """Tell a broker who is here; the version of the broker."""
        request = RemotingCommand.request(RequestCode.HEART_BEAT, HeartbeatRequestHeader(), heartbeat.encode())
        return (await self._call(address, request, timeout_ms)).version

    async def send_heartbeat_v2(self, address: str, heartbeat: HeartbeatData, timeout_ms: int) -> HeartbeatV2Result:
        """Tell a broker who is here, and hear whether its fingerprint of the groups was another one before."""
        request = RemotingCommand.request(RequestCode.HEART_BEAT, HeartbeatRequestHeader(), heartbeat.encode())
        response = await self._call(address, request, timeout_ms)
        return HeartbeatV2Result(
            response.version,
            response.ext_field(IS_SUB_CHANGE) == "true",
            response.ext_field(IS_SUPPORT_HEART_BEAT_V2) == "true",
        )

    async def unregister_client(
        self, address: str, client_id: str, producer_group: str | None, consumer_group: str | None, timeout_ms: int
    ) -> None:
        """Tell a broker that a group of this client has gone."""
        header = UnregisterClientRequestHeader(client_id, producer_group, consumer_group)
        await self._call(address, RemotingCommand.request(RequestCode.UNREGISTER_CLIENT, header), timeout_ms)

    async def check_client_in_broker(
        self, address: str, group: str, client_id: str, subscription: SubscriptionData, timeout_ms: int
    ) -> None:
        """Ask a broker whether it can filter as this subscription wants; MQClientException says why not."""
        body = CheckClientRequestBody(client_id, group, subscription).encode()
        request = RemotingCommand.request(RequestCode.CHECK_CLIENT_CONFIG, None, body)
        response = await self.remoting_client.invoke_sync(self._address(address), request, timeout_ms)
        if response.code != 0:
            raise MQClientException(response.remark or "", response.code)

    async def get_consumer_id_list_by_group(
        self, address: str, consumer_group: str, broker_name: str | None, timeout_ms: int
    ) -> list[str]:
        """The client ids of all members of a group that are online."""
        header = GetConsumerListByGroupRequestHeader(consumer_group, broker_name)
        request = RemotingCommand.request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, header)
        response = await self._call(address, request, timeout_ms)
        return _body(GetConsumerListByGroupResponseBody, response, address).consumer_id_list

    # -- sending ----------------------------------------------------------------------------------------------------

    def send_request(self, message: Message, header: SendMessageRequestHeaderV2) -> RemotingCommand:
        """The request that sends a message: SEND_MESSAGE_V2, or the code of its own that a batch or a reply has."""
        if message.properties.get("MSG_TYPE") == REPLY_MESSAGE_FLAG:
            return RemotingCommand(SEND_REPLY_MESSAGE_V2, header, message.body)
        return RemotingCommand(SEND_BATCH_MESSAGE if header.batch else SEND_MESSAGE_V2, header, message.body)

    def send_message(
        self, address: str, message: Message, header: SendMessageRequestHeaderV2, timeout_ms: int
    ) -> Coroutine[Any, Any, RemotingCommand]:
        """Send a message and wait for the broker's answer, which is for `process_send_response`."""
        return self.remoting_client.invoke_sync(self._address(address), self.send_request(message, header), timeout_ms)

    def send_message_oneway(
        self, address: str, message: Message, header: SendMessageRequestHeaderV2, timeout_ms: int
    ) -> None:
        """Send a message and hear nothing of it."""
        self.remoting_client.invoke_oneway(self._address(address), self.send_request(message, header), timeout_ms)

    def send_message_async(
        self, address: str, request: RemotingCommand, timeout_ms: int, callback: InvokeCallback
    ) -> None:
        """Send a message; `callback(response_future)` is called once."""
        self.remoting_client.invoke_async(self._address(address), request, timeout_ms, callback)

    def process_send_response(
        self, queue: MessageQueue, message: Message, response: RemotingCommand, address: str
    ) -> SendResult:
        """The result in the answer to a send to this queue; MQBrokerException when the message was not stored."""
        status = SEND_STATUS.get(response.code)
        if status is None:
            raise MQBrokerException(response.code, response.remark or "", address)
        header = response.header
        if type(header) is not SendMessageResponseHeader:
            header = _header(SendMessageResponseHeader, response, address)
        unique = header.batch_uniq_id or message.properties.get("UNIQ_KEY") or ""
        if isinstance(message, MessageBatch) and header.batch_uniq_id is None:
            unique = ",".join(inner.properties.get("UNIQ_KEY", "") for inner in message.messages)
        return SendResult(
            status,
            unique,
            header.msg_id,
            queue if header.queue_id == queue.queue_id else queue._replace(queue_id=header.queue_id),
            header.queue_offset,
            header.transaction_id,
            response.ext_field("MSG_REGION") or "DefaultRegion",
            response.ext_field("TRACE_ON") != "false",
            header.recall_handle,
        )

    async def consumer_send_message_back(
        self,
        address: str,
        broker_name: str | None,
        message: MessageExt,
        consumer_group: str,
        delay_level: int,
        timeout_ms: int,
        max_consume_retry_times: int,
    ) -> None:
        """Give a message back to its broker, which delivers it again later."""
        header = ConsumerSendMsgBackRequestHeader(
            offset=message.commit_log_offset,
            group=consumer_group,
            delay_level=delay_level,
            origin_msg_id=message.msg_id,
            origin_topic=message.topic,
            max_reconsume_times=max_consume_retry_times,
            bname=broker_name,
        )
        await self._call(address, RemotingCommand.request(RequestCode.CONSUMER_SEND_MSG_BACK, header), timeout_ms)

    def end_transaction_oneway(
        self, address: str | None, header: EndTransactionRequestHeader, remark: str | None, timeout_ms: int
    ) -> None:
        """Tell a broker how a transaction ended, and hear nothing of it."""
        request = RemotingCommand.request(RequestCode.END_TRANSACTION, header)
        request.remark = remark
        self.remoting_client.invoke_oneway(self._address(address) if address else None, request, timeout_ms)

    # -- pulling ----------------------------------------------------------------------------------------------------

    def pull_message_async(
        self, address: str, header: PullMessageRequestHeader, timeout_ms: int, callback: InvokeCallback
    ) -> None:
        """Ask a broker for messages; `callback(response_future)` is called once."""
        request = RemotingCommand.request(RequestCode.PULL_MESSAGE, header)
        self.remoting_client.invoke_async(self._address(address), request, timeout_ms, callback)

    async def pull_message_sync(
        self, address: str, header: PullMessageRequestHeader, timeout_ms: int
    ) -> RemotingCommand:
        """Ask a broker for messages and wait for its answer, whatever its code."""
        lite = PullSysFlag.has_lite_pull(header.sys_flag)
        code = RequestCode.LITE_PULL_MESSAGE if lite else RequestCode.PULL_MESSAGE
        request = RemotingCommand.request(code, header)
        return await self.remoting_client.invoke_sync(self._address(address), request, timeout_ms)

    # -- locks of queues --------------------------------------------------------------------------------------------

    async def lock_batch_mq(
        self, address: str, consumer_group: str, client_id: str, queues: list[MessageQueue], timeout_ms: int
    ) -> list[MessageQueue]:
        """Ask a broker for the locks of its queues; those that it gave."""
        body = LockBatchRequestBody(consumer_group, client_id, queues).encode()
        response = await self._call(address, RemotingCommand.request(RequestCode.LOCK_BATCH_MQ, None, body), timeout_ms)
        return _body(LockBatchResponseBody, response, address).lock_ok_mq_set

    async def unlock_batch_mq(
        self,
        address: str,
        consumer_group: str,
        client_id: str,
        queues: list[MessageQueue],
        timeout_ms: int,
        oneway: bool,
    ) -> None:
        """Give locks back, with or without waiting for the receipt."""
        body = UnlockBatchRequestBody(consumer_group, client_id, queues).encode()
        request = RemotingCommand.request(RequestCode.UNLOCK_BATCH_MQ, None, body)
        if oneway:
            self.remoting_client.invoke_oneway(self._address(address), request, timeout_ms)
        else:
            await self._call(address, request, timeout_ms)

    # -- offsets ----------------------------------------------------------------------------------------------------

    async def query_consumer_offset(
        self, address: str, header: QueryConsumerOffsetRequestHeader, timeout_ms: int
    ) -> int:
        """How far a group has consumed a queue; OffsetNotFoundException when the broker has no record of it."""
        request = RemotingCommand.request(RequestCode.QUERY_CONSUMER_OFFSET, header)
        response = await self.remoting_client.invoke_sync(self._address(address), request, timeout_ms)
        if response.code == ResponseCode.QUERY_NOT_FOUND:
            raise OffsetNotFoundException(response.code, response.remark or "", address)
        if response.code != 0:
            raise MQBrokerException(response.code, response.remark or "", address)
        return _header(QueryConsumerOffsetResponseHeader, response, address).offset

    async def update_consumer_offset(
        self, address: str, header: UpdateConsumerOffsetRequestHeader, timeout_ms: int
    ) -> None:
        """Tell a broker how far a group has consumed a queue, and wait for the receipt."""
        await self._call(address, RemotingCommand.request(RequestCode.UPDATE_CONSUMER_OFFSET, header), timeout_ms)

    def update_consumer_offset_oneway(
        self, address: str, header: UpdateConsumerOffsetRequestHeader, timeout_ms: int
    ) -> None:
        """The same without a receipt."""
        request = RemotingCommand.request(RequestCode.UPDATE_CONSUMER_OFFSET, header)
        self.remoting_client.invoke_oneway(self._address(address), request, timeout_ms)

    async def get_max_offset(self, address: str, queue: MessageQueue, timeout_ms: int) -> int:
        """One more than the offset of the last message of a queue."""
        header = GetMaxOffsetRequestHeader(queue.topic, queue.queue_id, bname=queue.broker_name)
        response = await self._call(address, RemotingCommand.request(RequestCode.GET_MAX_OFFSET, header), timeout_ms)
        return _header(GetMaxOffsetResponseHeader, response, address).offset

    async def get_min_offset(self, address: str, queue: MessageQueue, timeout_ms: int) -> int:
        """The offset of the oldest message of a queue."""
        header = GetMinOffsetRequestHeader(queue.topic, queue.queue_id, bname=queue.broker_name)
        response = await self._call(address, RemotingCommand.request(RequestCode.GET_MIN_OFFSET, header), timeout_ms)
        return _header(GetMinOffsetResponseHeader, response, address).offset

    async def search_offset(self, address: str, queue: MessageQueue, timestamp_ms: int, timeout_ms: int) -> int:
        """The offset that was stored at a time, in ms since 1970."""
        header = SearchOffsetRequestHeader(queue.topic, queue.queue_id, timestamp_ms, bname=queue.broker_name)
        request = RemotingCommand.request(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)
        response = await self._call(address, request, timeout_ms)
        return _header(SearchOffsetResponseHeader, response, address).offset

    async def recall_message(self, address: str, header: RecallMessageRequestHeader, timeout_ms: int) -> str:
        """Take a timer message back; its unique key."""
        response = await self._call(address, RemotingCommand.request(RequestCode.RECALL_MESSAGE, header), timeout_ms)
        return _header(RecallMessageResponseHeader, response, address).msg_id

    async def get_earliest_msg_storetime(self, address: str, queue: MessageQueue, timeout_ms: int) -> int:
        """When the oldest message of a queue was stored, in ms since 1970; -1 for an empty queue."""
        header = GetEarliestMsgStoretimeRequestHeader(queue.topic, queue.queue_id, bname=queue.broker_name)
        request = RemotingCommand.request(RequestCode.GET_EARLIEST_MSG_STORETIME, header)
        response = await self._call(address, request, timeout_ms)
        return _header(GetEarliestMsgStoretimeResponseHeader, response, address).timestamp
