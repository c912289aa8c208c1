"""The remoting command: the one thing that travels between two nodes of RocketMQ, request or response.

Java: org.apache.rocketmq.remoting.protocol.RemotingCommand. A frame on the wire is

    total length  i32   bytes that follow this field
    header word   i32   top 8 bits: how the header is written (0 JSON, 1 ROCKETMQ); low 24 bits: its length
    header        JSON text or a compact binary form (mqlab.protocol.command_header)
    body          the rest; an absent body and an empty body look the same

Unlike Java, a command here is turned into bytes only when somebody asks for them: inside a world the object itself is
handed over, and its typed header never becomes a dict of texts.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, TypeVar

from mqlab.protocol import command_header
from mqlab.protocol.codes import CURRENT_VERSION, LanguageCode, code_name
from mqlab.protocol.command_header import JSON, ROCKETMQ
from mqlab.protocol.errors import CommandError
from mqlab.protocol.header_codec import codec_of, decode_header

FRAME_MAX_LENGTH = 16_777_216
"""The longest frame a peer accepts, in bytes with its length field (com.rocketmq.remoting.frameMaxLength)."""

RESPONSE_FLAG = 1
ONEWAY_FLAG = 2

_JAVA = int(LanguageCode.JAVA)
_HEADER_MAX_LENGTH = 0xFFFFFF
_EXTRA_FIELDS_CAPACITY = 256
_PREFIX = struct.Struct(">iI")

_H = TypeVar("_H")


class RemotingCommand:
    """One request or response: a code, a typed header, a body of bytes.

    `opaque` ties a response to its request; whoever sends the command sets it. `header` is the typed header of a
    command made here and None in one that came as bytes: read it with `header_as`. Fields beside the typed header are
    added with `add_ext_field`. Texts inside are never checked here: that is the processors' work.
    """

    __slots__ = (
        "_fields",
        "_keys",
        "body",
        "code",
        "flag",
        "header",
        "language",
        "opaque",
        "remark",
        "serialize_type",
        "version",
    )  # fmt: skip

    def __init__(
        self,
        code: int,
        header: Any = None,
        body: bytes | None = None,
        flag: int = 0,
        remark: str | None = None,
        opaque: int = 0,
    ) -> None:
        # A plain number, as it will be once it has travelled as bytes.
        self.code = int(code)
        self.header = header
        self.body = body or None
        self.flag = flag
        self.remark = remark
        self.opaque = opaque
        self.language = _JAVA
        self.version = CURRENT_VERSION
        self.serialize_type = JSON
        # Never changed in place: copies of a command share it.
        self._fields: Mapping[str, str] | None = None
        self._keys: tuple[str, ...] | None = None

    @classmethod
    def request(cls, code: int, header: Any = None, body: bytes | None = None) -> RemotingCommand:
        """A request with a typed header, if its code has one, and a body."""
        return cls(code, header, body)

    @classmethod
    def response(
        cls, code: int, remark: str | None = None, header: Any = None, body: bytes | None = None
    ) -> RemotingCommand:
        """A response; who sends it back sets `opaque` to that of the request."""
        return cls(code, header, body, RESPONSE_FLAG, remark)

    @property
    def is_response(self) -> bool:
        return self.flag & RESPONSE_FLAG != 0

    @property
    def is_oneway(self) -> bool:
        """Whether the receiver must not answer."""
        return self.flag & ONEWAY_FLAG != 0

    def mark_oneway(self) -> RemotingCommand:
        """Say that no answer is wanted; returns the command itself."""
        self.flag |= ONEWAY_FLAG
        return self

    def mark_response(self) -> RemotingCommand:
        """Say that this is an answer; returns the command itself."""
        self.flag |= RESPONSE_FLAG
        return self

    def add_ext_field(self, name: str, value: str) -> None:
        """Add one field beside the typed header, as brokers do with `MSG_REGION`."""
        self._fields = {name: value} if self._fields is None else {**self._fields, name: value}

    def add_ext_fields(self, fields: Mapping[str, str]) -> None:
        """Add several fields, which nobody may change any more: many commands share them."""
        self._fields = fields if self._fields is None else {**self._fields, **fields}

    def ext_field(self, name: str) -> str | None:
        """One extension field by its wire name, whether it came on the wire, was added, or is in the typed header."""
        fields = self._fields
        if fields is not None and name in fields:
            return fields[name]
        if self.header is None:
            return None
        return codec_of(type(self.header)).to_fields(self.header).get(name)

    @property
    def ext_fields(self) -> dict[str, str] | None:
        """All extension fields as they travel: texts by wire name; None when there is neither header nor field.

        The dict is made for you; changing it changes nothing here.
        """
        if self.header is None:
            return None if self._fields is None else dict(self._fields)
        codec = codec_of(type(self.header))
        if self._fields is None:
            return codec.to_fields_in_map_order(self.header)
        return codec.map_order({**self._fields, **codec.to_fields(self.header)}, _EXTRA_FIELDS_CAPACITY)

    def header_as(self, cls: type[_H]) -> _H:
        """The typed header: the object itself when it is of that class, else read out of the extension fields.

        Raises HeaderError naming the field when one is missing or is not what its type wants.
        """
        header = self.header
        if type(header) is cls:
            return header
        return decode_header(cls, self.ext_fields or {})

    def snapshot(self) -> RemotingCommand:
        """A cheap copy to hand to the network: what the sender changes afterwards does not reach the receiver."""
        copy = RemotingCommand(self.code, self.header, self.body, self.flag, self.remark, self.opaque)
        copy.language = self.language
        copy.version = self.version
        copy.serialize_type = self.serialize_type
        copy._fields = self._fields
        copy._keys = self._keys
        return copy

    def encode(self) -> bytes:
        """The whole frame with its length field."""
        header = self.encode_header()
        body = self.body or b""
        if len(header) > _HEADER_MAX_LENGTH:
            raise CommandError(f"a header of {len(header)} bytes does not fit the 24 bits of its length")
        length = 4 + len(header) + len(body)
        if length > 0x7FFF_FFFF:
            raise CommandError(f"a frame of {length} bytes does not fit its length field")
        return _PREFIX.pack(length, self.serialize_type << 24 | len(header)) + header + body

    def encode_header(self) -> bytes:
        """The header alone, in the form that `serialize_type` names."""
        parts = command_header.HeaderParts(
            self.code, self.language, self.version, self.opaque, self.flag, self.remark, self._wire_fields(), self._keys
        )
        if self.serialize_type == ROCKETMQ:
            return command_header.encode_rocketmq(parts)
        return command_header.encode_json(parts)

    def _wire_fields(self) -> Mapping[str, str] | None:
        if self.serialize_type == ROCKETMQ and self.header is not None:
            codec = codec_of(type(self.header))
            if codec.fast:
                return {**codec.to_fields(self.header), **(self._fields or {})}
        return self.ext_fields

    @classmethod
    def decode(cls, frame: bytes) -> RemotingCommand:
        """The command in one whole frame, length field included; CommandError says what is wrong with another one."""
        if len(frame) < 8:
            raise CommandError(f"a frame has at least 8 bytes, this has {len(frame)}")
        length, word = _PREFIX.unpack_from(frame)
        if len(frame) > FRAME_MAX_LENGTH:
            raise CommandError(f"a frame of {len(frame)} bytes is over the limit of {FRAME_MAX_LENGTH}")
        if length != len(frame) - 4:
            raise CommandError(f"the length field says {length} bytes, {len(frame) - 4} follow it")
        serialize_type, header_length = word >> 24, word & 0xFFFFFF
        if header_length > length - 4:
            raise CommandError(f"a header of {header_length} bytes in a frame with room for {length - 4}")
        header = bytes(frame[8 : 8 + header_length])
        if serialize_type == JSON:
            parts = command_header.decode_json(header)
        elif serialize_type == ROCKETMQ:
            parts = command_header.decode_rocketmq(header)
        else:
            raise CommandError(f"unknown serialize type {serialize_type}; 0 is JSON, 1 is ROCKETMQ")
        command = cls(parts.code, None, bytes(frame[8 + header_length :]), parts.flag, parts.remark, parts.opaque)
        command.language = parts.language
        command.version = parts.version
        command.serialize_type = serialize_type
        command._fields = parts.ext_fields
        command._keys = parts.keys
        return command

    def __repr__(self) -> str:
        kind = "response" if self.is_response else "oneway" if self.is_oneway else "request"
        parts = [f"code={self.code} {code_name(self.code, self.is_response)}", f"opaque={self.opaque}"]
        if self.remark:
            parts.append(f"remark={self.remark!r}")
        if self.header is not None:
            parts.append(repr(self.header))
        elif self._fields:
            parts.append(f"extFields={self._fields}")
        if self.body:
            parts.append(f"body={len(self.body)} bytes")
        return f"RemotingCommand [{kind}, {', '.join(parts)}]"
