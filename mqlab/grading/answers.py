"""Answers: what the other process may ask to be done with the objects that it was handed."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from mqlab.check.own_process import in_own_process
from mqlab.grading.clock import waits_in
from mqlab.grading.gate import Gate
from mqlab.grading.remote import OPERATORS, Remote, trait_of
from mqlab.grading.values import Values, WireError

MOST_ITEMS = 1_000_000
_PLAIN = (type(None), bool, int, float, str, bytes, tuple, list, dict, set, frozenset, Enum)


class Answers:
    """Does what is asked, as far as the gate lets it; `operations` are all that there is to ask."""

    def __init__(self, gate: Gate, values: Values, first: Callable[[], Remote]) -> None:
        self._gate = gate
        self._values = values
        self._first = first
        """What the other side has handed out first: in a world that is the clock."""
        self.operations: dict[str, Callable[..., Any]] = {
            "call": self._call,
            "get": self._get,
            "set": self._set,
            "items": self._items,
            "len": len,
            "item": _item,
            "has": _has,
            "text": str,
            "step": self._step,
            "close": _close,
            "own": in_own_process,
            "operate": self._operate,
        }

    def _call(self, thing: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        places: list[tuple[Any, Any]] = [*enumerate(arguments), *named.items()]
        before = {place: self._values.encode(value) for place, value in places if is_mutable(value)}
        result = thing(*arguments, **named)
        changed = {
            place: value for place, value in places if place in before and self._values.encode(value) != before[place]
        }
        return result, changed

    def _get(self, thing: Any, name: str) -> Any:
        if self._gate.may_read(thing, name):
            value = getattr(thing, _public(name))
            if isinstance(value, _PLAIN) or self._gate.may_have(value, read=True):
                return value
        raise AttributeError(f"{name!r} of a {type(thing).__name__} is not for a solution")

    def _set(self, thing: Any, name: str, value: Any) -> None:
        if not self._gate.may_set(thing, _public(name)):
            raise AttributeError(f"{name!r} can't be set from a solution")
        setattr(thing, name, value)

    def _items(self, thing: Any) -> list[Any]:
        items = []
        for item in thing:
            items.append(item)
            if len(items) > MOST_ITEMS:
                raise ValueError(f"it has more than {MOST_ITEMS:,} items")
        return items

    def _step(self, thing: Any, value: Any, failed: Any) -> Any:
        """Let a coroutine go on; it says what it waits for, or what it has returned."""
        try:
            waits_for = thing.throw(failed) if isinstance(failed, BaseException) else thing.send(value)
        except StopIteration as end:
            return "returned", end.value
        return "awaits", waits_for if isinstance(waits_for, Remote) else waits_in(self._first(), waits_for)

    def _operate(self, thing: Any, name: str, *others: Any) -> Any:
        if name not in OPERATORS or trait_of(thing) != "compared":
            raise WireError(f"nobody can do {name!r} with that")
        return getattr(thing, f"__{name}__")(*others)


def _item(thing: Any, key: Any) -> Any:
    return thing[key]


def _has(thing: Any, key: Any) -> bool:
    return key in thing


def _close(thing: Any) -> None:
    """Whoever awaited the coroutine is gone."""
    thing.close()


def is_mutable(value: Any) -> bool:
    """Whether a call may change it, so that it goes back as it is then."""
    return type(value) in (list, dict, set)


def _public(name: Any) -> str:
    if not isinstance(name, str) or name.startswith("_"):
        raise AttributeError(f"{name!r} is not for a solution")
    return name
