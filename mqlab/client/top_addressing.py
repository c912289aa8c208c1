"""Asking an address server for the name servers, for clients that were given none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.sim import ConnectionRefused, ConnectTimeout, Future, WaitTimeout

if TYPE_CHECKING:
    from mqlab.sim import Node, Transport

FETCH_TIMEOUT_MS = 3_000
DEFAULT_PORT = 8080


class TopAddressing:
    """Fetches the list of name servers by HTTP (org.apache.rocketmq.common.namesrv.DefaultTopAddressing).

    `domain` is the address server, "ip:port" or "ip" alone for port 8080 (the system property rocketmq.namesrv.domain).
    Differs from RocketMQ: without a domain nobody is asked, where RocketMQ asks jmenv.tbsite.net, which only its makers
    have; a name is not looked up, so it is an ip address.
    """

    def __init__(self, node: Node, domain: str, unit_name: str | None = None) -> None:
        self._node = node
        self.address = domain if ":" in domain else f"{domain}:{DEFAULT_PORT}"
        self.path = "/rocketmq/nsaddr" + (f"-{unit_name}?nofix=1" if unit_name else "")

    async def fetch_ns_addr(self) -> str | None:
        """The name servers as the address server writes them, "ip:port;ip:port"; None when it cannot tell in 3 s."""
        try:
            endpoint = await self._node.connect(self.address, FETCH_TIMEOUT_MS)
        except (ConnectionRefused, ConnectTimeout):
            return None
        try:
            return await self._ask(endpoint)
        finally:
            if endpoint.open:
                endpoint.close()

    async def _ask(self, endpoint: Transport) -> str | None:
        answer: Future[bytes] = Future(f"the answer of the address server {self.address}")

        def ended() -> None:
            answer.try_set_result(b"")

        def came(frame: bytes) -> None:
            answer.try_set_result(frame)

        endpoint.on_close, endpoint.on_frame = ended, came
        request = f"GET {self.path} HTTP/1.1\r\nHost: {self.address}\r\nConnection: close\r\n\r\n".encode()
        endpoint.send(request, len(request))
        try:
            head, _, body = (await self._node.wait(answer, FETCH_TIMEOUT_MS)).partition(b"\r\n\r\n")
        except WaitTimeout:
            return None
        if head.split(b" ")[1:2] != [b"200"]:
            return None
        lines = body.decode(errors="replace").strip().splitlines()
        return lines[0].strip() if lines else None
