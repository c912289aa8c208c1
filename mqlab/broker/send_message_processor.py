"""Taking in messages from producers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from mqlab.broker.consumer_send_msg_back import ConsumerSendMsgBack
from mqlab.broker.errors import FAQ, RequestError, rejected
from mqlab.broker.parked_message import delay_level_of
from mqlab.broker.put_message_answers import STORED_CODES, WhenPut, answer_when_put, refusal
from mqlab.broker.send_checks import check_message
from mqlab.broker.topic_attributes import is_batch_cq
from mqlab.protocol.batch import decode_batch
from mqlab.protocol.codes import V3_4_9, RequestCode, ResponseCode
from mqlab.protocol.command import RESPONSE_FLAG, RemotingCommand
from mqlab.protocol.headers import SendMessageResponseHeader, parse_send_header
from mqlab.protocol.message_id import UniqueKeyGenerator
from mqlab.protocol.properties import DECODED_MAP_CAPACITY, decode_properties, encode_properties
from mqlab.protocol.recall_message_handle import RecallMessageHandle
from mqlab.protocol.sysflag import MessageSysFlag, PermName
from mqlab.protocol.topic_config import MULTI_TAG
from mqlab.protocol.topics import (
    RETRY_GROUP_TOPIC_PREFIX,
    RMQ_SYS_SCHEDULE_TOPIC,
    RMQ_SYS_TRANS_HALF_TOPIC,
    TIMER_TOPIC,
    TOPIC_MAX_LENGTH,
    dlq_topic,
)
from mqlab.remoting import Channel, RequestProcessor
from mqlab.store import PUT_OK, BrokerRole, MessageExtBrokerInner, PutMessageResult
from mqlab.trace.events.broker import MessageSendAnswered, MessageSendReceived

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.protocol.headers.send import SendMessageRequestHeader, SendMessageRequestHeaderV2
    from mqlab.protocol.topic_config import TopicConfig

    SendHeader: TypeAlias = SendMessageRequestHeader | SendMessageRequestHeaderV2


CONSUMER_SEND_MSG_BACK = int(RequestCode.CONSUMER_SEND_MSG_BACK)
SEND_BATCH_MESSAGE = int(RequestCode.SEND_BATCH_MESSAGE)
_HELD_BACK = frozenset({RMQ_SYS_SCHEDULE_TOPIC, TIMER_TOPIC, RMQ_SYS_TRANS_HALF_TOPIC})
SUCCESS = int(ResponseCode.SUCCESS)

THE_ANSWER = "the answer to a send"
NO_BODY = (
    'java.lang.NullPointerException: Cannot read the array length because the return value of '
    '"org.apache.rocketmq.remoting.protocol.RemotingCommand.getBody()" is null, '
    "org.apache.rocketmq.broker.processor.AbstractSendMessageProcessor.buildMsgContext(AbstractSendMessageProcessor.java:361)"
)
"""RocketMQ itself stumbles over a message without a body, and this is what its producer gets to read."""


@lru_cache(maxsize=64)
def answer_fields(region_id: str, trace_on: bool) -> Mapping[str, str]:
    """What every answer to a send says, and every message that is sent gets as properties; the settings may change."""
    return {"MSG_REGION": region_id, "TRACE_ON": "true" if trace_on else "false"}


class SendMessageProcessor(RequestProcessor):
    """SEND_MESSAGE, SEND_MESSAGE_V2, SEND_BATCH_MESSAGE and CONSUMER_SEND_MSG_BACK.

    Java: org.apache.rocketmq.broker.processor.SendMessageProcessor. A thread of the send pool ends with the append;
    what the store still has to wait for (a flush, a slave) is a future.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._broker = broker
        self._node = broker.node
        self._config = broker.broker_config
        self._store = broker.message_store
        self._topics = broker.topic_config_manager
        self._send_back = ConsumerSendMsgBack(broker)
        spec = broker.node.spec
        self._unique_keys = UniqueKeyGenerator(spec.ip, spec.pid, spec.salt)

    def reject_request(self) -> str | None:
        """Refuse everything while the page cache is busy, and on a slave (the text is remoting's own).

        Java: org.apache.rocketmq.broker.processor.SendMessageProcessor.rejectRequest.
        """
        return "" if self._store.is_os_page_cache_busy() or self._store.config.broker_role is BrokerRole.SLAVE else None

    def process_request(self, channel: Channel, request: RemotingCommand) -> WhenPut:
        """Check, store and answer."""
        if request.code == CONSUMER_SEND_MSG_BACK:
            return self._send_back.process_request(channel, request)
        if not request.body:
            return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, NO_BODY)
        header = parse_send_header(request)
        properties = decode_properties(header.properties)
        if self._node.hooks.on:
            self._emit_received(channel, header, properties, request)
        try:
            start_ms = self._config.start_accept_send_request_time_stamp
            if start_ms and self._node.now_ms() < start_ms:
                raise RequestError(ResponseCode.SYSTEM_ERROR, f"broker unable to service, until {start_ms}")
            topic_config = check_message(self._config, self._broker.broker_ip, self._topics, header, channel)
            if header.batch:
                return self._put_batch(channel, request, header, properties, topic_config)
            return self._put_single(channel, request, header, properties, topic_config)
        except RequestError as error:
            return self._refused(request, error, channel)

    def _emit_received(
        self, channel: Channel, header: SendHeader, properties: dict[str, str], request: RemotingCommand
    ) -> None:
        self._node.hooks.emit(
            MessageSendReceived(
                header.topic,
                header.queue_id,
                header.producer_group,
                properties.get("UNIQ_KEY", ""),
                len(request.body or b""),
                bool(header.batch),
                request.opaque,
                channel.remote_address,
            )
        )

    # -- one message ------------------------------------------------------------------------------------------------

    def _put_single(
        self,
        channel: Channel,
        request: RemotingCommand,
        header: SendHeader,
        properties: dict[str, str],
        topic_config: TopicConfig,
    ) -> WhenPut:
        topic = header.topic
        queue_id = header.queue_id
        properties.pop("POP_CK", None)
        if topic.startswith(RETRY_GROUP_TOPIC_PREFIX) and self._belongs_to_dead_letters(request, header, properties):
            topic = dlq_topic(topic[len(RETRY_GROUP_TOPIC_PREFIX) :])
            queue_id = 0
            topic_config = self._topics.create_topic_in_send_message_back_method(topic, 1, PermName.READ_WRITE)
        inner = self._inner(channel, request, header, properties, topic_config, topic, queue_id)
        if "TRAN_MSG" in properties and self._is_half_message(inner):
            if self._config.reject_transaction_message:
                remark = f"the broker[{self._broker.broker_ip}] sending transaction message is forbidden"
                raise RequestError(ResponseCode.NO_PERMISSION, remark)
            outcome = self._broker.prepare_message(inner)
        else:
            outcome = self._store.put_message(inner)
        if type(outcome) is PutMessageResult:
            return self._answer(outcome, request, inner)
        return answer_when_put(outcome, THE_ANSWER, self._answer, request, inner)

    @staticmethod
    def _is_half_message(inner: MessageExtBrokerInner) -> bool:
        """Is it a message of a transaction, and not one that a consumer gives back to be delivered once more?"""
        delayed_again = inner.reconsume_times > 0 and delay_level_of(inner) > 0
        return inner.properties["TRAN_MSG"].lower() == "true" and not delayed_again

    def _inner(
        self,
        channel: Channel,
        request: RemotingCommand,
        header: SendHeader,
        properties: dict[str, str],
        topic_config: TopicConfig,
        topic: str,
        queue_id: int,
    ) -> MessageExtBrokerInner:
        """The message as it goes to the store, with the properties that the broker adds."""
        config = self._config
        if queue_id < 0:
            queue_id = self._node.choose("random-queue", topic_config.write_queue_nums)
        properties.update(answer_fields(config.region_id, config.trace_on))
        if not properties.get("UNIQ_KEY"):
            properties["UNIQ_KEY"] = self._unique_keys.next(self._node.now_ms())
        properties["CLUSTER"] = config.broker_cluster_name
        sys_flag = header.sys_flag
        if topic_config.topic_filter_type == MULTI_TAG:
            sys_flag |= MessageSysFlag.MULTI_TAGS
        # By position: Python would make a dict of the names for each message.
        return MessageExtBrokerInner(
            topic,
            request.body or b"",
            queue_id,
            header.flag,
            sys_flag,
            properties,
            encode_properties(properties, DECODED_MAP_CAPACITY),
            header.born_timestamp,
            channel.remote_address,
            self._broker.store_host,
            header.reconsume_times or 0,
        )

    def _belongs_to_dead_letters(
        self, request: RemotingCommand, header: SendHeader, properties: dict[str, str]
    ) -> bool:
        """Has a message that a consumer sends to its own retry topic used up its tries?

        True as well while the group holds locks on queues: an ordered consumer sends a message there only to be rid
        of it.

        Java: org.apache.rocketmq.broker.processor.SendMessageProcessor.handleRetryAndDLQ.
        """
        group = header.topic[len(RETRY_GROUP_TOPIC_PREFIX) :]
        group_config = self._broker.subscription_group_manager.find_subscription_group_config(group)
        if group_config is None:
            raise RequestError(
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"subscription group not exist, {group} \n{FAQ}"
            )
        most = group_config.retry_max_times
        if request.version >= V3_4_9 and header.max_reconsume_times is not None:
            most = header.max_reconsume_times
        is_ordered = not self._broker.rebalance_lock_manager.is_lock_all_expired(group)
        if (header.reconsume_times or 0) <= most and not is_ordered:
            return False
        properties["DELAY"] = "-1"
        return True

    # -- a batch ----------------------------------------------------------------------------------------------------

    def _put_batch(
        self,
        channel: Channel,
        request: RemotingCommand,
        header: SendHeader,
        properties: dict[str, str],
        topic_config: TopicConfig,
    ) -> WhenPut:
        topic = header.topic
        if len(topic) > TOPIC_MAX_LENGTH:
            raise RequestError(ResponseCode.MESSAGE_ILLEGAL, f"message topic length too long {len(topic)}")
        if topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            raise RequestError(ResponseCode.MESSAGE_ILLEGAL, f"batch request does not support retry group {topic}")
        stays_whole = is_batch_cq(topic_config.attributes) and "UNIQ_KEY" in properties
        inner = self._inner(channel, request, header, properties, topic_config, topic, header.queue_id)
        if not stays_whole:
            return answer_when_put(self._store.put_messages(inner), THE_ANSWER, self._answer, request, inner)
        inner.sys_flag |= MessageSysFlag.NEED_UNWRAP | MessageSysFlag.INNER_BATCH
        properties["INNER_NUM"] = str(len(decode_batch(inner.body)))
        inner.properties_string = encode_properties(properties, DECODED_MAP_CAPACITY)
        outcome = self._store.put_message(inner)
        return answer_when_put(outcome, THE_ANSWER, self._answer, request, inner, properties["UNIQ_KEY"])

    # -- answers ----------------------------------------------------------------------------------------------------

    def _answer(
        self,
        result: PutMessageResult,
        request: RemotingCommand,
        inner: MessageExtBrokerInner,
        batch_uniq_id: str | None = None,
    ) -> RemotingCommand:
        topic, queue_id = inner.topic, inner.queue_id
        recall_handle = None
        if topic in _HELD_BACK and "REAL_TOPIC" in inner.properties:
            # The producer of a held message is told the queue that it chose, but the offset in the topic that holds it.
            if topic == TIMER_TOPIC:
                recall_handle = self._recall_handle(request, inner)
            topic, queue_id = inner.properties["REAL_TOPIC"], int(inner.properties["REAL_QID"])
        unique_key = inner.properties["UNIQ_KEY"]
        code = SUCCESS if result.status is PUT_OK else STORED_CODES.get(result.status)
        if code is None:
            code, remark = refusal(result, self._broker.message_store_config, self._broker.describe_disk_use())
            response = RemotingCommand.response(code, remark)
        else:
            header = SendMessageResponseHeader(
                result.msg_id, queue_id, result.logics_offset, unique_key, batch_uniq_id, recall_handle
            )
            response = RemotingCommand(code, header, None, RESPONSE_FLAG)
            self._broker.stats.put(inner.topic, result.msg_num, result.wrote_bytes)
        response.add_ext_fields(answer_fields(self._config.region_id, self._config.trace_on))
        if self._node.hooks.on:
            offset = result.logics_offset if result.is_stored else -1
            self._node.hooks.emit(
                MessageSendAnswered(
                    topic,
                    queue_id,
                    offset,
                    unique_key,
                    result.status.value,
                    int(code),
                    request.opaque,
                    inner.born_host,
                )
            )
        return response

    def _recall_handle(self, request: RemotingCommand, inner: MessageExtBrokerInner) -> str | None:
        """What takes a timer message back; a message that goes to a retry topic has none.

        Java: org.apache.rocketmq.broker.processor.SendMessageProcessor.attachRecallHandle.
        """
        topic, slot_ms = inner.properties["REAL_TOPIC"], inner.properties.get("TIMER_OUT_MS")
        if slot_ms is None or request.code == SEND_BATCH_MESSAGE or topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
            return None
        # One ms into the slot: as a time of delivery it leads to the same slot again.
        moment_ms = str(int(slot_ms) + 1)
        unique_key = inner.properties["UNIQ_KEY"]
        return RecallMessageHandle(topic, self._config.broker_name, moment_ms, unique_key).encode()

    def _refused(self, request: RemotingCommand, error: RequestError, channel: Channel) -> RemotingCommand:
        response = rejected(self._node.hooks, channel, request, error)
        response.add_ext_fields(answer_fields(self._config.region_id, self._config.trace_on))
        return response
