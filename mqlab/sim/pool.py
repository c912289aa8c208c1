"""Thread pools with service times, so that queues really build up and time-outs really happen."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from mqlab.sim.target import Target
from mqlab.sim.task import Task
from mqlab.sim.timer import DEAD

if TYPE_CHECKING:
    from mqlab.sim.node import Node


class PoolJob(Target):
    """One job of a pool: it waits for a slot, holds it for its service time, then runs at the end of that time.

    Its name is the pool's, as the name of the thread that runs it.
    """

    __slots__ = ("args", "callback", "cause", "created_us", "pool", "service_us")

    def __init__(self, pool: Pool, callback: Callable[..., Any], args: tuple[Any, ...], service_us: int) -> None:
        self.pool = pool
        self.name = pool.name
        self.life = life = pool.node.life
        world = life.world
        self.callback = callback
        self.args = args
        self.service_us = service_us
        self.created_us = world.now_us
        self.cause = world.cause
        self.token = 0

    def start(self) -> None:
        """With a slot to itself: the job's turn comes when its service time has passed."""
        world = self.life.world
        if self.service_us:
            world.push_caused(world.now_us + self.service_us, self, 0, self.cause)
        else:
            world.ready.append((self, 0, self.cause))

    def fire(self) -> None:
        """Run the job and free its slot; a coroutine keeps the slot until it has ended."""
        self.token = DEAD
        pool = self.pool
        try:
            result = self.callback(*self.args)
        except BaseException:
            pool._free_slot()
            raise
        if result is not None and isinstance(result, Coroutine):
            task = Task(self.life, pool.name, result)
            task.resume()
            task.join().add_done_callback(pool._task_ended)
            return
        pool.completed += 1
        if pool.queue:
            pool.queue.popleft().start()
        else:
            pool.busy -= 1


class Pool:
    """A fixed number of threads and a bounded queue before them (java.util.concurrent.ThreadPoolExecutor).

    `busy` is the number of slots held, `queue` the jobs that wait, oldest first. What a processor must wait for (a
    flush, a replica) is a future that it returns to its caller: the slot does not wait with it.
    """

    __slots__ = ("busy", "capacity", "closed", "completed", "name", "node", "queue", "rejected", "threads")

    def __init__(self, node: Node, name: str, threads: int, capacity: int) -> None:
        self.node = node
        self.name = name
        self.threads = threads
        self.capacity = capacity
        self.busy = 0
        self.completed = 0
        self.rejected = 0
        self.closed = False
        self.queue: deque[PoolJob] = deque()

    def submit(self, callback: Callable[..., Any], *args: Any, service_us: int = 0) -> bool:
        """Run `callback(*args)` when a slot is free and its service time has passed; False if the queue is full or
        closed.
        """
        if self.closed or (self.busy >= self.threads and len(self.queue) >= self.capacity):
            self.rejected += 1
            return False
        job = PoolJob(self, callback, args, service_us)
        if self.busy < self.threads:
            self.busy += 1
            job.start()
        else:
            self._let_wait(job)
        return True

    def _let_wait(self, job: PoolJob) -> None:
        self.queue.append(job)

    def _free_slot(self) -> None:
        self.completed += 1
        if self.queue:
            self.queue.popleft().start()
        else:
            self.busy -= 1

    def _task_ended(self, end: Any) -> None:
        self._free_slot()
        if end.error is not None:
            raise end.error

    def oldest_wait_us(self) -> int:
        """How long the head of the queue has waited; 0 with an empty queue."""
        return self.node.world.now_us - self.queue[0].created_us if self.queue else 0

    def take_older_than(self, us: int) -> list[PoolJob]:
        """Remove and return the jobs at the head of the queue that have waited for `us` or longer."""
        taken: list[PoolJob] = []
        limit = self.node.world.now_us - us
        while self.queue and self.queue[0].created_us <= limit:
            taken.append(self.queue.popleft())
        return taken

    def shutdown(self) -> None:
        """Accept no more jobs; those that wait still run (ExecutorService.shutdown)."""
        self.closed = True

    def close(self) -> None:
        """Accept no more jobs and drop those that wait (ExecutorService.shutdownNow); running ones end."""
        self.closed = True
        self.queue.clear()

    def __repr__(self) -> str:
        return f"<Pool {self.name}: {self.busy} of {self.threads} busy, {len(self.queue)} waiting>"
