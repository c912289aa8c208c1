"""What others plug into remoting: processors of requests, hooks around calls, listeners of channels."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from mqlab.errors import MqlabError
from mqlab.protocol.command import RemotingCommand
from mqlab.sim import Future

if TYPE_CHECKING:
    from mqlab.remoting.channel import Channel

Processed = (
    RemotingCommand
    | None
    | Future[RemotingCommand | None]
    | Coroutine[Any, Any, RemotingCommand | Future[RemotingCommand | None] | None]
)
"""An answer now, none (answered elsewhere), or one that comes later; a coroutine keeps its thread meanwhile."""


class AbortProcessException(MqlabError):
    """A processor or hook ends a request with a response code of its own choice.

    Java: org.apache.rocketmq.common.AbortProcessException.
    """

    def __init__(self, response_code: int, remark: str) -> None:
        super().__init__(f"CODE: {response_code}  DESC: {remark}")
        self.response_code = response_code
        self.remark = remark


class RequestProcessor:
    """Answers requests of some codes (org.apache.rocketmq.remoting.netty.NettyRequestProcessor)."""

    def process_request(self, channel: Channel, request: RemotingCommand) -> Processed:
        """The answer. None means: answered already, or later by `channel.write(response)` with the request's opaque."""
        raise NotImplementedError(f"{type(self).__name__} must define process_request()")

    def reject_request(self) -> str | None:
        """A reason to refuse all requests at present (they are answered SYSTEM_BUSY with it), or None."""
        return None


class RPCHook:
    """Looks at every request and every answer (org.apache.rocketmq.remoting.RPCHook)."""

    def do_before_request(self, remote_address: str, request: RemotingCommand) -> None:
        """Called before a request is written (client) or processed (server); an error ends the call."""

    def do_after_response(
        self, remote_address: str, request: RemotingCommand, response: RemotingCommand | None
    ) -> None:
        """Called when the answer has come (client) or is about to be written (server); not for a processor's error."""


class ChannelEventListener:
    """Is told about connections that come and go (org.apache.rocketmq.remoting.ChannelEventListener)."""

    def on_connect(self, channel: Channel) -> None:
        """A connection is established."""

    def on_close(self, channel: Channel) -> None:
        """A connection has ended, whoever ended it; for a connection that was idle too long as well."""
