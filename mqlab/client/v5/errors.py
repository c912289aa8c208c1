"""What a 5.x client raises."""

from __future__ import annotations

from mqlab.errors import MqlabError
from mqlab.protocol.v2.definition import Code, Status
from mqlab.protocol.v2.protobuf import name_of

PASSING = (Code.OK, Code.MULTIPLE_RESULTS, Code.MESSAGE_NOT_FOUND)


class ClientException(MqlabError):
    """A proxy refused what was asked, or the client itself does (org.apache.rocketmq.client.apis.ClientException).

    `code` says why; 0 when no proxy was asked or none answered.
    """

    def __init__(self, message: str, code: int = 0) -> None:
        known = Code(code) if code in Code._value2member_map_ else code
        super().__init__(f"[{name_of(known)}] {message}" if code else message)
        self.code = code
        self.error_message = message

    @property
    def is_too_many_requests(self) -> bool:
        """Whether to wait before asking again (TooManyRequestsException)."""
        return self.code == Code.TOO_MANY_REQUESTS


def check_status(status: Status) -> None:
    """Raise what a bad status means; an answer without messages is none.

    Java: org.apache.rocketmq.client.java.exception.StatusChecker.
    """
    if status.code not in PASSING:
        raise ClientException(status.message, int(status.code))
