"""Events of the network: connections made, closed and broken."""

from __future__ import annotations

from typing import NamedTuple


class ConnectionOpened(NamedTuple):
    """A connection is established, seen by the side that asked for it."""

    local: str
    remote: str
    connection: int


class ConnectionClosed(NamedTuple):
    """One side of a connection has seen its end in good order."""

    local: str
    remote: str
    connection: int


class ConnectionBroken(NamedTuple):
    """One side of a connection has seen it break: what was in flight is lost."""

    local: str
    remote: str
    connection: int


class ConnectionRefusedByHost(NamedTuple):
    """The host answered that nobody listens at the address."""

    reason: str
