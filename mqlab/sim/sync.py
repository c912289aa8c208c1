"""Queues, semaphores and locks that wait in the world's time, first come first served."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from ..errors import SimulationError
from .future import Future

T = TypeVar("T")


class Queue(Generic[T]):
    """An unbounded queue between tasks (java.util.concurrent.LinkedBlockingQueue)."""

    __slots__ = ("_give_up", "_items", "_label", "_takers", "name")

    def __init__(self, name: str = "queue") -> None:
        self.name = name
        self._label = f"an item in {name}"
        self._items: deque[T] = deque()
        self._takers: deque[Future[T]] = deque()
        # Kept, because making the bound method anew for each taker would be a tenth of a hop.
        self._give_up = self.give_up

    def put(self, item: T) -> None:
        """Add at the end; the task that waits longest gets it."""
        if self._takers:
            self._takers.popleft().set_result(item)
        else:
            self._items.append(item)

    def take(self) -> Future[T]:
        """`await queue.take()`: remove the first item, waiting for one."""
        taker: Future[T] = Future(self._label)
        if self._items:
            taker.set_result(self._items.popleft())
        else:
            self._takers.append(taker)
            taker.on_abandon = self._give_up
        return taker

    def give_up(self, taker: Future[T]) -> None:
        """Stop waiting for an item; one that came meanwhile goes to the next taker, or back to the front."""
        if not taker.done:
            self._takers.remove(taker)
        elif self._takers:
            self._takers.popleft().set_result(taker.result())
        else:
            self._items.appendleft(taker.result())

    def __len__(self) -> int:
        return len(self._items)


class Semaphore:
    """A number of permits, handed out in the order of asking (a fair java.util.concurrent.Semaphore)."""

    __slots__ = ("_waiters", "name", "permits")

    def __init__(self, permits: int, name: str = "semaphore") -> None:
        self.permits = permits
        self.name = name
        self._waiters: deque[Future[None]] = deque()

    @property
    def waiting(self) -> int:
        """How many wait for a permit."""
        return len(self._waiters)

    def try_acquire(self) -> bool:
        """Take a permit if there is one and nobody waits."""
        if self.permits > 0 and not self._waiters:
            self.permits -= 1
            return True
        return False

    def acquire_later(self) -> Future[None]:
        """A future that completes when a permit is yours; give up with `abandon`."""
        future: Future[None] = Future(f"a permit of {self.name}")
        if self.try_acquire():
            future.set_result(None)
        else:
            self._waiters.append(future)
            future.on_abandon = self.abandon
        return future

    def abandon(self, future: Future[None]) -> None:
        """Stop waiting for a permit; one that came meanwhile goes back."""
        if future in self._waiters:
            self._waiters.remove(future)
        elif future.done:
            self.release()

    async def acquire(self) -> None:
        """Wait for a permit."""
        await self.acquire_later()

    def release(self) -> None:
        """Give a permit back, to whoever waits longest."""
        if self._waiters:
            self._waiters.popleft().set_result(None)
        else:
            self.permits += 1


class Lock:
    """A lock for one task at a time; `async with lock:`."""

    __slots__ = ("_semaphore",)

    def __init__(self, name: str = "lock") -> None:
        self._semaphore = Semaphore(1, name)

    @property
    def locked(self) -> bool:
        """True while somebody holds it."""
        return self._semaphore.permits == 0

    def try_acquire(self) -> bool:
        """Take the lock if it is free and nobody waits for it."""
        return self._semaphore.try_acquire()

    async def acquire(self) -> None:
        """Wait for the lock."""
        await self._semaphore.acquire()

    def release(self) -> None:
        """Give the lock to whoever waits longest."""
        if not self.locked:
            raise SimulationError(f"{self._semaphore.name} was released but nobody holds it")
        self._semaphore.release()

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *error: object) -> None:
        self.release()
