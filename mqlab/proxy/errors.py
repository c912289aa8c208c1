"""Errors of a proxy that its clients are told as a status."""

from __future__ import annotations

from mqlab.errors import MqlabError
from mqlab.protocol.v2.definition import Code


class GrpcProxyException(MqlabError):
    """A call is refused with this code (org.apache.rocketmq.proxy.grpc.v2.common.GrpcProxyException)."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(f"{code.name}: {message}")
        self.code = code
        self.error_message = message


class ProxyException(GrpcProxyException):
    """A call is refused deeper in the proxy (org.apache.rocketmq.proxy.common.ProxyException).

    As in RocketMQ the client reads the name of Java's class before the text.
    """

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(code, f"org.apache.rocketmq.proxy.common.ProxyException: {message}")
