"""The threads of a running store, and who has to be woken when something happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..sim.service import ServiceThread
from .clean_services import CleanCommitLogService
from .flush_services import (
    FlushConsumeQueueService,
    FlushRealTimeService,
    GroupCommitService,
    StoreCheckpointService,
)
from .message_store_config import FlushDiskType
from .reput_message_service import ReputMessageService

if TYPE_CHECKING:
    from .default_message_store import DefaultMessageStore


class StoreServices:
    """All service threads of one store; `group_commit` is there only with synchronous flush, `flush` works only
    without.
    """

    def __init__(self, store: DefaultMessageStore) -> None:
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
        """Stop them."""
        for service in self.all():
            service.shutdown()

    def answer_waiting(self) -> None:
        """Answer the puts that still wait for a flush: everything is flushed."""
        if self.group_commit is not None:
            self.group_commit.complete_all()

    def dispatched(self) -> None:
        """A queue has got an entry."""
        self.flush_queues.wakeup_for_work()
        self.checkpoint.wakeup_for_work()

    def flushed(self) -> None:
        """The commit log is safe up to a later offset."""
        self.reput.wakeup_for_work()
        self.checkpoint.wakeup_for_work()
        self.clean.wakeup_for_work()
