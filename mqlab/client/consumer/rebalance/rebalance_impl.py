"""Rebalance: which queues a consumer takes, gives up, and from where it begins to pull."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from mqlab.client.consumer.offset_store import NO_RECORD, OffsetStore, ReadOffsetType
from mqlab.client.consumer.process_queue import ProcessQueue
from mqlab.client.consumer.push.pull_request import PullRequest
from mqlab.client.inner import MQConsumerInner
from mqlab.errors import MQBrokerException, MQClientException, RemotingException, SimulationError
from mqlab.protocol.hashing import java_map_order
from mqlab.protocol.heartbeat import ConsumeFromWhere, ConsumeType, MessageModel
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.topics import is_retry_topic
from mqlab.trace.events.client import QueueAllocated, QueueDropped, RebalanceDone, RebalanceSkipped

if TYPE_CHECKING:
    from mqlab.client.mq_client_instance import MQClientInstance
    from mqlab.protocol.heartbeat import SubscriptionData
    from mqlab.rebalance import AllocateMessageQueueStrategy
    from mqlab.sim import Node

DISPATCH_DELAY_MS = 500
"""A queue that was taken is first pulled after this time."""


class OffsetUnreadableException(MQClientException):
    """There may be a stored offset, but it cannot be read at present."""


class RebalanceSettings(Protocol):
    """What the settings of a consumer say of its rebalance."""

    allocate_message_queue_strategy: AllocateMessageQueueStrategy

    def timestamp_ms(self, started_ms: int) -> int:
        """The time of CONSUME_FROM_TIMESTAMP in ms since 1970."""
        ...


class RebalanceOwner(MQConsumerInner, Protocol):
    """A consumer, seen from its rebalance."""

    node: Node
    instance: MQClientInstance
    offset_store: OffsetStore
    consumer_start_ms: int

    @property
    def rebalance_settings(self) -> RebalanceSettings:
        """The strategy, and the time to begin at."""
        ...

    async def message_queue_changed(
        self, topic: str, mq_all: Sequence[MessageQueue], mq_divided: Sequence[MessageQueue]
    ) -> None:
        """Take notice of the queues that the consumer has now."""
        ...


class RebalanceImpl:
    """The queues of one consumer; what differs between consumers is in its subclasses.

    Java: org.apache.rocketmq.client.impl.consumer.RebalanceImpl. Rebalance by the broker is in
    `RebalancePushImpl`, since only push consumers have it.
    """

    read_offset_type = ReadOffsetType.READ_FROM_STORE
    """Where to look for the offset of a queue that was taken."""

    def __init__(self, owner: RebalanceOwner) -> None:
        self._owner = owner
        self._node = owner.node
        self.process_queue_table: dict[MessageQueue, ProcessQueue] = {}
        self.topic_subscribe_info_table: dict[str, list[MessageQueue]] = {}
        self.subscription_inner: dict[str, SubscriptionData] = {}

    def topics(self) -> list[str]:
        """The subscribed topics in the order of the Java map: it decides who comes first when a round is a race."""
        return java_map_order(self.subscription_inner)

    # -- the round --------------------------------------------------------------------------------------------------

    async def do_rebalance(self) -> bool:
        """Compute the share of every subscribed topic and take or drop queues; False if something stays unbalanced.

        Java: org.apache.rocketmq.client.impl.consumer.RebalanceImpl.doRebalance.
        """
        balanced = True
        for topic in self.topics():
            try:
                if not await self.rebalance_by_topic(topic):
                    balanced = False
            except (RemotingException, MQBrokerException, MQClientException) as error:
                self.skip(topic, str(error))
                balanced = balanced and is_retry_topic(topic)
        self.drop_unsubscribed()
        return balanced

    async def rebalance_by_topic(self, topic: str) -> bool:
        """Compute the share of one topic, and take or drop queues; False if something stays unbalanced."""
        queues = self.topic_subscribe_info_table.get(topic)
        if self._owner.message_model is MessageModel.BROADCASTING:
            return await self._rebalance_broadcasting(topic, queues)
        instance = self._owner.instance
        group = self._owner.group_name
        members = await instance.find_consumer_id_list(topic, group)
        if not queues:
            if not is_retry_topic(topic):
                await self._owner.message_queue_changed(topic, [], [])
                self.skip(topic, "no queues of the topic are known")
            return True
        if members is None:
            self.skip(topic, f"no broker told the members of the group: {instance.member_list_problem}")
            return True
        all_queues, all_members = sorted(queues), sorted(members)
        try:
            mine = self._owner.rebalance_settings.allocate_message_queue_strategy.allocate(
                group, instance.client_id, all_queues, all_members
            )
        except SimulationError:
            raise
        except Exception as error:  # noqa: BLE001  # a strategy of the application's own may raise anything
            self.skip(topic, f"allocate message queue exception: {type(error).__name__}: {error}")
            return False
        changed = await self.update_process_queue_table(topic, mine)
        if changed:
            await self._owner.message_queue_changed(topic, all_queues, mine)
        balanced = set(mine) == {queue for queue in self.process_queue_table if queue.topic == topic}
        self._report(topic, len(all_queues), len(all_members), len(mine), changed, balanced)
        return balanced

    async def _rebalance_broadcasting(self, topic: str, queues: list[MessageQueue] | None) -> bool:
        if not queues:
            await self._owner.message_queue_changed(topic, [], [])
            self.skip(topic, "no queues of the topic are known")
            return True
        mine = sorted(queues)
        changed = await self.update_process_queue_table(topic, mine)
        if changed:
            await self._owner.message_queue_changed(topic, mine, mine)
        balanced = set(mine) == {queue for queue in self.process_queue_table if queue.topic == topic}
        self._report(topic, len(mine), 1, len(mine), changed, balanced)
        return balanced

    def drop_unsubscribed(self) -> None:
        """Give up the queues of topics that are no longer subscribed to."""
        for queue in [queue for queue in self.process_queue_table if queue.topic not in self.subscription_inner]:
            self.process_queue_table.pop(queue).dropped = True
            self._dropped(queue, "the topic is no longer subscribed")

    # -- the table --------------------------------------------------------------------------------------------------

    async def update_process_queue_table(self, topic: str, mine: Sequence[MessageQueue]) -> bool:
        """Give up what is not mine any more, take what is new; True if anything changed.

        Java: org.apache.rocketmq.client.impl.consumer.RebalanceImpl.updateProcessQueueTableInRebalance.
        """
        changed = await self._give_up(topic, set(mine))
        all_locked = True
        requests: list[PullRequest] = []
        for queue in mine:
            if queue in self.process_queue_table:
                continue
            if self.needs_lock and not await self.lock(queue):
                all_locked = False
                self.skip(topic, f"the lock of {queue} is held by another member")
                continue
            self._owner.offset_store.remove_offset(queue)
            process_queue = ProcessQueue(self._node)
            process_queue.locked = True
            try:
                offset = await self.compute_pull_from_where(queue)
            except (RemotingException, MQBrokerException, MQClientException) as error:
                self.skip(topic, f"no offset to pull {queue} from: {error}")
                continue
            if queue in self.process_queue_table:
                continue
            self.process_queue_table[queue] = process_queue
            requests.append(PullRequest(self._owner.group_name, queue, process_queue, offset))
            changed = True
            if self._node.hooks.on:
                self._node.hooks.emit(
                    QueueAllocated(self._owner.instance.client_id, self._owner.group_name, *queue, offset)
                )
        if not all_locked:
            self._owner.instance.rebalance_later(DISPATCH_DELAY_MS)
        self.dispatch_pull_request(requests, DISPATCH_DELAY_MS)
        return changed

    @property
    def needs_lock(self) -> bool:
        """Whether a queue may only be taken with the broker's lock of it."""
        return False

    async def lock(self, queue: MessageQueue) -> bool:
        """Get the broker's lock of a queue; only asked for where `needs_lock` says so."""
        raise NotImplementedError(f"{type(self).__name__} needs locks, so it must define lock()")

    def dispatch_pull_request(self, requests: Sequence[PullRequest], delay_ms: int) -> None:
        """Let the pull loops of new queues begin; a consumer that pulls by itself has none."""

    async def _give_up(self, topic: str, mine: set[MessageQueue]) -> bool:
        to_remove: list[tuple[MessageQueue, str]] = []
        for queue, process_queue in self.process_queue_table.items():
            if queue.topic != topic:
                continue
            if queue not in mine:
                to_remove.append((queue, "it belongs to another member now"))
            elif process_queue.is_pull_expired and self._owner.consume_type is ConsumeType.CONSUME_PASSIVELY:
                to_remove.append((queue, "it was not pulled for 120 s: taken anew"))
        for queue, _ in to_remove:
            self.process_queue_table[queue].dropped = True
        changed = False
        for queue, reason in to_remove:
            held = self.process_queue_table.get(queue)
            if held is None:
                continue
            if await self.remove_unnecessary_message_queue(queue, held):
                self.process_queue_table.pop(queue, None)
                self._dropped(queue, reason)
                changed = True
        return changed

    async def remove_unnecessary_message_queue(self, queue: MessageQueue, process_queue: ProcessQueue) -> bool:
        """Write the offset of a queue that is given up, and forget it; False: not possible yet."""
        self._persist_and_forget(queue)
        return True

    def _persist_and_forget(self, queue: MessageQueue) -> None:
        self._owner.offset_store.persist(queue)
        self._owner.offset_store.remove_offset(queue)

    async def remove_process_queue(
        self, queue: MessageQueue, reason: str = "its offset was illegal: taken anew"
    ) -> None:
        """Give up a queue outside of a round; an orderly one is let go at its broker if no listener is at it.

        Java: org.apache.rocketmq.client.impl.consumer.RebalanceImpl.removeProcessQueue.
        """
        process_queue = self.process_queue_table.pop(queue, None)
        if process_queue is not None:
            process_queue.dropped = True
            self._dropped(queue, reason)
            await self.remove_unnecessary_message_queue(queue, process_queue)

    def destroy(self) -> None:
        """Give up everything, at the end of the consumer."""
        for queue, process_queue in self.process_queue_table.items():
            process_queue.dropped = True
            self._dropped(queue, "the consumer ends")
        self.process_queue_table.clear()

    # -- where to begin ---------------------------------------------------------------------------------------------

    async def compute_pull_from_where(self, queue: MessageQueue) -> int:
        """The offset to begin at: the stored one, else as consume_from_where says; MQClientException if unreadable.

        Java: org.apache.rocketmq.client.impl.consumer.RebalancePushImpl.computePullFromWhereWithException.
        """
        stored = await self._owner.offset_store.read_offset(queue, self.read_offset_type)
        if stored >= 0:
            return stored
        if stored != NO_RECORD:
            raise OffsetUnreadableException(f"Failed to query consume offset from offset store: {queue}")
        where = self.consume_from_where
        retry = is_retry_topic(queue.topic)
        admin = self._owner.instance.mq_admin_impl
        if where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
            return 0
        if where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
            if retry:
                return await admin.max_offset(queue)
            timestamp_ms = self._owner.rebalance_settings.timestamp_ms(self._owner.consumer_start_ms)
            return await admin.search_offset(queue, timestamp_ms)
        return 0 if retry else await admin.max_offset(queue)

    @property
    def consume_from_where(self) -> ConsumeFromWhere:
        """Where to begin without a stored offset."""
        return self._owner.consume_from_where

    # -- telling ----------------------------------------------------------------------------------------------------

    def skip(self, topic: str, reason: str) -> None:
        """Say that a topic's queues could not be shared out this time."""
        if self._node.hooks.on:
            owner = self._owner
            self._node.hooks.emit(RebalanceSkipped(owner.instance.client_id, owner.group_name, topic, reason))

    def _dropped(self, queue: MessageQueue, reason: str) -> None:
        if self._node.hooks.on:
            owner = self._owner
            self._node.hooks.emit(QueueDropped(owner.instance.client_id, owner.group_name, *queue, reason))

    def _report(self, topic: str, queues: int, members: int, share: int, changed: bool, balanced: bool) -> None:
        if self._node.hooks.on:
            owner = self._owner
            self._node.hooks.emit(
                RebalanceDone(
                    owner.instance.client_id, owner.group_name, topic, queues, members, share, changed, balanced
                )
            )
