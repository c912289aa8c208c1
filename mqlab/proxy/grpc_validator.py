"""What a proxy refuses before it asks any broker.

Java: org.apache.rocketmq.proxy.grpc.v2.common.GrpcValidator, and the checks of
org.apache.rocketmq.proxy.grpc.v2.producer.SendMessageActivity; the texts of the errors are theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mqlab.errors import MQClientException
from mqlab.protocol.extra_info import ReceiptHandle
from mqlab.protocol.message import RESERVED_PROPERTIES
from mqlab.protocol.topics import check_group, check_topic, is_sys_consumer_group, is_system_topic
from mqlab.protocol.v2.definition import Code, Message, MessageType, Resource, SystemProperties
from mqlab.proxy.errors import GrpcProxyException, ProxyException

if TYPE_CHECKING:
    from mqlab.proxy.proxy_config import ProxyConfig


def validate_topic(topic: Resource) -> None:
    """Refuse names that no topic may have, and those of RocketMQ's own."""
    try:
        check_topic(topic.name)
    except MQClientException as error:
        raise GrpcProxyException(Code.ILLEGAL_TOPIC, error.error_message) from None
    if is_system_topic(topic.name):
        raise GrpcProxyException(Code.ILLEGAL_TOPIC, "cannot access system topic")


def validate_consumer_group(group: Resource | None) -> None:
    """Refuse names that no group may have, and those of RocketMQ's own."""
    name = group.name if group is not None else ""
    try:
        check_group(name)
    except MQClientException as error:
        raise GrpcProxyException(Code.ILLEGAL_CONSUMER_GROUP, error.error_message) from None
    if is_sys_consumer_group(name):
        raise GrpcProxyException(Code.ILLEGAL_CONSUMER_GROUP, "cannot use system consumer group")


def validate_invisible_time(invisible_ms: int, least_ms: int, most_ms: int) -> None:
    """Refuse an invisible time that is too short or too long; a limit of 0 is none."""
    if invisible_ms < least_ms:
        raise GrpcProxyException(
            Code.ILLEGAL_INVISIBLE_TIME, f"the invisibleTime is too small. min is {least_ms}"
        )
    if 0 < most_ms < invisible_ms:
        raise GrpcProxyException(
            Code.ILLEGAL_INVISIBLE_TIME, f"the invisibleTime is too large. max is {most_ms}"
        )


def validate_receipt_handle(handle: ReceiptHandle, now_ms: int) -> None:
    """Refuse a handle whose invisible time is over."""
    if handle.expires_ms <= now_ms:
        raise ProxyException(Code.INVALID_RECEIPT_HANDLE, "receipt handle is expired")


# -- messages to send --------------------------------------------------------------------------------------------------


def validate_message(message: Message, config: ProxyConfig, now_ms: int) -> None:
    """Refuse a message whose body, properties or marks RocketMQ would not take.

    Java: org.apache.rocketmq.proxy.grpc.v2.producer.SendMessageActivity.buildMessage.
    """
    system = message.system_properties
    _validate_body(message.body, config)
    _validate_properties(message.user_properties, system, config)
    if not system.message_id.strip():
        raise GrpcProxyException(Code.ILLEGAL_MESSAGE_ID, "message id cannot be empty")
    _validate_recovery(system, config)
    _validate_group(system.message_group or "", config)
    if system.delivery_timestamp is not None and 0 < config.max_delay_time_mills < system.delivery_timestamp - now_ms:
        raise GrpcProxyException(
            Code.ILLEGAL_DELIVERY_TIME,
            f"the max delay time of message is too large, max is {config.max_delay_time_mills}",
        )


def _validate_body(body: bytes, config: ProxyConfig) -> None:
    if config.enable_message_body_empty_check and not body:
        raise GrpcProxyException(Code.MESSAGE_BODY_EMPTY, "message body cannot be empty")
    if 0 < config.max_message_size < len(body):
        raise GrpcProxyException(
            Code.MESSAGE_BODY_TOO_LARGE, f"message body cannot exceed the max {config.max_message_size}"
        )


def _validate_properties(properties: Mapping[str, str], system: SystemProperties, config: ProxyConfig) -> None:
    if len(properties) > config.user_property_max_num:
        raise GrpcProxyException(
            Code.MESSAGE_PROPERTIES_TOO_LARGE, f"too many user properties, max is {config.user_property_max_num}"
        )
    size = 0
    for name, value in properties.items():
        if name in RESERVED_PROPERTIES:
            raise GrpcProxyException(Code.ILLEGAL_MESSAGE_PROPERTY_KEY, f"property is used by system: {name}")
        _refuse_control(name, Code.ILLEGAL_MESSAGE_PROPERTY_KEY, "the key of property")
        _refuse_control(value, Code.ILLEGAL_MESSAGE_PROPERTY_KEY, "the value of property")
        size += len(name.encode()) + len(value.encode())
    _validate_tag(system.tag or "")
    for key in system.keys:
        if key and not key.strip():
            raise GrpcProxyException(Code.ILLEGAL_MESSAGE_KEY, "key cannot be the char sequence of whitespace")
        _refuse_control(key, Code.ILLEGAL_MESSAGE_KEY, "key")
    size += len((system.tag or "").encode()) + sum(len(key.encode()) for key in system.keys)
    if size > config.max_user_property_size:
        raise GrpcProxyException(
            Code.MESSAGE_PROPERTIES_TOO_LARGE,
            f"the total size of user property is too large, max is {config.max_user_property_size}",
        )


def _validate_tag(tag: str) -> None:
    if tag and not tag.strip():
        raise GrpcProxyException(Code.ILLEGAL_MESSAGE_TAG, "tag cannot be the char sequence of whitespace")
    if "|" in tag:
        raise GrpcProxyException(Code.ILLEGAL_MESSAGE_TAG, "tag cannot contain '|'")
    _refuse_control(tag, Code.ILLEGAL_MESSAGE_TAG, "tag")


def _validate_recovery(system: SystemProperties, config: ProxyConfig) -> None:
    recovery_ms, most = system.orphaned_transaction_recovery_duration, config.max_transaction_recovery_second
    if system.message_type == MessageType.TRANSACTION and recovery_ms is not None and 0 < most < recovery_ms // 1_000:
        raise GrpcProxyException(
            Code.BAD_REQUEST, f"the max transaction recovery time of message is too large, max is {most}"
        )


def _validate_group(group: str, config: ProxyConfig) -> None:
    if group and not group.strip():
        raise GrpcProxyException(
            Code.ILLEGAL_MESSAGE_GROUP, "message group cannot be the char sequence of whitespace"
        )
    if 0 < config.max_message_group_size <= len(group.encode()):
        raise GrpcProxyException(
            Code.ILLEGAL_MESSAGE_GROUP, f"message group exceed the max size {config.max_message_group_size}"
        )
    _refuse_control(group, Code.ILLEGAL_MESSAGE_GROUP, "message group")


def _refuse_control(text: str, code: Code, what: str) -> None:
    if any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in text):
        raise GrpcProxyException(code, f"{what} cannot contain control character")
