"""The messages of the revive topic: check points and acks as the store keeps them.

Java: org.apache.rocketmq.broker.processor.PopMessageProcessor.buildCkMsg, and the places of AckMessageProcessor,
ChangeInvisibleTimeProcessor and PopBufferMergeService that make an ack. All are timer messages: the store has them at
once, but in the revive topic they can be read from their time of delivery on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.message import MessageConst
from mqlab.protocol.pop_check_point import (
    ACK_TIME_INTERVAL_MS,
    CK_TAG,
    AckMsg,
    BatchAckMsg,
    PopCheckPoint,
    revive_topic,
)
from mqlab.protocol.properties import NEW_MAP_CAPACITY, encode_properties
from mqlab.store import MessageExtBrokerInner

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts


def ck_message(broker: BrokerParts, ck: PopCheckPoint, revive_qid: int) -> MessageExtBrokerInner:
    """The message that holds a check point: due a second before its messages can be seen again, and before its acks.

    Java: org.apache.rocketmq.broker.processor.PopMessageProcessor.buildCkMsg.
    """
    return _message(broker, ck.encode(), revive_qid, CK_TAG, ck.unique_key, ck.revive_time - ACK_TIME_INTERVAL_MS)


def ack_message(
    broker: BrokerParts, ack: AckMsg | BatchAckMsg, revive_qid: int, deliver_ms: int, *, unique_key: str | None = None
) -> MessageExtBrokerInner:
    """The message that holds an ack, due at `deliver_ms`, when the messages that it is about could be seen again.

    Its unique key is that of the ack unless another is given.
    Java: org.apache.rocketmq.broker.processor.AckMessageProcessor.appendAck.
    """
    return _message(broker, ack.encode(), revive_qid, ack.tag, unique_key or ack.unique_key, deliver_ms)


def ack_unique_key(ack: AckMsg) -> str:
    """The unique key that an AckMessageProcessor writes, for an ack of several messages too: that of a single one."""
    if type(ack) is AckMsg:
        return ack.unique_key
    single = AckMsg(ack.ack_offset, ack.start_offset, ack.group, ack.topic, ack.queue_id, ack.pop_time, ack.broker_name)
    return single.unique_key


def _message(
    broker: BrokerParts, body: bytes, revive_qid: int, tag: str, unique_key: str, deliver_ms: int
) -> MessageExtBrokerInner:
    properties = {
        MessageConst.TAGS: tag,
        MessageConst.TIMER_DELIVER_MS: str(deliver_ms),
        MessageConst.UNIQ_CLIENT_MESSAGE_ID_KEYIDX: unique_key,
    }
    return MessageExtBrokerInner(
        revive_topic(broker.broker_config.broker_cluster_name),
        body,
        revive_qid,
        properties=properties,
        properties_string=encode_properties(properties, NEW_MAP_CAPACITY),
        born_timestamp=broker.node.now_ms(),
        born_host=broker.store_host,
        store_host=broker.store_host,
    )
