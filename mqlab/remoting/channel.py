"""A channel: one side of one connection, as the parts above the network see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mqlab.protocol.command import RemotingCommand


class Channel(Protocol):
    """One connection to `remote_address`, over which commands travel in both directions (io.netty.channel.Channel).

    What carries them is the channel's own affair: a transport (EndpointChannel), be it a link of the world or
    a socket, or anything else that brings commands in their order.
    """

    __slots__ = ()

    connection_id: int
    local_address: str
    remote_address: str

    @property
    def is_active(self) -> bool:
        """Whether commands can be written."""

    def write(self, command: RemotingCommand, *, keep: bool = True) -> None:
        """Send a command as it is now; EndpointClosed when the channel is not active.

        Without `keep` the caller gives the command away and will not touch it again, so that it need not be copied.
        """

    def outer_address(self, address: str) -> str:
        """How whoever is at the other end reaches a process at an address of the world."""
        return address

    def close(self) -> None:
        """Close the connection; what was written before still arrives."""


CommandHandler = Callable[[Channel, "RemotingCommand"], None]
CloseHandler = Callable[[Channel], None]
