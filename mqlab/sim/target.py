"""What the agenda of a world plays."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqlab.sim.life import Life


class Target:
    """What the agenda plays: a task, a timer, the frames of a connection, a job of a pool.

    An entry of the agenda notes the target's token; when the target has another one by then, the entry is stale and is
    passed over, so that nothing is ever searched for in the agenda. `life` is that of the process which the target
    belongs to, or the world's.
    """

    __slots__ = ("life", "name", "token")

    life: Life
    name: str
    token: int

    def fire(self) -> None:
        """Play the slice: resume the task, or call back."""
        raise NotImplementedError(f"{type(self).__name__} must define fire()")
