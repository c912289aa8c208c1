"""Several messages in one body: what a producer sends as a batch, and what a batch consume queue stores as one record.

Java: org.apache.rocketmq.common.message.MessageBatch and MessageDecoder.encodeMessages, decodeMessages. One entry is

    total size i32, magic code i32 = 0, body CRC i32 = 0, flag i32, body length i32, body,
    properties length i16, properties

A broker splits such a body into records of their own. Only for a topic with `queue.type=BatchCQ` it stores the body as
it is, as one inner batch with the properties INNER_NUM and INNER_BASE, and the consumer takes it apart.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mqlab.errors import LearnerError, MQClientException
from mqlab.protocol.errors import RecordError
from mqlab.protocol.message import Message, MessageConst, MessageExt
from mqlab.protocol.properties import NEW_MAP_CAPACITY, PROPERTIES_MAX_BYTES, decode_properties, encode_properties
from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.protocol.topics import RETRY_GROUP_TOPIC_PREFIX

_HEAD = struct.Struct(">iiiii")
_PROPERTIES_LENGTH = struct.Struct(">H")
_ENTRY_MIN_BYTES = 22


class BatchEntry(NamedTuple):
    """One message of a batch body; it has no topic of its own. `properties` is the encoded text."""

    flag: int
    body: bytes
    properties: str


def encode_batch_entry(message: Message) -> bytes:
    """One message as an entry of a batch body."""
    properties = encode_properties(message.properties, NEW_MAP_CAPACITY).encode("utf-8", "replace")
    if len(properties) > PROPERTIES_MAX_BYTES:
        raise LearnerError(
            f"the properties of the message take {len(properties)} bytes",
            f"{PROPERTIES_MAX_BYTES} bytes are the most; put long values into the body",
        )
    size = _ENTRY_MIN_BYTES + len(message.body) + len(properties)
    return b"".join((
        _HEAD.pack(size, 0, 0, message.flag, len(message.body)),
        message.body,
        _PROPERTIES_LENGTH.pack(len(properties)),
        properties,
    ))  # fmt: skip


def encode_batch(messages: Iterable[Message]) -> bytes:
    """The body of a batch: its entries one behind the other."""
    return b"".join([encode_batch_entry(message) for message in messages])


def decode_batch(body: bytes | memoryview) -> list[BatchEntry]:
    """The entries of a batch body; RecordError with the offset of the first one that is broken."""
    return list(_entries(body))


def _entries(body: bytes | memoryview) -> Iterator[BatchEntry]:
    offset = 0
    while offset < len(body):
        try:
            size, _, _, flag, body_length = _HEAD.unpack_from(body, offset)
            properties_at = offset + 22 + body_length
            (properties_length,) = _PROPERTIES_LENGTH.unpack_from(body, properties_at - 2)
        except struct.error:
            raise RecordError(offset, "a batch entry ends behind the end of the body") from None
        end = properties_at + properties_length
        if body_length < 0 or size != end - offset or end > len(body):
            taken = end - offset
            raise RecordError(offset, f"the parts of a batch entry take {taken} bytes, its total size is {size}")
        try:
            properties = str(body[properties_at:end], "utf-8")
        except UnicodeDecodeError as problem:
            raise RecordError(offset, f"the properties of a batch entry are not UTF-8: {problem}") from None
        yield BatchEntry(flag, bytes(body[offset + 20 : properties_at - 2]), properties)
        offset = end


class MessageBatch(Message):
    """Several messages of one topic that are sent, and stored, together.

    Java: org.apache.rocketmq.common.message.MessageBatch. Its body is made by `generate_from_list` and must be made
    again (`encode`) after an inner message got its unique key.
    """

    __slots__ = ("messages",)

    def __init__(self, messages: list[Message]) -> None:
        first = messages[0]
        super().__init__(first.topic, b"", wait_store_msg_ok=first.wait_store_msg_ok)
        self.messages = messages
        self.encode()

    @classmethod
    def generate_from_list(cls, messages: Iterable[Message]) -> MessageBatch:
        """The batch of these messages; MQClientException when RocketMQ does not take them together."""
        gathered = list(messages)
        if not gathered:
            raise MQClientException("messages can not be null or empty")
        first = gathered[0]
        for message in gathered:
            if message.delay_time_level > 0:
                raise MQClientException("TimeDelayLevel is not supported for batching")
            if message.topic.startswith(RETRY_GROUP_TOPIC_PREFIX):
                raise MQClientException("Retry Group is not supported for batching")
            if message.topic != first.topic:
                raise MQClientException("The topic of the messages in one batch should be the same")
            if message.wait_store_msg_ok != first.wait_store_msg_ok:
                raise MQClientException("The waitStoreMsgOK of the messages in one batch should the same")
        return cls(gathered)

    def encode(self) -> bytes:
        """Make the body again from the messages, and return it."""
        self.body = encode_batch(self.messages)
        return self.body


def unwrap_inner_batch(message: MessageExt) -> list[MessageExt]:
    """The single messages of an inner batch, each with its own queue offset; any other message comes back alone.

    Each keeps where and when the batch was stored; their offsets count up from INNER_BASE.
    """
    bits = MessageSysFlag.INNER_BATCH | MessageSysFlag.NEED_UNWRAP
    if message.sys_flag & bits != bits:
        return [message]
    base = message.properties.get(MessageConst.INNER_BASE)
    first = int(base) if base is not None and base.isdecimal() else message.queue_offset
    single = []
    for i, entry in enumerate(_entries(message.body)):
        inner = MessageExt(
            message.topic,
            entry.body,
            flag=entry.flag,
            properties=decode_properties(entry.properties),
            queue_id=message.queue_id,
            queue_offset=first + i,
            commit_log_offset=message.commit_log_offset,
            store_size=message.store_size,
            sys_flag=message.sys_flag & ~bits,
            born_timestamp=message.born_timestamp,
            born_host=message.born_host,
            store_timestamp=message.store_timestamp,
            store_host=message.store_host,
            reconsume_times=message.reconsume_times,
            prepared_transaction_offset=message.prepared_transaction_offset,
            body_crc=message.body_crc,
            broker_name=message.broker_name,
            magic=message.magic,
            stored_body_length=len(entry.body),
        )
        single.append(inner)
    return single
