"""How a call can end: gRPC's own status codes, below those of RocketMQ, which travel in the answers."""

from __future__ import annotations

from enum import IntEnum

from mqlab.errors import MqlabError


class StatusCode(IntEnum):
    """The codes that are used here (io.grpc.Status.Code)."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14

    @classmethod
    def of(cls, number: int) -> StatusCode:
        """The code with this number; UNKNOWN for one that is not among these, as for gRPC's clients."""
        return cls(number) if number in cls._value2member_map_ else cls.UNKNOWN


class RpcError(MqlabError):
    """A call ended with another status than OK (io.grpc.StatusRuntimeException)."""

    retriable = True

    def __init__(self, code: StatusCode, description: str = "") -> None:
        super().__init__(f"{code.name}: {description}" if description else code.name)
        self.code = code
        self.description = description
