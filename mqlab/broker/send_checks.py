"""What a broker checks before it stores a message, and the errors it answers with."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mqlab.broker.errors import FAQ, RequestError
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.sysflag import PermName, TopicSysFlag
from mqlab.protocol.topics import NOT_ALLOWED_SEND_TOPICS, RETRY_GROUP_TOPIC_PREFIX, validate_topic

if TYPE_CHECKING:
    from mqlab.broker.broker_config import BrokerConfig
    from mqlab.broker.topic_config_manager import TopicConfigManager
    from mqlab.protocol.headers import SendMessageRequestHeader, SendMessageRequestHeaderV2
    from mqlab.protocol.topic_config import TopicConfig
    from mqlab.remoting import Channel

    SendHeader: TypeAlias = SendMessageRequestHeader | SendMessageRequestHeaderV2


def topic_text(config: TopicConfig) -> str:
    """A topic's settings as RocketMQ puts them into an error text."""
    attributes = ", ".join(f"{name}={value}" for name, value in config.attributes.items())
    return (
        f"TopicConfig [topicName={config.topic_name}, readQueueNums={config.read_queue_nums}, "
        f"writeQueueNums={config.write_queue_nums}, perm={PermName.text(config.perm)}, "
        f"topicFilterType={config.topic_filter_type}, topicSysFlag={config.topic_sys_flag}, "
        f"order={str(config.order).lower()}, attributes={{{attributes}}}]"
    )


def check_message(
    config: BrokerConfig, broker_ip: str, topics: TopicConfigManager, header: SendHeader, channel: Channel
) -> TopicConfig:
    """The topic that a message goes to, created if it is new and may be; RequestError with RocketMQ's code and text.

    The topic's own write bit is not looked at: clients leave out queues
    that are not writeable, and the broker trusts them.

    Java: org.apache.rocketmq.broker.processor.AbstractSendMessageProcessor.msgCheck.
    """
    topic = header.topic
    if not config.broker_permission & PermName.WRITE and topics.is_order_topic(topic):
        raise RequestError(ResponseCode.NO_PERMISSION, f"the broker[{broker_ip}] sending message is forbidden")
    topic_config = topics.topic_config_table.get(topic)
    if topic_config is None or topic in NOT_ALLOWED_SEND_TOPICS:
        topic_config = _check_unusual_topic(topics, header)
    queue_id = header.queue_id
    if queue_id >= topic_config.write_queue_nums and queue_id >= topic_config.read_queue_nums:
        remark = (
            f"request queueId[{queue_id}] is illegal, {topic_text(topic_config)} "
            f"Producer: {channel.remote_address}"
        )
        raise RequestError(ResponseCode.INVALID_PARAMETER, remark)
    return topic_config


def _check_unusual_topic(topics: TopicConfigManager, header: SendHeader) -> TopicConfig:
    """The checks of a topic's name, which a known topic has passed already, and the making of a new topic."""
    topic = header.topic
    validation = validate_topic(topic)
    if not validation.valid:
        raise RequestError(ResponseCode.INVALID_PARAMETER, validation.remark)
    if topic in NOT_ALLOWED_SEND_TOPICS:
        raise RequestError(ResponseCode.NO_PERMISSION, f"Sending message to topic[{topic}] is forbidden.")
    is_retry = topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
    sys_flag = 0
    if header.unit_mode:
        sys_flag = TopicSysFlag.build(not is_retry, is_retry)
    created = topics.create_topic_in_send_message_method(
        topic, header.default_topic, header.default_topic_queue_nums, sys_flag
    )
    if created is None and is_retry:
        created = topics.create_topic_in_send_message_back_method(topic, 1, PermName.READ_WRITE, sys_flag)
    if created is None:
        raise RequestError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{topic}] not exist, apply first please!\n{FAQ}")
    return created

