"""What stands here for an object of the other process: reading, calling or awaiting it asks that process."""

from __future__ import annotations

from abc import update_abstractmethods
from collections.abc import Callable, Generator, Iterator
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from mqlab.exercises.handed_over import is_compared

if TYPE_CHECKING:
    from mqlab.grading.peer import Peer

OPERATORS = ("lt", "le", "gt", "ge", "eq", "ne", "add", "radd", "sub", "rsub", "hash", "int", "index")
"""What can be done with an object of the judge that counts what is done with it."""


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


for _name in OPERATORS:
    setattr(Compared, f"__{_name}__", _operator(_name))


def _forwarded(base: type, name: str) -> Any:
    """An attribute that the class has of its base here: it is asked for there, as any other."""

    def method(self: Remote, *arguments: Any, **named: Any) -> Any:
        return self._mqlab_peer.get(self, name)(*arguments, **named)

    def attribute(self: Remote) -> Any:
        return self._mqlab_peer.get(self, name)

    return method if callable(getattr(base, name, None)) else property(attribute)


def proxy(peer: Peer, number: int, name: str, bases: tuple[type, ...]) -> Remote:
    """What stands for an object of the other side, of a class of its own that has the bases' names."""
    above = [base for base in bases if base is not Compared]
    inherited = {own: _forwarded(base, own) for base in above for own in dir(base) if not own.startswith("_")}
    kind = type(name, bases if Compared in bases else (Remote, *bases), {"__module__": "answer", **inherited})
    update_abstractmethods(kind)
    stands: Remote = object.__new__(kind)
    object.__setattr__(stands, "_mqlab_peer", peer)
    object.__setattr__(stands, "_mqlab_reference", number)
    return stands


def class_proxy(peer: Peer, number: int, name: str, bases: tuple[type, ...]) -> type:
    """A class here that makes its objects there."""

    def make(_cls: type, *arguments: Any, **named: Any) -> Any:
        return peer.call(number, arguments, named)

    def in_process(salt: int) -> Any:
        return peer.ask("own", number, salt)

    own = {"__module__": "answer", "__new__": make, "__mqlab_own_process__": staticmethod(in_process)}
    return type(name, bases, {**own, "_mqlab_peer": peer, "_mqlab_reference": number})


async def awaited(peer: Peer, coroutine: Remote) -> Any:
    """Drive a coroutine of the other side from here, and wait here for what it waits for there."""
    value, failed = None, None
    while True:
        what, got = peer.ask("step", coroutine._mqlab_reference, value, failed)
        if what == "returned":
            return got
        value = failed = None
        try:
            value = await got
        except GeneratorExit:
            # Who waits in a world that is let go, after the last verdict, has nobody left to tell.
            if not peer.is_closed:
                peer.ask("close", coroutine._mqlab_reference)
            raise
        except Exception as error:  # noqa: BLE001  it is raised where it is awaited
            failed = error


def trait_of(value: Any) -> str:
    """How the other side shall treat it."""
    if isinstance(value, type):
        return "class"
    if is_compared(value):
        return "compared"
    return "coroutine" if isawaitable(value) and hasattr(value, "send") else ""
