"""A stored message as 5.x clients get it, and what they send as brokers get it."""

from __future__ import annotations

from hashlib import md5
from typing import TYPE_CHECKING

from mqlab.protocol.message import RESERVED_PROPERTIES, Message, MessageConst, MessageExt
from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.protocol.v2 import definition as v2
from mqlab.protocol.v2.protobuf import Timestamp

if TYPE_CHECKING:
    from mqlab.proxy.proxy_config import ProxyConfig

_DELAYS = (MessageConst.DELAY_TIME_LEVEL, MessageConst.TIMER_DELIVER_MS, MessageConst.TIMER_DELAY_SEC)


def build_message(message: MessageExt, now_ms: int) -> v2.Message:
    """A message for a client; its handle is the property POP_CK.

    Java: org.apache.rocketmq.proxy.grpc.v2.common.GrpcConverter.buildMessage.
    """
    properties = message.properties
    own = {name: value for name, value in properties.items() if name not in RESERVED_PROPERTIES}
    keys = properties.get(MessageConst.KEYS)
    origin = properties.get(MessageConst.DLQ_ORIGIN_TOPIC), properties.get(MessageConst.DLQ_ORIGIN_MESSAGE_ID)
    packed = MessageSysFlag.is_compressed(message.sys_flag)
    system = v2.SystemProperties(
        tag=properties.get(MessageConst.TAGS),
        keys=tuple(keys.split(MessageConst.KEY_SEPARATOR)) if keys else (),
        message_id=message.msg_id,
        body_digest=v2.Digest(v2.DigestType.MD5, md5(message.body, usedforsecurity=False).hexdigest().upper()),
        body_encoding=v2.Encoding.GZIP if packed else v2.Encoding.IDENTITY,
        message_type=_message_type(message),
        born_timestamp=Timestamp(message.born_timestamp),
        born_host=properties.get(MessageConst.BORN_HOST) or message.born_host.rpartition(":")[0],
        store_timestamp=Timestamp(message.store_timestamp),
        store_host=message.store_host,
        delivery_timestamp=_delivery_timestamp(message, now_ms),
        receipt_handle=properties.get(MessageConst.POP_CK),
        queue_id=message.queue_id,
        queue_offset=message.queue_offset,
        delivery_attempt=message.reconsume_times + 1,
        message_group=properties.get(MessageConst.SHARDING_KEY),
        trace_context=properties.get(MessageConst.TRACE_CONTEXT),
        dead_letter_queue=v2.DeadLetterQueue(origin[0], origin[1]) if origin[0] and origin[1] else None,
    )
    return v2.Message(v2.Resource(name=message.topic), own, system, message.body)


def _message_type(message: MessageExt) -> v2.MessageType:
    properties = message.properties
    if properties.get(MessageConst.TRANSACTION_PREPARED) == "true":
        return v2.MessageType.TRANSACTION
    if any(name in properties for name in _DELAYS):
        return v2.MessageType.DELAY
    return v2.MessageType.FIFO if MessageConst.SHARDING_KEY in properties else v2.MessageType.NORMAL


def _delivery_timestamp(message: MessageExt, now_ms: int) -> Timestamp | None:
    delay_sec = message.properties.get(MessageConst.TIMER_DELAY_SEC)
    if delay_sec is not None:
        return Timestamp(now_ms + int(delay_sec) * 1_000)
    deliver_ms = message.properties.get(MessageConst.TIMER_DELIVER_MS)
    return Timestamp(int(deliver_ms)) if deliver_ms is not None else None


def stored_message(message: v2.Message, config: ProxyConfig, remote_address: str, now_ms: int) -> Message:
    """A client's message as the broker stores it; the topic stands for the producer's group.

    Java: org.apache.rocketmq.proxy.grpc.v2.producer.SendMessageActivity.buildMessageProperty.
    """
    system = message.system_properties
    topic = message.topic.name
    properties = dict(message.user_properties)
    properties[MessageConst.TAGS] = system.tag or ""
    if system.keys:
        properties[MessageConst.KEYS] = MessageConst.KEY_SEPARATOR.join(system.keys)
    properties[MessageConst.UNIQ_CLIENT_MESSAGE_ID_KEYIDX] = system.message_id
    if system.message_type == v2.MessageType.TRANSACTION:
        properties[MessageConst.TRANSACTION_PREPARED] = "true"
        if system.orphaned_transaction_recovery_duration is not None:
            seconds = system.orphaned_transaction_recovery_duration // 1_000
            properties[MessageConst.CHECK_IMMUNITY_TIME_IN_SECONDS] = str(seconds)
    if system.delivery_timestamp is not None:
        if config.use_delay_level:
            level = delay_level(config.message_delay_level, system.delivery_timestamp - now_ms)
            properties[MessageConst.DELAY_TIME_LEVEL] = str(level)
        properties[MessageConst.TIMER_DELIVER_MS] = str(system.delivery_timestamp)
    properties[MessageConst.RECONSUME_TIME] = str(system.delivery_attempt or 0)
    properties[MessageConst.PRODUCER_GROUP] = topic
    if system.message_group:
        properties[MessageConst.SHARDING_KEY] = system.message_group
    if system.trace_context:
        properties[MessageConst.TRACE_CONTEXT] = system.trace_context
    properties[MessageConst.BORN_HOST] = system.born_host or remote_address
    properties[MessageConst.BORN_TIMESTAMP] = str(system.born_timestamp or 0)
    stored = Message(topic, message.body)
    stored.properties = properties
    return stored


_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def delay_level(levels: str, delay_ms: int) -> int:
    """The first delay level that is longer than a delay, or the longest one.

    Java: org.apache.rocketmq.proxy.config.ProxyConfig.computeDelayLevel.
    """
    delays = [int(level[:-1]) * _UNITS_MS[level[-1]] for level in levels.split()]
    longer = [place for place, level_ms in enumerate(delays, 1) if level_ms > delay_ms]
    return longer[0] if longer else len(delays)
