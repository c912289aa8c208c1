"""Who calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mqlab.protocol.v2.definition import Code
from mqlab.proxy.errors import GrpcProxyException

if TYPE_CHECKING:
    from mqlab.rpc import ServerStream


class ProxyContext(NamedTuple):
    """What a proxy knows of a call (org.apache.rocketmq.proxy.common.ProxyContext)."""

    client_id: str
    client_version: str
    remote_address: str
    stream: ServerStream

    @classmethod
    def of(cls, stream: ServerStream) -> ProxyContext:
        """The context of a call; GrpcProxyException when it does not say which client calls."""
        metadata = stream.metadata
        client_id = metadata.get("x-mq-client-id", "")
        if not client_id.strip():
            raise GrpcProxyException(Code.CLIENT_ID_REQUIRED, "client id cannot be empty")
        version = metadata.get("x-mq-client-version", "")
        return cls(client_id, version, stream.connection.remote_address, stream)

    @property
    def remaining_ms(self) -> int:
        """How long the client will still wait."""
        return self.stream.remaining_ms
