"""Queues, semaphores and locks that wait in the world's time, first come first served."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from mqlab.errors import SimulationError
from mqlab.sim.future import Future
from mqlab.sim.timer import whole_us
from mqlab.sim.traps import wait_at_most

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
    """A number of permits, handed out in the order of asking (a fair java.util.concurrent.Semaphore).

    Whoever asks for several gets them at once or not at all; those who ask for fewer behind it wait with it.
    """

    __slots__ = ("_label", "_waiters", "name", "permits")

    def __init__(self, permits: int, name: str = "semaphore") -> None:
        self.permits = permits
        self.name = name
        self._label = f"a permit of {name}"
        self._waiters: deque[tuple[Future[None], int]] = deque()

    @property
    def waiting(self) -> int:
        """How many wait for a permit."""
        return len(self._waiters)

    def try_acquire(self, number: int = 1) -> bool:
        """Take permits if there are enough and nobody waits."""
        if self.permits >= number and not self._waiters:
            self.permits -= number
            return True
        return False

    def acquire_later(self, number: int = 1) -> Future[None]:
        """A future that completes when the permits are yours; give up with `abandon`, for as many."""
        future: Future[None] = Future(self._label)
        if self.try_acquire(number):
            future.set_result(None)
        else:
            self._waiters.append((future, number))
            future.on_abandon = lambda given_up: self.abandon(given_up, number)
        return future

    def abandon(self, future: Future[None], number: int = 1) -> None:
        """Stop waiting for permits; those that came meanwhile go back."""
        if future.done:
            self.release(number)
        else:
            self._waiters.remove((future, number))
            self._serve()

    async def acquire(self, number: int = 1, ms: float | None = None) -> bool:
        """Wait for permits, at most `ms` (without it, for ever); False if they did not come in that time.

        With 0 ms or less there is no wait: what is free at once, or nothing (Semaphore.tryAcquire).
        """
        if self.try_acquire(number):
            return True
        if ms is None:
            await self.acquire_later(number)
            return True
        if ms <= 0:
            return False
        future = self.acquire_later(number)
        if await wait_at_most(future, whole_us(ms)):
            return True
        self.abandon(future, number)
        return False

    def release(self, number: int = 1) -> None:
        """Give permits back, to whoever waits longest."""
        self.permits += number
        if self._waiters:
            self._serve()

    def _serve(self) -> None:
        waiters = self._waiters
        while waiters and waiters[0][1] <= self.permits:
            future, number = waiters.popleft()
            self.permits -= number
            future.set_result(None)


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

    async def acquire(self, ms: float | None = None) -> bool:
        """Wait for the lock, at most `ms` (without it, for ever); False if it did not come free in that time."""
        return await self._semaphore.acquire(1, ms)

    def release(self) -> None:
        """Give the lock to whoever waits longest."""
        if not self.locked:
            raise SimulationError(f"{self._semaphore.name} was released but nobody holds it")
        self._semaphore.release()

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *error: object) -> None:
        self.release()
