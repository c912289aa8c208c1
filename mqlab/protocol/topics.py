"""Names of topics and groups: those of RocketMQ itself, those made from others, and which are allowed.

Java: org.apache.rocketmq.common.topic.TopicValidator, org.apache.rocketmq.common.MixAll and KeyBuilder,
org.apache.rocketmq.client.Validators; the texts of the errors are theirs.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mqlab.errors import MQClientException
from mqlab.protocol.codes import ResponseCode
from mqlab.protocol.message import Message

AUTO_CREATE_TOPIC_KEY_TOPIC = "TBW102"
RMQ_SYS_SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
RMQ_SYS_BENCHMARK_TOPIC = "BenchmarkTest"
RMQ_SYS_TRANS_HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
RMQ_SYS_TRANS_OP_HALF_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
RMQ_SYS_TRANS_CHECK_MAX_TIME_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
RMQ_SYS_TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
RMQ_SYS_SELF_TEST_TOPIC = "SELF_TEST_TOPIC"
RMQ_SYS_OFFSET_MOVED_EVENT = "OFFSET_MOVED_EVENT"
RMQ_SYS_CHECKPOINT_TOPIC = "CHECKPOINT_TOPIC"
TIMER_TOPIC = "rmq_sys_wheel_timer"
SYSTEM_TOPIC_PREFIX = "rmq_sys_"
SYNC_BROKER_MEMBER_GROUP_PREFIX = SYSTEM_TOPIC_PREFIX + "SYNC_BROKER_MEMBER_"
REVIVE_TOPIC_PREFIX = SYSTEM_TOPIC_PREFIX + "REVIVE_LOG_"
REPLY_TOPIC_POSTFIX = "REPLY_TOPIC"
REPLY_MESSAGE_FLAG = "reply"
"""The type of a message that answers a request, in its property MSG_TYPE."""

RETRY_GROUP_TOPIC_PREFIX = "%RETRY%"
DLQ_GROUP_TOPIC_PREFIX = "%DLQ%"
LMQ_PREFIX = "%LMQ%"

TOPIC_MAX_LENGTH = 127
RETRY_OR_DLQ_TOPIC_MAX_LENGTH = 255
GROUP_MAX_LENGTH = 255
MAX_MESSAGE_SIZE = 4 * 1024 * 1024

DEFAULT_PRODUCER_GROUP = "DEFAULT_PRODUCER"
DEFAULT_CONSUMER_GROUP = "DEFAULT_CONSUMER"
CLIENT_INNER_PRODUCER_GROUP = "CLIENT_INNER_PRODUCER"
TOOLS_CONSUMER_GROUP = "TOOLS_CONSUMER"
SELF_TEST_CONSUMER_GROUP = "SELF_TEST_C_GROUP"
CID_RMQ_SYS_PREFIX = "CID_RMQ_SYS_"
CID_SYS_RMQ_TRANS = CID_RMQ_SYS_PREFIX + "TRANS"
ORDER_TOPIC_CONFIG_NAMESPACE = "ORDER_TOPIC_CONFIG"

SYSTEM_TOPICS = frozenset({
    AUTO_CREATE_TOPIC_KEY_TOPIC,
    RMQ_SYS_SCHEDULE_TOPIC,
    RMQ_SYS_BENCHMARK_TOPIC,
    RMQ_SYS_TRANS_HALF_TOPIC,
    RMQ_SYS_TRACE_TOPIC,
    RMQ_SYS_TRANS_OP_HALF_TOPIC,
    RMQ_SYS_TRANS_CHECK_MAX_TIME_TOPIC,
    RMQ_SYS_SELF_TEST_TOPIC,
    RMQ_SYS_OFFSET_MOVED_EVENT,
    RMQ_SYS_CHECKPOINT_TOPIC,
})  # fmt: skip

NOT_ALLOWED_SEND_TOPICS = frozenset({
    RMQ_SYS_SCHEDULE_TOPIC,
    RMQ_SYS_TRANS_HALF_TOPIC,
    RMQ_SYS_TRANS_OP_HALF_TOPIC,
    RMQ_SYS_TRANS_CHECK_MAX_TIME_TOPIC,
    RMQ_SYS_SELF_TEST_TOPIC,
    RMQ_SYS_OFFSET_MOVED_EVENT,
})  # fmt: skip

_ALLOWED = "^[%|a-zA-Z0-9_-]+$"
_LEGAL = re.compile("[%|a-zA-Z0-9_-]*")


def retry_topic(group: str) -> str:
    """The topic from which a consumer group gets again what it could not consume."""
    return RETRY_GROUP_TOPIC_PREFIX + group


def dlq_topic(group: str) -> str:
    """The topic for what a consumer group could not consume after all tries."""
    return DLQ_GROUP_TOPIC_PREFIX + group


def is_retry_topic(topic: str) -> bool:
    return topic.startswith(RETRY_GROUP_TOPIC_PREFIX)


def is_dlq_topic(topic: str) -> bool:
    return topic.startswith(DLQ_GROUP_TOPIC_PREFIX)


def is_lmq(name: str) -> bool:
    """Whether the name is that of a light queue."""
    return name.startswith(LMQ_PREFIX)


def is_system_topic(topic: str) -> bool:
    """Whether RocketMQ keeps the topic for itself."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_TOPIC_PREFIX)


def is_sys_consumer_group(group: str) -> bool:
    """Whether the group is one of RocketMQ's own."""
    return group.startswith(CID_RMQ_SYS_PREFIX)


