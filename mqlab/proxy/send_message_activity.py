"""A client's message on its way to a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.producer.send_result import SendStatus
from mqlab.protocol.hashing import guava_consistent_hash, java_string_hash
from mqlab.protocol.headers.send import SendMessageRequestHeaderV2
from mqlab.protocol.message import MessageConst
from mqlab.protocol.properties import NEW_MAP_CAPACITY, encode_properties
from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.protocol.topics import AUTO_CREATE_TOPIC_KEY_TOPIC, is_dlq_topic, is_retry_topic
from mqlab.protocol.v2.definition import Code, Encoding, MessageType, Status
from mqlab.protocol.v2.service import SendMessageRequest, SendMessageResponse, SendResultEntry
from mqlab.proxy.cluster_metadata_service import DELAY, FIFO, MIXED, NORMAL, UNSPECIFIED
from mqlab.proxy.errors import GrpcProxyException
from mqlab.proxy.grpc_converter import stored_message
from mqlab.proxy.grpc_validator import validate_message, validate_topic
from mqlab.proxy.response_builder import OK, status_of_all

if TYPE_CHECKING:
    from mqlab.client.producer.send_result import SendResult
    from mqlab.protocol.message import Message
    from mqlab.protocol.v2 import definition as v2
    from mqlab.proxy.cluster_message_service import ClusterMessageService
    from mqlab.proxy.cluster_metadata_service import ClusterMetadataService
    from mqlab.proxy.message_queue_selector import AddressableMessageQueue, MessageQueueView
    from mqlab.proxy.proxy_config import ProxyConfig
    from mqlab.proxy.proxy_context import ProxyContext
    from mqlab.proxy.topic_route_service import TopicRouteService
    from mqlab.sim import Node

DEFAULT_TOPIC_QUEUE_NUMS = 4

_FAILED = {
    SendStatus.FLUSH_DISK_TIMEOUT: Code.MASTER_PERSISTENCE_TIMEOUT,
    SendStatus.FLUSH_SLAVE_TIMEOUT: Code.SLAVE_PERSISTENCE_TIMEOUT,
    SendStatus.SLAVE_NOT_AVAILABLE: Code.HA_NOT_AVAILABLE,
}


class SendMessageActivity:
    """Answers SendMessage (org.apache.rocketmq.proxy.grpc.v2.producer.SendMessageActivity and ProducerProcessor).

    The proxy chooses the queue, whatever queue the client had in mind: by the message group, so that a group keeps its
    order, else in turn. Differs from RocketMQ: one message in a request, as all clients send it; transactions are
    refused as not implemented.
    """

    def __init__(
        self,
        node: Node,
        config: ProxyConfig,
        routes: TopicRouteService,
        metadata: ClusterMetadataService,
        messages: ClusterMessageService,
    ) -> None:
        self._node = node
        self._config = config
        self._routes = routes
        self._metadata = metadata
        self._messages = messages

    async def send_message(self, ctx: ProxyContext, request: SendMessageRequest) -> SendMessageResponse:
        """Check a message, choose its queue, and send it there."""
        if len(request.messages) != 1:
            raise GrpcProxyException(
                Code.MESSAGE_CORRUPTED, "no message to send" if not request.messages else "more than one message"
            )
        (message,) = request.messages
        validate_topic(message.topic)
        if message.system_properties.message_type == MessageType.TRANSACTION:
            raise GrpcProxyException(Code.NOT_IMPLEMENTED, "transactional messages are not served")
        now_ms = self._node.now_ms()
        validate_message(message, self._config, now_ms)
        stored = stored_message(message, self._config, ctx.remote_address, now_ms)
        await self._validate_type(stored)
        queue = _select(await self._routes.view(stored.topic), message)
        if queue is None:
            raise GrpcProxyException(Code.FORBIDDEN, "no writable queue")
        header = self._header(stored, message, queue.message_queue.queue_id)
        entry = _entry(await self._messages.send_message(queue, stored, header))
        return SendMessageResponse(status_of_all([entry.status], "send status is empty"), (entry,))

    async def _validate_type(self, stored: Message) -> None:
        """Refuse a message of a kind that its topic was not made for."""
        topic = stored.topic
        if not self._config.enable_topic_message_type_check or is_retry_topic(topic) or is_dlq_topic(topic):
            return
        expected, actual = await self._metadata.topic_message_type(topic), _type_of(stored)
        if actual == UNSPECIFIED or expected not in (actual, MIXED):
            raise GrpcProxyException(
                Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
                f"TopicMessageType validate failed, the expected type is {expected}, but actual type is {actual}",
            )

    def _header(self, stored: Message, message: v2.Message, queue_id: int) -> SendMessageRequestHeaderV2:
        packed = message.system_properties.body_encoding == Encoding.GZIP
        return SendMessageRequestHeaderV2(
            producer_group=stored.topic,
            topic=stored.topic,
            default_topic=AUTO_CREATE_TOPIC_KEY_TOPIC,
            default_topic_queue_nums=DEFAULT_TOPIC_QUEUE_NUMS,
            queue_id=queue_id,
            sys_flag=MessageSysFlag.COMPRESSED if packed else 0,
            born_timestamp=int(stored.properties[MessageConst.BORN_TIMESTAMP]),
            flag=stored.flag,
            properties=encode_properties(stored.properties, NEW_MAP_CAPACITY),
            reconsume_times=0,
            unit_mode=False,
            batch=False,
        )


def _type_of(stored: Message) -> str:
    if MessageConst.TIMER_DELIVER_MS in stored.properties:
        return DELAY
    return FIFO if MessageConst.SHARDING_KEY in stored.properties else NORMAL


def _select(view: MessageQueueView, message: v2.Message) -> AddressableMessageQueue | None:
    selector = view.write_selector
    group = message.system_properties.message_group
    if not group or not selector.queues:
        return selector.select_one(only_broker=False)
    return selector.queues[guava_consistent_hash(java_string_hash(group), len(selector.queues))]


def _entry(result: SendResult) -> SendResultEntry:
    if result.send_status is not SendStatus.SEND_OK:
        code = _FAILED.get(result.send_status, Code.INTERNAL_SERVER_ERROR)
        return SendResultEntry(Status(code, f"send message failed, sendStatus={result.send_status.value}"))
    return SendResultEntry(
        OK, result.msg_id, result.transaction_id or "", result.queue_offset, result.recall_handle or ""
    )
