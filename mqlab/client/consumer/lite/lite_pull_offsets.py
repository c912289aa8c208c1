"""Where a lite pull consumer stands in its queues: where the next pull begins, moving about, committing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from mqlab.client.consumer.lite.assigned_message_queue import UNKNOWN
from mqlab.client.consumer.offset_store import UNREADABLE, ReadOffsetType
from mqlab.client.consumer.rebalance.rebalance_impl import OffsetUnreadableException
from mqlab.errors import MQClientException
from mqlab.protocol.message import MessageQueue
from mqlab.trace.events.client import QueueSought

if TYPE_CHECKING:
    from mqlab.client.consumer.lite.assigned_message_queue import AssignedMessageQueue
    from mqlab.client.consumer.lite.default_lite_pull_consumer_impl import DefaultLitePullConsumerImpl


class LitePullOffsets:
    """The offsets of one lite pull consumer.

    Java: the part of org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl around seek and commit.
    """

    def __init__(self, owner: DefaultLitePullConsumerImpl) -> None:
        self._owner = owner
        self._node = owner.node
        self._assigned: AssignedMessageQueue = owner.assigned_message_queue
        self._next_auto_commit_ms = -1

    async def next_pull_offset(self, queue: MessageQueue) -> int:
        """Where the next pull begins: where the application wants to go on, else behind the last pull, else as stored.

        -1 when the stored offset cannot be read.
        """
        state = self._assigned.state(queue)
        if state is not None and state.seek_offset != UNKNOWN:
            offset = state.seek_offset
            state.consume_offset = offset
            state.seek_offset = UNKNOWN
            return offset
        if state is not None and state.pull_offset != UNKNOWN:
            return state.pull_offset
        self._owner.make_sure_state_ok()
        try:
            return await self._owner.rebalance_impl.compute_pull_from_where(queue)
        except OffsetUnreadableException:
            return UNKNOWN

    # -- moving about -----------------------------------------------------------------------------------------------

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on at another offset of an assigned queue; what is cached of the queue is thrown away.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl.seek.
        """
        async with self._owner.monitor:
            if self._assigned.state(queue) is None:
                rebalancing = ", may be rebalancing" if self._owner.is_rebalanced else ""
                raise MQClientException(
                    f"The message queue is not in assigned list{rebalancing}, message queue: {queue}. "
                    "What to do: seek in one of consumer.assignment()."
                )
            min_offset, max_offset = await self.min_offset(queue), await self.max_offset(queue)
            if type(offset) is not int or not min_offset <= offset <= max_offset:
                raise MQClientException(
                    f"Seek offset illegal, seek offset = {offset}, min offset = {min_offset}, max offset = {max_offset}"
                    ". What to do: give a whole number between the two."
                )
            self._go_to(queue, offset)

    def _go_to(self, queue: MessageQueue, offset: int) -> None:
        state = self._assigned.state(queue)
        if state is None:
            # The queue went to another member while its offsets were asked for.
            return
        state.process_queue.clear()
        state.seek_offset = offset
        if self._node.hooks.on:
            self._node.hooks.emit(QueueSought(self._owner.group_name, *queue, offset))
        self._owner.restart_task(queue)

    async def min_offset(self, queue: MessageQueue) -> int:
        """The offset of the oldest message of a queue."""
        self._owner.make_sure_state_ok()
        return await self._owner.instance.mq_admin_impl.min_offset(queue)

    async def max_offset(self, queue: MessageQueue) -> int:
        """One more than the offset of the last message of a queue."""
        self._owner.make_sure_state_ok()
        return await self._owner.instance.mq_admin_impl.max_offset(queue)

    async def search_offset(self, queue: MessageQueue, timestamp_ms: int) -> int:
        """The offset of the first message that was stored at a time or later."""
        self._owner.make_sure_state_ok()
        return await self._owner.instance.mq_admin_impl.search_offset(queue, timestamp_ms)

    # -- offsets ----------------------------------------------------------------------------------------------------

    def maybe_auto_commit(self) -> None:
        """Commit what was polled, if the time for it has come: at the first poll, and 5 s after the last time."""
        now_ms = self._node.now_ms()
        if now_ms >= self._next_auto_commit_ms:
            self.commit_all()
            self._next_auto_commit_ms = now_ms + self._owner.consumer.auto_commit_interval_millis

    async def commit(self, queues: Mapping[MessageQueue, int] | Collection[MessageQueue] | None, persist: bool) -> None:
        """Note offsets as consumed: those given, those behind the last poll of the queues given, or of all queues.

        Java: org.apache.rocketmq.client.impl.consumer.DefaultLitePullConsumerImpl.commit.
        """
        async with self._owner.monitor:
            self._owner.make_sure_state_ok()
            if queues is None:
                self.commit_all()
                return
            for queue in queues:
                polled = self._assigned.consume_offset(queue)
                self._commit(queue, queues[queue] if isinstance(queues, Mapping) else polled)
            if persist and queues:
                self._owner.offset_store.persist_all(queues)

    def commit_all(self) -> None:
        """Note what was polled of every assigned queue, in memory."""
        for queue in self._assigned.queues():
            self._commit(queue, self._assigned.consume_offset(queue))

    def _commit(self, queue: MessageQueue, offset: int) -> None:
        process_queue = self._assigned.process_queue(queue)
        if offset != UNKNOWN and process_queue is not None and not process_queue.dropped:
            self._owner.offset_store.update_offset(queue, offset, increase_only=False)

    async def committed(self, queue: MessageQueue) -> int:
        """The offset that was committed last, -1 without one."""
        self._owner.make_sure_state_ok()
        offset = await self._owner.offset_store.read_offset(queue, ReadOffsetType.MEMORY_FIRST_THEN_STORE)
        if offset == UNREADABLE:
            raise MQClientException(
                "Fetch consume offset from broker exception. What to do: see that the broker of the queue answers."
            )
        return offset
