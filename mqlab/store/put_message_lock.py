"""Puts on a slow disk: one at a time, each for as long as its write takes."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mqlab.sim.future import Future
from mqlab.store.put_message import MessageExtBrokerInner, PendingPut, PutMessageResult
from mqlab.trace.events.store import PutHeldLock

if TYPE_CHECKING:
    from mqlab.store.put_message import Append
    from mqlab.store.writable_store import WritableStore


class _Waiting(NamedTuple):
    message: MessageExtBrokerInner
    append: Append
    pending: PendingPut


class PutMessageLock:
    """The lock of the commit log: a put holds it while its bytes go into the page cache, which a slow disk makes long.

    Who comes meanwhile waits, first come first served. While one put holds it for over a second the page cache counts
    as busy, and nobody else is let in.

    Java: org.apache.rocketmq.store.CommitLog.asyncPutMessage (putMessageLock, beginTimeInLock). Differs from RocketMQ:
    there is one lock, and none for each queue before it; bytes that come from a master need none, and are not slowed.
    """

    def __init__(self, store: WritableStore) -> None:
        self._store = store
        self._waiting: deque[_Waiting] = deque()
        self.is_held = False
        """Does a put hold it, or will within this instant?"""

    def put(self, message: MessageExtBrokerInner, append: Append) -> PendingPut:
        """The result of `append` for this message, once the lock has been got and the bytes are written."""
        pending = PendingPut()
        self._waiting.append(_Waiting(message, append, pending))
        if not self.is_held:
            self.is_held = True
            self._store.node.spawn(self._serve(), "PutMessageLock")
        return pending

    async def _serve(self) -> None:
        store = self._store
        log, node = store.commit_log, store.node
        while self._waiting:
            message, append, pending = self._waiting.popleft()
            begin_us, log.begin_time_in_lock_ms = node.now_us(), node.now_ms()
            await store.disk.crawl()
            outcome = store.put_locked(message, append)
            log.begin_time_in_lock_ms = 0
            if node.hooks.on:
                held_us = node.now_us() - begin_us
                node.hooks.emit(PutHeldLock(message.topic, message.queue_id, held_us, len(self._waiting)))
            if isinstance(outcome, PutMessageResult):
                pending.set_result(outcome)
            else:
                outcome.add_done_callback(partial(_pass_on, pending))
            pending.appended.set_result(None)
        self.is_held = False
        store.follow_disk()


def _pass_on(pending: PendingPut, done: Future[PutMessageResult]) -> None:
    pending.set_result(done.result())
