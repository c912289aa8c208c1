"""How far each group was handed out each queue: committed in the order of the pops, when a batch is settled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.pop.pop_check_point_wrapper import PopCheckPointWrapper, QueueWithTime
from mqlab.trace.events.pop import OffsetQueueDropped

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.broker.pop.queue_lock_manager import QueueLockManager

GARBAGE_INTERVAL_MS = 30_000
IDLE_MS = 300_000
_GARBAGE_US = GARBAGE_INTERVAL_MS * 1_000


class PopCommitOffsets:
    """The offsets that wait to be committed, by `topic@group@queueId` (PopBufferMergeService.commitOffsets).

    A queue's offset goes past a batch only when it has gone past all batches popped before, so that a crash forgets
    nothing in between. Each 30 s, counted from the broker's start, what belongs to a topic or a group that is gone, or
    was not popped for 5 minutes, is dropped.
    """

    def __init__(self, broker: BrokerParts, locks: QueueLockManager) -> None:
        self._broker = broker
        self._locks = locks
        self.table: dict[str, QueueWithTime] = {}
        self.garbage_us = 0
        """When the next look for garbage is due, as long as there is a table."""
        self.heads: dict[str, None] = {}
        """The queues whose oldest batch may have become committable."""

    def offer(self, wrapper: PopCheckPointWrapper) -> None:
        """Put a batch behind those that were popped before from its queue."""
        if not self.table:
            self._set_garbage_time()
        self.table.setdefault(wrapper.lock_key, QueueWithTime()).offer(wrapper)

    def waiting(self, lock_key: str) -> int:
        """How many batches of a queue wait."""
        queue = self.table.get(lock_key)
        return len(queue.queue) if queue is not None else 0

    def total_size(self) -> int:
        """How many batches wait in all queues."""
        return sum(len(queue.queue) for queue in self.table.values())

    def latest(self, lock_key: str) -> int:
        """Where the batch that was popped last from a queue ends; -1 when none waits."""
        queue = self.table.get(lock_key)
        return queue.queue[-1].next_begin_offset if queue is not None and queue.queue else -1

    # -- committing -------------------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Commit what can be, from the oldest batch of each queue on, up to the first that is not settled."""
        heads, self.heads = self.heads, {}
        for lock_key in heads:
            queue = self.table.get(lock_key)
            while queue is not None and queue.queue and queue.queue[0].is_settled:
                if not self._commit(queue.queue[0]):
                    self.heads[lock_key] = None
                    break
                queue.queue.popleft()

    def _commit(self, wrapper: PopCheckPointWrapper) -> bool:
        """Commit where the pops behind this batch begin; False when a pop is at the queue just now."""
        if wrapper.next_begin_offset < 0:
            return True
        if not self._locks.try_lock_key(wrapper.lock_key):
            return False
        ck = wrapper.ck
        self._broker.consumer_offset_manager.commit_offset(
            f"{ck.group}", f"{ck.topic}", ck.queue_id, wrapper.next_begin_offset, "popped"
        )
        self._locks.unlock_key(wrapper.lock_key)
        return True

    # -- garbage ----------------------------------------------------------------------------------------------------

    def _set_garbage_time(self) -> None:
        now_us = self._broker.node.now_us()
        self.garbage_us = now_us + _GARBAGE_US - (now_us - self._broker.start_us) % _GARBAGE_US

    def scan_garbage(self) -> None:
        """Drop what nobody will commit any more, if it is time to."""
        if not self.table or self._broker.node.now_us() < self.garbage_us:
            return
        self._set_garbage_time()
        for lock_key, queue in list(self.table.items()):
            parts = lock_key.split("@")
            reason = self._reason_to_drop(parts[0], parts[1], queue) if len(parts) == 3 else ""
            if not reason:
                continue
            del self.table[lock_key]
            if queue.queue and self._broker.node.hooks.on:
                self._broker.node.hooks.emit(
                    OffsetQueueDropped(parts[1], parts[0], int(parts[2]), len(queue.queue), reason)
                )

    def _reason_to_drop(self, topic: str, group: str, queue: QueueWithTime) -> str:
        if topic not in self._broker.topic_config_manager.topic_config_table:
            return "topic gone"
        if not self._broker.subscription_group_manager.contains_subscription_group(group):
            return "group gone"
        return "idle" if self._broker.node.now_ms() - queue.time_ms > IDLE_MS else ""
