"""Messages as 5.x applications make and get them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import md5, sha1
from types import MappingProxyType
from typing import TYPE_CHECKING
from zlib import crc32

from mqlab.client.v5.errors import ClientException
from mqlab.errors import LearnerError
from mqlab.protocol.compression import decompress
from mqlab.protocol.errors import CompressionError
from mqlab.protocol.extra_info import parse_handle
from mqlab.protocol.sysflag import MessageSysFlag
from mqlab.protocol.v2 import definition as v2
from mqlab.protocol.v2.protobuf import NO_PROPERTIES, Timestamp

if TYPE_CHECKING:
    from mqlab.sim import Node

EPOCH_2021_MS = 1_609_459_200_000
MESSAGE_ID_VERSION = "01"


class Message:
    """A message to send (org.apache.rocketmq.client.apis.message.Message).

    A `message_group` lets messages keep their order among each other, a `delivery_timestamp` (ms since 1970) delivers
    one later; both together are refused. The topic must have been made for such messages.
    """

    __slots__ = ("body", "delivery_timestamp", "keys", "message_group", "properties", "tag", "topic")

    def __init__(
        self,
        topic: str,
        body: bytes | str,
        tag: str | None = None,
        keys: Iterable[str] | str = (),
        *,
        message_group: str | None = None,
        delivery_timestamp: int | None = None,
        properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> None:
        if message_group is not None and delivery_timestamp is not None:
            raise LearnerError(
                "a message cannot have both a message group and a time of delivery", "leave one of them out"
            )
        if not isinstance(body, bytes | str):
            raise LearnerError(f"the body of a message is bytes, not {type(body).__name__}", "encode it as UTF-8")
        self.topic = topic
        self.body = body.encode() if isinstance(body, str) else body
        self.tag = tag
        self.keys = (keys,) if isinstance(keys, str) else tuple(keys)
        self.message_group = message_group
        self.delivery_timestamp = delivery_timestamp
        self.properties = dict(properties)

    @property
    def message_type(self) -> v2.MessageType:
        """The kind of message outside of a transaction."""
        if self.message_group is not None:
            return v2.MessageType.FIFO
        return v2.MessageType.NORMAL if self.delivery_timestamp is None else v2.MessageType.DELAY

    def to_protobuf(self, message_id: str, kind: v2.MessageType, node: Node) -> v2.Message:
        """The message as it travels, as one of this kind."""
        deliver_ms = self.delivery_timestamp
        system = v2.SystemProperties(
            tag=self.tag,
            keys=self.keys,
            message_id=message_id,
            body_encoding=v2.Encoding.IDENTITY,
            message_type=kind,
            born_timestamp=Timestamp(node.now_ms()),
            born_host=node.name,
            delivery_timestamp=Timestamp(deliver_ms) if deliver_ms is not None else None,
            message_group=self.message_group,
        )
        return v2.Message(v2.Resource(name=self.topic), MappingProxyType(dict(self.properties)), system, self.body)

    def __repr__(self) -> str:
        return f"Message(topic={self.topic!r}, tag={self.tag!r}, body={self.body[:40]!r})"


class MessageView:
    """A message that was received (org.apache.rocketmq.client.apis.message.MessageView).

    `delivery_attempt` counts from 1; `receipt_handle` stands for this one delivery. Times are ms since 1970.
    """

    __slots__ = (
        "body", "born_timestamp", "broker_name", "corrupted", "delivery_attempt", "delivery_timestamp",
        "endpoints", "keys", "message_group", "message_id", "properties", "queue_id", "queue_offset",
        "receipt_handle", "tag", "topic", "transport_delivery_timestamp",
    )  # fmt: skip

    def __init__(self, message: v2.Message, broker: v2.Broker, transport_delivery_timestamp: int | None) -> None:
        system = message.system_properties
        self.message_id = system.message_id
        self.topic = message.topic.name
        self.tag = system.tag
        self.keys = system.keys
        self.message_group = system.message_group
        self.properties = dict(message.user_properties)
        self.body, self.corrupted = _body(message)
        self.born_timestamp = int(system.born_timestamp or 0)
        self.delivery_timestamp = system.delivery_timestamp
        self.delivery_attempt = system.delivery_attempt or 0
        self.receipt_handle = system.receipt_handle or ""
        self.broker_name = broker.name
        self.endpoints = broker.endpoints
        self.queue_id = system.queue_id
        self.queue_offset = system.queue_offset or 0
        self.transport_delivery_timestamp = transport_delivery_timestamp

    @property
    def invisible_until_ms(self) -> int:
        """When others can see the message again by this handle; a proxy may have made it later since."""
        return parse_handle(self.receipt_handle).expires_ms

    def __repr__(self) -> str:
        return (
            f"MessageView(topic={self.topic!r}, message_id={self.message_id!r}, body={self.body[:40]!r}, "
            f"delivery_attempt={self.delivery_attempt})"
        )


def _body(message: v2.Message) -> tuple[bytes, bool]:
    """The body, unpacked, and whether it is damaged."""
    body, system = message.body, message.system_properties
    corrupted = system.body_digest is not None and not _matches(body, system.body_digest)
    if system.body_encoding == v2.Encoding.GZIP:
        try:
            body = decompress(MessageSysFlag.COMPRESSED, body)
        except CompressionError:
            corrupted = True
    return body, corrupted


def _matches(body: bytes, digest: v2.Digest) -> bool:
    if digest.type == v2.DigestType.CRC32:
        return digest.checksum == f"{crc32(body):08X}"
    if digest.type == v2.DigestType.MD5:
        return digest.checksum == md5(body, usedforsecurity=False).hexdigest().upper()
    if digest.type == v2.DigestType.SHA1:
        return digest.checksum == sha1(body, usedforsecurity=False).hexdigest().upper()
    return True


class MessageIdCodec:
    """Makes message ids: 34 hexadecimal digits (org.apache.rocketmq.client.java.message.MessageIdCodec).

         0  version   2 digits   "01"
         2  MAC      12 digits   of the machine; here 02:00 and its address
        14  process   4 digits   the lower half of its id
        18  seconds   8 digits   since 2021
        26  number    8 digits   counts the messages of the process
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        parts = [int(part) for part in node.spec.ip.split(".")]
        self._fixed = f"{MESSAGE_ID_VERSION}0200{bytes(parts).hex().upper()}{node.spec.pid & 0xFFFF:04X}"
        self._next = 0

    @classmethod
    def of(cls, node: Node) -> MessageIdCodec:
        """The one of a process."""
        codec: MessageIdCodec = node.life.singletons.setdefault("MessageIdCodec", cls(node))
        return codec

    def next_message_id(self) -> str:
        """A new message id: version, address, process, time and a counter, as hexadecimal digits."""
        seconds = (self._node.now_ms() - EPOCH_2021_MS) // 1_000
        number, self._next = self._next, self._next + 1
        return f"{self._fixed}{seconds & 0xFFFF_FFFF:08X}{number & 0xFFFF_FFFF:08X}"


def check_body(message: Message, max_body_size: int) -> None:
    """ClientException for a message that is larger than the server allows (PublishingMessageImpl)."""
    if len(message.body) > max_body_size:
        raise ClientException(f"Message body size exceeds the threshold, max size={max_body_size} bytes")
