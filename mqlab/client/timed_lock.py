"""Waiting for a lock, but not for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.sim import Future, Lock, WaitTimeout

if TYPE_CHECKING:
    from mqlab.sim import Node


async def lock_within(node: Node, lock: Lock, ms: int, name: str) -> bool:
    """Take the lock, waiting for it up to `ms`; False if it did not come free (java.util.concurrent Lock.tryLock)."""
    if lock.try_acquire():
        return True
    got: Future[None] = Future(name)

    async def acquire() -> None:
        await lock.acquire()
        if not got.try_set_result(None):
            lock.release()

    node.spawn(acquire(), name)
    try:
        await node.wait(got, ms)
    except WaitTimeout:
        return not got.try_set_result(None)
    return True
