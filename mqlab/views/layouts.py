"""The layouts of RocketMQ's bytes, labelled: a stored message, a consume-queue entry, an index file, a frame."""

from __future__ import annotations

import struct
from datetime import UTC, datetime

from mqlab.errors import LearnerError
from mqlab.views.json_header import json_header_members
from mqlab.views.labelled_bytes import Field, LabelledBytes

V2_MAGIC = 0xDAA320AB
_INT, _LONG, _SHORT = struct.Struct(">i"), struct.Struct(">q"), struct.Struct(">h")


class _Reader:
    """Walks through bytes and notes each field on the way."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.fields: list[Field] = []

    def take(self, name: str, length: int, value: str) -> None:
        self.fields.append(Field(name, self.at, length, value))
        self.at += length

    def number(self, name: str, form: struct.Struct, note: str = "") -> int:
        if self.at + form.size > len(self.data):
            raise LearnerError(f"the bytes end inside {name}", "give the whole record")
        value: int = form.unpack_from(self.data, self.at)[0]
        self.take(name, form.size, f"{value}{'  ' + note if note else ''}")
        return value

    def time(self, name: str) -> None:
        (ms,) = _LONG.unpack_from(self.data, self.at)
        try:
            said = datetime.fromtimestamp(ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S") + f".{ms % 1_000:03d} UTC"
        except (OverflowError, ValueError, OSError):
            said = "not a time"
        self.take(name, 8, f"{ms}  {said}")

    def text(self, name: str, length: int) -> None:
        raw = self.data[self.at : self.at + length]
        shown = raw.decode("utf-8", "backslashreplace").replace("\x01", "=").replace("\x02", "; ")
        self.take(name, length, shown if len(shown) <= 80 else shown[:77] + "...")

    def host(self, name: str, length: int) -> None:
        raw = self.data[self.at : self.at + length]
        ip = ".".join(str(b) for b in raw[:4]) if length == 8 else raw[:16].hex(":", 2)
        (port,) = _INT.unpack_from(raw, length - 4)
        self.take(name, length, f"{ip}:{port}")


def label_record(data: bytes, base: int = 0, *, each_property: bool = False) -> LabelledBytes:
    """A message as the commit log stores it, field by field (org.apache.rocketmq.store.MessageExtEncoder).

    The properties are one field, or with `each_property` a field each.
    """
    reader = _Reader(data)
    reader.number("totalSize", _INT, "the whole record")
    magic = struct.unpack_from(">I", data, 4)[0]
    reader.take("magicCode", 4, f"0x{magic:08X}")
    for name in ("bodyCRC", "queueId", "flag"):
        reader.number(name, _INT)
    reader.number("queueOffset", _LONG, "the place in the queue")
    reader.number("physicalOffset", _LONG, "the place in the commit log")
    sys_flag = reader.number("sysFlag", _INT)
    reader.time("bornTimestamp")
    reader.host("bornHost", 20 if sys_flag & 0x10 else 8)
    reader.time("storeTimestamp")
    reader.host("storeHost", 20 if sys_flag & 0x20 else 8)
    reader.number("reconsumeTimes", _INT)
    reader.number("preparedTransactionOffset", _LONG)
    reader.text("body", reader.number("bodyLength", _INT))
    if magic == V2_MAGIC:
        topic_length = reader.number("topicLength", _SHORT)
    else:
        topic_length = data[reader.at]
        reader.take("topicLength", 1, str(topic_length))
    reader.text("topic", topic_length)
    length = reader.number("propertiesLength", _SHORT)
    if each_property:
        _take_properties(reader, length)
    else:
        reader.text("properties", length)
    return LabelledBytes("message in the commit log", data, reader.fields, base=base)


def _take_properties(reader: _Reader, length: int) -> None:
    """Each property with the byte that ends it: name, 0x01, value, 0x02 (which the last one may lack)."""
    end = reader.at + length
    while reader.at < end:
        stop = reader.data.find(b"\x02", reader.at, end)
        raw = reader.data[reader.at : stop if stop >= 0 else end]
        name, _, value = raw.decode("utf-8", "backslashreplace").partition("\x01")
        reader.take(name, len(raw) + (stop >= 0), value)


def label_consume_queue_entry(data: bytes, queue_offset: int, *, delayed: bool = False) -> LabelledBytes:
    """The 20 bytes of a consume queue that point at one message (org.apache.rocketmq.store.ConsumeQueue).

    The entry of a delayed message has a time, in ms since 1970, in place of the hash.
    """
    reader = _Reader(data)
    reader.number("physicalOffset", _LONG, "where the message begins in the commit log")
    reader.number("size", _INT, "how long it is")
    reader.number("tagsCode", _LONG, "ms since 1970: when it is due" if delayed else "the hash of its tag")
    return LabelledBytes(f"consume-queue entry {queue_offset}", data, reader.fields, base=queue_offset * 20)


def replication_words(data: bytes) -> str | None:
    """What a frame between a master and its slave says; None if it can be none of these.

    Java: org.apache.rocketmq.store.ha.DefaultHAConnection.
    """
    if len(data) == _LONG.size:
        return f"slave has {_LONG.unpack(data)[0]}"
    if len(data) < 12 or _INT.unpack_from(data, 8)[0] != len(data) - 12:
        return None
    (offset,) = _LONG.unpack_from(data)
    return f"log from {offset}" if len(data) > 12 else f"heartbeat at {offset}"


def label_other_frame(data: bytes) -> LabelledBytes:
    """What travels and is no remoting command: a piece of a commit log on its way to a slave, or HTTP as it is."""
    reader = _Reader(data)
    if replication_words(data) is not None:
        report = len(data) == _LONG.size
        reader.number("maxOffset" if report else "physicOffset", _LONG, "where the slave's log ends" if report else "")
        if not report:
            reader.number("bodySize", _INT)
            reader.take("body", len(data) - 12, "a piece of the commit log")
        return LabelledBytes("replication", data, reader.fields)
    reader.text("bytes", len(data))
    return LabelledBytes("no remoting command", data, reader.fields)


def label_frame(data: bytes) -> LabelledBytes:
    """A remoting command as it travels, with the members of a JSON header one by one.

    org.apache.rocketmq.remoting.protocol.RemotingCommand
    """
    reader = _Reader(data)
    reader.number("totalLength", _INT, "what follows this field")
    (word,) = struct.unpack_from(">I", data, 4)
    kind, header_length = word >> 24, word & 0xFFFFFF
    reader.take("serializeType", 1, f"{kind}  {'JSON' if kind == 0 else 'ROCKETMQ'}")
    reader.take("headerLength", 3, str(header_length))
    members = json_header_members(data[reader.at : reader.at + header_length])
    for member in members:
        reader.take(member.name, member.length, member.value)
    if not members:
        reader.text("header", header_length)
    if reader.at < len(data):
        reader.text("body", len(data) - reader.at)
    return LabelledBytes("remoting command", data, reader.fields)
