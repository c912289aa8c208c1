"""A client's message on its way to a broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mqlab.client.producer.send_result import SendStatus
from mqlab.protocol.batch import MessageBatch
from mqlab.protocol.hashing import guava_consistent_hash, java_string_hash
from mqlab.protocol.headers.send import SendMessageRequestHeaderV2
from mqlab.protocol.message import MessageConst
from mqlab.protocol.properties import NEW_MAP_CAPACITY, encode_properties
from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.protocol.topics import AUTO_CREATE_TOPIC_KEY_TOPIC, is_dlq_topic, is_retry_topic
from mqlab.protocol.v2.definition import Code, Encoding, MessageType, Status
from mqlab.protocol.v2.service import SendMessageRequest, SendMessageResponse, SendResultEntry
from mqlab.proxy.cluster_metadata_service import DELAY, FIFO, NORMAL, TRANSACTION, validate_topic_message_type
from mqlab.proxy.errors import GrpcProxyException, ProxyException
from mqlab.proxy.grpc_converter import stored_message
from mqlab.proxy.grpc_validator import validate_message, validate_topic
from mqlab.proxy.response_builder import OK, status_of_all

if TYPE_CHECKING:
    from mqlab.client.producer.send_result import SendResult
    from mqlab.protocol.message import Message
    from mqlab.protocol.v2 import definition as v2
    from mqlab.proxy.cluster_message_service import ClusterMessageService
    from mqlab.proxy.cluster_metadata_service import ClusterMetadataService
    from mqlab.proxy.cluster_transaction_service import ClusterTransactionService
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
    order, else in turn. Several messages in one request become one batch of the broker, in a queue whose turn it is
    whatever their message groups are; they have one result together. No official client sends them so.
    """

    def __init__(
        self,
        node: Node,
        config: ProxyConfig,
        routes: TopicRouteService,
        metadata: ClusterMetadataService,
        messages: ClusterMessageService,
        transactions: Callable[[], ClusterTransactionService],
    ) -> None:
        self._node = node
        self._config = config
        self._routes = routes
        self._metadata = metadata
        self._messages = messages
        self._transactions = transactions

    async def send_message(self, ctx: ProxyContext, request: SendMessageRequest) -> SendMessageResponse:
        """Check a message, choose its queue, and send it there; where a half message lies is noted.

        Java: org.apache.rocketmq.proxy.grpc.v2.producer.SendMessageActivity.sendMessage and
        org.apache.rocketmq.proxy.processor.ProducerProcessor.sendMessage.
        """
        if not request.messages:
            raise GrpcProxyException(Code.MESSAGE_CORRUPTED, "no message to send")
        message = request.messages[0]
        validate_topic(message.topic)
        stored = [self._stored(ctx, each, message.topic) for each in request.messages]
        topic = stored[0].topic
        await self._validate_type(stored[0])
        group = message.system_properties.message_group if len(stored) == 1 else None
        queue = _select(await self._routes.view(topic), group)
        if queue is None:
            raise ProxyException(Code.FORBIDDEN, "no writable queue")
        header = self._header(stored, message, queue.message_queue.queue_id)
        sent = await self._messages.send_message(
            queue, stored[0] if len(stored) == 1 else MessageBatch.generate_from_list(stored), header
        )
        is_half = header.sys_flag & MessageSysFlag.TRANSACTION_PREPARED
        if is_half and sent.send_status is SendStatus.SEND_OK and sent.transaction_id:
            self._transactions().half_message_sent(topic, queue.message_queue.broker_name, sent)
        entry = _entry(sent)
        return SendMessageResponse(status_of_all([entry.status], "send status is empty"), (entry,))

    def _stored(self, ctx: ProxyContext, message: v2.Message, topic: v2.Resource) -> Message:
        if message.topic != topic:
            raise GrpcProxyException(Code.MESSAGE_CORRUPTED, "topic in message is not same")
        now_ms = self._node.now_ms()
        validate_message(message, self._config, now_ms)
        return stored_message(message, self._config, ctx.remote_address, now_ms)

    async def _validate_type(self, stored: Message) -> None:
        """Refuse a message of a kind that its topic was not made for."""
        topic = stored.topic
        if not self._config.enable_topic_message_type_check or is_retry_topic(topic) or is_dlq_topic(topic):
            return
        validate_topic_message_type(await self._metadata.topic_message_type(topic), _type_of(stored))

    def _header(self, messages: list[Message], message: v2.Message, queue_id: int) -> SendMessageRequestHeaderV2:
        stored, system = messages[0], message.system_properties
        packed = MessageSysFlag.COMPRESSED if system.body_encoding == Encoding.GZIP else 0
        half = MessageSysFlag.TRANSACTION_PREPARED if system.message_type == MessageType.TRANSACTION else 0
        return SendMessageRequestHeaderV2(
            producer_group=stored.topic,
            topic=stored.topic,
            default_topic=AUTO_CREATE_TOPIC_KEY_TOPIC,
            default_topic_queue_nums=DEFAULT_TOPIC_QUEUE_NUMS,
            queue_id=queue_id,
            sys_flag=packed | half,
            born_timestamp=int(stored.properties[MessageConst.BORN_TIMESTAMP]),
            flag=stored.flag,
            properties=encode_properties(stored.properties, NEW_MAP_CAPACITY),
            reconsume_times=0,
            unit_mode=False,
            batch=len(messages) > 1,
        )


def _type_of(stored: Message) -> str:
    if stored.properties.get(MessageConst.TRANSACTION_PREPARED) == "true":
        return TRANSACTION
    if MessageConst.TIMER_DELIVER_MS in stored.properties:
        return DELAY
    return FIFO if MessageConst.SHARDING_KEY in stored.properties else NORMAL


def _select(view: MessageQueueView, group: str | None) -> AddressableMessageQueue | None:
    selector = view.write_selector
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
