"""What carries one connection: a side of it, whatever lies in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqlab.errors import MqlabError


class EndpointClosed(MqlabError):
    """The connection is closed: nothing can be sent on it."""


class Transport:
    """One side of a connection, which brings frames in their order. Set `on_close`, then `on_frame`, before the slice
    that made it ends.

    Frames may arrive before the task that connected goes on: `on_frame` gets them when set. With `as_bytes` whoever
    writes encodes what it sends (over a socket there is no other way), else commands travel as they are.
    """

    __slots__ = (
        "_early", "_on_frame", "as_bytes", "connection_id", "is_outside", "local", "on_close", "open", "remote",
    )  # fmt: skip

    def __init__(
        self, local: str, remote: str, connection_id: int, as_bytes: bool, is_outside: bool = False
    ) -> None:
        self.local = local
        self.remote = remote
        self.connection_id = connection_id
        self.as_bytes = as_bytes
        self.is_outside = is_outside
        """Whether the other side is no process of the world."""
        self.open = True
        self.on_close: Callable[[], None] = _ignore_close
        self._early: list[Any] = []
        self._on_frame: Callable[[Any], None] = self._early.append

    @property
    def on_frame(self) -> Callable[[Any], None]:
        """What is called with each frame that arrives."""
        return self._on_frame

    @on_frame.setter
    def on_frame(self, handler: Callable[[Any], None]) -> None:
        self._on_frame = handler
        early, self._early = self._early, []
        for frame in early:
            handler(frame)

    @property
    def counts_bytes(self) -> bool:
        """Whether `put` must be told how many bytes a frame has."""
        return self.as_bytes

    def outer_address(self, address: str) -> str:
        """How the other side reaches a process at an address of the world: within the world under that one."""
        return address

    def send(self, frame: Any, size: int = 0) -> None:
        """Send a frame (an immutable snapshot); EndpointClosed when the connection is no longer open."""
        if not self.open:
            raise EndpointClosed(f"the connection {self.local} -> {self.remote} is closed")
        self.put(frame, size)

    def put(self, frame: Any, size: int) -> None:
        """Send a frame of `size` bytes (0 where nobody counts them) on a connection that is known to be open."""
        raise NotImplementedError(f"{type(self).__name__} must define put()")

    def close(self) -> None:
        """Close in good order: what was sent before still arrives, then the other side sees the end."""
        raise NotImplementedError(f"{type(self).__name__} must define close()")


def _ignore_close() -> None:
    """The close handler of a connection that nobody uses."""
