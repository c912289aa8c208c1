"""The settings of both sides of remoting, with RocketMQ's names and defaults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class RemotingClientConfig:
    """What a client of other nodes may set (org.apache.rocketmq.remoting.netty.NettyClientConfig)."""

    client_callback_executor_threads: int = 0
    """Threads that run callbacks; 0 means one for each core of the node."""
    client_oneway_semaphore_value: int = 65535
    client_async_semaphore_value: int = 65535
    connect_timeout_millis: int = 3000
    client_channel_max_idle_time_seconds: int = 120
    client_close_socket_if_timeout: bool = True
    enable_reconnect_for_go_away: bool = True
    """Send a request once more, over a new channel, when its server answers that it is leaving."""


@dataclass
class RemotingServerConfig:
    """What a server may set (org.apache.rocketmq.remoting.netty.NettyServerConfig)."""

    server_callback_executor_threads: int = 0
    """Threads of the public pool, for processors without a pool of their own; 0 means 4."""
    server_oneway_semaphore_value: int = 256
    server_async_semaphore_value: int = 64
    server_channel_max_idle_time_seconds: int = 120
    enable_shutdown_gracefully: bool = False
    """Answer GO_AWAY for a while before the channels are closed."""
    shutdown_wait_time_seconds: int = 30
