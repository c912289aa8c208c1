"""Tasks: the threads of the simulated processes, written as coroutines."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from heapq import heappush
from types import CoroutineType
from typing import TYPE_CHECKING, Any

from mqlab.errors import LearnerError, SimulationError
from mqlab.sim.future import Future
from mqlab.sim.target import Target
from mqlab.sim.timer import DEAD, Timer
from mqlab.sim.traps import AtMost, Park

if TYPE_CHECKING:
    from mqlab.sim.life import Life

class Cancelled(BaseException):
    """Thrown into a task that was cancelled; let it pass."""


class Task(Target):
    """One thread of one simulated process: a coroutine that the world resumes, a slice at a time.

    `token` counts the resumptions: an agenda entry made before the last one is stale, so waking a task early needs no
    search in the agenda. An exception that leaves a task nobody joins stops the world, which names the task.
    """

    __slots__ = (
        "_coroutine",
        "_error",
        "_joined",
        "_send",
        "_value",
        "waits_for",
        "world",
    )

    def __init__(self, life: Life, name: str, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.life = life
        self.world = life.world
        self.name = name
        self.token = 0
        self.waits_for: Any = None
        self._coroutine = coroutine
        self._send: Callable[[None], Any] = coroutine.send
        self._joined: Future[Any] | None = None
        self._value: Any = None
        self._error: BaseException | None = None
        life.tasks[self] = None

    def __reduce_ex__(self, protocol: object) -> Any:
        """Whatever is to be pickled or copied and comes to a task cannot be: LearnerError says how to have it again."""
        raise LearnerError(
            f"what belongs to a world can be neither pickled nor copied: task {self.name!r} is in the middle of a call",
            "pickle results (numbers, texts, events of lab.history), not the world; it can be played again from "
            "lab.report('world.mqlab')",
        )

    @property
    def done(self) -> bool:
        """True once the coroutine has ended, in whatever way."""
        return self.token == DEAD

    def resume(self) -> None:
        """Play this task in a slice of its own, after what is already due now."""
        world = self.world
        world.ready.append((self, self.token, world.cause))

    def resume_at(self, at_us: int) -> None:
        """Play this task at that time, unless something resumes it earlier."""
        self.life.world.push(at_us, self, self.token)

    def join(self) -> Future[Any]:
        """The future of the task's result; asking for it takes over responsibility for the task's error."""
        if self._joined is None:
            self._joined = Future(f"end of {self.name}")
            if self.done:
                if self._error is None:
                    self._joined.set_result(self._value)
                else:
                    self._joined.set_exception(self._error)
        return self._joined

    def fire(self) -> None:
        """Resume the coroutine until it waits again."""
        self.token += 1
        try:
            send = self._send  # Python calls a local name faster than an attribute, and this is every slice.
            trap = send(None)
        except StopIteration as stop:
            self._end(stop.value, None)
            return
        except Exception as error:  # noqa: BLE001 - whatever a task raises ends the task
            self._end(None, error)
            return
        except Cancelled:
            self._end(None, None)
            return
        self.waits_for = trap
        if type(trap) is Future:
            if trap._waiter is None:
                trap._waiter = self
            else:
                trap.add_waiter(self)
        elif type(trap) is int:
            world = self.world
            if trap > 0:
                world.seq = seq = world.seq + 1
                heappush(world.heap, (world.now_us + trap, seq, self, self.token, world.cause))
            else:
                world.ready.append((self, self.token, world.cause))
        elif type(trap) is AtMost:
            self.waits_for = trap.future
            trap.begin(self)
        elif isinstance(trap, Future):
            trap.add_waiter(self)
        elif type(trap) is not Park:
            self._throw_next(self._foreign(type(trap)))

    def _foreign(self, kind: type) -> SimulationError:
        what = "None (as asyncio.sleep(0) does)" if kind is type(None) else f"{kind.__module__}.{kind.__qualname__}"
        return SimulationError(
            f"task {self.name!r} on {self.life.node_name} awaited {what}, which the world "
            "cannot play (asyncio, for example, waits for real time). Await things of the world: "
            "ctx.sleep(ms), a future, a call of mqlab."
        )

    def _throw_next(self, error: BaseException) -> None:
        """Let the next slice of this task raise `error` where the coroutine waits."""
        self._send = functools.partial(self._throw, error)
        self.resume()

    def _throw(self, error: BaseException, _: None) -> Any:
        self._send = self._coroutine.send
        return self._coroutine.throw(error)

    def _end(self, value: Any, error: BaseException | None) -> None:
        self.token = DEAD
        self._value = value
        self._error = error
        self.life.tasks.pop(self, None)
        if self._joined is not None:
            if error is None:
                self._joined.set_result(value)
            else:
                self._joined.set_exception(error)
        elif error is not None:
            self.life.world.task_died(self, error)

    def cancel(self) -> None:
        """Throw Cancelled into the task at its next slice; ended tasks stay as they are."""
        if self.done:
            return
        if self.world.current is self:
            self._cancel_after_this_slice()
            return
        if isinstance(self.waits_for, Future):
            self.waits_for.remove_waiter(self)
        elif type(self.waits_for) is int:
            self.world.entry_died()
        self.token += 1
        self._throw_next(Cancelled())

    def _cancel_after_this_slice(self) -> None:
        self.world.push(0, Timer(self.life, self.name, self.cancel, ()), 0)

    def kill(self) -> SimulationError | None:
        """End the task where it stands, as the end of its process does; `finally` blocks still run.

        Returns the error of a `finally` block that failed, or that waited for something.
        """
        if self.done:
            return None
        self.token = DEAD
        if isinstance(self.waits_for, Future):
            self.waits_for.remove_waiter(self)
        self.life.tasks.pop(self, None)
        try:
            self._coroutine.close()
        except Exception as error:  # noqa: BLE001  # any error of a `finally` block is returned
            refused = SimulationError(
                f"task {self.name!r} refused to end with its process: {type(error).__name__}: {error}"
            )
            refused.__cause__ = error
            return refused
        return None

    def discard(self) -> None:
        """Give up a task that was never played, because its world is thrown away: Python shall not warn of it."""
        coroutine: Any = self._coroutine
        if type(coroutine) is not CoroutineType:
            return  # A compiled one, of which Python does not warn.
        if coroutine.cr_frame is not None and not coroutine.cr_suspended and not coroutine.cr_running:
            # A coroutine that was handed to this one (a listener's, to wait for) has not been played either.
            handed = [value for value in coroutine.cr_frame.f_locals.values() if isinstance(value, Coroutine)]
            for unplayed in [coroutine, *handed]:
                unplayed.close()

    def describe_wait(self) -> str:
        """What this task waits for, in words."""
        waits = self.waits_for
        if waits is None:
            return "is ready to run"
        if isinstance(waits, int):
            return f"sleeps for {waits / 1000:.12g} ms"
        return f"waits for {waits.label or 'an unnamed future'}"

    def __repr__(self) -> str:
        return f"<Task {self.name} on {self.life.node_name}: {'ended' if self.done else self.describe_wait()}>"
