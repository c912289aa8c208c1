"""Where half messages lie, and what they look like there and when they leave it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.protocol.errors import RecordError
from mqlab.protocol.message import MessageConst, MessageExt
from mqlab.protocol.properties import DECODED_MAP_CAPACITY, NEW_MAP_CAPACITY, encode_properties
from mqlab.protocol.record import decode_record
from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.protocol.topics import (
    CID_SYS_RMQ_TRANS,
    RMQ_SYS_TRANS_HALF_TOPIC,
    RMQ_SYS_TRANS_OP_HALF_TOPIC,
)
from mqlab.store import GetMessageResult, GetMessageStatus, MessageExtBrokerInner, PutMessageResult

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts

QUEUE_ID = 0
"""Both topics have one queue."""

REMOVE_TAG = "d"
OFFSET_SEPARATOR = ","

NO_NEW_MESSAGE = frozenset({GetMessageStatus.NO_MESSAGE_IN_QUEUE, GetMessageStatus.OFFSET_OVERFLOW_ONE})


class HalfMessages:
    """The topics of half messages and of operations on them (TransactionalMessageBridge).

    How far the check has come in either is kept as the progress of the group CID_RMQ_SYS_TRANS.

    Java: org.apache.rocketmq.broker.transaction.queue.TransactionalMessageBridge.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._broker = broker
        self._store = broker.message_store

    # -- reading ----------------------------------------------------------------------------------------------------

    def offset(self, topic: str) -> int:
        """How far the check has come in one of the topics."""
        offset = self._broker.consumer_offset_manager.query_offset(CID_SYS_RMQ_TRANS, topic, QUEUE_ID)
        return offset if offset >= 0 else max(0, self._store.get_min_offset_in_queue(topic, QUEUE_ID))

    def commit(self, topic: str, offset: int) -> None:
        """Note how far the check has come."""
        self._broker.consumer_offset_manager.commit_offset(CID_SYS_RMQ_TRANS, topic, QUEUE_ID, offset, "checked")

    def are_left(self) -> bool:
        """Does either topic hold anything that no check has passed?"""
        return any(
            self._store.get_max_offset_in_queue(topic, QUEUE_ID) > self.offset(topic)
            for topic in (RMQ_SYS_TRANS_HALF_TOPIC, RMQ_SYS_TRANS_OP_HALF_TOPIC)
        )

    def read(self, topic: str, offset: int, most: int) -> tuple[GetMessageResult | None, list[MessageExt]]:
        """Up to `most` messages from an offset on, packed bodies as they are, and what the store says of the place.

        An entry behind which lies no message, as a loss of power may leave one, is passed over.
        """
        result = self._store.get_message(CID_SYS_RMQ_TRANS, topic, QUEUE_ID, offset, most)
        found: list[MessageExt] = []
        for record in result.messages if result is not None else ():
            try:
                found.append(decode_record(record, decompress=False))
            except RecordError:
                continue
        return result, found

    # -- making -----------------------------------------------------------------------------------------------------

    async def put_and_wait(self, message: MessageExtBrokerInner) -> PutMessageResult:
        """Store a message and count it; a store that waits for a flush or for replicas is waited for."""
        result = await self._store.put_and_wait(message)
        if result.is_ok:
            self._broker.stats.put(message.topic, 1, result.wrote_bytes)
        return result

    def renewed(self, half: MessageExt) -> MessageExtBrokerInner:
        """A half message as it is stored again; as in RocketMQ its flag is lost.

        The stored text still says whether its producer wanted to wait for the disk; this put does not.
        Java: org.apache.rocketmq.broker.transaction.queue.TransactionalMessageBridge.renewHalfMessageInner.
        """
        text = encode_properties(half.properties, DECODED_MAP_CAPACITY)
        half.properties[MessageConst.WAIT_STORE_MSG_OK] = "false"
        return MessageExtBrokerInner(
            half.topic,
            half.body,
            half.queue_id,
            sys_flag=half.sys_flag,
            properties=half.properties,
            properties_string=text,
            born_timestamp=half.born_timestamp,
            born_host=half.born_host,
            store_host=half.store_host,
        )

    def renewed_as_immune(self, half: MessageExt) -> MessageExtBrokerInner:
        """The same for a half message that is not to be asked about yet: it says where its first copy lies.

        Java: org.apache.rocketmq.broker.transaction.queue.TransactionalMessageBridge.renewImmunityHalfMessageInner.
        """
        inner = self.renewed(half)
        inner.properties.setdefault(MessageConst.TRANSACTION_PREPARED_QUEUE_OFFSET, str(half.queue_offset))
        inner.properties_string = encode_properties(inner.properties, DECODED_MAP_CAPACITY)
        return inner

    def op_message(self, offsets: str) -> MessageExtBrokerInner:
        """The message that says of half messages that they are done with; `offsets` is "12,15,".

        Java: org.apache.rocketmq.broker.transaction.queue.TransactionalMessageBridge.makeOpMessageInner.
        """
        properties = {MessageConst.WAIT_STORE_MSG_OK: "true", MessageConst.TAGS: REMOVE_TAG}
        text = encode_properties(properties, NEW_MAP_CAPACITY)
        properties[MessageConst.WAIT_STORE_MSG_OK] = "false"
        host = self._broker.store_host
        return MessageExtBrokerInner(
            RMQ_SYS_TRANS_OP_HALF_TOPIC,
            offsets.encode(),
            QUEUE_ID,
            properties=properties,
            properties_string=text,
            born_timestamp=self._broker.node.now_ms(),
            born_host=host,
            store_host=host,
        )


