"""Typed messages as protobuf bytes: the number of each field stands beside its type.

    class Address(NamedTuple):
        host: Annotated[str, 1] = ""
        port: Annotated[int, 2] = 0

A field that was not set has its default and is not written, as in proto3; one that may be absent is `... | None`. A
tuple is a repeated field (numbers in it are packed), a Mapping a map of texts. Times are whole ms here (`Timestamp`,
`Duration`): on the wire they are messages of seconds and nanoseconds. Unknown fields are passed over.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, NamedTuple, NewType, TypeVar, Union, get_args, get_origin, get_type_hints

from mqlab.errors import ProtocolError

MessageT = TypeVar("MessageT", bound=tuple[Any, ...])

Timestamp = NewType("Timestamp", int)
"""google.protobuf.Timestamp, as ms since 1970."""

Duration = NewType("Duration", int)
"""google.protobuf.Duration, in ms."""

NO_PROPERTIES: Mapping[str, str] = MappingProxyType({})
"""An empty map of texts."""

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
"""The wire types that are used here."""


class ProtobufError(ProtocolError):
    """Bytes that are no message of the expected kind."""


class Field(NamedTuple):
    """One field: its name, its number, how a single value is written and read, and how values are gathered."""

    name: str
    number: int
    wire_type: int
    write: Callable[[Any], bytes]
    read: Callable[[Any], Any]
    default: Any
    many: bool
    is_map: bool


def encode(message: tuple[Any, ...]) -> bytes:
    """The bytes of a message."""
    parts = []
    for field, value in zip(fields_of(type(message)), message, strict=True):
        if value == field.default:
            continue
        if field.many and field.wire_type == VARINT:
            packed = b"".join(map(field.write, value))
            parts.append(_varint(field.number << 3 | LENGTH) + _varint(len(packed)) + packed)
            continue
        values = value.items() if field.is_map else value if field.many else (value,)
        tag = _varint(field.number << 3 | field.wire_type)
        for each in values:
            data = field.write(each)
            parts.append(tag + (_varint(len(data)) + data if field.wire_type == LENGTH else data))
    return b"".join(parts)


def decode(cls: type[MessageT], data: bytes) -> MessageT:
    """The message in these bytes; ProtobufError when they are none."""
    by_number = {field.number: field for field in fields_of(cls)}
    found: dict[str, Any] = {}
    for number, wire_type, raw in _pieces(data):
        field = by_number.get(number)
        if field is None:
            continue
        if field.many and field.wire_type == VARINT and wire_type == LENGTH:
            found.setdefault(field.name, []).extend(map(field.read, _unpacked(raw)))
            continue
        if field.wire_type != wire_type:
            raise ProtobufError(f"field {number} of {cls.__name__} has wire type {wire_type}")
        value = field.read(raw)
        if field.is_map:
            found.setdefault(field.name, {})[value[0]] = value[1]
        elif field.many:
            found.setdefault(field.name, []).append(value)
        else:
            found[field.name] = value
    lists = {name: tuple(value) if type(value) is list else value for name, value in found.items()}
    return cls(**lists)


@cache
def fields_of(cls: type) -> tuple[Field, ...]:
    """The fields of a message class, in the order of its text."""
    hints = get_type_hints(cls, include_extras=True)
    defaults: dict[str, Any] = cls._field_defaults  # type: ignore[attr-defined]  # a NamedTuple's
    return tuple(_field(name, hint, defaults[name]) for name, hint in hints.items())


def _field(name: str, hint: Any, default: Any) -> Field:
    kind, number = get_args(hint)
    many = get_origin(kind) is tuple
    if get_origin(kind) is Mapping:
        return Field(name, number, LENGTH, _write_entry, _read_entry, default, True, True)
    if many:
        kind = get_args(kind)[0]
    elif get_origin(kind) in (Union, UnionType):
        kind = next(part for part in get_args(kind) if part is not NoneType)
    wire_type, write, read = _scalar(kind)
    return Field(name, number, wire_type, write, read, default, many, False)


def _scalar(kind: Any) -> tuple[int, Callable[[Any], bytes], Callable[[Any], Any]]:
    if kind in _SCALARS:
        return _SCALARS[kind]
    if issubclass(kind, IntEnum):
        return VARINT, _varint, lambda raw: _member(kind, raw)
    return LENGTH, encode, lambda raw: decode(kind, raw)


def name_of(value: int) -> str:
    """The name of a member of an enumeration; of a number that it does not know, that number."""
    return value.name if isinstance(value, IntEnum) else str(value)


def _member(kind: type[IntEnum], raw: int) -> int:
    """The member of an enumeration; a number that it does not know stays a number."""
    return kind(raw) if raw in kind._value2member_map_ else _signed(raw)


# -- numbers -----------------------------------------------------------------------------------------------------------


def _varint(value: int) -> bytes:
    value &= 0xFFFF_FFFF_FFFF_FFFF
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def _signed(raw: int) -> int:
    return raw - (1 << 64) if raw >> 63 else raw


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
    raise ProtobufError("a number does not end")


def _unpacked(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _read_varint(data, at)
        yield value


def _pieces(data: bytes) -> Iterator[tuple[int, int, Any]]:
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == VARINT:
            value, at = _read_varint(data, at)
            yield number, wire_type, value
            continue
        if wire_type == LENGTH:
            size, at = _read_varint(data, at)
        elif wire_type in (FIXED64, FIXED32):
            size = 8 if wire_type == FIXED64 else 4
        else:
            raise ProtobufError(f"wire type {wire_type} is unknown")
        if at + size > len(data):
            raise ProtobufError(f"field {number} is longer than its message")
        yield number, wire_type, data[at : at + size]
        at += size


# -- texts, times, maps ------------------------------------------------------------------------------------------------


def _read_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ProtobufError(f"a text is not UTF-8: {error}") from None


class _SecondsAndNanos(NamedTuple):
    seconds: Annotated[int, 1] = 0
    nanos: Annotated[int, 2] = 0


class _Entry(NamedTuple):
    key: Annotated[str, 1] = ""
    value: Annotated[str, 2] = ""


def _write_ms(ms: int) -> bytes:
    return encode(_SecondsAndNanos(ms // 1_000, ms % 1_000 * 1_000_000))


def _read_ms(raw: bytes) -> int:
    time = decode(_SecondsAndNanos, raw)
    return time.seconds * 1_000 + time.nanos // 1_000_000


def _write_entry(entry: tuple[str, str]) -> bytes:
    return encode(_Entry(*entry))


def _read_entry(raw: bytes) -> tuple[str, str]:
    entry = decode(_Entry, raw)
    return entry.key, entry.value


_SCALARS: dict[Any, tuple[int, Callable[[Any], bytes], Callable[[Any], Any]]] = {
    int: (VARINT, _varint, _signed),
    bool: (VARINT, _varint, bool),
    str: (LENGTH, str.encode, _read_text),
    bytes: (LENGTH, bytes, bytes),
    float: (FIXED32, struct.Struct("<f").pack, lambda raw: struct.unpack("<f", raw)[0]),
    Timestamp: (LENGTH, _write_ms, _read_ms),
    Duration: (LENGTH, _write_ms, _read_ms),
}
