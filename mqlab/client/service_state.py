"""The states in the life of a client."""

from __future__ import annotations

from enum import Enum


class ServiceState(Enum):
    """How far a client has come (org.apache.rocketmq.common.ServiceState)."""

    CREATE_JUST = "CREATE_JUST"
    RUNNING = "RUNNING"
    SHUTDOWN_ALREADY = "SHUTDOWN_ALREADY"
    START_FAILED = "START_FAILED"

    def __str__(self) -> str:
        return self.value
