"""A message of a retry topic as the one who pops gets it: under the plain topic, with its handle."""

from __future__ import annotations

from mqlab.protocol.errors import RecordError
from mqlab.protocol.extra_info import ReceiptHandle
from mqlab.protocol.message import MessageConst
from mqlab.protocol.properties import DECODED_MAP_CAPACITY, encode_properties
from mqlab.protocol.record import decode_record
from mqlab.store.message_ext_encoder import encode_message


def under_plain_topic(record: bytes, topic: str, handle: ReceiptHandle) -> bytes:
    """The record of a retry topic's message with another topic, and the handle in its properties if it has none yet.

    The client could not make the handle itself: it does not know from which topic the message came. What cannot be
    read, as after a loss of power, is left out. Java: org.apache.rocketmq.common.message.MessageDecoder.encode, as
    PopMessageProcessor uses it.
    """
    try:
        message = decode_record(record, decompress=False)
    except RecordError:
        return b""
    properties = message.properties
    properties.setdefault(MessageConst.POP_CK, handle.encode())
    message.topic = topic
    text = encode_properties(properties, DECODED_MAP_CAPACITY)
    return encode_message(
        message, text, message.queue_offset, message.store_timestamp, message.commit_log_offset
    )
