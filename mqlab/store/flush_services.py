"""The threads that make what was written safe from a power loss."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from mqlab.sim.future import Future
from mqlab.sim.service import ServiceThread
from mqlab.sim.timer import Timer
from mqlab.store.put_message import PutMessageResult, PutMessageStatus
from mqlab.trace.events.store import ConsumeQueuesFlushed, FlushTimedOut

if TYPE_CHECKING:
    from mqlab.store.default_message_store import DefaultMessageStore


GROUP_COMMIT_PERIOD_MS = 10
CHECKPOINT_PERIOD_MS = 1_000


class _StoreService(ServiceThread):
    """A service thread of a store."""

    def __init__(self, store: DefaultMessageStore, period_ms: int) -> None:
        super().__init__(store.node, period_ms=period_ms)
        self.store = store
        self.started_us = 0

    def start(self) -> None:
        self.started_us = self.node.now_us()
        super().start()

    def is_thorough(self, thorough_ms: int) -> bool:
        """Is this the turn that flushes everything? The first one is, and then one in every `thorough_ms`."""
        since_first_ms = (self.node.now_us() - self.started_us) // 1_000 - self.period_ms
        return since_first_ms % thorough_ms < self.period_ms

    async def settle(self) -> None:
        """Wait while the disk takes its time."""
        if self.store.disk.is_slow:
            await self.store.disk.settle()


class FlushRealTimeService(_StoreService):
    """Flushes the commit log every 500 ms if 4 pages are dirty, and every 10 s whatever is
    (CommitLog.FlushRealTimeService).

    Java: org.apache.rocketmq.store.CommitLog.FlushRealTimeService.
    """

    def __init__(self, store: DefaultMessageStore) -> None:
        super().__init__(store, store.config.flush_interval_commit_log)

    def has_work(self) -> bool:
        """Is anything dirty, or is the full flush still to come that tells the checkpoint?"""
        files = self.store.commit_log.mapped_file_queue
        return files.flushed_where < files.max_offset or files.last_store_timestamp != files.store_timestamp

    async def run(self) -> None:
        """One flush at each turn."""
        while not self.stopped:
            await self.wait_for_running()
            config = self.store.config
            thorough = self.is_thorough(config.flush_commit_log_thorough_interval)
            await self.settle()
            self.store.flush_commit_log(0 if thorough else config.flush_commit_log_least_pages)


class GroupCommitRequest(NamedTuple):
    """A put that waits until the log is flushed up to `next_offset` (CommitLog.GroupCommitRequest)."""

    next_offset: int
    result: PutMessageResult
    future: Future[PutMessageResult]
    timer: Timer


class GroupCommitService(_StoreService):
    """Flushes once for all puts that wait (CommitLog.GroupCommitService), and gives up on those that wait too long.

    Differs from RocketMQ: the watcher of the time-outs (FlushDiskWatcher) is a timer for each request.

    Java: org.apache.rocketmq.store.CommitLog.GroupCommitService.
    """

    def __init__(self, store: DefaultMessageStore) -> None:
        super().__init__(store, GROUP_COMMIT_PERIOD_MS)
        self.requests: deque[GroupCommitRequest] = deque()
        self._batch: deque[GroupCommitRequest] = deque()

    def has_work(self) -> bool:
        """Does anybody wait, or is anything dirty?"""
        files = self.store.commit_log.mapped_file_queue
        return bool(self.requests) or files.flushed_where < files.max_offset

    def put_request(self, result: PutMessageResult) -> Future[PutMessageResult]:
        """The result of a put, as soon as its record is safe; FLUSH_DISK_TIMEOUT when that takes too long."""
        next_offset = result.wrote_offset + result.wrote_bytes
        future: Future[PutMessageResult] = Future(f"the flush up to {next_offset}")
        timeout_ms = self.store.config.sync_flush_timeout
        timer = self.node.timeout(timeout_ms, self._give_up, future, result, next_offset, name="FlushDiskWatcher")
        self.requests.append(GroupCommitRequest(next_offset, result, future, timer))
        self.wakeup()
        return future

    def _give_up(self, future: Future[PutMessageResult], result: PutMessageResult, next_offset: int) -> None:
        result.status = PutMessageStatus.FLUSH_DISK_TIMEOUT
        if future.try_set_result(result) and self.store.hooks.on:
            self.store.hooks.emit(FlushTimedOut(next_offset, self.store.commit_log.mapped_file_queue.flushed_where))

    async def run(self) -> None:
        """At each turn flush for all requests that are there."""
        while not self.stopped:
            await self.wait_for_running()
            self._batch, self.requests = self.requests, deque()
            await self.node.preempt("group-commit.requests-swapped")
            await self.settle()
            self.store.flush_commit_log(0)
            await self.node.preempt("group-commit.flushed")
            self._complete(self._batch)

    def _complete(self, requests: deque[GroupCommitRequest]) -> None:
        while requests:
            request = requests.popleft()
            request.timer.cancel()
            request.future.try_set_result(request.result)

    def complete_all(self) -> None:
        """Answer all that wait: everything is flushed."""
        self._complete(self._batch)
        self._complete(self.requests)


class FlushConsumeQueueService(_StoreService):
    """Flushes consume queues every second if 2 pages are dirty, and every 60 s whatever is.

    Java: org.apache.rocketmq.store.queue.ConsumeQueueStore.FlushConsumeQueueService.
    """

    def __init__(self, store: DefaultMessageStore) -> None:
        super().__init__(store, store.config.flush_interval_consume_queue)

    def has_work(self) -> bool:
        """Has any queue got entries?"""
        return bool(self.store.consume_queue_store.dirty)

    async def run(self) -> None:
        """One flush at each turn."""
        while not self.stopped:
            await self.wait_for_running()
            config = self.store.config
            thorough = self.is_thorough(config.flush_consume_queue_thorough_interval)
            await self.settle()
            flushed = self.store.consume_queue_store.flush(0 if thorough else config.flush_consume_queue_least_pages)
            if flushed and self.store.hooks.on:
                self.store.hooks.emit(ConsumeQueuesFlushed(flushed, thorough))
            if thorough:
                self.store.flush_checkpoint()


class StoreCheckpointService(_StoreService):
    """Writes the checkpoint file every second, if it has changed.

    Java: org.apache.rocketmq.store.StoreCheckpoint.
    """

    def __init__(self, store: DefaultMessageStore) -> None:
        super().__init__(store, CHECKPOINT_PERIOD_MS)

    def has_work(self) -> bool:
        """Does the file say something else?"""
        return self.store.checkpoint_written != self.store.store_checkpoint.encode()

    async def run(self) -> None:
        """One write at each turn."""
        while not self.stopped:
            await self.wait_for_running()
            await self.settle()
            self.store.flush_checkpoint()
