"""All consume queues of a store, and the queue offset that the next message of each queue will get."""

from __future__ import annotations

from collections.abc import Callable

from mqlab.protocol.topics import is_system_topic
from mqlab.sim.disk import Disk
from mqlab.store.batch_consume_queue import BatchConsumeQueue
from mqlab.store.consume_queue import ConsumeQueue
from mqlab.store.dispatch_request import DispatchRequest
from mqlab.store.errors import StoreError
from mqlab.store.message_store_config import MessageStoreConfig
from mqlab.store.store_layout import queue_id_of_name

QueueKey = tuple[str, int]


class ConsumeQueueStore:
    """The queues by (topic, queue id), made when their first message comes
    (org.apache.rocketmq.store.queue.ConsumeQueueStore).

    `topic_queue_table` holds the next queue offsets: it runs ahead of the queues by what is not yet dispatched.
    `is_batch_topic(topic)` says whether a new topic has `queue.type=BatchCQ`.
    """

    def __init__(self, disk: Disk, config: MessageStoreConfig, is_batch_topic: Callable[[str], bool]) -> None:
        self.disk = disk
        self.config = config
        self.is_batch_topic = is_batch_topic
        self.consume_queue_table: dict[QueueKey, ConsumeQueue] = {}
        self.topic_queue_table: dict[QueueKey, int] = {}
        self.dirty: dict[QueueKey, ConsumeQueue] = {}
        """The queues that got entries since their last full flush, in the order of the first."""

    # -- the table --------------------------------------------------------------------------------------------------

    def find(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """The queue, None when nothing was ever stored for it."""
        return self.consume_queue_table.get((topic, queue_id))

    def _make(self, topic: str, queue_id: int, batch: bool) -> ConsumeQueue:
        config = self.config
        if batch:
            path = config.path("batchconsumequeue", topic, str(queue_id))
            queue: ConsumeQueue = BatchConsumeQueue(
                self.disk, path, topic, queue_id, config.mapper_file_size_batch_consume_queue
            )
        else:
            path = config.path("consumequeue", topic, str(queue_id))
            size = config.mapped_file_size_consume_queue
            if config.enable_consume_queue_ext:
                from mqlab.store.consume_queue_ext import ExtendedConsumeQueue

                ext_path = config.path("consumequeue_ext", topic, str(queue_id))
                ext_size = config.mapped_file_size_consume_queue_ext
                queue = ExtendedConsumeQueue(self.disk, path, topic, queue_id, size, ext_path, ext_size)
            else:
                queue = ConsumeQueue(self.disk, path, topic, queue_id, size)
        self.consume_queue_table[topic, queue_id] = queue
        return queue

    def is_batch(self, topic: str, queue_id: int) -> bool:
        """Do the batches of this queue stay whole?"""
        queue = self.consume_queue_table.get((topic, queue_id))
        return isinstance(queue, BatchConsumeQueue) if queue is not None else self.is_batch_topic(topic)

    def put(self, request: DispatchRequest) -> None:
        """Add the entry of a message to its queue."""
        key = request.topic, request.queue_id
        queue = self.consume_queue_table.get(key)
        if queue is None:
            queue = self._make(*key, request.batch_size > 0 or self.is_batch_topic(request.topic))
        queue.put(request)
        if key not in self.dirty:
            self.dirty[key] = queue

    # -- after a stop -----------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Take in the queues that have a folder; other names are passed over, as in RocketMQ."""
        for kind, batch in (("consumequeue", False), ("batchconsumequeue", True)):
            root = self.config.path(kind)
            for topic in self.disk.list(root):
                for name in self.disk.list(f"{root}/{topic}"):
                    queue_id = queue_id_of_name(name)
                    if queue_id is None:
                        continue
                    if (topic, queue_id) in self.consume_queue_table:
                        raise StoreError(
                            f"{root}/{topic}/{name}",
                            "the queue has a folder as consume queue and one as batch consume queue",
                            "remove the one that does not fit the topic's queue.type",
                        )
                    self._make(topic, queue_id, batch).load()

    def recover(self) -> None:
        """Find the end of each queue."""
        for queue in self.consume_queue_table.values():
            queue.recover()

    @property
    def max_physic_offset(self) -> int:
        """The end of the newest record that any queue knows, -1 for none: where dispatching has to go on."""
        return max((queue.max_physic_offset for queue in self.consume_queue_table.values()), default=-1)

    def truncate_dirty(self, phy_offset: int) -> list[dict[str, int | str]]:
        """Drop all entries of messages at and behind `phy_offset` in the commit log; what went, as pieces of a
        Recovery.
        """
        return self._drop(
            lambda queue: queue.truncate_dirty_logic_files(phy_offset), f"the commit log ends at {phy_offset}"
        )

    def _drop(self, change: Callable[[ConsumeQueue], None], reason: str) -> list[dict[str, int | str]]:
        cuts: list[dict[str, int | str]] = []
        for (topic, queue_id), queue in sorted(self.consume_queue_table.items()):
            before = queue.mapped_file_queue.max_offset
            change(queue)
            entries = (before - queue.mapped_file_queue.max_offset) // queue.unit_size
            if entries > 0:
                cut: dict[str, int | str] = {"what": "consume queue", "topic": topic, "queueId": queue_id}
                cuts.append({**cut, "entries": entries, "reason": reason})
        return cuts

    def recover_queue_offsets(self, min_commit_log_offset: int) -> None:
        """Take the next queue offset of each queue from its length, and its start from what the commit log still
        has.
        """
        self.topic_queue_table = {key: queue.max_offset_in_queue for key, queue in self.consume_queue_table.items()}
        for queue in self.consume_queue_table.values():
            queue.correct_min_offset(min_commit_log_offset)

    # -- flushing and deleting --------------------------------------------------------------------------------------

    def flush(self, least_pages: int) -> int:
        """Flush the queues that have so many dirty pages (0: any dirty byte); how many were written."""
        flushed = 0
        for key, queue in list(self.dirty.items()):
            flushed += queue.flush(least_pages)
            if least_pages == 0:
                del self.dirty[key]
        return flushed

    def destroy_all(self) -> list[dict[str, int | str]]:
        """Delete every queue, as happens when there is no commit log any more; what went, as pieces of a Recovery."""
        cuts = self._drop(ConsumeQueue.destroy, "the commit log has no files")
        self.consume_queue_table.clear()
        self.topic_queue_table.clear()
        self.dirty.clear()
        return cuts

    def delete_topic(self, topic: str) -> int:
        """Delete all queues of a topic; how many there were."""
        keys = [key for key in self.consume_queue_table if key[0] == topic]
        for key in keys:
            self._delete(key)
        for kind in ("consumequeue", "consumequeue_ext", "batchconsumequeue"):
            self.disk.rmtree(self.config.path(kind, topic))
        return len(keys)

    def clean_expired(self, min_commit_log_offset: int) -> list[str]:
        """Delete the queues all of whose messages lie below this offset, but those of RocketMQ's own topics; their
        directories.

        As in RocketMQ such a queue begins again at 0.
        """
        gone = []
        for key, queue in list(self.consume_queue_table.items()):
            if not is_system_topic(key[0]) and 0 <= queue.max_physic_offset < min_commit_log_offset:
                gone.append(queue.mapped_file_queue.path)
                self._delete(key)
                self.disk.rmtree(gone[-1])
        return gone

    def _delete(self, key: QueueKey) -> None:
        self.consume_queue_table.pop(key).destroy()
        self.topic_queue_table.pop(key, None)
        self.dirty.pop(key, None)

    def topics(self) -> dict[str, list[int]]:
        """The queue ids of each topic, both in order."""
        table: dict[str, list[int]] = {}
        for topic, queue_id in sorted(self.consume_queue_table):
            table.setdefault(topic, []).append(queue_id)
        return table
