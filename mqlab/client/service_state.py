"""The states in the life of a client."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from mqlab.errors import MQClientException

if TYPE_CHECKING:
    from mqlab.sim import Life, Node


class ServiceState(Enum):
    """How far a client has come (org.apache.rocketmq.common.ServiceState)."""

    CREATE_JUST = "CREATE_JUST"
    RUNNING = "RUNNING"
    SHUTDOWN_ALREADY = "SHUTDOWN_ALREADY"
    START_FAILED = "START_FAILED"

    def __str__(self) -> str:
        return self.value


RUNNING = ServiceState.RUNNING
"""A constant, since asking an enumeration for its member costs as much as a call."""


def check_process_lives(life: Life | None, node: Node, role: str) -> None:
    """Raise MQClientException for a client whose process was killed: it went with the process."""
    if life is not None and life is not node.life:
        raise MQClientException(
            f"this {role} died with its process on {node.name}. What to do: make a new {role} there and start it."
        )
