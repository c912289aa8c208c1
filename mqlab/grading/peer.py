"""Two processes that call each other's functions over a pipe, one line of JSON for each question and each answer.

A question may be asked while one is answered (the judge calls a listener, which calls what it was given); each is
answered before the one around it. Neither side believes the other one anything: what comes is a value, or a reference
to something that was handed out before, and `Gate` says what may be done with that.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

from mqlab.grading.answers import Answers, is_mutable
from mqlab.grading.data_frames import Frames
from mqlab.grading.gate import Gate
from mqlab.grading.references import References
from mqlab.grading.remote import Remote, proxy
from mqlab.grading.values import Encoded, WireError
from mqlab.grading.wire_errors import PeerLost, described, raised


class Pipe(Protocol):
    """A line out, a line in."""

    def write(self, line: bytes) -> None:
        """Send a line to the other side."""
        ...

    def read(self) -> bytes:
        """The next line; PeerLost when there will be none."""
        ...


class Peer:
    """One end of the pipe: asks, waits for the answer, and answers what is asked meanwhile."""

    def __init__(self, pipe: Pipe, gate: Gate, frames: Frames) -> None:
        self._pipe = pipe
        self._gate = gate
        self._references = References(self, gate, frames)
        self._values = self._references.values
        self._answers = Answers(gate, self._values, lambda: self.remote(0))
        self.is_closed = False
        """Whether nothing will be asked any more."""
        self._methods: dict[tuple[int, str], Remote] = {}
        """(reference, name) -> a method that was read already."""

    def hand_out(self, thing: Any) -> None:
        """Give the other side a first object, as `remote(0)`."""
        self._references.refer(thing)

    def remote(self, number: int) -> Remote:
        """What stands for an object that the other side has handed out."""
        return proxy(self, number, "Remote", ())

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
            if not is_mutable(given) or type(content) is not type(given):
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
                raise raised(rest[0], self._values)
            else:
                raise PeerLost("the other process answers with nonsense")

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
            answer = ["error", described(error, self._values, self._gate)]
        self._send(answer)

    def _do(self, operation: str, reference: int, *rest: Encoded) -> Any:
        done = self._answers.operations.get(operation)
        if done is None:
            raise WireError(f"nobody can do {operation!r}")
        thing = self._references.object_of(reference)
        fields = [self._values.decode(field) for field in rest]
        return done(thing, *fields)

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


def _refill(container: Any, content: Any) -> None:
    container.clear()
    container.extend(content) if isinstance(container, list) else container.update(content)
