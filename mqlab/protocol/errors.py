"""What can be wrong with bytes that a peer sent or that a file holds, each as an error with fields."""

from __future__ import annotations

from mqlab.errors import ProtocolError


class CommandError(ProtocolError):
    """A frame is not a remoting command; `reason` says what was wrong with it."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"malformed remoting command: {reason}")
        self.reason = reason


class HeaderError(ProtocolError):
    """The extension fields of a command do not fill the typed header that its code asks for."""

    def __init__(self, header: str, field: str, reason: str) -> None:
        super().__init__(f"{header}.{field}: {reason}")
        self.header = header
        self.field = field
        self.reason = reason


class RecordError(ProtocolError):
    """The bytes at `offset` of a buffer are not a stored message; `reason` says why."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"bad message record at byte {offset}: {reason}")
        self.offset = offset
        self.reason = reason


class BodyError(ProtocolError):
    """The body of a command is not the JSON object that its code asks for."""

    def __init__(self, body: str, reason: str) -> None:
        super().__init__(f"bad {body} body: {reason}")
        self.body = body
        self.reason = reason


class MessageIdError(ProtocolError):
    """A text is not a message id of RocketMQ."""

    def __init__(self, message_id: str, reason: str) -> None:
        super().__init__(f"bad message id {message_id!r}: {reason}")
        self.message_id = message_id
        self.reason = reason


class CompressionError(ProtocolError):
    """A body that claims to be compressed cannot be unpacked."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(f"cannot unpack a {kind} body: {reason}")
        self.kind = kind
        self.reason = reason


class ExtraInfoError(ProtocolError):
    """A receipt handle, or what a pop answer says of its offsets, cannot be read; worded as RocketMQ's broker does."""
