"""How a processor says that it refuses a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.errors import MqlabError
from mqlab.protocol.command import RemotingCommand
from mqlab.trace.events.broker import RequestRejected

if TYPE_CHECKING:
    from mqlab.remoting import Channel
    from mqlab.trace.bus import Bus

FAQ = "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
"""What RocketMQ adds to the errors that it was asked about most often."""


class RequestError(MqlabError):
    """A request is refused; it is answered with this code and text, and these extension fields."""

    def __init__(self, code: int, remark: str, **ext_fields: str) -> None:
        super().__init__(f"CODE: {int(code)}  DESC: {remark}")
        self.code = int(code)
        self.remark = remark
        self.ext_fields = ext_fields

    def to_response(self) -> RemotingCommand:
        """The answer to the request."""
        response = RemotingCommand.response(self.code, self.remark)
        for name, value in self.ext_fields.items():
            response.add_ext_field(name, value)
        return response


def rejected(hooks: Bus, channel: Channel, request: RemotingCommand, error: RequestError) -> RemotingCommand:
    """Answer a request with the error for which it is refused, and say so in the trace."""
    if hooks.on:
        hooks.emit(RequestRejected(request.code, request.opaque, error.code, error.remark, channel.remote_address))
    return error.to_response()
