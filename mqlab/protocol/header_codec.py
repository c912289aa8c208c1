"""How a typed header becomes the extension fields of a command, and back.

A typed header is a `NamedTuple` with snake_case fields of the types int (32 bits, as in Java), Long (64 bits), bool and
str; a field with a default may be absent. On the wire every field is a text under its camelCase name; `@wire` names the
exceptions. The Java side is RemotingCommand.makeCustomHeaderToNet and decodeCommandCustomHeader, which find the fields
by reflection. Java only logs a field that is missing or no number of its size; here it is a HeaderError that names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from mqlab.protocol.errors import HeaderError
from mqlab.protocol.hashing import java_map_order

_H = TypeVar("_H")
C = TypeVar("C", bound=type)

_WIRE_NAMES: dict[type, dict[str, str]] = {}
_PUT_FIRST: dict[type, tuple[str, ...]] = {}
_FAST: set[type] = set()
_UNIONS = (Union, UnionType)
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")

Long = Annotated[int, 64]
"""A header field that is a `long` in Java; an `int` has 32 bits there."""


def wire(**names: str) -> Callable[[C], C]:
    """Class decorator: the wire names of the fields that are not simply written in camelCase."""

    def register(cls: C) -> C:
        _WIRE_NAMES[cls] = names
        return cls

    return register


def fast_codes(cls: C) -> C:
    """Class decorator: in the binary form this header is written in the order of its fields.

    Java: org.apache.rocketmq.remoting.protocol.FastCodesHeader; all others are written in the order of a HashMap.
    """
    _FAST.add(cls)
    return cls


def put_first(*wire_names: str) -> Callable[[C], C]:
    """Class decorator: wire names that Java puts into its map before the others.

    It shows only where two names share a bucket of the map; then the one put first is written first.
    """

    def register(cls: C) -> C:
        _PUT_FIRST[cls] = wire_names
        return cls

    return register


def camel_case(name: str) -> str:
    """`consumer_group` as Java spells it: `consumerGroup`."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


class _Field(NamedTuple):
    name: str
    wire_name: str
    kind: type
    beyond: int
    """The first number that does not fit in."""
    required: bool
    default: object


class HeaderCodec:
    """The two directions for one header class; get it from `codec_of`."""

    __slots__ = ("_cls", "_fields", "_put_first", "fast")

    def __init__(self, cls: type) -> None:
        names = _WIRE_NAMES.get(cls, {})
        hints = get_type_hints(cls, include_extras=True)
        defaults: Mapping[str, object] = cls._field_defaults  # type: ignore[attr-defined]
        self._cls = cls
        self._fields = tuple(
            _Field(
                name,
                names.get(name, camel_case(name)),
                *_kind(hints[name]),
                name not in defaults and get_origin(hints[name]) not in _UNIONS,
                defaults.get(name),
            )
            for name in cls._fields  # type: ignore[attr-defined]
        )
        self._put_first = _PUT_FIRST.get(cls, ())
        self.fast = cls in _FAST

    def wire_names(self) -> tuple[str, ...]:
        """The names of the fields on the wire, in the order of the class."""
        return tuple(field.wire_name for field in self._fields)

    def to_fields(self, header: Any) -> dict[str, str]:
        """The header as texts by wire name, in the order of its fields; a field that is None is left out."""
        out: dict[str, str] = {}
        for field, value in zip(self._fields, header, strict=True):
            if value is not None:
                out[field.wire_name] = _text(value)
        return out

    def to_fields_in_map_order(self, header: Any) -> dict[str, str]:
        """The header as texts by wire name, in the order of a Java HashMap."""
        return self.map_order(self.to_fields(header))

    def map_order(self, fields: dict[str, str], capacity: int = 16) -> dict[str, str]:
        """The same fields in the order of a Java HashMap that was made with this capacity."""
        first = [name for name in self._put_first if name in fields]
        order = java_map_order(first + [name for name in fields if name not in first] if first else fields, capacity)
        return {name: fields[name] for name in order}

    def from_fields(self, fields: Mapping[str, str]) -> Any:
        """The header that the texts describe; HeaderError when one is missing or not a number."""
        values: list[object] = []
        for field in self._fields:
            text = fields.get(field.wire_name)
            if text is not None:
                values.append(self._value(field, text))
            elif field.required:
                raise HeaderError(self._cls.__name__, field.name, f"the field {field.wire_name!r} is missing")
            else:
                values.append(field.default)
        return self._cls(*values)

    def _value(self, field: _Field, text: str) -> object:
        if field.kind is str:
            return text
        if field.kind is bool:
            return text.lower() == "true"
        if not _INTEGER.fullmatch(text) or not -field.beyond <= (number := int(text)) < field.beyond:
            bits = field.beyond.bit_length()
            reason = f"the field {field.wire_name!r} is not a number of {bits} bits: {text!r}"
            raise HeaderError(self._cls.__name__, field.name, reason)
        return number


def _kind(hint: object) -> tuple[type, int]:
    """The type of a field, and the first number that does not fit in."""
    if get_origin(hint) in _UNIONS:
        hint = next(arg for arg in get_args(hint) if arg is not type(None))
    if hint is Long:
        return int, 1 << 63
    if hint not in (int, bool, str):
        raise TypeError(f"a header field is int, Long, bool or str, not {hint!r}")
    assert isinstance(hint, type)
    return hint, 1 << 31


def _text(value: object) -> str:
    if value is True:
        return "true"
    if value is False:
        return "false"
    return str(value)


_CODECS: dict[type, HeaderCodec] = {}


def codec_of(cls: type) -> HeaderCodec:
    """The codec of a header class, built once."""
    codec = _CODECS.get(cls)
    if codec is None:
        codec = _CODECS[cls] = HeaderCodec(cls)
    return codec


def encode_header(header: Any) -> dict[str, str]:
    """The extension fields of a typed header, in the order in which Java writes them."""
    return codec_of(type(header)).to_fields_in_map_order(header)


def decode_header(cls: type[_H], fields: Mapping[str, str]) -> _H:
    """The typed header that these extension fields describe; raises HeaderError naming the field that is wrong."""
    header: _H = codec_of(cls).from_fields(fields)
    return header
