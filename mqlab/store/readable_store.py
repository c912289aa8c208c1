"""A store as it is read: opened, recovered, and asked for messages. It needs a disk and a clock, no threads."""

from __future__ import annotations

from collections.abc import Callable

from mqlab.protocol.message import MessageExt
from mqlab.sim.disk import DiskFull
from mqlab.store.commit_log import CommitLog
from mqlab.store.consume_queue import ConsumeQueue
from mqlab.store.consume_queue_store import ConsumeQueueStore
from mqlab.store.dispatch_request import DispatchRequest, delay_level_table
from mqlab.store.get_message import (
    MAX_PULL_MSG_SIZE,
    GetMessageResult,
    GetMessageStatus,
    MessageFilter,
    corrected,
    get_message,
)
from mqlab.store.host import Host
from mqlab.store.index_service import IndexService
from mqlab.store.message_store_config import MessageStoreConfig
from mqlab.store.query_message import QueryMessageResult, query_message
from mqlab.store.recovery import Recovery, recover_commit_log
from mqlab.store.running_flags import RunningFlags
from mqlab.store.search_by_time import BoundaryType, offset_in_queue_by_time
from mqlab.store.store_checkpoint import StoreCheckpoint
from mqlab.store.store_layout import check_layout
from mqlab.trace.events.store import FileDeleted, IndexBuilt, StoreLoaded, StoreRecovered

CommitLogDispatcher = Callable[[DispatchRequest], None]
"""Takes note of a stored message, for a queue, an index, ...; all of them are asked in turn, in the order of the log.

What one raises is raised before the next is asked, and the message will be shown to all again.
Java: org.apache.rocketmq.store.CommitLogDispatcher.
"""


