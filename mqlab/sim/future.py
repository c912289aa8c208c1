"""A future is an answer that is not there yet; tasks wait for it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mqlab.errors import SimulationError

if TYPE_CHECKING:
    from mqlab.sim.task import Task

T = TypeVar("T")


class _Others(Generic[T]):
    """Who hears of a future beside the first task that waits for it: hardly ever anybody."""

    __slots__ = ("callbacks", "waiters")

    def __init__(self) -> None:
        self.waiters: list[Task] = []
        self.callbacks: list[Callable[[Future[T]], None]] = []


class Future(Generic[T]):
    """A value or an error that comes once; awaiting it parks the task until then.

    Waiting tasks are resumed in the order in which they began to wait, each in a slice of its own. Callbacks run at
    once, inside the slice that completes the future. `label` says in error reports what is being waited for.
    """

    __slots__ = ("_error", "_others", "_value", "_waiter", "done", "label", "on_abandon")

    def __init__(self, label: str = "") -> None:
        self.label = label
        self.done = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._waiter: Task | None = None
        self._others: _Others[T] | None = None
        self.on_abandon: Callable[[Future[T]], None] | None = None
        """Called when the one who waited was cancelled or killed, before the answer or with it on its way."""

    def set_result(self, value: T) -> None:
        """Complete with a value."""
        if self.done:
            raise SimulationError(f"future {self.label!r} is already complete")
        self._value = value
        self.done = True
        if self._others is None:
            waiter = self._waiter
            if waiter is not None:
                world = waiter.world
                world.ready.append((waiter, waiter.token, world.cause))
        else:
            self._complete()

    def set_exception(self, error: BaseException) -> None:
        """Complete with an error, which every waiter will see raised."""
        if self.done:
            raise SimulationError(f"future {self.label!r} is already complete")
        self._error = error
        self._complete()

    def try_set_result(self, value: T) -> bool:
        """Complete with a value unless complete already; True if this call did it."""
        if self.done:
            return False
        self._value = value
        self._complete()
        return True

    def _complete(self) -> None:
        self.done = True
        if self._waiter is not None:
            self._waiter.resume()
        others, self._others = self._others, None
        if others is not None:
            for task in others.waiters:
                task.resume()
            for callback in others.callbacks:
                callback(self)

    def result(self) -> T:
        """The value; raises the error if there is one, and SimulationError while there is neither."""
        if not self.done:
            raise SimulationError(f"future {self.label!r} has no result yet")
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # done and no error: the value was set

    @property
    def error(self) -> BaseException | None:
        """The error, or None."""
        return self._error

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback(future)` when complete; at once if it is already."""
        if self.done:
            callback(self)
        else:
            if self._others is None:
                self._others = _Others()
            self._others.callbacks.append(callback)

    def remove_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Forget a callback that was added and not called yet."""
        if self._others is not None and callback in self._others.callbacks:
            self._others.callbacks.remove(callback)

    def add_waiter(self, task: Task) -> None:
        """Resume `task` on completion (called by the scheduler when a task awaits this future)."""
        if self.done:
            task.resume()
        elif self._waiter is None:
            self._waiter = task
        else:
            if self._others is None:
                self._others = _Others()
            self._others.waiters.append(task)

    def remove_waiter(self, task: Task) -> None:
        """Forget a task that no longer waits."""
        waiters = self._others.waiters if self._others is not None else []
        if self._waiter is task:
            self._waiter = waiters.pop(0) if waiters else None
        elif task in waiters:
            waiters.remove(task)

    def __await__(self) -> Generator[Any, None, T]:
        if not self.done:
            try:
                yield self
            except BaseException:
                if self.on_abandon is not None:
                    self.on_abandon(self)
                raise
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # done and no error: the value was set

    def __repr__(self) -> str:
        state = "waiting" if not self.done else f"error {self._error!r}" if self._error else f"{self._value!r}"
        return f"<Future {self.label or 'unnamed'}: {state}>"
