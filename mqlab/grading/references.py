"""References: the objects that two processes have handed out to each other, by number."""

from __future__ import annotations

from types import MethodType
from typing import TYPE_CHECKING, Any

from mqlab.grading.data_frames import Frames, is_frame
from mqlab.grading.remote import Compared, awaited, class_proxy, proxy, trait_of
from mqlab.grading.values import Encoded, Values, WireError, is_of_mqlab
from mqlab.grading.wire_errors import described, raised

if TYPE_CHECKING:
    from mqlab.grading.gate import Gate
    from mqlab.grading.peer import Peer

MOST_OBJECTS = 50_000
"""Objects of the other side that are known here at once: each has a class of its own."""


class References:
    """What this side has handed out, what stands here for what it was given, and `values`, which go by themselves."""

    def __init__(self, peer: Peer, gate: Gate, frames: Frames) -> None:
        self._peer = peer
        self._gate = gate
        self._frames = frames
        self.values = Values(self.refer, self._resolve, gate.may_import)
        self._handed: list[Any] = []
        self._numbers: dict[Any, int] = {}
        """identity of an object that was handed out -> its reference; the list keeps the object alive."""
        self._proxies: dict[int, Any] = {}

    def refer(self, value: Any) -> Encoded:
        """What stands for an object on the other side. WireError where that side may not have it."""
        if getattr(value, "_mqlab_peer", None) is self._peer:
            return ["yours", value._mqlab_reference]
        if isinstance(value, BaseException):
            return ["raised", described(value, self.values, self._gate)]
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
                return [self.values.encode(base)]
        return []

    def _resolve(self, encoded: Encoded) -> Any:
        tag, *rest = encoded
        if tag == "yours":
            return self.object_of(rest[0])
        if tag == "raised":
            return raised(rest[0], self.values)
        if tag == "frame":
            return self._frames.take(rest)
        if tag != "mine":
            raise WireError(f"no value: {tag!r}")
        number, name, trait, bases = rest
        if trait == "coroutine" and self._gate.has_the_clock:
            return awaited(self._peer, proxy(self._peer, int(number), str(name), ()))
        if number not in self._proxies:
            if self._gate.has_the_clock and len(self._proxies) >= MOST_OBJECTS:
                raise WireError(f"your code gave more than {MOST_OBJECTS:,} objects")
            above = tuple(self.values.decode(base) for base in bases)
            if trait == "class":
                self._proxies[number] = class_proxy(self._peer, int(number), str(name), above)
            else:
                # How an object of a solution compares is its own affair: the judge asks it nothing.
                compared = trait == "compared" and not self._gate.has_the_clock
                self._proxies[number] = proxy(self._peer, int(number), str(name), (Compared,) if compared else above)
        return self._proxies[number]

    def object_of(self, reference: Any) -> Any:
        """What was handed out with this number; WireError if nothing was."""
        if type(reference) is not int or not 0 <= reference < len(self._handed):
            raise WireError("that was never handed out")
        return self._handed[reference]
