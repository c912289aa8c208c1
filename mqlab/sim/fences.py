"""Fences: real sleeping, waiting, threads, processes, sockets and loops of asyncio inside a world are errors that name
the substitute.

Not fenced is what Python has no place for: locks and events of `threading` (to print in a notebook is to wait for
another thread with one), `queue.SimpleQueue`, an epoll or a pipe that was opened outside, and `time.sleep` where it was
put into a class, a default or a closure before the first world was made (from Python 3.13 on that is fenced, too).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, ModuleType
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
_WAIT = f"waited for real files or sockets. In a coroutine listener {_INSTEAD}"
_QUEUE = (
    "waited for a queue of another thread; when that comes could not be replayed. Use 'get_nowait', or in a coroutine "
    f"listener {_INSTEAD}"
)
_AUDITED = {
    "socket.__new__": _SOCKET,
    "subprocess.Popen": _PROCESS,
    "os.fork": _PROCESS,
    "os.forkpty": _PROCESS,
    "os.posix_spawn": _PROCESS,
    "os.system": _PROCESS,
    "time.sleep": _SLEEP,
    "_thread.start_new_thread": _THREAD,
    "_thread.start_joinable_thread": _THREAD,
}
"""Events of which Python tells (of the last three in newer versions), and what is said of each."""
_FUNCTIONS = (
    ("time", "sleep", _SLEEP),
    ("_thread", "start_new_thread", _THREAD),
    ("_thread", "start_new", _THREAD),
    ("_thread", "start_joinable_thread", _THREAD),
    ("select", "select", _WAIT),
    ("select", "poll", _WAIT),
    ("asyncio", "run", _LOOP),
)
"""Functions of a module, which others may have taken from it by name."""
_FUNCTION_TYPES = (BuiltinFunctionType, FunctionType)
_fenced = "mqlab_fence"


def _refuse_in_a_slice(message: str) -> None:
    world = playing_world()
    if world is not None:
        raise SimulationError(f"{world.current.name!r} on {world.current.life.node_name} {message}")


def _always(*_: Any, **__: Any) -> bool:
    return True


def _get_would_wait(queue: Any, block: bool = True, timeout: float | None = None) -> bool:
    return block and queue.empty()


def _put_would_wait(queue: Any, item: Any, block: bool = True, timeout: float | None = None) -> bool:
    return block and queue.full()


def _fence_of(
    function: Callable[..., Any], message: str, applies: Callable[..., bool] = _always
) -> Callable[..., Any]:
    """The same function, which refuses inside of a slice."""

    @functools.wraps(function)
    def fenced(*args: Any, **kwargs: Any) -> Any:
        if applies(*args, **kwargs):
            _refuse_in_a_slice(message)
        return function(*args, **kwargs)

    setattr(fenced, _fenced, True)
    return fenced


def _fence_functions() -> None:
    """Put a fence where each function stands: in its module, and in all that have taken it from there."""
    fences: dict[Callable[..., Any], Callable[..., Any]] = {}
    for module, name, message in _FUNCTIONS:
        function = getattr(sys.modules.get(module), name, None)
        if function is not None and not hasattr(function, _fenced):
            fences[function] = _fence_of(function, message)
    if not fences:
        return
    for each in list(sys.modules.values()):
        if isinstance(each, ModuleType):
            # Not `vars`: a module that is to be loaded when it is first asked for is not loaded for this.
            try:
                names = object.__getattribute__(each, "__dict__")
            except AttributeError:
                # A library in C that cffi has opened stands among the modules, and has no names.
                continue
            functions = [name for name, value in names.items() if type(value) in _FUNCTION_TYPES]
            names.update({name: fences[names[name]] for name in functions if names[name] in fences})


def _fence_methods() -> None:
    for module, owner, name, message, applies in (
        ("asyncio", "BaseEventLoop", "run_forever", _LOOP, _always),
        ("queue", "Queue", "get", _QUEUE, _get_would_wait),
        ("queue", "Queue", "put", _QUEUE, _put_would_wait),
    ):
        of = getattr(sys.modules.get(module), owner, None)
        if of is not None and not hasattr(getattr(of, name), _fenced):
            setattr(of, name, _fence_of(getattr(of, name), message, applies))


def _on_audit(event: str, _: tuple[Any, ...]) -> None:
    message = _AUDITED.get(event)
    if message is not None:
        _refuse_in_a_slice(message)


@functools.cache
def _listen() -> None:
    """Ask Python for its events, once: that cannot be taken back."""
    sys.addaudithook(_on_audit)


def put_up_fences() -> None:
    """Fence what is not fenced yet, and watch for sockets and processes, for the whole process.

    Outside a slice, and on every other thread, all of it does what it always did. What is not imported yet is not
    imported for this: a thread has to pass through `_thread`, no loop of asyncio can be had without a socket, of which
    Python tells, and the next world that is made looks again.
    """
    _listen()
    _fence_functions()
    _fence_methods()
