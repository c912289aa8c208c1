"""Rebalance by the broker: a push consumer asks which queues it shall have, and whether to pull or to pop them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.client.consumer.pop.pop_request import INIT_MODE_MAX, INIT_MODE_MIN, PopProcessQueue, PopRequest
from mqlab.errors import MQBrokerException, RemotingException
from mqlab.protocol.assignment import POP, MessageQueueAssignment
from mqlab.protocol.heartbeat import SUB_ALL, ConsumeFromWhere, build_subscription_data
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.topics import is_retry_topic, pop_retry_topic
from mqlab.trace.events.client import AssignmentTaken
from mqlab.trace.events.pop import PopAssigned, PopUnassigned

if TYPE_CHECKING:
    from mqlab.client.consumer.push.default_mq_push_consumer_impl import DefaultMQPushConsumerImpl
    from mqlab.client.consumer.rebalance.rebalance_push_impl import RebalancePushImpl

QUERY_ASSIGNMENT_TIMEOUT_MS = 3_000


class RebalanceByBroker:
    """The part of a push consumer's rebalance that follows a broker's word (clientRebalance=false).

    Java: org.apache.rocketmq.client.impl.consumer.RebalanceImpl.getRebalanceResultFromBroker and
    updateMessageQueueAssignment. As in RocketMQ, who is told to pull a topic also subscribes to the one in which its
    popped messages come again, anew in each round. While there is no such topic, nobody can tell its queues and there
    is a round each second; and its pulls are refused between a round and the next heartbeat, which tells the broker of
    the newer subscription.
    """

    def __init__(self, rebalance: RebalancePushImpl, owner: DefaultMQPushConsumerImpl) -> None:
        self._rebalance = rebalance
        self._owner = owner
        self._node = owner.node
        self.pop_process_queue_table: dict[MessageQueue, PopProcessQueue] = {}

    async def rebalance_by_broker(self, topic: str) -> bool:
        """Ask for the queues of a topic, and take or drop queues; False when the broker could not tell, or not all of
        it is done.
        """
        try:
            assignments = await self._query_assignment(topic)
        except (RemotingException, MQBrokerException) as error:
            self._rebalance.skip(topic, f"the broker did not tell the queues: {error}")
            return False
        if assignments is None:
            self._rebalance.skip(topic, "the broker cannot tell the queues")
            return False
        queues = sorted({assignment.message_queue for assignment in assignments})
        popped = sorted({each.message_queue for each in assignments if each.mode == POP})
        changed = await self._update_message_queue_assignment(topic, popped, [q for q in queues if q not in popped])
        if changed:
            await self._owner.message_queue_changed(topic, [], queues)
        balanced = set(queues) == self._working_queues(topic)
        if self._node.hooks.on:
            owner = self._owner
            self._node.hooks.emit(
                AssignmentTaken(
                    owner.instance.client_id,
                    owner.group_name,
                    topic,
                    len(queues) - len(popped),
                    len(popped),
                    changed,
                    balanced,
                )
            )
        return balanced

    async def _query_assignment(self, topic: str) -> list[MessageQueueAssignment] | None:
        """The queues, as one broker of the topic shares them out; None when no broker is known."""
        owner = self._owner
        instance = owner.instance
        address = instance.routes.find_broker_addr_by_topic(topic)
        if address is None:
            await instance.routes.refresh(topic)
            address = instance.routes.find_broker_addr_by_topic(topic)
        if address is None:
            return None
        return await instance.api.pop.query_assignment(
            address,
            topic,
            owner.group_name,
            instance.client_id,
            owner.rebalance_settings.allocate_message_queue_strategy.name,
            owner.message_model,
            QUERY_ASSIGNMENT_TIMEOUT_MS,
        )

    def _working_queues(self, topic: str) -> set[MessageQueue]:
        tables = (self._rebalance.process_queue_table, self.pop_process_queue_table)
        return {queue for table in tables for queue, held in table.items() if queue.topic == topic and not held.dropped}

    # -- taking over ------------------------------------------------------------------------------------------------

    async def _update_message_queue_assignment(
        self, topic: str, popped: list[MessageQueue], pulled: list[MessageQueue]
    ) -> bool:
        """Give up what is not assigned any more, take what is new; True if anything changed.

        Java: org.apache.rocketmq.client.impl.consumer.RebalanceImpl.updateMessageQueueAssignment.
        """
        self._follow_the_mode(topic, bool(popped), bool(pulled))
        changed = await self._rebalance.update_process_queue_table(topic, pulled)
        changed = self._give_up_pops(topic, set(popped)) or changed
        requests = [self._assigned(queue) for queue in popped if queue not in self.pop_process_queue_table]
        self._rebalance.dispatch(requests)
        return bool(requests) or changed

    def _follow_the_mode(self, topic: str, pops: bool, pulls: bool) -> None:
        """Whoever pulls a topic also pulls what comes again of its popped messages; whoever pops gets that by popping.
        """
        if is_retry_topic(topic) or pops == pulls:
            return
        subscriptions = self._rebalance.subscription_inner
        retry = pop_retry_topic(topic, self._owner.group_name)
        if pulls:
            subscriptions[retry] = build_subscription_data(retry, SUB_ALL, sub_version=self._node.now_ms())
            self._owner.pop_retry_topics[retry] = topic
        else:
            subscriptions.pop(retry, None)

    def _give_up_pops(self, topic: str, mine: set[MessageQueue]) -> bool:
        to_remove: list[tuple[MessageQueue, str]] = []
        for queue, held in self.pop_process_queue_table.items():
            if queue.topic != topic:
                continue
            if queue not in mine:
                to_remove.append((queue, "it is no longer assigned"))
            elif held.is_pull_expired:
                to_remove.append((queue, "it was not popped for 120 s: taken anew"))
        for queue, reason in to_remove:
            self._drop(queue, reason)
        return bool(to_remove)

    def _assigned(self, queue: MessageQueue) -> PopRequest:
        owner = self._owner
        held = self.pop_process_queue_table[queue] = PopProcessQueue(self._node)
        from_first = owner.consume_from_where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        init_mode = INIT_MODE_MIN if from_first else INIT_MODE_MAX
        if self._node.hooks.on:
            self._node.hooks.emit(PopAssigned(owner.instance.client_id, owner.group_name, *queue, init_mode))
        return PopRequest(owner.group_name, queue, held, init_mode)

    # -- giving up --------------------------------------------------------------------------------------------------

    def drop_unsubscribed(self) -> None:
        """Give up the topics that are no longer subscribed to."""
        for queue in [q for q in self.pop_process_queue_table if q.topic not in self._rebalance.subscription_inner]:
            self._drop(queue, "the topic is no longer subscribed")

    def destroy(self) -> None:
        """Give up everything, at the end of the consumer."""
        for queue in list(self.pop_process_queue_table):
            self._drop(queue, "the consumer ends")

    def _drop(self, queue: MessageQueue, reason: str) -> None:
        """What was popped and is not consumed yet comes again, for whoever pops next."""
        self.pop_process_queue_table.pop(queue).dropped = True
        if self._node.hooks.on:
            owner = self._owner
            self._node.hooks.emit(PopUnassigned(owner.instance.client_id, owner.group_name, *queue, reason))
