"""An address server: tells clients by HTTP where the name servers are."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mqlab.sim import Transport

if TYPE_CHECKING:
    from mqlab.sim import Node

DEFAULT_PORT = 8080


class AddressServer:
    """Serves `/rocketmq/nsaddr`, the one page that RocketMQ's clients ask for when they were given no name server.

    `addresses` is the page, "ip:port;ip:port"; change it and clients learn of it within two minutes. RocketMQ leaves it
    to its users which HTTP server they take for this.
    """

    def __init__(self, node: Node, addresses: str, port: int = DEFAULT_PORT) -> None:
        self.node = node
        self.addresses = addresses
        self.port = port
        self.requests = 0

    @property
    def address(self) -> str:
        """Where it listens, "ip:port"."""
        return f"{self.node.spec.ip}:{self.port}"

    def start(self) -> None:
        """Listen from now on."""
        self.node.listen(self.port, self._accept)

    def shutdown(self) -> None:
        """Close the port: whoever asks for addresses gets no connection."""
        self.node.stop_listening(self.port)

    def _accept(self, endpoint: Transport) -> None:
        endpoint.on_frame = partial(self._answer, endpoint)

    def _answer(self, endpoint: Transport, request: object) -> None:
        self.requests += 1
        # Whoever takes this for a name server sends remoting commands.
        found = isinstance(request, bytes) and request.startswith(b"GET /rocketmq/nsaddr")
        body = f"{self.addresses}\n".encode() if found else b""
        status = "200 OK" if found else "404 Not Found"
        answer = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
        endpoint.send(answer, len(answer))