class ReadableStore:
    """A store directory, recovered and ready to be read: the part of DefaultMessageStore that needs no thread.

    `host` has the disk (a node, or a DiskHost). `is_batch_topic(topic)` says whether a topic has `queue.type=BatchCQ`;
    what recovery found is in `recovery`. Each message of the log is shown once to all of `dispatcher_list`.
    """

    def __init__(
        self,
        host: Host,
        config: MessageStoreConfig | None = None,
        *,
        is_batch_topic: Callable[[str], bool] = lambda topic: False,
    ) -> None:
        self.host = host
        self.config = config = config or MessageStoreConfig()
        self.disk = host.disk
        self.hooks = host.hooks
        self.delays_ms = delay_level_table(config.message_delay_level)
        self.running_flags = RunningFlags()
        self.commit_log = CommitLog(self.disk, host.hooks, config, self.delays_ms)
        self.consume_queue_store = ConsumeQueueStore(self.disk, config, is_batch_topic)
        self.store_checkpoint = StoreCheckpoint(self.disk, config.path("checkpoint"))
        self.index_service = IndexService(self.disk, config, self.store_checkpoint, self.commit_log.read_requests)
        self.dispatcher_list: list[CommitLogDispatcher] = [self.build_consume_queue, self.index_service.dispatch]
        self.recovery: Recovery | None = None
        self.stalled_at = -1
        """Where recovery found no room on the disk for a queue's entry; -1: it dispatched all that it read."""

    # -- opening ----------------------------------------------------------------------------------------------------

    def load(self) -> Recovery:
        """Open the directory and recover what a stop left; StoreError where RocketMQ would refuse to start.

        Differs from RocketMQ: where the disk has no room for an entry of a queue, the rest is dispatched when it has;
        there the start waits for 30 s, and then goes on without the entry.
        """
        check_layout(self.disk, self.config)
        clean = not self.disk.exists(self.config.path("abort"))
        self.commit_log.mapped_file_queue.load()
        self.consume_queue_store.load()
        stale = self.index_service.load(clean)
        if self.hooks.on:
            for path in stale:
                self.hooks.emit(FileDeleted(path, "newer than the checkpoint"))
            log_files = self.commit_log.mapped_file_queue.mapped_files
            self.hooks.emit(StoreLoaded(clean, len(log_files), len(self.consume_queue_store.consume_queue_table)))
        recovery = self.recovery = self._recover(clean)
        if self.hooks.on:
            start, end = self.commit_log.min_offset, self.commit_log.max_offset
            self.hooks.emit(
                StoreRecovered(
                    clean, recovery.records, recovery.dispatched, start, end, recovery.cut_bytes, recovery.reason
                )
            )
        return recovery

    def _recover(self, clean: bool) -> Recovery:
        log, queues = self.commit_log, self.consume_queue_store
        queues.recover()
        dispatched: list[int] = []
        ends: dict[tuple[str, int], int] = {}
        self.stalled_at = -1

        def dispatch(request: DispatchRequest) -> None:
            if not dispatched:
                dispatched.append(request.commit_log_offset)
            if self.stalled_at < 0:
                try:
                    self.dispatch(request)
                except DiskFull:
                    self.stalled_at = request.commit_log_offset
            if self.stalled_at >= 0 and request.has_queue_entry:
                end = request.consume_queue_offset + (request.batch_size or 1)
                ends[request.topic, request.queue_id] = end

        if log.mapped_file_queue.mapped_files:
            safe = self.store_checkpoint.min_timestamp
            if self.config.message_index_safe:
                safe = self.store_checkpoint.min_timestamp_index
            known = queues.max_physic_offset
            recovery = recover_commit_log(
                log, clean=clean, dispatch_from=known, safe_timestamp=safe, dispatch=dispatch
            )
            if known >= recovery.end:
                recovery.cuts += queues.truncate_dirty(recovery.end)
            log.mapped_file_queue.set_position(recovery.end)
        else:
            recovery = Recovery(clean, cuts=queues.destroy_all())
        queues.recover_queue_offsets(log.min_offset)
        for key, end in ends.items():
            queues.topic_queue_table[key] = max(end, queues.topic_queue_table.get(key, 0))
        watermark = self._index_begin(clean, dispatched[0] if dispatched else recovery.end)
        self.index_service.begin_at(watermark, self.stalled_at if self.stalled_at >= 0 else log.max_offset)
        return recovery

    def _index_begin(self, clean: bool, dispatched_from: int) -> int:
        """Where the index has to catch up from: after a crash all that the files lack, even what is not dispatched
        again.
        """
        if clean:
            return dispatched_from
        known = self.index_service.end_phy_offset
        return max(known if known >= 0 else 0, self.commit_log.min_offset, 0)

    def dispatch(self, request: DispatchRequest) -> None:
        """Show a stored message to all dispatchers (DefaultMessageStore.doDispatch)."""
        for dispatcher in self.dispatcher_list:
            dispatcher(request)

    def build_consume_queue(self, request: DispatchRequest) -> None:
        """Give a stored message its queue entry; prepared and rolled-back ones get none.

        Java: org.apache.rocketmq.store.DefaultMessageStore.CommitLogDispatcherBuildConsumeQueue.
        """
        if request.has_queue_entry:
            self.consume_queue_store.put(request)
            self.store_checkpoint.logics_msg_timestamp = request.store_timestamp

    @property
    def dispatched_offset(self) -> int:
        """The end of what is dispatched."""
        return self.commit_log.max_offset

    def build_index(self) -> int:
        """Let the index catch up with what is dispatched; how many keys that were."""
        keys = self.index_service.catch_up()
        if keys and self.hooks.on:
            self.hooks.emit(IndexBuilt(keys, self.index_service.watermark))
        return keys

    # -- reading ----------------------------------------------------------------------------------------------------

    def get_message(
        self,
        group: str,
        topic: str,
        queue_id: int,
        offset: int,
        max_msg_nums: int,
        message_filter: MessageFilter | None = None,
        max_total_msg_size: int = MAX_PULL_MSG_SIZE,
    ) -> GetMessageResult | None:
        """Read messages of a queue from an offset on; None when the store does not read at all."""
        if not self.running_flags.is_readable:
            return None
        queue = self.consume_queue_store.consume_queue_table.get((topic, queue_id))
        if queue is None:
            return GetMessageResult(GetMessageStatus.NO_MATCHED_LOGIC_QUEUE, corrected(self.config, offset, 0))
        memory_bytes = self.host.spec.memory_bytes
        return get_message(
            queue, self.commit_log, self.config, memory_bytes, offset, max_msg_nums, max_total_msg_size, message_filter
        )

    def find_consume_queue(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """The queue, None when nothing was ever stored for it."""
        return self.consume_queue_store.find(topic, queue_id)

    def get_max_offset_in_queue(self, topic: str, queue_id: int, committed: bool = True) -> int:
        """The queue offset of the next message that can be read; of the next that will be stored with
        committed=False.
        """
        if not committed:
            return self.consume_queue_store.topic_queue_table.get((topic, queue_id), 0)
        queue = self.consume_queue_store.find(topic, queue_id)
        return queue.max_offset_in_queue if queue is not None else 0

    def get_min_offset_in_queue(self, topic: str, queue_id: int) -> int:
        """The queue offset of the first message that is still there; -1 for a queue that nobody knows."""
        queue = self.consume_queue_store.find(topic, queue_id)
        return queue.min_offset_in_queue if queue is not None else -1

    def get_offset_in_queue_by_time(
        self, topic: str, queue_id: int, timestamp: int, boundary: BoundaryType = BoundaryType.LOWER
    ) -> int:
        """The queue offset of the message stored at about that time (ms); 0 for a queue that nobody knows."""
        queue = self.consume_queue_store.find(topic, queue_id)
        return offset_in_queue_by_time(queue, self.commit_log, timestamp, boundary) if queue is not None else 0

    def get_commit_log_offset_in_queue(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """Where the message at a queue offset lies in the commit log; 0 when there is none."""
        queue = self.consume_queue_store.find(topic, queue_id)
        unit = queue.get(queue_offset) if queue is not None else None
        return unit.pos if unit is not None else 0

    def look_message_by_offset(self, commit_log_offset: int, decompress: bool = True) -> MessageExt | None:
        """The message at a commit-log offset, None when no record begins there."""
        return self.commit_log.look_message_by_offset(commit_log_offset, decompress=decompress)

    def select_one_message_by_offset(self, commit_log_offset: int) -> bytes | None:
        """The record at a commit-log offset as bytes, None when none begins there."""
        size = self.commit_log.record_size(commit_log_offset)
        return self.commit_log.get_message(commit_log_offset, size) if size > 0 else None

    def query_message(self, topic: str, key: str, max_num: int, begin: int, end: int) -> QueryMessageResult:
        """The messages of a topic that may have a key (or unique key) and were stored in [begin, end] (ms)."""
        self.build_index()
        return query_message(self.index_service, self.commit_log, topic, key, max_num, begin, end)

    def get_message_store_timestamp(self, topic: str, queue_id: int, queue_offset: int) -> int:
        """When the message at a queue offset was stored, ms; -1 when it is gone."""
        queue = self.consume_queue_store.find(topic, queue_id)
        unit = queue.get(queue_offset) if queue is not None else None
        return self.commit_log.store_time(unit.pos, unit.size) if unit is not None else -1

    def get_earliest_message_time(self, topic: str | None = None, queue_id: int = 0) -> int:
        """When the oldest message of the store, or of a queue, was stored, ms; -1 without messages."""
        if topic is not None:
            return self.get_message_store_timestamp(topic, queue_id, self.get_min_offset_in_queue(topic, queue_id))
        start = self.commit_log.min_offset
        size = self.commit_log.record_size(start) if start >= 0 else 0
        return self.commit_log.store_time(start, size) if size > 0 else -1

    def check_in_mem_by_consume_offset(self, topic: str, queue_id: int, queue_offset: int) -> bool:
        """Is the page of the message at a queue offset loaded? Of one that is there it is, as a new Java always says.

        Java: org.apache.rocketmq.store.logfile.DefaultMappedFile.isLoaded.
        """
        queue = self.consume_queue_store.find(topic, queue_id)
        unit = queue.get(queue_offset) if queue is not None else None
        return unit is not None and self.commit_log.get_message(unit.pos, unit.size) is not None

    @property
    def max_phy_offset(self) -> int:
        """The end of the commit log."""
        return self.commit_log.max_offset

    @property
    def min_phy_offset(self) -> int:
        """The first byte of the commit log that is still there, -1 in an empty store."""
        return self.commit_log.min_offset

    def __repr__(self) -> str:
        log = self.commit_log
        return (
            f"<{type(self).__name__} {self.host.name}: commit log [{log.min_offset}, {log.max_offset}), "
            f"{len(self.consume_queue_store.consume_queue_table)} queues, "
            f"{log.max_offset - self.dispatched_offset} bytes not dispatched>"
        )
