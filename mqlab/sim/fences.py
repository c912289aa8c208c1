"""Fences: real sleeping and real threads inside a world are errors that name the substitute."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any

from ..errors import SimulationError
from .door import playing_world

_fenced = "mqlab_fence"


def _fence(function: Callable[..., Any], message: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def fenced(*args: Any, **kwargs: Any) -> Any:
        world = playing_world()
        if world is not None:
            raise SimulationError(f"{world.current.name!r} on {world.current.life.node_name} {message}")
        return function(*args, **kwargs)

    setattr(fenced, _fenced, True)
    return fenced


def put_up_fences() -> None:
    """Wrap `time.sleep` and the start of threads, once for the whole process.

    Outside a slice, and on every other thread, the wrapped functions do what they always did.
    """
    if not hasattr(time.sleep, _fenced):
        time.sleep = _fence(
            time.sleep,
            "called time.sleep, which stops the real clock's thread and no time in the world. "
            "Use 'await ctx.sleep(ms=...)' in a coroutine listener, and build the lab anew: to this listener the same "
            "message would come again.",
        )
    if not hasattr(threading.Thread.start, _fenced):
        threading.Thread.start = _fence(  # type: ignore[method-assign]  # the fence is the point
            threading.Thread.start,
            "started a real thread; what it does could not be replayed. Use 'node.spawn(coroutine, name)'.",
        )
