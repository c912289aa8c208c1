"""What a 5.x client raises."""

from __future__ import annotations

from mqlab.errors import MqlabError
from mqlab.protocol.v2.definition import Code, Status

PASSING = (Code.OK, Code.MULTIPLE_RESULTS, Code.MESSAGE_NOT_FOUND)


class ClientException(MqlabError):
    """A proxy refused what was asked, or the client itself does (org.apache.rocketmq.client.apis.ClientException).

    `code` says why; 0 when no proxy was asked or none answered.
    """

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(f"[{_name(code)}] {message}" if code else message)
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


def _name(code: int) -> str:
    return Code(code).name if code in Code._value2member_map_ else str(code)
