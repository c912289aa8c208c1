"""Reading and writing JSON as fastjson 1, RocketMQ's JSON library, does.

Two things of it are not JSON: a key that is a number stands without quotes, `{0:"10.0.0.2:10911"}`, and a key that is
an object is written as an object, `{{"brokerName":"a","queueId":0,"topic":"T"}:3}`. When it writes on several lines it
indents with tabs, puts texts as keys on lines of their own but numbers and objects not, and ends a map on a line of
its own. It writes a Java list one element to a line, a Java set or array on one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from mqlab.protocol.errors import BodyError
from mqlab.protocol.json_text import json_string

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None}
_WORD = re.compile(r"[a-z]+")
_DEEPEST = 200


class ObjectKey(tuple[tuple[str, Any], ...]):
    """An object that is the key of a map: its members as pairs, in order; it can be a key in Python, too."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """The members by name."""
        return dict(self)

    def __repr__(self) -> str:
        return f"ObjectKey({self.as_dict()})"


class Written(str):
    """The text of a value that `dumps` gave for the depth at which the value stands; it is written as it is."""

    __slots__ = ()


def loads(text: str, *, keep_arrays: bool = False) -> Any:
    """The value of a text in the dialect, plain JSON included; ValueError when it is neither.

    Numbers as keys become ints, objects as keys become ObjectKey. With `keep_arrays` a list that stands on one line
    becomes a tuple, so that `dumps` writes the same text again.
    """
    if not keep_arrays:
        try:
            return json.loads(text)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        except ValueError:
            pass
    return _Reader(text, keep_arrays).whole()


def dumps(value: Any, *, pretty: bool = False, depth: int = 0) -> str:
    """The text that fastjson writes, on one line or, with `pretty`, on several, as it stands at this depth.

    Maps are dicts (written in their order), lists are lists, sets and arrays are tuples.
    """
    out: list[str] = []
    _write(out, value, pretty, depth)
    return "".join(out)


def _write(out: list[str], value: Any, pretty: bool, depth: int) -> None:
    kind = type(value)
    if kind is int:
        out.append(str(value))
    elif value is None:
        out.append("null")
    elif kind is str:
        out.append(json_string(value))
    elif isinstance(value, str):
        out.append(value if type(value) is Written else json_string(value))
    elif isinstance(value, bool):
        out.append("true" if value else "false")
    elif isinstance(value, (int, float)):
        out.append(str(int(value)) if isinstance(value, int) else repr(value))
    elif isinstance(value, Mapping):
        _write_map(out, value, pretty, depth)
    elif isinstance(value, ObjectKey):
        _write_map(out, value.as_dict(), pretty, depth)
    elif isinstance(value, (list, tuple)):
        _write_list(out, value, pretty and isinstance(value, list), pretty, depth)
    else:
        raise TypeError(f"{type(value).__name__} has no form in JSON")


def _write_map(out: list[str], value: Mapping[Any, Any], pretty: bool, depth: int) -> None:
    out.append("{")
    for i, (key, member) in enumerate(value.items()):
        if i:
            out.append(",")
        if isinstance(key, str):
            if pretty:
                out.append("\n" + "\t" * (depth + 1))
            out.append(json_string(key))
        else:
            _write(out, key, pretty, depth + 1)
        out.append(":")
        _write(out, member, pretty, depth + 1)
    if pretty and value:
        out.append("\n" + "\t" * depth)
    out.append("}")


def _write_list(out: list[str], value: Any, lines: bool, pretty: bool, depth: int) -> None:
    out.append("[")
    for i, element in enumerate(value):
        if i:
            out.append(",")
        if lines:
            out.append("\n" + "\t" * (depth + 1))
        _write(out, element, pretty, depth + 1)
    if lines and value:
        out.append("\n" + "\t" * depth)
    out.append("]")


class _Reader:
    """Reads one value after the other off a text."""

    __slots__ = ("_at", "_depth", "_keep_arrays", "_string", "_text")

    def __init__(self, text: str, keep_arrays: bool) -> None:
        self._text = text
        self._at = 0
        self._keep_arrays = keep_arrays
        self._depth = 0
        self._string = json.JSONDecoder(strict=False)

    def whole(self) -> Any:
        value = self._value()
        self._skip()
        if self._at != len(self._text):
            raise self._error("something follows the value")
        return value

    def _error(self, reason: str) -> ValueError:
        return ValueError(f"{reason} at character {self._at}")

    def _skip(self) -> str:
        match = _SPACE.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        return self._text[self._at : self._at + 1]

    def _value(self) -> Any:
        first = self._skip()
        if first == "{":
            return self._nested(self._map)
        if first == "[":
            return self._nested(self._list)
        if first == '"':
            return self._text_value()
        match = _NUMBER.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
            return float(match[0]) if match[1] or match[2] else self._int(match[0])
        word = _WORD.match(self._text, self._at)
        if word is None or word[0] not in _WORDS:
            raise self._error("no value")
        self._at = word.end()
        return _WORDS[word[0]]

    def _int(self, digits: str) -> int:
        if len(digits) > 20:
            raise self._error("a number is too long")
        return int(digits)

    def _nested(self, read: Any) -> Any:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error("it is nested too deeply")
        value = read()
        self._depth -= 1
        return value

    def _text_value(self) -> str:
        value, self._at = self._string.raw_decode(self._text, self._at)
        assert isinstance(value, str)
        return value

    def _map(self) -> dict[Any, Any]:
        self._at += 1
        members: dict[Any, Any] = {}
        while (first := self._skip()) != "}":
            if first == ",":
                # fastjson takes a comma too many.
                self._at += 1
                continue
            key = self._key(first)
            if self._skip() != ":":
                raise self._error("no colon")
            self._at += 1
            members[key] = self._value()
            if self._skip() not in (",", "}"):
                raise self._error("no comma")
        self._at += 1
        return members

    def _key(self, first: str) -> Any:
        if first == "":
            raise self._error("a map does not end")
        key = self._value()
        if isinstance(key, dict):
            try:
                hash(key := ObjectKey(key.items()))
            except TypeError:
                raise self._error("a key holds a list or a map") from None
        elif not isinstance(key, (str, int)) or isinstance(key, bool):
            raise self._error("a key is neither text, number nor object")
        return key

    def _list(self) -> list[Any] | tuple[Any, ...]:
        self._at += 1
        one_line = not self._text.startswith(("\n", "\r"), self._at)
        elements: list[Any] = []
        while (first := self._skip()) != "]":
            if first == ",":
                self._at += 1
                continue
            elements.append(self._value())
            if self._skip() not in (",", "]"):
                raise self._error("no comma")
        self._at += 1
        return tuple(elements) if self._keep_arrays and one_line and elements else elements


def loads_object(name: str, data: bytes | None) -> dict[str, Any]:
    """The object in a command's body; BodyError, with the body's name, when it is missing or no object."""
    if not data:
        raise BodyError(name, "it is empty")
    try:
        value = loads(data.decode("utf-8"))
    except ValueError as problem:
        raise BodyError(name, str(problem)) from None
    if not isinstance(value, dict):
        raise BodyError(name, f"it is a {type(value).__name__}, not an object")
    return value
