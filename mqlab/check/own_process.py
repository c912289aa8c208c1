"""A class as it is in a process of its own: with a memory that it shares with nobody, and with a hash of its own.

Members of a group run in processes of their own. In a check all of them run in one, where a class attribute, a
dictionary of the module, a default argument or the variable of an enclosing function would be a way to talk, and so
would any module. So each member gets its own copy of the class, of what its code refers to or imports, and of the data
behind both. Whoever looks for a way round that finds one; when a solution is marked, each member is a real process.
"""

from __future__ import annotations

import builtins
import hashlib
import sys
from abc import update_abstractmethods
from collections.abc import Callable, Iterator
from copy import deepcopy
from enum import EnumMeta
from types import CellType, CodeType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any, is_typeddict

_OURS = "mqlab."
"""Classes of mqlab are the same in every process: nobody keeps anything in them."""
_FROM_THE_START = ("__slots__", "__doc__", "__module__", "__orig_bases__")
_MADE_BY_PYTHON = frozenset({"__dict__", "__weakref__", "__abstractmethods__", "_abc_impl"})


def in_own_process(answer: type, salt: int) -> type:
    """A copy of the class, and of all that it uses, as a process has it whose Python salts `hash` with `salt`."""
    elsewhere = getattr(answer, "__mqlab_own_process__", None)
    if elsewhere is not None:
        # It stands for a class of another process, which makes the copy.
        copied: type = elsewhere(salt)
        return copied
    return _Process(salt).class_of(answer) if _is_own(answer) else answer


class _Process:
    """What was copied already, by identity, so that what is shared within the process stays shared."""

    def __init__(self, salt: int) -> None:
        self._globals: dict[int, dict[str, Any]] = {}
        self._copies: dict[int, tuple[Any, Any]] = {}
        self._data: dict[int, Any] = {}
        self._modules: dict[int, ModuleType] = {}
        self._builtins = {**vars(builtins), "__import__": self._import, "hash": _salted(salt)}

    def class_of(self, original: type) -> type:
        known = self._copies.get(id(original))
        if known is not None:
            copied: type = known[1]
            return copied
        bases = tuple(self._value(base) for base in original.__bases__)
        begun = {name: vars(original)[name] for name in _FROM_THE_START if name in vars(original)}
        copied = type(original)(original.__name__, bases, begun)
        self._copies[id(original)] = (original, copied)
        for name, value in list(vars(original).items()):
            if name not in _MADE_BY_PYTHON and name not in begun and not isinstance(value, MemberDescriptorType):
                setattr(copied, name, self._attribute(value))
        update_abstractmethods(copied)
        return copied

    def _attribute(self, value: Any) -> Any:
        if isinstance(value, staticmethod | classmethod):
            return type(value)(self._value(value.__func__))
        if isinstance(value, property):
            return property(*(self._value(part) for part in (value.fget, value.fset, value.fdel)))
        return self._value(value)

    def _value(self, value: Any) -> Any:
        """The value as this process has it: functions, classes and data of the student's own are copied."""
        if isinstance(value, FunctionType):
            return self._function(value) if _is_own(value) else value
        if isinstance(value, type):
            return self.class_of(value) if _is_own(value) else value
        if isinstance(value, ModuleType):
            return self._module(value)
        cached = getattr(value, "__wrapped__", None)
        if callable(cached) and hasattr(value, "cache_clear"):
            return self._value(cached)  # what functools.cache has kept is left behind
        if f"{type(value).__module__}.".startswith(_OURS):
            return value  # a lab, for example: large, and no place to keep notes in
        try:
            return deepcopy(value, self._data)
        except Exception:  # noqa: BLE001  # a lock, a module, a generator: not data, and nobody's memory
            return value

    def _module(self, original: ModuleType) -> ModuleType:
        """A module with the same content: what somebody notes in it is noted here alone."""
        if id(original) not in self._modules:
            copied = ModuleType(original.__name__)
            vars(copied).update(vars(original))
            self._modules[id(original)] = copied
            within = f"{original.__name__}."
            for name, value in vars(original).items():
                if isinstance(value, ModuleType) and value.__name__.startswith(within):
                    setattr(copied, name, self._module(value))
        return self._modules[id(original)]

    def _import(self, *asked: Any, **named: Any) -> ModuleType:
        return self._module(__import__(*asked, **named))

    def _function(self, original: FunctionType) -> FunctionType:
        known = self._copies.get(id(original))
        if known is not None:
            copied: FunctionType = known[1]
            return copied
        closure = tuple(CellType() for _ in original.__closure__ or ())
        copied = FunctionType(original.__code__, self._globals_of(original), original.__name__, None, closure or None)
        self._copies[id(original)] = (original, copied)
        copied.__defaults__ = self._value(original.__defaults__)
        copied.__kwdefaults__ = self._value(original.__kwdefaults__)
        copied.__dict__.update({name: self._value(value) for name, value in original.__dict__.items()})
        for mine, theirs in zip(closure, original.__closure__ or (), strict=True):
            mine.cell_contents = self._value(theirs.cell_contents)
        return copied

    def _globals_of(self, function: FunctionType) -> dict[str, Any]:
        """The module's names that the function refers to, in a dictionary that the module's functions share here."""
        theirs = function.__globals__
        mine = self._globals.setdefault(id(theirs), {"__builtins__": self._builtins})
        for name in _names(function.__code__):
            if name in theirs and name not in mine:
                mine[name] = theirs[name]  # so that a function which refers to itself ends
                mine[name] = self._value(theirs[name])
        return mine


def _is_own(thing: Any) -> bool:
    """Whether a function or class is the student's, and not of Python, of a library or of mqlab.

    Enums count as constants: their members, which are known by identity, would not be those that data refers to.
    """
    if isinstance(thing, EnumMeta) or is_typeddict(thing):
        return False
    module = str(getattr(thing, "__module__", ""))
    return not f"{module}.".startswith(_OURS) and module.partition(".")[0] not in sys.stdlib_module_names


def _names(code: CodeType) -> Iterator[str]:
    """The names that the code, and code inside it, looks up beyond its own."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _salted(salt: int) -> Callable[[object], int]:
    def salted(value: object) -> int:
        digest = hashlib.sha256(f"{salt}/{value!r}".encode()).digest()
        return int.from_bytes(digest[:8], "big", signed=True)

    return salted
