"""How a class with typed fields becomes the JSON body of a command, and back.

A body is a dataclass that inherits from JsonBody. Its snake_case fields stand in the JSON under camelCase names,
sorted, as fastjson writes a bean; a field that is None is left out. `@json_names` names the exceptions. Reading takes
what fastjson writes (mqlab.protocol.fastjson), passes over members that the class does not know, and raises BodyError
when a member is missing that has no default or is not what its type wants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from enum import Enum
from types import NoneType, UnionType
from typing import Any, NamedTuple, Self, TypeVar, get_args, get_origin, get_type_hints

from mqlab.errors import LearnerError
from mqlab.protocol import fastjson
from mqlab.protocol.errors import BodyError
from mqlab.protocol.fastjson import ObjectKey
from mqlab.protocol.hashing import java_map_order, java_number_order
from mqlab.protocol.header_codec import camel_case
from mqlab.protocol.message import MessageQueue

C = TypeVar("C", bound=type)

_NAMES: dict[type, dict[str, str]] = {}
_BEYOND_LONG = 1 << 63
_PLAIN = frozenset({str, int, bool, float, NoneType})
_QUEUE_NAMES = ("brokerName", "queueId", "topic")


def json_names(**names: str) -> Callable[[C], C]:
    """Class decorator: the JSON names of the fields that are not simply written in camelCase."""

    def register(cls: C) -> C:
        _NAMES[cls] = names
        return cls

    return register


class JsonBody:
    """The base of all JSON bodies (org.apache.rocketmq.remoting.protocol.RemotingSerializable)."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """The object as fastjson would write it; for `fastjson.dumps`."""
        members = ((field.json_name, getattr(self, field.name)) for field in _fields_of(type(self)))
        return {name: _plain(value) for name, value in members if value is not None}

    def encode(self) -> bytes:
        """The body of a command."""
        return fastjson.dumps(self.to_json()).encode("utf-8", "replace")

    def encode_pretty(self) -> bytes:
        """The content of a configuration file: the same on several lines."""
        return fastjson.dumps(self.to_json(), pretty=True).encode("utf-8", "replace")

    @classmethod
    def from_json(cls, members: Mapping[Any, Any]) -> Self:
        """The body that an object describes; BodyError naming the member that is wrong."""
        values: dict[str, Any] = {}
        for field in _fields_of(cls):
            value = members.get(field.json_name)
            if value is not None:
                try:
                    values[field.name] = field.read(value)
                except (TypeError, ValueError) as problem:
                    raise BodyError(cls.__name__, f"{field.json_name}: {problem}") from None
            elif field.required:
                raise BodyError(cls.__name__, f"{field.json_name} is missing")
        try:
            return cls(**values)
        except LearnerError as problem:
            # What a class refuses is here not the fault of who made the object, but of who sent it.
            raise BodyError(cls.__name__, problem.message) from None

    @classmethod
    def decode(cls, body: bytes | None) -> Self:
        """The body in the bytes of a command or a file; BodyError when they do not hold one."""
        return cls.from_json(fastjson.loads_object(cls.__name__, body))


def _plain(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, JsonBody):
        return value.to_json()
    if isinstance(value, MessageQueue):
        return dict(zip(_QUEUE_NAMES, (value.broker_name, value.queue_id, value.topic), strict=True))
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {_plain_key(key): _plain(member) for key, member in value.items()}
    if isinstance(value, frozenset):
        # A Python set has no order that can be relied on; Java's has one.
        texts = java_map_order(sorted(element for element in value if isinstance(element, str)))
        numbers = java_number_order(sorted(element for element in value if isinstance(element, int)))
        return (*texts, *numbers)
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if isinstance(value, tuple):
        return tuple(_plain(element) for element in value)
    return value


def _plain_key(key: Any) -> Any:
    if isinstance(key, MessageQueue):
        return ObjectKey(_plain(key).items())
    return key.value if isinstance(key, Enum) else key


class _Field(NamedTuple):
    name: str
    json_name: str
    read: Callable[[Any], Any]
    required: bool


_FIELDS: dict[type, tuple[_Field, ...]] = {}


def _fields_of(cls: type) -> tuple[_Field, ...]:
    known = _FIELDS.get(cls)
    if known is None:
        hints = get_type_hints(cls)
        names = _NAMES.get(cls, {})
        known = tuple(sorted(
            (
                _Field(
                    field.name,
                    names.get(field.name, camel_case(field.name)),
                    _reader(hints[field.name]),
                    field.default is MISSING and field.default_factory is MISSING,
                )
                for field in fields(cls)
            ),
            key=lambda field: field.json_name,
        ))  # fmt: skip
        _FIELDS[cls] = known
    return known


def _reader(hint: Any) -> Callable[[Any], Any]:
    """The function that turns a JSON value into one of this type; it raises TypeError or ValueError."""
    if isinstance(hint, UnionType):
        return _reader(next(arg for arg in get_args(hint) if arg is not NoneType))
    origin, args = get_origin(hint), get_args(hint)
    if origin is dict:
        return _map_reader(_key_reader(args[0]), _reader(args[1]))
    if origin in (list, tuple, frozenset):
        return _list_reader(origin, _reader(args[0]))
    if hint is Any:
        return lambda value: value
    if hint is MessageQueue:
        return _read_queue
    if isinstance(hint, type) and issubclass(hint, JsonBody):
        return _object_reader(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    return _plain_reader(hint)


def _plain_reader(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if kind is float and type(value) is int:
            return float(value)
        if type(value) is not kind:
            raise TypeError(f"{value!r} is not of type {kind.__name__}")
        if isinstance(value, int) and not -_BEYOND_LONG <= value < _BEYOND_LONG:
            raise ValueError(f"{value} is not a number of 64 bits")
        return value

    return read


def _object_reader(cls: type[JsonBody]) -> Callable[[Any], JsonBody]:
    def read(value: Any) -> JsonBody:
        if not isinstance(value, Mapping):
            raise TypeError(f"{value!r} is not an object")
        return cls.from_json(value)

    return read


def _list_reader(kind: Any, element: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"{value!r} is not a list")
        return kind(element(item) for item in value)

    return read


def _map_reader(key: Callable[[Any], Any], member: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise TypeError(f"{value!r} is not an object")
        return {key(name): member(item) for name, item in value.items()}

    return read


def _key_reader(hint: Any) -> Callable[[Any], Any]:
    if hint is int:
        return _read_int_key
    if hint is str:
        return str
    return _reader(hint)


def _read_int_key(key: Any) -> int:
    if type(key) is int:
        return key
    if isinstance(key, str) and key.lstrip("-").isdecimal() and len(key) < 20:
        return int(key)
    raise ValueError(f"the key {key!r} is not a number")


def _read_queue(value: Any) -> MessageQueue:
    members = value.as_dict() if isinstance(value, ObjectKey) else value
    if not isinstance(members, Mapping):
        raise TypeError(f"{value!r} is not a message queue")
    broker_name, queue_id, topic = (members.get(name) for name in _QUEUE_NAMES)
    if not isinstance(broker_name, str) or type(queue_id) is not int or not isinstance(topic, str):
        raise TypeError(f"{dict(members)!r} is not a message queue")
    return MessageQueue(topic, broker_name, queue_id)
