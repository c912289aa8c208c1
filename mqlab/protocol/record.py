"""A stored message: the same bytes in the commit log, in the answer to a pull, and on the way to a slave.

Java: org.apache.rocketmq.store.MessageExtEncoder, org.apache.rocketmq.common.message.MessageDecoder and MessageVersion.
All numbers are big-endian; offsets are those of a record with two IPv4 hosts, each IPv6 host adds 12 bytes.

     0  total size       i32   of the whole record        48  born host           8 or 20 bytes
     4  magic code       i32   V1, V2 or blank            56  store time stamp    i64, ms
     8  body CRC         i32   of the body as stored      64  store host          8 or 20 bytes
    12  queue id         i32                              72  reconsume times     i32
    16  flag             i32   the user's                 76  prepared offset     i64
    20  queue offset     i64                              84  body length         i32, then body
    28  physical offset  i64                                  topic length        1 byte (V1) or i16 (V2), then topic
    36  sys flag         i32                                  properties length   i16, then properties
    40  born time stamp  i64, ms

A file of the commit log that has no room for the next record ends with a blank: total size, magic code, nothing more.
With `enabledAppendPropCRC` the properties end with 20 bytes `__CRC32#`, 1, ten digits, 2: the CRC of all bytes before
them, its least significant digit first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from zlib import crc32

from mqlab.errors import LearnerError
from mqlab.protocol import compression
from mqlab.protocol.errors import CompressionError, RecordError
from mqlab.protocol.hosts import decode_host, encode_host
from mqlab.protocol.message import MessageExt
from mqlab.protocol.properties import PROPERTIES_MAX_BYTES, decode_properties
from mqlab.protocol.sysflag import MessageSysFlag

MESSAGE_MAGIC_CODE = -626843481
MESSAGE_MAGIC_CODE_V2 = -626843477
BLANK_MAGIC_CODE = -875286124
BLANK_MIN_BYTES = 8
RECORD_MIN_BYTES = 91
"""A record with IPv4 hosts and nothing in it."""

TOTAL_SIZE_OFFSET = 0
MAGIC_CODE_OFFSET = 4
BODY_CRC_OFFSET = 8
QUEUE_OFFSET_OFFSET = 20
PHYSICAL_OFFSET_OFFSET = 28
SYS_FLAG_OFFSET = 36
STORE_TIMESTAMP_OFFSET = 56

CRC_TAIL_BYTES = 20

_FIXED = struct.Struct(">iiIiiqqiq")
_HEADS = {
    (born, store): struct.Struct(f">iiIiiqqiq{born}sq{store}siqi") for born in (8, 20) for store in (8, 20)
}
_HEAD = _HEADS[8, 8]
_HEAD_BYTES = _HEAD.size
_IPV6_HOSTS = 0x30
_PROPERTIES_LENGTH = struct.Struct(">H")
_BLANK = struct.Struct(">ii")
_V1_TOPIC_MAX = 127


@lru_cache(maxsize=16384)
def _topic_field(topic: str) -> tuple[int, bytes]:
    """The magic code that a topic asks for, and its length with its bytes."""
    stored = topic.encode("utf-8", "replace")
    if len(topic) <= _V1_TOPIC_MAX and len(stored) <= 255:
        return MESSAGE_MAGIC_CODE, bytes((len(stored),)) + stored
    if len(stored) > 0x7FFF:
        raise LearnerError(f"the topic has {len(stored)} bytes", "the longest topic name has 255 characters")
    return MESSAGE_MAGIC_CODE_V2, len(stored).to_bytes(2, "big") + stored


def record_size(
    topic: str, body_length: int, properties_length: int, sys_flag: int = 0, append_crc: bool = False
) -> int:
    """How many bytes a record takes; the two lengths are in bytes, the CRC tail is not counted in the latter."""
    size = 90 + len(_topic_field(topic)[1]) + body_length + properties_length
    if sys_flag & MessageSysFlag.BORNHOST_V6:
        size += 12
    if sys_flag & MessageSysFlag.STOREHOST_V6:
        size += 12
    return size + CRC_TAIL_BYTES if append_crc else size


def encode_record(
    topic: str,
    body: bytes,
    properties: str,
    queue_id: int,
    queue_offset: int,
    physical_offset: int,
    store_timestamp: int,
    born_timestamp: int,
    born_host: str,
    store_host: str,
    flag: int = 0,
    sys_flag: int = 0,
    reconsume_times: int = 0,
    prepared_transaction_offset: int = 0,
    append_crc: bool = False,
) -> bytes:
    """The bytes of one record as the broker writes them.

    `body` is written as it is, packed or not; `properties` is the encoded text; the time stamps are ms since 1970,
    hosts `ip:port`. The two bits of the sys flag that tell IPv6 hosts are set here. Raises LearnerError when the
    properties are longer than 32767 bytes.
    """
    born = encode_host(born_host)
    store = encode_host(store_host)
    magic, topic_field = _topic_field(topic)
    stored_properties = properties.encode("utf-8", "replace")
    properties_length = len(stored_properties)
    body_length = len(body)
    if append_crc:
        if properties_length and stored_properties[-1] != 2:
            stored_properties += b"\x02"
            properties_length += 1
        properties_length += CRC_TAIL_BYTES
    if properties_length > PROPERTIES_MAX_BYTES:
        raise LearnerError(
            f"the properties of the message take {properties_length} bytes",
            f"{PROPERTIES_MAX_BYTES} bytes are the most; put long values into the body",
        )
    head = _HEAD
    size = 90 + len(topic_field) + body_length + properties_length
    if len(born) == 20 or len(store) == 20:
        head = _HEADS[len(born), len(store)]
        size += len(born) + len(store) - 16
        sys_flag |= (MessageSysFlag.BORNHOST_V6 if len(born) == 20 else 0) | (
            MessageSysFlag.STOREHOST_V6 if len(store) == 20 else 0
        )
    record = b"".join((
        head.pack(
            size, magic, crc32(body) & 0x7FFFFFFF, queue_id, flag, queue_offset, physical_offset, sys_flag,
            born_timestamp, born, store_timestamp, store, reconsume_times, prepared_transaction_offset, body_length,
        ),
        body,
        topic_field,
        _PROPERTIES_LENGTH.pack(properties_length),
        stored_properties,
    ))  # fmt: skip
    return record + crc_tail(record) if append_crc else record


def crc_tail(record: bytes) -> bytes:
    """The 20 bytes that end a record with `enabledAppendPropCRC`, for the bytes before them."""
    return b"__CRC32#\x01" + f"{crc32(record) & 0x7FFFFFFF:010d}"[::-1].encode() + b"\x02"


def encode_blank(size: int) -> bytes:
    """The 8 bytes that say: nothing follows in this file; `size` is what is left of it, these 8 bytes included."""
    return _BLANK.pack(size, BLANK_MAGIC_CODE)


def decode_record(
    buffer: bytes,
    offset: int = 0,
    *,
    check_crc: bool = False,
    check_properties_crc: bool = False,
    decompress: bool = True,
    read_body: bool = True,
) -> MessageExt:
    """The message whose record begins at `offset`; RecordError with that offset when it is none.

    With `decompress` a packed body is unpacked and the bit that says so is taken out of `sys_flag`; all else stays as
    stored. With `check_crc` a body that is not the one that was stored is an error, too: in RocketMQ only recovery asks
    for that, so whoever pulls or revives a message gets a damaged body as it is. With `check_properties_crc` the CRC
    tail is compared as well, if there is one. Without `read_body` the body stays empty and its CRC unchecked;
    `stored_body_length` is its length in the record in any case. What is not UTF-8 in topic or properties is replaced
    by U+FFFD.

    Java: org.apache.rocketmq.common.message.MessageDecoder.decode.
    """
    left = len(buffer) - offset
    if offset < 0 or left < RECORD_MIN_BYTES:
        raise _no_record(buffer, offset)
    (
        size, magic, body_crc, queue_id, flag, queue_offset, physical_offset, sys_flag, born_timestamp, born_host,
        store_timestamp, store_host, reconsume_times, prepared_transaction_offset, body_length,
    ) = _HEAD.unpack_from(buffer, offset)  # fmt: skip
    body_at = offset + _HEAD_BYTES
    if not RECORD_MIN_BYTES <= size <= left or (magic != MESSAGE_MAGIC_CODE and magic != MESSAGE_MAGIC_CODE_V2):
        raise _no_record(buffer, offset)
    try:
        if sys_flag & _IPV6_HOSTS:
            (
                born_host, store_timestamp, store_host, reconsume_times, prepared_transaction_offset, body_length,
            ), body_at = _unpack_long_hosts(buffer, offset, sys_flag)  # fmt: skip
        topic_at = body_at + body_length
        if magic == MESSAGE_MAGIC_CODE:
            topic_length, topic_at = buffer[topic_at], topic_at + 1
        else:
            (topic_length,), topic_at = _PROPERTIES_LENGTH.unpack_from(buffer, topic_at), topic_at + 2
        properties_at = topic_at + topic_length + 2
        (properties_length,) = _PROPERTIES_LENGTH.unpack_from(buffer, properties_at - 2)
    except (struct.error, IndexError):
        raise RecordError(offset, "a length inside it points behind the end of the buffer") from None
    if body_length < 0 or properties_at + properties_length != offset + size:
        raise RecordError(
            offset,
            f"its parts take {properties_at + properties_length - offset} bytes, its total size is {size}",
        )
    body = b""
    if read_body and body_length:
        body = buffer[body_at : body_at + body_length]
        if check_crc and crc32(body) & 0x7FFFFFFF != body_crc:
            raise RecordError(offset, f"the CRC of the body is {crc32(body) & 0x7FFFFFFF}, the record says {body_crc}")
        if decompress and sys_flag & MessageSysFlag.COMPRESSED:
            body = _unpacked(offset, sys_flag, body)
            sys_flag = MessageSysFlag.clear_compressed(sys_flag)
    if check_properties_crc:
        _check_tail(buffer, offset, size)
    topic = buffer[topic_at : topic_at + topic_length].decode(errors="replace")
    properties = buffer[properties_at : properties_at + properties_length].decode(errors="replace")
    # By position: Python would make a dict of the names for each message.
    return MessageExt(
        topic, body, flag, decode_properties(properties), queue_id, queue_offset, physical_offset, size, sys_flag,
        born_timestamp, decode_host(born_host), store_timestamp, decode_host(store_host), reconsume_times,
        prepared_transaction_offset, body_crc, magic, body_length,
    )  # fmt: skip


def _no_record(buffer: bytes, offset: int) -> RecordError:
    """Why there is no record at `offset`."""
    if offset < 0 or len(buffer) - offset < BLANK_MIN_BYTES:
        return RecordError(offset, f"only {max(0, len(buffer) - offset)} bytes are left")
    size, magic = _BLANK.unpack_from(buffer, offset)
    if magic == BLANK_MAGIC_CODE:
        return RecordError(offset, "it is the blank at the end of a file")
    if magic not in (MESSAGE_MAGIC_CODE, MESSAGE_MAGIC_CODE_V2):
        return RecordError(offset, f"unknown magic code 0x{magic & 0xFFFFFFFF:08X}")
    return RecordError(offset, f"its total size is {size}, {len(buffer) - offset} bytes are left")


def _unpack_long_hosts(buffer: bytes, offset: int, sys_flag: int) -> tuple[tuple[Any, ...], int]:
    """The head from its first host on in a record with an IPv6 host, and where the body begins."""
    head = _HEADS[20 if sys_flag & 0x10 else 8, 20 if sys_flag & 0x20 else 8]
    return head.unpack_from(buffer, offset)[9:], offset + head.size


def _unpacked(offset: int, sys_flag: int, body: bytes) -> bytes:
    try:
        return compression.decompress(sys_flag, body)
    except CompressionError as problem:
        raise RecordError(offset, str(problem)) from problem


def _check_tail(buffer: bytes, offset: int, size: int) -> None:
    tail = buffer[offset + size - CRC_TAIL_BYTES : offset + size]
    if not tail.startswith(b"__CRC32#\x01"):
        return
    expected = crc_tail(buffer[offset : offset + size - CRC_TAIL_BYTES])
    if tail != expected:
        raise RecordError(offset, f"the CRC at its end is {tail[9:-1]!r}, its bytes give {expected[9:-1]!r}")


def scan_records(
    buffer: bytes, *, check_crc: bool = False, decompress: bool = True
) -> Iterator[MessageExt]:
    """The messages of records one behind the other, as in the body of a pull; RecordError at the first bad one."""
    offset = 0
    while offset < len(buffer):
        message = decode_record(buffer, offset, check_crc=check_crc, decompress=decompress)
        yield message
        offset += message.store_size
