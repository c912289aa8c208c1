"""The settings of 5.x clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mqlab.arguments import check_least
from mqlab.protocol.message import MEBIBYTE

if TYPE_CHECKING:
    from mqlab.auth.session_credentials import SessionCredentials


@dataclass(eq=False, repr=False)
class ClientConfiguration:
    """What every 5.x client may set; times in ms (org.apache.rocketmq.client.apis.ClientConfiguration).

    `endpoints` are the proxies, "ip:port;ip:port": the first that can be reached is used. With `credentials` each call
    is signed. Differs from RocketMQ: no namespaces and TLS.
    """

    endpoints: str = ""
    request_timeout: int = 3_000
    max_startup_attempts: int = 3
    credentials: SessionCredentials | None = None

    def __post_init__(self) -> None:
        check_least(self, 1, "request_timeout", "max_startup_attempts")
        if self.credentials is not None:
            from mqlab.auth.session_credentials import checked_credentials

            checked_credentials(self.credentials)


@dataclass(eq=False, repr=False)
class ProducerConfiguration(ClientConfiguration):
    """What a producer may set beside (ProducerBuilder): `topics`, joined by commas, are looked up at its start."""

    topics: str = ""


@dataclass(eq=False, repr=False)
class PushConsumerConfiguration(ClientConfiguration):
    """What a push consumer may set beside (PushConsumerBuilder); the two limits are for all its queues together.

    With `enable_fifo_consume_accelerator` message groups are consumed side by side in a consumer with order. Python's
    client always does so, and caches 1,024 messages at most.
    """

    max_cache_message_count: int = 4096
    max_cache_message_size_in_bytes: int = 64 * MEBIBYTE
    consumption_thread_count: int = 20
    enable_fifo_consume_accelerator: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(
            self, 1, "max_cache_message_count", "max_cache_message_size_in_bytes", "consumption_thread_count"
        )


@dataclass(eq=False, repr=False)
class SimpleConsumerConfiguration(ClientConfiguration):
    """What a simple consumer may set beside (SimpleConsumerBuilder): how long a receive waits for messages."""

    await_duration: int = 20_000
