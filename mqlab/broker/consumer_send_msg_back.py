"""Taking back messages that a consumer could not consume: into the group's retry topic, or to its dead letters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.errors import FAQ, RequestError, rejected
from mqlab.broker.put_message_answers import STORED_CODES, WhenPut, answer_when_put
from mqlab.protocol.codes import V3_4_9, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.headers import ConsumerSendMsgBackRequestHeader
from mqlab.protocol.message import MessageExt
from mqlab.protocol.properties import DECODED_MAP_CAPACITY, encode_properties
from mqlab.protocol.sysflag import PermName, TopicSysFlag
from mqlab.protocol.topics import dlq_topic, retry_topic
from mqlab.store import MessageExtBrokerInner, PutMessageResult
from mqlab.trace.events.broker import SendBackStored

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.protocol.topic_config import SubscriptionGroupConfig
    from mqlab.remoting import Channel

FIRST_RETRY_LEVEL = 3
DLQ_NUMS_PER_GROUP = 1


class ConsumerSendMsgBack:
    """CONSUMER_SEND_MSG_BACK (AbstractSendMessageProcessor.consumerSendMsgBack of RocketMQ's broker).

    The message is copied: same body, flag and properties, one more reconsume time. It gets the delay level that the
    consumer asks for, or with 0 the level 3 + its reconsume times: 10 s, 30 s, 1 min and so on. After the last try,
    or with a negative level, it goes to the dead letters instead.

    Java: org.apache.rocketmq.broker.processor.AbstractSendMessageProcessor.consumerSendMsgBack.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._broker = broker
        self._node = broker.node

    def process_request(self, channel: Channel, request: RemotingCommand) -> WhenPut:
        """Store the copy and answer when it is stored."""
        header = request.header_as(ConsumerSendMsgBackRequestHeader)
        try:
            return self._send_back(request, header)
        except RequestError as error:
            return rejected(self._node.hooks, channel, request, error)

    def _send_back(self, request: RemotingCommand, header: ConsumerSendMsgBackRequestHeader) -> WhenPut:
        broker = self._broker
        group = broker.subscription_group_manager.find_subscription_group_config(header.group)
        if group is None:
            remark = f"subscription group not exist, {header.group} {FAQ}"
            raise RequestError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
        if not PermName.is_writeable(broker.broker_config.broker_permission):
            remark = f"the broker[{broker.broker_ip}] sending message is forbidden"
            raise RequestError(ResponseCode.NO_PERMISSION, remark)
        if group.retry_queue_nums <= 0:
            return RemotingCommand.response(ResponseCode.SUCCESS)
        topics = broker.topic_config_manager
        topic = retry_topic(header.group)
        queue_id = self._node.choose("retry-queue", group.retry_queue_nums) if group.retry_queue_nums > 1 else 0
        sys_flag = TopicSysFlag.build(False, True) if header.unit_mode else 0
        topic_config = topics.create_topic_in_send_message_back_method(
            topic, group.retry_queue_nums, PermName.READ_WRITE, sys_flag
        )
        if not PermName.is_writeable(topic_config.perm):
            remark = f"the topic[{topic}] sending message is forbidden"
            raise RequestError(ResponseCode.NO_PERMISSION, remark)
        original = broker.message_store.look_message_by_offset(header.offset, decompress=False)
        if original is None:
            raise RequestError(ResponseCode.SYSTEM_ERROR, f"look message by offset failed, {header.offset}")
        properties = dict(original.properties)
        properties.setdefault("RETRY_TOPIC", original.topic)
        properties["WAIT"] = "false"
        delay_level = self._delay_level(request, header, group, original)
        if delay_level < 0:
            topic, queue_id = dlq_topic(header.group), 0
            topics.create_topic_in_send_message_back_method(topic, DLQ_NUMS_PER_GROUP, PermName.READ_WRITE)
            delay_level = 0
        properties["DELAY"] = str(delay_level)
        properties.setdefault("ORIGIN_MESSAGE_ID", original.offset_msg_id)
        copy = self._copy(original, topic, queue_id, properties)
        self._emit(header.group, copy, original, delay_level)

        def answer(result: PutMessageResult) -> RemotingCommand:
            if result.status not in STORED_CODES:
                return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, result.status.value)
            if result.is_ok:
                topic = original.properties.get("RETRY_TOPIC", original.topic)
                broker.stats.sent_back(header.group, topic, copy.topic, result.wrote_bytes)
            return RemotingCommand.response(ResponseCode.SUCCESS)

        return answer_when_put(broker.message_store.put_message(copy), "the answer to a message sent back", answer)

    @staticmethod
    def _delay_level(
        request: RemotingCommand,
        header: ConsumerSendMsgBackRequestHeader,
        group: SubscriptionGroupConfig,
        original: MessageExt,
    ) -> int:
        """The delay level for the next try; negative when there is none."""
        most = group.retry_max_times
        if request.version >= V3_4_9 and header.max_reconsume_times is not None:
            most = header.max_reconsume_times
        if original.reconsume_times >= most or header.delay_level < 0:
            return -1
        return header.delay_level or FIRST_RETRY_LEVEL + original.reconsume_times

    def _copy(
        self, original: MessageExt, topic: str, queue_id: int, properties: dict[str, str]
    ) -> MessageExtBrokerInner:
        return MessageExtBrokerInner(
            topic,
            original.body,
            queue_id=queue_id,
            flag=original.flag,
            sys_flag=original.sys_flag,
            properties=properties,
            properties_string=encode_properties(properties, DECODED_MAP_CAPACITY),
            born_timestamp=original.born_timestamp,
            born_host=original.born_host,
            store_host=self._broker.store_host,
            reconsume_times=original.reconsume_times + 1,
        )

    def _emit(self, group: str, copy: MessageExtBrokerInner, original: MessageExt, delay_level: int) -> None:
        hooks = self._node.hooks
        if hooks.on:
            hooks.emit(
                SendBackStored(
                    group,
                    copy.topic,
                    copy.queue_id,
                    original.topic,
                    copy.properties.get("UNIQ_KEY", ""),
                    copy.reconsume_times,
                    delay_level,
                )
            )