def is_not_allowed_send_topic(topic: str) -> bool:
    """Whether clients may not send to the topic."""
    return topic in NOT_ALLOWED_SEND_TOPICS


def reply_topic(cluster: str) -> str:
    """The topic of answers in the request-reply way of sending."""
    return f"{cluster}_{REPLY_TOPIC_POSTFIX}"


def pop_retry_topic(topic: str, group: str, version_2: bool = False) -> str:
    """The retry topic of a group for one topic when it consumes by Pop."""
    return f"{RETRY_GROUP_TOPIC_PREFIX}{group}{'+' if version_2 else '_'}{topic}"


def is_pop_retry_topic_v2(topic: str) -> bool:
    """Whether the topic is a Pop retry topic of the second form, in which group and topic can be told apart."""
    return is_retry_topic(topic) and "+" in topic


def parse_normal_topic(topic: str, group: str | None = None) -> str:
    """The topic behind a Pop retry topic; with the group the first form is understood as well.

    Raises ValueError for a retry topic that is too short to hold the group.
    """
    if not is_retry_topic(topic):
        return topic
    if group is None:
        parts = topic.split("+")
        return parts[1] if len(parts) == 2 else topic
    start = len(RETRY_GROUP_TOPIC_PREFIX) + len(group) + 1
    if start > len(topic):
        raise ValueError(f"{topic!r} is no Pop retry topic of the group {group!r}")
    return topic[start:]


def parse_group(topic: str) -> str:
    """The group in a retry topic; in a Pop retry topic of the first form the topic is still behind it.

    Raises ValueError for a name that is too short to be a retry topic.
    """
    start = len(RETRY_GROUP_TOPIC_PREFIX)
    if is_pop_retry_topic_v2(topic):
        return topic[start : topic.index("+")]
    if len(topic) < start:
        raise ValueError(f"{topic!r} is no retry topic")
    return topic[start:]


def is_topic_or_group_illegal(name: str) -> bool:
    """Whether a character of a name is not allowed; an empty name has none.

    Java: org.apache.rocketmq.common.topic.TopicValidator.isTopicOrGroupIllegal.
    """
    return not _LEGAL.fullmatch(name)


class TopicValidation(NamedTuple):
    """What the broker says of a topic name."""

    valid: bool
    remark: str


def validate_topic(topic: str) -> TopicValidation:
    """Whether the broker takes the name; it does not say which name in its remark."""
    if not topic.strip():
        return TopicValidation(False, "The specified topic is blank.")
    if is_topic_or_group_illegal(topic):
        return TopicValidation(False, f"The specified topic contains illegal characters, allowing only {_ALLOWED}")
    longest = RETRY_OR_DLQ_TOPIC_MAX_LENGTH if is_retry_topic(topic) or is_dlq_topic(topic) else TOPIC_MAX_LENGTH
    if len(topic) > longest:
        return TopicValidation(False, "The specified topic is longer than topic max length.")
    return TopicValidation(True, "")


def check_topic(topic: str) -> None:
    """Raise MQClientException when a client may not use this topic name; None counts as blank.

    Java: org.apache.rocketmq.client.Validators.checkTopic.
    """
    if not topic or not topic.strip():
        raise MQClientException("The specified topic is blank")
    if len(topic) > TOPIC_MAX_LENGTH:
        raise MQClientException(f"The specified topic is longer than topic max length {TOPIC_MAX_LENGTH}.")
    if is_topic_or_group_illegal(topic):
        raise MQClientException(
            f"The specified topic[{topic}] contains illegal characters, allowing only {_ALLOWED}"
        )


def check_system_topic(topic: str) -> None:
    """Raise MQClientException when the topic belongs to RocketMQ itself."""
    if is_system_topic(topic):
        raise MQClientException(f"The topic[{topic}] is conflict with system topic.")


def check_not_allowed_send_topic(topic: str) -> None:
    """Raise MQClientException when clients may not send to the topic."""
    if topic in NOT_ALLOWED_SEND_TOPICS:
        raise MQClientException(f"Sending message to topic[{topic}] is forbidden.")


def check_group(group: str) -> None:
    """Raise MQClientException when a client may not use this group name.

    Java: org.apache.rocketmq.client.Validators.checkGroup.
    """
    if not group.strip():
        raise MQClientException("the specified group is blank")
    if len(group) > GROUP_MAX_LENGTH:
        raise MQClientException(f"the specified group is longer than group max length {GROUP_MAX_LENGTH}.")
    if is_topic_or_group_illegal(group):
        raise MQClientException(
            f"the specified group[{group}] contains illegal characters, allowing only {_ALLOWED}"
        )


def check_message(message: Message | None, max_message_size: int = MAX_MESSAGE_SIZE) -> None:
    """Raise MQClientException when a producer may not send the message; sizes in bytes.

    Java: org.apache.rocketmq.client.Validators.checkMessage.
    """
    illegal = int(ResponseCode.MESSAGE_ILLEGAL)
    if message is None:
        raise MQClientException("the message is null", illegal)
    check_topic(message.topic)
    check_not_allowed_send_topic(message.topic)
    if message.body is None:
        raise MQClientException("the message body is null", illegal)
    if len(message.body) == 0:
        raise MQClientException("the message body length is zero", illegal)
    if len(message.body) > max_message_size:
        raise MQClientException(f"the message body size over max value, MAX: {max_message_size}", illegal)