def hide(message: MessageExtBrokerInner) -> None:
    """Turn a message of a transaction into a half message: it goes to the topic that nobody reads.

    Java: org.apache.rocketmq.broker.transaction.queue.TransactionalMessageBridge.parseHalfMessageInner.
    """
    properties = message.properties
    if unique_key := properties.get(MessageConst.UNIQ_CLIENT_MESSAGE_ID_KEYIDX):
        properties[MessageConst.TRANSACTION_ID] = unique_key
    properties[MessageConst.REAL_TOPIC] = message.topic
    properties[MessageConst.REAL_QUEUE_ID] = str(message.queue_id)
    message.sys_flag = MessageSysFlag.reset_transaction_value(message.sys_flag, MessageSysFlag.TRANSACTION_NOT_TYPE)
    message.topic = RMQ_SYS_TRANS_HALF_TOPIC
    message.queue_id = QUEUE_ID
    message.properties_string = encode_properties(properties, DECODED_MAP_CAPACITY)


def committed(half: MessageExt, half_log_offset: int) -> MessageExtBrokerInner:
    """The message that everybody may see, made of a half message; ValueError if that does not say where it belongs.

    As with parked messages the stored text of properties is that of the half message, so the consumer still sees
    TRAN_MSG, REAL_TOPIC and REAL_QID.
    Java: org.apache.rocketmq.broker.processor.EndTransactionProcessor.endMessageTransaction.
    """
    properties = dict(half.properties)
    text = encode_properties(properties, DECODED_MAP_CAPACITY)
    for name in (MessageConst.REAL_TOPIC, MessageConst.REAL_QUEUE_ID, MessageConst.TRANSACTION_PREPARED):
        properties.pop(name, None)
    topic = half.properties.get(MessageConst.REAL_TOPIC)
    if not topic:
        raise ValueError("it has no REAL_TOPIC")
    return MessageExtBrokerInner(
        topic,
        half.body,
        int(half.properties.get(MessageConst.REAL_QUEUE_ID, "")),
        half.flag,
        MessageSysFlag.reset_transaction_value(half.sys_flag, MessageSysFlag.TRANSACTION_COMMIT),
        properties,
        text,
        half.born_timestamp,
        half.born_host,
        half.store_host,
        half.reconsume_times,
        half_log_offset,
    )


def unique_key_of(half: MessageExt) -> str:
    """What the producer's client called the message; it is the id of the transaction, too."""
    return half.properties.get(MessageConst.UNIQ_CLIENT_MESSAGE_ID_KEYIDX, "")


def real_topic_of(half: MessageExt) -> str:
    """Where the message is meant to go."""
    return half.properties.get(MessageConst.REAL_TOPIC, "")


def check_times_of(half: MessageExt) -> int:
    """How often the half message says that it was asked about; -1 where it says no number.

    Java: org.apache.rocketmq.broker.transaction.queue.TransactionalMessageServiceImpl.getInt.
    """
    return number(half.properties.get(MessageConst.TRANSACTION_CHECK_TIMES, "0"))


def number(text: str) -> int:
    """A whole number in text; -1 for anything else."""
    try:
        return int(text)
    except ValueError:
        return -1
