"""The two written forms of a command's header: JSON text, and RocketMQ's own compact binary form.

Java: org.apache.rocketmq.remoting.protocol.RemotingSerializable and RocketMQSerializable.

The binary form: code i16, language i8, version i16, opaque i32, flag i32, remark length i32 and text, length of all
extension fields i32, then for each of them key length i16, key, value length i32, value. A code over 32767 is cut to
its low 16 bits, so that Pop commands only work in JSON.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from mqlab.protocol.codes import LanguageCode
from mqlab.protocol.errors import CommandError
from mqlab.protocol.json_text import json_string

JSON = 0
ROCKETMQ = 1

_HEAD = struct.Struct(">HBHiii")
_I16 = struct.Struct(">H")
_I32 = struct.Struct(">i")
_KEYS = ("code", "extFields", "flag", "language", "opaque", "remark", "serializeTypeCurrentRPC", "version")
_LANGUAGES: dict[str, int] = {language.name: language for language in LanguageCode}
_LANGUAGE_NAMES: dict[int, str] = {int(language): language.name for language in LanguageCode}


class HeaderParts(NamedTuple):
    """What a header says. `keys` is the order of the JSON members where it is not the usual one."""

    code: int
    language: int
    version: int
    opaque: int
    flag: int
    remark: str | None
    ext_fields: Mapping[str, str] | None
    keys: tuple[str, ...] | None = None


def encode_json(parts: HeaderParts) -> bytes:
    """The header as JSON text in UTF-8; members that are None are left out."""
    members = {
        "code": str(int(parts.code)),
        "extFields": None if parts.ext_fields is None else _json_object(parts.ext_fields),
        "flag": str(parts.flag),
        "language": f'"{_language_name(parts.language)}"',
        "opaque": str(parts.opaque),
        "remark": None if parts.remark is None else json_string(parts.remark),
        "serializeTypeCurrentRPC": '"JSON"',
        "version": str(parts.version),
    }
    text = ",".join(f'"{key}":{value}' for key in parts.keys or _KEYS if (value := members[key]) is not None)
    # Java writes half of a surrogate pair as a question mark.
    return f"{{{text}}}".encode("utf-8", "replace")


def _json_object(fields: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{json_string(name)}:{json_string(value)}" for name, value in fields.items()) + "}"


def decode_json(header: bytes) -> HeaderParts:
    """What a JSON header says; members that RocketMQ does not know are passed over, as there."""
    try:
        members = json.loads(header.decode("utf-8"))
    except (ValueError, RecursionError) as problem:
        raise CommandError(f"the JSON header cannot be read: {problem}") from None
    if not isinstance(members, dict):
        raise CommandError(f"the JSON header is a {type(members).__name__}, not an object")
    remark = members.get("remark")
    if remark is not None and not isinstance(remark, str):
        raise CommandError(f"remark is not a text: {remark!r}")
    seen = tuple(key for key in members if key in _KEYS and members[key] is not None)
    usual = tuple(key for key in _KEYS if key in seen)
    complete = len(usual) == len(_KEYS) - (remark is None) - (members.get("extFields") is None)
    return HeaderParts(
        _json_int(members, "code"),
        _json_language(members),
        _json_int(members, "version"),
        _json_int(members, "opaque"),
        _json_int(members, "flag"),
        remark,
        _json_fields(members.get("extFields")),
        None if complete and seen == usual else seen,
    )


def _json_int(members: dict[str, Any], key: str) -> int:
    value = members.get(key, 0)
    if type(value) is not int or not -0x8000_0000 <= value <= 0x7FFF_FFFF:
        raise CommandError(f"{key} is not a 32-bit number: {value!r}")
    return value


def _json_language(members: dict[str, Any]) -> int:
    name = members.get("language", "JAVA")
    if not isinstance(name, str) or name not in _LANGUAGES:
        raise CommandError(f"unknown language {name!r}")
    return _LANGUAGES[name]


def _json_fields(fields: object) -> dict[str, str] | None:
    if fields is None:
        return None
    if not isinstance(fields, dict):
        raise CommandError(f"extFields is not an object: {fields!r}")
    return {name: _json_field(name, value) for name, value in fields.items() if value is not None}


def _json_field(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    raise CommandError(f"the extension field {name!r} is not a text: {value!r}")


def _language_name(language: int) -> str:
    name = _LANGUAGE_NAMES.get(language)
    if name is None:
        raise CommandError(f"unknown language {language}")
    return name


def encode_rocketmq(parts: HeaderParts) -> bytes:
    """The header in the compact binary form."""
    remark = (parts.remark or "").encode("utf-8", "replace")
    try:
        fixed = _HEAD.pack(
            parts.code & 0xFFFF, parts.language, parts.version & 0xFFFF, parts.opaque, parts.flag, len(remark)
        )
        entries = b"".join(_binary_field(name, value) for name, value in (parts.ext_fields or {}).items())
        return b"".join((fixed, remark, _I32.pack(len(entries)), entries))
    except struct.error as problem:
        raise CommandError(f"a value does not fit the binary header: {problem}") from None


def _binary_field(name: str, value: str) -> bytes:
    key = name.encode("utf-8", "replace")
    text = value.encode("utf-8", "replace")
    if len(key) > 0x7FFF:
        raise CommandError(f"the name of an extension field has {len(key)} bytes; 32767 are the most")
    return b"".join((_I16.pack(len(key)), key, _I32.pack(len(text)), text))


def decode_rocketmq(header: bytes) -> HeaderParts:
    """What a binary header says; a remark of no length is none."""
    reader = _Reader(header)
    code, language, version, opaque, flag, remark_length = _HEAD.unpack(reader.take(_HEAD.size))
    if language not in _LANGUAGE_NAMES:
        raise CommandError(f"unknown language {language}")
    remark = reader.text(remark_length) or None
    entries = _Reader(reader.take(reader.number()))
    if reader.left:
        raise CommandError(f"{reader.left} bytes are left over behind the extension fields")
    fields: dict[str, str] = {}
    while entries.left:
        name = entries.text(_I16.unpack(entries.take(2))[0])
        fields[name] = entries.text(entries.number())
    return HeaderParts(_signed16(code), language, _signed16(version), opaque, flag, remark, fields or None)


def _signed16(value: int) -> int:
    return value - 0x10000 if value & 0x8000 else value


class _Reader:
    """Takes bytes off a buffer and says clearly when there are too few."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, n: int) -> bytes:
        if not 0 <= n <= self.left:
            raise CommandError(f"the binary header wants {n} bytes at {self._at}, {self.left} are left")
        piece = self._data[self._at : self._at + n]
        self._at += n
        return piece

    def number(self) -> int:
        value: int = _I32.unpack(self.take(4))[0]
        return value

    def text(self, n: int) -> str:
        try:
            return self.take(n).decode("utf-8")
        except UnicodeDecodeError as problem:
            raise CommandError(f"a text of the binary header is not UTF-8: {problem}") from None
