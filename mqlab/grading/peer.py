"""Two processes that call each other's functions over a pipe, one line of JSON for each question and each answer.

A question may be asked while one is answered (the judge calls a listener, which calls what it was given); each is
answered before the one around it. Neither side believes the other one anything: what comes is a value, or a reference
to something that was handed out before, and `Gate` says what may be done with that.
"""

from __future__ import annotations

import json
import re
import sys
from abc import update_abstractmethods
from collections.abc import Callable, Generator, Iterator
from enum import Enum
from inspect import isawaitable
from types import MethodType
from typing import Any, Protocol

from mqlab.check.own_process import in_own_process
from mqlab.check.patience import CodeIsGone
from mqlab.exercises.handed_over import is_compared
from mqlab.grading.clock import waits_in
from mqlab.grading.frames import Frames, is_frame
from mqlab.grading.values import Encoded, Values, WireError, is_of_mqlab

MOST_ITEMS = 1_000_000
MOST_OBJECTS = 50_000
"""Objects of the other side that are known here at once: each has a class of its own."""
_OPERATIONS = ("call", "get", "set", "items", "len", "item", "has", "text", "step", "close", "own", "operate")

_OPERATORS = ("lt", "le", "gt", "ge", "eq", "ne", "add", "radd", "sub", "rsub", "hash", "int", "index")
_MODULES = re.compile(r"(builtins|mqlab|pyspark\.errors)\.")
_PLAIN = (type(None), bool, int, float, str, bytes, tuple, list, dict, set, frozenset, Enum)


class PeerLost(CodeIsGone):
    """The other process is gone, or says what nobody asked."""


class Pipe(Protocol):
    """A line out, a line in."""

    def write(self, line: bytes) -> None:
        """Send a line."""
        ...

    def read(self) -> bytes:
        """The next line; PeerLost when there will be none."""
        ...


class Gate(Protocol):
    """What this side lets the other one do."""

    has_the_clock: bool
    """Whether the world's time passes on this side: it drives the other side's coroutines."""

    def may_have(self, value: Any, *, read: bool) -> bool:
        """May the other side hold a reference to this object, which it was given, or has read from another one?"""
        ...

    def may_read(self, owner: Any, name: str) -> bool:
        """May it read this attribute?"""
        ...

    def may_set(self, owner: Any, name: str) -> bool:
        """May it set this attribute?"""
        ...

    def may_import(self, module: str) -> bool:
        """May it name a class of this module?"""
        ...

    def told(self, error: BaseException) -> str:
        """Where an error came from, in words for the other side."""
        ...


