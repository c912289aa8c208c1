"""Remoting: calls between nodes - sync, async and one-way - over connections that carry remoting commands."""

from .channel import Channel
from .client import RemotingClient
from .config import RemotingClientConfig, RemotingServerConfig
from .processor import AbortProcessException, ChannelEventListener, RequestProcessor, RPCHook
from .response_future import ResponseFuture
from .server import RemotingServer, waiting_request

__all__ = [
    "AbortProcessException",
    "Channel",
    "ChannelEventListener",
    "RPCHook",
    "RemotingClient",
    "RemotingClientConfig",
    "RemotingServer",
    "RemotingServerConfig",
    "RequestProcessor",
    "ResponseFuture",
    "waiting_request",
]
