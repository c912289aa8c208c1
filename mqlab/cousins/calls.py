"""How clients speak to a cousin: a request and its answer, each a line of JSON, over one connection of the world.

Neither Kafka's protocol nor Amazon's: what is compared here are queues, not encodings.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqlab.errors import MqlabError
from mqlab.sim import ConnectionRefused, ConnectTimeout, EndpointClosed, WaitTimeout

if TYPE_CHECKING:
    from mqlab.sim import Future, Node, Transport

CALL_MS = 3_000
CONNECT_MS = 3_000


class CallRefused(MqlabError):
    """A cousin has answered with an error, or not at all; `code` is the error's name in its specification."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code


Handler = Callable[["Transport", dict[str, Any]], Any]


class CallServer:
    """Answers requests at a port: `handlers` by the name of the request, which gives JSON or raises CallRefused."""

    def __init__(
        self, node: Node, port: int, handlers: dict[str, Handler], gone: Callable[[Transport], None]
    ) -> None:
        self._node = node
        self._handlers = handlers
        self._gone = gone
        """Called with a connection that has ended."""
        node.listen(port, self._accept)

    def _accept(self, transport: Transport) -> None:
        transport.on_close = lambda: self._gone(transport)
        transport.on_frame = lambda frame: self._answer(transport, frame)

    def _answer(self, transport: Transport, frame: bytes) -> None:
        number, name, arguments = json.loads(frame)
        try:
            answer = ["", self._handlers[name](transport, arguments)]
        except CallRefused as refused:
            answer = [refused.code, str(refused)]
        if transport.open:
            _send(transport, [number, *answer])


class CallClient:
    """Asks a cousin at an address, over a connection that is made when it is needed."""

    def __init__(self, node: Node, address: str) -> None:
        self._node = node
        self._address = address
        self._transport: Transport | None = None
        self._waiting: dict[int, Future[Any]] = {}
        self._next = 0

    async def call(self, name: str, **arguments: Any) -> Any:
        """The answer; CallRefused if it is an error, or none came within 3 s."""
        transport = await self._connected()
        self._next += 1
        number = self._next
        answer: Future[Any] = self._node.future(f"the answer to {name}")
        self._waiting[number] = answer
        _send(transport, [number, name, arguments])
        try:
            code, value = await self._node.wait(answer, CALL_MS)
        except WaitTimeout as late:
            del self._waiting[number]
            raise CallRefused("REQUEST_TIMED_OUT", str(late)) from late
        if code:
            raise CallRefused(code, value)
        return value

    async def _connected(self) -> Transport:
        if self._transport is not None and self._transport.open:
            return self._transport
        try:
            transport = await self._node.connect(self._address, CONNECT_MS)
        except (ConnectionRefused, ConnectTimeout) as problem:
            raise CallRefused("NETWORK_EXCEPTION", str(problem)) from problem
        self._transport = transport
        transport.on_close = self._closed
        transport.on_frame = self._take
        return transport

    def _take(self, frame: bytes) -> None:
        number, code, value = json.loads(frame)
        answer = self._waiting.pop(number, None)
        if answer is not None:
            answer.try_set_result((code, value))

    def _closed(self) -> None:
        for answer in self._waiting.values():
            answer.try_set_result(("NETWORK_EXCEPTION", "the connection was closed"))
        self._waiting.clear()


def _send(transport: Transport, content: list[Any]) -> None:
    frame = json.dumps(content).encode()
    try:
        transport.send(frame, len(frame))
    except EndpointClosed as closed:
        raise CallRefused("NETWORK_EXCEPTION", str(closed)) from closed
