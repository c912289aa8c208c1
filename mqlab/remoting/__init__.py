"""Remoting: calls between nodes - sync, async and one-way - over connections that carry remoting commands."""

from mqlab.remoting.channel import Channel
from mqlab.remoting.client import RemotingClient
from mqlab.remoting.config import RemotingClientConfig, RemotingServerConfig
from mqlab.remoting.processor import AbortProcessException, ChannelEventListener, RequestProcessor, RPCHook
from mqlab.remoting.response_future import ResponseFuture
from mqlab.remoting.server import RemotingServer, waiting_request

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
