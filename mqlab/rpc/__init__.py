"""Calls with streams between 5.x clients and proxies: what gRPC is in RocketMQ.

A connection carries many streams at once; a stream is one call, in which either side may send several messages, and
ends with a status. `RpcClient` opens streams, `RpcServer` serves them; both know calls by the table of
`mqlab.protocol.v2.service`. Over the links of a world travel `RpcFrame`s, whose bytes are HTTP/2's frames around
gRPC's length-prefixed protobuf messages.

Differs from gRPC: headers are plain lines, not compressed (HPACK); there are no settings, pings, flow-control windows,
keep-alives or limits of streams, and no TLS. A connection that could not be made is tried again by the next call, where
gRPC would refuse calls for a second or more.
"""

from mqlab.rpc.client import RpcClient
from mqlab.rpc.frame import RpcFrame
from mqlab.rpc.server import RpcServer, ServerStream
from mqlab.rpc.status import RpcError, StatusCode

__all__ = ["RpcClient", "RpcError", "RpcFrame", "RpcServer", "ServerStream", "StatusCode"]
