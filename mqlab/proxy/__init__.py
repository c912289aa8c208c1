"""The proxy: a stateless process between 5.x clients and brokers, which speaks gRPC's calls to the former and remoting
to the latter. Clients send through it, receive by Pop, and hold nothing of queues, offsets or rebalance.
"""

from mqlab.proxy.proxy_config import ProxyConfig
from mqlab.proxy.proxy_controller import ProxyController

__all__ = ["ProxyConfig", "ProxyController"]
