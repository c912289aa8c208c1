"""One call of an application's listener, plain or `async`, by a thread of a consume pool."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from enum import Enum
from typing import TYPE_CHECKING, Any

from mqlab.errors import SimulationError

if TYPE_CHECKING:
    from mqlab.sim import Node


class ListenerCall:
    """A job of a consume pool: calls a listener, and says in `finish` what comes of its answer.

    `began_us` is when the listener was called, `error` what it raised: a failure like any other, since a consumer goes
    on whatever its listener raises. An error of the world itself is not the listener's, and goes through.
    """

    __slots__ = ("began_us", "error")

    def __init__(self) -> None:
        self.began_us = 0
        self.error: Exception | None = None

    def call(self, node: Node, listener: Callable[..., Any], *given: object) -> Coroutine[Any, Any, None] | None:
        """Call the listener now; what is left to do, if it is a coroutine, which keeps its thread until it has ended.

        A listener that raised has said None.
        """
        self.began_us = node.world.now_us
        said: Any = None
        try:
            said = listener(*given)
        except SimulationError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a listener raises is a failure
            self.error = error
        # Nearly every listener says a status, and asking that costs less than asking for a coroutine.
        if isinstance(said, Enum) or not isinstance(said, Coroutine):
            return self.finish(said)
        return self._wait(said)

    async def _wait(self, listener: Coroutine[Any, Any, Any]) -> None:
        said: Any = None
        try:
            said = await listener
        except SimulationError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever a listener raises is a failure
            self.error = error
        work = self.finish(said)
        if work is not None:
            await work

    def finish(self, said: Any) -> Coroutine[Any, Any, None] | None:
        """Do with the messages what the listener has said; what is left to do, if that takes time."""
        raise NotImplementedError(f"{type(self).__name__} must define finish()")