class Peer:
    """One end of the pipe."""

    def __init__(self, pipe: Pipe, gate: Gate, frames: Frames) -> None:
        self._pipe = pipe
        self._frames = frames
        self._gate = gate
        self._values = Values(self._refer, self._resolve, gate.may_import)
        self.is_closed = False
        """Whether nothing will be asked any more."""
        self._handed: list[Any] = []
        self._numbers: dict[Any, int] = {}
        """identity of an object that was handed out -> its reference; the list keeps the object alive."""
        self._proxies: dict[int, Any] = {}
        self._methods: dict[tuple[int, str], Remote] = {}
        """(reference, name) -> a method that was read already."""

    def hand_out(self, thing: Any) -> None:
        """Give the other side a first object, as `remote(0)`."""
        self._refer(thing)

    def remote(self, number: int) -> Remote:
        """What stands for an object that the other side has handed out."""
        return self._proxy(number, "Remote", ())

    # -- asking --

    def ask(self, operation: str, *fields: Any) -> Any:
        """Ask the other side; what it raises is raised here, as the same class of exception where there is one."""
        self._send(["ask", operation, *map(self._values.encode, fields)])
        return self._wait()

    def call(self, reference: int, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call something there. Lists, dictionaries and sets that it changes are changed here, too."""
        self._send(["ask", "call", reference, *map(self._values.encode, (arguments, named))])
        result, changed = self._wait()
        for place, content in changed.items():
            given = named[place] if isinstance(place, str) else arguments[place]
            if not _is_mutable(given) or type(content) is not type(given):
                raise WireError("only lists, dictionaries and sets come back changed")
            _refill(given, content)
        return result

    def get(self, remote: Remote, name: str) -> Any:
        """Read an attribute there. A method is asked for once."""
        key = (remote._mqlab_reference, name)
        if key in self._methods:
            return self._methods[key]
        value = self.ask("get", remote._mqlab_reference, name)
        if isinstance(value, Remote) and type(value).__name__ == "method":
            self._methods[key] = value
        return value

    def _wait(self) -> Any:
        while True:
            what, *rest = self._receive()
            if what == "ask":
                self._serve(rest)
            elif what == "value":
                return self._values.decode(rest[0])
            elif what == "error":
                raise self._error(rest[0])
            else:
                raise PeerLost("the other process answers with nonsense")

    # -- answering --

    def serve(self) -> None:
        """Answer until the other side hangs up."""
        while True:
            try:
                what, *rest = self._receive()
            except PeerLost:
                return
            if what == "ask":
                self._serve(rest)

    def _serve(self, question: list[Any]) -> None:
        try:
            answer = ["value", self._values.encode(self._do(*question))]
        except PeerLost:
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, the other side is told
            answer = ["error", self._described(error)]
        self._send(answer)

    def _do(self, operation: str, reference: int, *rest: Encoded) -> Any:
        if operation not in _OPERATIONS:
            raise WireError(f"nobody can do {operation!r}")
        thing = self._object(reference)
        fields = [self._values.decode(field) for field in rest]
        return getattr(self, f"_do_{operation}")(thing, *fields)

    def _do_call(self, thing: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        places: list[tuple[Any, Any]] = [*enumerate(arguments), *named.items()]
        before = {place: self._values.encode(value) for place, value in places if _is_mutable(value)}
        result = thing(*arguments, **named)
        changed = {
            place: value for place, value in places if place in before and self._values.encode(value) != before[place]
        }
        return result, changed

    def _do_get(self, thing: Any, name: str) -> Any:
        if self._gate.may_read(thing, name):
            value = getattr(thing, _public(name))
            if _is_value(value) or self._gate.may_have(value, read=True):
                return value
        raise AttributeError(f"{name!r} of a {type(thing).__name__} is not for a solution")

    def _do_operate(self, thing: Any, name: str, *others: Any) -> Any:
        if name not in _OPERATORS or trait_of(thing) != "compared":
            raise WireError(f"nobody can do {name!r} with that")
        return getattr(thing, f"__{name}__")(*others)

    def _do_own(self, thing: Any, salt: int) -> Any:
        return in_own_process(thing, salt)

    def _do_set(self, thing: Any, name: str, value: Any) -> None:
        if not self._gate.may_set(thing, _public(name)):
            raise AttributeError(f"{name!r} can't be set from a solution")
        setattr(thing, name, value)

    def _do_items(self, thing: Any) -> list[Any]:
        items = []
        for item in thing:
            items.append(item)
            if len(items) > MOST_ITEMS:
                raise ValueError(f"it has more than {MOST_ITEMS:,} items")
        return items

    def _do_len(self, thing: Any) -> int:
        return len(thing)

    def _do_item(self, thing: Any, key: Any) -> Any:
        return thing[key]

    def _do_has(self, thing: Any, key: Any) -> bool:
        return key in thing

    def _do_text(self, thing: Any) -> str:
        return str(thing)

    def _do_step(self, thing: Any, value: Any, failed: Any) -> Any:
        """Let a coroutine go on; it says what it waits for, or what it has returned."""
        try:
            waits_for = thing.throw(failed) if isinstance(failed, BaseException) else thing.send(value)
        except StopIteration as end:
            return "returned", end.value
        return "awaits", waits_for if isinstance(waits_for, Remote) else waits_in(self.remote(0), waits_for)

    def _do_close(self, thing: Any) -> None:
        """Whoever awaited the coroutine is gone."""
        thing.close()

    # -- lines --

    def _send(self, message: list[Any]) -> None:
        self._pipe.write(json.dumps(message).encode() + b"\n")

    def _receive(self) -> list[Any]:
        line = self._pipe.read()
        try:
            message = json.loads(line)
        except (ValueError, RecursionError, MemoryError):
            raise PeerLost("the other process sent what is no message") from None
        if not isinstance(message, list) or len(message) < 2:
            raise PeerLost("the other process sent what is no message")
        return message

    # -- references --

    def _refer(self, value: Any) -> Encoded:
        if getattr(value, "_mqlab_peer", None) is self:
            return ["yours", value._mqlab_reference]
        if isinstance(value, BaseException):
            return ["raised", self._described(value)]
        if is_frame(value):
            return ["frame", *self._frames.put(value)]
        if not self._gate.may_have(value, read=False):
            raise WireError(f"an object of the class {type(value).__name__} can't be had in a solution")
        # A method is another object each time it is asked for, and the same as the one before.
        own = (id(value.__self__), value.__func__) if isinstance(value, MethodType) else id(value)
        number = self._numbers.get(own)
        if number is None:
            number = self._numbers[own] = len(self._handed)
            self._handed.append(value)
        named = value if isinstance(value, type) else type(value)
        return ["mine", number, named.__name__, trait_of(value), self._bases(named)]

    def _bases(self, kind: type) -> list[Encoded]:
        """The nearest classes above it that the other side has, too: what it would be taken for there."""
        for base in kind.__mro__:
            if is_of_mqlab(base) and self._gate.may_import(base.__module__):
                return [self._values.encode(base)]
        return []

    def _resolve(self, encoded: Encoded) -> Any:
        tag, *rest = encoded
        if tag == "yours":
            return self._object(rest[0])
        if tag == "raised":
            return self._error(rest[0])
        if tag == "frame":
            return self._frames.take(rest)
        if tag != "mine":
            raise WireError(f"no value: {tag!r}")
        number, name, trait, bases = rest
        if trait == "coroutine" and self._gate.has_the_clock:
            return self.awaited(self._proxy(int(number), str(name), ()))
        if number not in self._proxies:
            if self._gate.has_the_clock and len(self._proxies) >= MOST_OBJECTS:
                raise WireError(f"your code gave more than {MOST_OBJECTS:,} objects")
            above = tuple(self._values.decode(base) for base in bases)
            if trait == "class":
                self._proxies[number] = self._class_proxy(int(number), str(name), above)
            else:
                # How an object of a solution compares is its own affair: the judge asks it nothing.
                compared = trait == "compared" and not self._gate.has_the_clock
                self._proxies[number] = self._proxy(int(number), str(name), (Compared,) if compared else above)
        return self._proxies[number]

    def _object(self, reference: Any) -> Any:
        if type(reference) is not int or not 0 <= reference < len(self._handed):
            raise WireError("that was never handed out")
        return self._handed[reference]

    def _proxy(self, number: int, name: str, bases: tuple[type, ...]) -> Remote:
        above = [base for base in bases if base is not Compared]
        inherited = {own: _forwarded(base, own) for base in above for own in dir(base) if not own.startswith("_")}
        kind = type(name, bases if Compared in bases else (Remote, *bases), {"__module__": "answer", **inherited})
        update_abstractmethods(kind)
        proxy: Remote = object.__new__(kind)
        object.__setattr__(proxy, "_mqlab_peer", self)
        object.__setattr__(proxy, "_mqlab_reference", number)
        return proxy

    def _class_proxy(self, number: int, name: str, bases: tuple[type, ...]) -> type:
        """A class here that makes its objects there."""

        def make(_cls: type, *arguments: Any, **named: Any) -> Any:
            return self.call(number, arguments, named)

        def in_process(salt: int) -> Any:
            return self.ask("own", number, salt)

        own = {"__module__": "answer", "__new__": make, "__mqlab_own_process__": staticmethod(in_process)}
        return type(name, bases, {**own, "_mqlab_peer": self, "_mqlab_reference": number})

    async def awaited(self, coroutine: Remote) -> Any:
        """Drive a coroutine of the other side from here, and wait here for what it waits for there."""
        value, failed = None, None
        while True:
            what, got = self.ask("step", coroutine._mqlab_reference, value, failed)
            if what == "returned":
                return got
            value = failed = None
            try:
                value = await got
            except GeneratorExit:
                # Who waits in a world that is let go, after the last verdict, has nobody left to tell.
                if not self.is_closed:
                    self.ask("close", coroutine._mqlab_reference)
                raise
            except Exception as error:  # noqa: BLE001  it is raised where it is awaited
                failed = error

    # -- errors --

    def _described(self, error: BaseException) -> list[Encoded]:
        kinds = [f"{kind.__module__}:{kind.__qualname__}" for kind in type(error).__mro__[:-2]]
        try:
            content = self._values.encode((error.args, dict(vars(error))))
        except WireError:
            content = self._values.encode(((str(error),), {}))
        return [kinds, content, self._gate.told(error)]

    def _error(self, described: Any) -> Exception:
        try:
            kinds, content, told = described
            arguments, attributes = self._values.decode(content)
            kind = next((found for found in map(_exception_class, kinds) if found is not None), Exception)
            name = str(kinds[0]).rpartition(":")[2].rpartition(".")[2]
            if name != kind.__name__:
                kind = type(name, (kind,), {"__module__": "answer"})
            # Python's own keep some of what they say beside their arguments.
            error = kind(*arguments) if kind.__module__ == "builtins" else kind.__new__(kind)
            error.args = arguments
            vars(error).update(attributes, students_frames=str(told))
        except Exception:  # noqa: BLE001  whatever it is, it is no error of a solution
            raise PeerLost("the other process sent an error that is none") from None
        return error


def _exception_class(name: Any) -> type[Exception] | None:
    """The class of that name, of Python's own or of mqlab's."""
    module, _, qualname = str(name).partition(":")
    found = getattr(sys.modules.get(module), qualname, None) if _MODULES.match(f"{module}.") else None
    return found if isinstance(found, type) and issubclass(found, Exception) else None


class Remote:
    """Stands for an object of the other process."""

    _mqlab_peer: Peer
    _mqlab_reference: int

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._mqlab_peer.call(self._mqlab_reference, arguments, named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._mqlab_peer.get(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self._mqlab_peer.ask("set", self._mqlab_reference, name, value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._mqlab_peer.ask("items", self._mqlab_reference))

    def __len__(self) -> int:
        return int(self._mqlab_peer.ask("len", self._mqlab_reference))

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, key: Any) -> Any:
        return self._mqlab_peer.ask("item", self._mqlab_reference, key)

    def __contains__(self, key: Any) -> bool:
        return bool(self._mqlab_peer.ask("has", self._mqlab_reference, key))

    def __await__(self) -> Generator[Remote, Any, Any]:
        # Whoever drives this coroutine is told what it waits for.
        return (yield self)

    def __str__(self) -> str:
        return str(self._mqlab_peer.ask("text", self._mqlab_reference))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


def _operator(name: str) -> Callable[..., Any]:
    def operator(self: Remote, *others: Any) -> Any:
        return self._mqlab_peer.ask("operate", self._mqlab_reference, name, *others)

    return operator


class Compared(Remote):
    """Stands for an object of the judge that counts what is done with it."""


for _name in _OPERATORS:
    setattr(Compared, f"__{_name}__", _operator(_name))


def _forwarded(base: type, name: str) -> Any:
    """An attribute that the class has of its base here: it is asked for there, as any other."""

    def method(self: Remote, *arguments: Any, **named: Any) -> Any:
        return self._mqlab_peer.get(self, name)(*arguments, **named)

    def attribute(self: Remote) -> Any:
        return self._mqlab_peer.get(self, name)

    return method if callable(getattr(base, name, None)) else property(attribute)


def _public(name: Any) -> str:
    if not isinstance(name, str) or name.startswith("_"):
        raise AttributeError(f"{name!r} is not for a solution")
    return name


def _is_mutable(value: Any) -> bool:
    return type(value) in (list, dict, set)


def _refill(container: Any, content: Any) -> None:
    container.clear()
    container.extend(content) if isinstance(container, list) else container.update(content)


def _is_value(value: Any) -> bool:
    return isinstance(value, _PLAIN)


def trait_of(value: Any) -> str:
    """How the other side shall treat it."""
    if isinstance(value, type):
        return "class"
    if is_compared(value):
        return "compared"
    return "coroutine" if isawaitable(value) and hasattr(value, "send") else ""
