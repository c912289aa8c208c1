"""Fences: real sleeping, real threads, processes, sockets and loops of asyncio inside a world are errors that name the
substitute.
"""

from __future__ import annotations

import _thread
import functools
import sys
import time
from collections.abc import Callable
from typing import Any

from mqlab.errors import SimulationError
from mqlab.sim.door import playing_world

_SLEEP = (
    "called time.sleep, which stops the real clock's thread and no time in the world. Use 'await ctx.sleep(ms=...)' in "
    "a coroutine listener, and build the lab anew: to this listener the same message would come again."
)
_THREAD = "started a real thread; what it does could not be replayed. Use 'node.spawn(coroutine, name)'."
_INSTEAD = "'await' things of the world, such as ctx.sleep(ms=...) or a call of mqlab."
_LOOP = f"ran a loop of asyncio, which waits for real time. In a coroutine listener {_INSTEAD}"
_SOCKET = f"opened a real socket; what comes over it could not be replayed. In a coroutine listener {_INSTEAD}"
_PROCESS = f"started a real process; what it does could not be replayed. In a coroutine listener {_INSTEAD}"
_AUDITED = {
    "socket.__new__": _SOCKET,
    "subprocess.Popen": _PROCESS,
    "os.fork": _PROCESS,
    "os.forkpty": _PROCESS,
    "os.posix_spawn": _PROCESS,
    "os.system": _PROCESS,
}
"""Events of which Python tells, and what is said of each."""
_fenced = "mqlab_fence"


def _refuse_in_a_slice(message: str) -> None:
    world = playing_world()
    if world is not None:
        raise SimulationError(f"{world.current.name!r} on {world.current.life.node_name} {message}")


def _fence(owner: Any, name: str, message: str) -> None:
    """Wrap a function where it stands, unless it is wrapped already or not there on this Python."""
    function: Callable[..., Any] | None = getattr(owner, name, None)
    if function is None or hasattr(function, _fenced):
        return

    @functools.wraps(function)
    def fenced(*args: Any, **kwargs: Any) -> Any:
        _refuse_in_a_slice(message)
        return function(*args, **kwargs)

    setattr(fenced, _fenced, True)
    setattr(owner, name, fenced)


def _on_audit(event: str, _: tuple[Any, ...]) -> None:
    message = _AUDITED.get(event)
    if message is not None:
        _refuse_in_a_slice(message)


def put_up_fences() -> None:
    """Wrap `time.sleep` and the start of threads and loops, and watch for sockets and processes, once for the whole
    process.

    Outside a slice, and on every other thread, all of it does what it always did. What is not imported yet is not
    imported for this: a thread has to pass through `_thread`, and no loop of asyncio can be had without a socket, of
    which Python tells.
    """
    if not hasattr(time.sleep, _fenced):
        sys.addaudithook(_on_audit)
    _fence(time, "sleep", _SLEEP)
    for name in ("start_new_thread", "start_new", "start_joinable_thread"):
        _fence(_thread, name, _THREAD)
    # Where threading was imported before, it has the unwrapped function.
    if threading := sys.modules.get("threading"):
        _fence(threading.Thread, "start", _THREAD)
    if asyncio := sys.modules.get("asyncio"):
        _fence(asyncio.BaseEventLoop, "run_forever", _LOOP)
        _fence(asyncio, "run", _LOOP)
