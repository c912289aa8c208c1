"""Values as JSON, so that two processes that don't trust each other can call each other's functions.

    plain data       as it is, with a tag where JSON has no such type: tuples, sets, bytes, dictionaries
    values of mqlab  enums, NamedTuples and frozen dataclasses: the name of their class, and their fields
    anything else    a reference: its owner keeps the object, and the other side asks it to be called or read

A class that the receiver may not import (a check's own) is rebuilt there from the names of its fields.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from base64 import b64decode, b64encode
from collections import deque, namedtuple
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from mqlab.errors import MqlabError

Encoded = Any
"""What `json.dumps` takes: a plain value, or a list whose first item is a tag."""

DEEPEST = 60
"""More containers within each other than this are no answer to any exercise."""


class WireError(MqlabError):
    """The other side sent what is no value, or a value was to be sent that can't be."""


class Values:
    """Encodes and decodes for one of the two sides.

    `refer` gives an object a reference and `resolve` what stands for one; `importable` says of a module's name whether
    the other side may import it, `own` whether this side does so for the other one.
    """

    def __init__(
        self,
        refer: Callable[[Any], Encoded],
        resolve: Callable[[Encoded], Any],
        own: Callable[[str], bool],
    ) -> None:
        self._refer = refer
        self._resolve = resolve
        self._own = own
        self._classes: dict[str, type] = {}
        """Classes by name: those that were sent, and those that were rebuilt."""

    # -- out --

    def encode(self, value: Any, depth: int = 0) -> Encoded:
        """The value as JSON has it. WireError if it is nested too deeply."""
        if depth > DEEPEST:
            raise WireError("a value is nested too deeply")
        kind = type(value)
        if value is None or kind in (bool, float, str):
            return value
        if isinstance(value, Enum):
            return ["enum", self._name(kind), value.name]
        if kind is int:
            return value if -(2**63) < value < 2**63 else ["int", hex(value)]
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return ["named", self._name(kind), list(kind._fields), self._all(value, depth)]
        if kind in (list, deque):
            return ["list", self._all(value, depth)]
        if isinstance(value, tuple):
            return ["tuple", self._all(value, depth)]
        if isinstance(value, dict):
            return ["dict", self._all(value, depth), self._all(value.values(), depth)]
        if isinstance(value, set | frozenset):
            return ["frozenset" if isinstance(value, frozenset) else "set", self._all(value, depth)]
        if isinstance(value, bytes | bytearray | memoryview):
            return ["bytes", b64encode(bytes(value)).decode("ascii")]
        if _is_frozen(kind) and is_of_mqlab(kind):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return ["data", self._name(kind), list(fields), self._all(fields.values(), depth)]
        if isinstance(value, type) and is_of_mqlab(value):
            return ["class", self._name(value)]
        if isinstance(value, int | float | str) and not is_of_mqlab(kind):
            return next(plain(value) for plain in (int, float, str) if isinstance(value, plain))
        return self._refer(value)

    def _all(self, values: Any, depth: int) -> list[Encoded]:
        return [self.encode(value, depth + 1) for value in values]

    def _name(self, kind: type) -> str:
        name = f"{kind.__module__}:{kind.__qualname__}"
        self._classes[name] = kind
        return name

    # -- in --

    def decode(self, encoded: Encoded) -> Any:
        """The value that was sent. WireError for anything that `encode` does not write."""
        if not isinstance(encoded, list):
            if isinstance(encoded, dict):
                raise WireError("an object of JSON is no value")
            return encoded
        try:
            return self._tagged(*encoded)
        except WireError:
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, it is no value
            raise WireError(f"no value: {type(error).__name__}: {error}") from None

    def _tagged(self, tag: str, *rest: Any) -> Any:
        if tag in _CONTAINERS:
            (items,) = rest
            return _CONTAINERS[tag](map(self.decode, items))
        if tag == "dict":
            keys, values = rest
            return dict(zip(map(self.decode, keys), map(self.decode, values), strict=True))
        if tag == "bytes":
            return b64decode(rest[0], validate=True)
        if tag == "int":
            return int(rest[0], 16)
        if tag == "enum":
            return self._class(rest[0], Enum)[rest[1]]
        if tag == "class":
            return self._class(rest[0], object)
        if tag == "named":
            name, fields, values = rest
            made = self._class(name, tuple, fields)
            if list(made._fields) != fields:
                raise WireError(f"{name} has other fields")
            return made(*map(self.decode, values))
        if tag == "data":
            name, fields, values = rest
            made = self._class(name, object)
            if not _is_frozen(made):
                raise WireError(f"{name} is no value")
            return _rebuilt(made, dict(zip(fields, map(self.decode, values), strict=True)))
        return self._resolve([tag, *rest])

    def _class(self, name: str, base: type, fields: list[str] | None = None) -> Any:
        known: Any = self._classes.get(name)
        if known is None:
            module, _, qualname = name.partition(":")
            if self._own(module):
                known = importlib.import_module(module)
                for part in qualname.split("."):
                    known = getattr(known, part)
                if not isinstance(known, type) or not is_of_mqlab(known):
                    raise WireError(f"{name} is no class of mqlab")
            elif fields is not None:
                known = _like(qualname.rpartition(".")[2], fields)
            else:
                raise WireError(f"there is no class {name}")
            self._classes[name] = known
        if not isinstance(known, type) or not issubclass(known, base):
            raise WireError(f"{name} is no such class")
        return known


_CONTAINERS: dict[str, Callable[[Iterator[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}


def _like(name: str, fields: list[str]) -> type:
    """A NamedTuple of those fields."""
    return namedtuple(name, fields)


def _is_frozen(kind: type) -> bool:
    parameters = getattr(kind, "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen)


def is_of_mqlab(kind: type) -> bool:
    """Whether it is the class that mqlab has under that name; one that only says so is not."""
    found: Any = sys.modules.get(kind.__module__) if f"{kind.__module__}.".startswith("mqlab.") else None
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is kind


def _rebuilt(kind: type, fields: dict[str, Any]) -> Any:
    given = {field.name for field in dataclasses.fields(kind) if field.init}
    return kind(**{name: value for name, value in fields.items() if name in given})
