"""The store of a broker: takes messages, gives them back, and finds its way again after a stop."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mqlab.protocol.topics import is_system_topic
from mqlab.sim.disk import DiskFull
from mqlab.store.message_store_config import MessageStoreConfig
from mqlab.store.recovery import Recovery
from mqlab.store.reput_message_service import Reput
from mqlab.store.services import StoreServices
from mqlab.store.writable_store import WritableStore
from mqlab.trace.events.store import CheckpointWritten, CommitLogFlushed, FileDeleted, StoreStopped

if TYPE_CHECKING:
    from mqlab.sim.node import Node

ArrivingListener = Callable[[str, int, int, int, int, bytes | None, dict[str, str]], Any]
"""(topic, queue id, queue offset + 1, tags code, store time ms, filter bitmap, properties) of a message just
dispatched.
"""

_POSITION_CHECKPOINT = b'{\n\t"empty":true,\n\t"queueOffsetMap":{}\n}'
"""What a broker without compacted topics leaves in compaction/position-checkpoint at each stop."""


class DefaultMessageStore(WritableStore):
    """One broker's store on the disk of its node (org.apache.rocketmq.store.DefaultMessageStore).

    `load()` opens the directory and recovers; `start()` lets the threads run; `shutdown()` closes it in good order.
    `message_arriving_listener` hears of each message that can be read. How it is read, and how messages are put, stands
    in the classes above.
    """

    def __init__(
        self,
        node: Node,
        config: MessageStoreConfig | None = None,
        *,
        is_batch_topic: Callable[[str], bool] = lambda topic: False,
    ) -> None:
        super().__init__(node, config, is_batch_topic=is_batch_topic)
        self.reput = Reput(self)
        self.message_arriving_listener: ArrivingListener | None = None
        self.checkpoint_written = self.store_checkpoint.encode()

    # -- life -------------------------------------------------------------------------------------------------------

    def load(self) -> Recovery:
        """Open the directory and recover what a stop left; StoreError where RocketMQ would refuse to start."""
        recovery = super().load()
        queues = self.consume_queue_store
        self._batch_keys = {key for key in queues.consume_queue_table if queues.is_batch(*key)}
        self.reput.begin_at(self.stalled_at if self.stalled_at >= 0 else self.commit_log.max_offset)
        if self.stalled_at >= 0:
            self.reput.stall(self.stalled_at, "no space left for the entries of queues")
        return recovery

    def start(self) -> None:
        """Mark the directory as in use and let the threads of the store run."""
        services = StoreServices(self)
        path = self.config.path
        self.disk.write_bytes(path("lock"), b"lock", flush=True)
        self.disk.write_bytes(path("abort"), str(self.node.spec.pid).encode(), flush=True)
        # Made empty by RocketMQ's way of replacing a file, and never removed.
        self.disk.write_bytes(path("abort.bak"), b"", flush=True)
        self.services = services
        self.disk.tell_of_speed(self.follow_disk)
        self.follow_disk()
        self.is_shutdown = False
        services.start()

    def shutdown(self) -> None:
        """Close the store in good order: dispatch and flush everything; then the next start sees a clean stop.

        What finds no room on the disk is left to the next start, which will see the mark of a crash.
        """
        if self.services is None:
            return
        self.is_shutdown = True
        services, self.services = self.services, None
        services.shutdown()
        # As in RocketMQ this last flush does not move the checkpoint's physicMsgTimestamp.
        self.commit_log.mapped_file_queue.flush_all()
        services.answer_waiting()
        self.reput.do_reput()
        self.commit_log.drop_preallocated()
        self.consume_queue_store.flush(0)
        self.build_index()
        self.index_service.flush()
        self.flush_checkpoint()
        self._write_position_checkpoint()
        everything_written = self.dispatch_behind_bytes == 0 and not self.index_service.is_behind
        clean = self.running_flags.is_writeable and everything_written
        if clean:
            self.disk.remove(self.config.path("abort"))
        if self.hooks.on:
            self.hooks.emit(StoreStopped(clean))

    def _write_position_checkpoint(self) -> None:
        path = self.config.path("compaction", "position-checkpoint")
        # As in RocketMQ a full disk only keeps this file from being written.
        with suppress(DiskFull):
            self.disk.write_bytes(path, _POSITION_CHECKPOINT, flush=True)

    # -- dispatching and flushing -----------------------------------------------------------------------------------

    @property
    def dispatched_offset(self) -> int:
        """The end of what is dispatched."""
        return self.reput.reput_from_offset

    @property
    def dispatch_behind_bytes(self) -> int:
        """How many bytes of the commit log are not dispatched."""
        return self.reput.behind_bytes

    def resume_dispatch(self) -> None:
        """There may be room for queue entries again."""
        if self.reput.stalled:
            self.reput.stalled = False
            if self.services is not None:
                self.services.reput.wakeup_for_work()

    def flush_commit_log(self, least_pages: int) -> None:
        """Make the commit log safe: all of it with 0, else if one file has so many dirty pages."""
        files = self.commit_log.mapped_file_queue
        moved = files.flush_all() if least_pages == 0 else files.flush(least_pages)
        if files.store_timestamp:
            self.store_checkpoint.physic_msg_timestamp = files.store_timestamp
        if moved:
            if self.hooks.on:
                self.hooks.emit(CommitLogFlushed(files.flushed_where, least_pages == 0))
            if self.services is not None:
                self.services.flushed()

    def flush_checkpoint(self) -> None:
        """Write the checkpoint file if it says something else; on a full disk it says the old until there is room."""
        encoded = self.store_checkpoint.encode()
        if encoded != self.checkpoint_written:
            try:
                self.store_checkpoint.flush()
            except DiskFull:
                # An older checkpoint only makes recovery read more, and the next turn tries again.
                return
            self.checkpoint_written = encoded
            if self.hooks.on:
                checkpoint = self.store_checkpoint
                self.hooks.emit(
                    CheckpointWritten(
                        checkpoint.physic_msg_timestamp, checkpoint.logics_msg_timestamp, checkpoint.index_msg_timestamp
                    )
                )

    # -- deleting ---------------------------------------------------------------------------------------------------

    def delete_topics(self, topics: list[str]) -> int:
        """Delete the queues of these topics (the commit log keeps the messages until they expire); how many queues."""
        count = 0
        for topic in topics:
            count += self.consume_queue_store.delete_topic(topic)
            self._batch_keys = {key for key in self._batch_keys if key[0] != topic}
            if self.hooks.on:
                self.hooks.emit(FileDeleted(self.config.path("consumequeue", topic), "topic deleted"))
        return count

    def clean_unused_topic(self, retain: Collection[str]) -> int:
        """Delete the queues of all topics but these and RocketMQ's own; how many queues."""
        topics = [topic for topic in self.consume_queue_store.topics() if not is_system_topic(topic)]
        return self.delete_topics([topic for topic in topics if topic not in retain])

    def clean_expired_consumer_queue(self) -> None:
        """Delete the queues whose messages are all gone from the commit log."""
        for path in self.consume_queue_store.clean_expired(self.commit_log.min_offset):
            if self.hooks.on:
                self.hooks.emit(FileDeleted(path, "below the commit log"))

    def execute_delete_files_manually(self) -> None:
        """Delete expired files of the commit log in the next rounds, whatever the hour of the day is."""
        if self.services is not None:
            self.services.clean.execute_delete_files_manually()
