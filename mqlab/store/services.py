"""The threads of a running store, and who has to be woken when something happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.sim.future import Future
from mqlab.sim.service import ServiceThread
from mqlab.store.clean_services import CleanCommitLogService
from mqlab.store.flush_services import (
    FlushConsumeQueueService,
    FlushRealTimeService,
    GroupCommitService,
    StoreCheckpointService,
)
from mqlab.store.message_store_config import FlushDiskType
from mqlab.store.put_message import MessageExtBrokerInner, PutMessageResult, PutMessageStatus
from mqlab.store.reput_message_service import ReputMessageService

if TYPE_CHECKING:
    from mqlab.store.default_message_store import DefaultMessageStore


class StoreServices:
    """All service threads of one store; `group_commit` is there only if it begins with synchronous flush, `flush` works
    only if not. As in RocketMQ that remains when flushDiskType is changed.
    """

    def __init__(self, store: DefaultMessageStore) -> None:
        self.store = store
        self.reput = ReputMessageService(store)
        self.flush = FlushRealTimeService(store)
        sync = store.config.flush_disk_type is FlushDiskType.SYNC_FLUSH
        self.group_commit = GroupCommitService(store) if sync else None
        self.flush_queues = FlushConsumeQueueService(store)
        self.checkpoint = StoreCheckpointService(store)
        self.clean = CleanCommitLogService(store)

    def all(self) -> list[ServiceThread]:
        """The threads that run."""
        commit: ServiceThread = self.group_commit or self.flush
        return [self.reput, commit, self.flush_queues, self.checkpoint, self.clean]

    def start(self) -> None:
        """Start them, in RocketMQ's order."""
        for service in self.all():
            service.start()

    def shutdown(self) -> None:
        """Stop the threads of the store."""
        for service in self.all():
            service.shutdown()

    def answer_waiting(self) -> None:
        """Answer the puts that still wait for a flush: everything is flushed."""
        if self.group_commit is not None:
            self.group_commit.complete_all()

    def handle_disk_flush_and_ha(
        self, message: MessageExtBrokerInner, result: PutMessageResult
    ) -> PutMessageResult | Future[PutMessageResult]:
        """The result of a put whose bytes are in the log, once all that it has to wait for is over.

        Java: org.apache.rocketmq.store.CommitLog.handleDiskFlushAndHA.
        """
        if self.reput.idle:
            self.reput.wakeup_for_work()
        outcome: PutMessageResult | Future[PutMessageResult] = result
        if self.group_commit is None:
            if self.flush.idle:
                self.flush.wakeup_for_work()
        elif message.wait_store_msg_ok and self.store.config.flush_disk_type is FlushDiskType.SYNC_FLUSH:
            outcome = self.group_commit.put_request(result)
        else:
            self.group_commit.wakeup()
        handle_ha = self.store.handle_ha
        replicated = handle_ha(message, result) if handle_ha is not None else None
        return outcome if replicated is None else _when_both(outcome, replicated, result)

    def appended(self) -> None:
        """Bytes that were not put by a producer are in the log."""
        self.reput.wakeup_for_work()
        if self.group_commit is None:
            self.flush.wakeup_for_work()
        else:
            self.group_commit.wakeup()

    def dispatched(self) -> None:
        """A queue has got an entry."""
        if self.flush_queues.idle:
            self.flush_queues.wakeup_for_work()
        if self.checkpoint.idle:
            self.checkpoint.wakeup_for_work()

    def flushed(self) -> None:
        """The commit log is safe up to a later offset."""
        self.reput.wakeup_for_work()
        self.checkpoint.wakeup_for_work()
        self.clean.wakeup_for_work()


def _when_both(
    flushed: PutMessageResult | Future[PutMessageResult],
    replicated: Future[PutMessageStatus],
    result: PutMessageResult,
) -> Future[PutMessageResult]:
    """The result when flush and replicas are there; what the replicas say counts more."""
    both: Future[PutMessageResult] = Future(f"flush and replicas up to {result.wrote_offset + result.wrote_bytes}")

    def look(_: object) -> None:
        if not replicated.done or (isinstance(flushed, Future) and not flushed.done):
            return
        status = replicated.result()
        if status is not PutMessageStatus.PUT_OK:
            result.status = status
        both.try_set_result(result)

    replicated.add_done_callback(look)
    if isinstance(flushed, Future):
        flushed.add_done_callback(look)
    return both
