"""Rules of queues: each has one owner, and what was given up is left alone."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from mqlab.client import DefaultMQPushConsumer, MessageModel
from mqlab.explore.readers import clients_in, consumers_of, is_running, push_consumer_of
from mqlab.explore.rule import Case, Rule, SettledRule
from mqlab.explore.rules_of_leftovers import GHOST, GHOST_TEXT
from mqlab.explore.shares import share_of
from mqlab.protocol.codes import RequestCode
from mqlab.protocol.message import MessageQueue
from mqlab.protocol.topics import retry_topic
from mqlab.sim.node import PREEMPTED_US
from mqlab.trace.bus import Row
from mqlab.trace.record import Record

LATE_PULL = "a pull that was being prepared"
LATE_POLL = "a poll that has its batch already"
PREEMPTED_MOST_US = 2 * max(each or 0 for each in PREEMPTED_US)
"""A thread gets the processor back by then."""
ROUND_US = 30_000_000
"""A round of rebalancing comes every 20 s, and asks brokers that may need a while."""
SHARED_US = 5_000_000
"""A round that is under way is over by then, and the next one, a second after it at the earliest, has begun."""
ASKS_OF_SHARES = (RequestCode.GET_CONSUMER_LIST_BY_GROUP, RequestCode.QUERY_ASSIGNMENT)
TURN_US = 60_000_000
"""Longer than a pull takes that is held, and answered by nobody."""
LOCKS_US = 100_000_000
"""The lock of a queue that nobody gave back is 60 s old by then, and the next round over."""


class DroppedIsLeftAlone(Rule):
    """A consumer that has given a queue up neither pulls it nor calls its listener, whose late results do not count.

    A listener that was called before may go on. Nor does who polls get what was cached of a queue that was given up.
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "PullRequested": "_pulls", "ConsumeStarted": "_calls_listener", "QueueDropped": "_dropped",
        "ConsumeFinished": "_listener_ended", "MessageGivenBack": "_gives_back", "OffsetUpdated": "_notes_offset",
        "MessagesPolled": "_hands_out",
    }  # fmt: skip
    kinds = tuple(LOOKS)
    EXCEPTIONS: ClassVar[dict[str, str]] = {
        LATE_PULL: (
            "A pull looks at the beginning of its turn whether its queue was given up. When it then has to ask for a "
            "route or for the offset of a queue that was just locked, the queue may be given up meanwhile, and one "
            "more pull goes out."
        ),
        LATE_POLL: (
            "A poll that has taken its batch when the queue is given up hands it out: poll() looks before, and its "
            "thread may lose the processor in between."
        ),
    }

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._may_pull_once: set[tuple[str, str, str, str, int]] = set()
        self._dropped_us: dict[tuple[str, str, str, str, int], int] = {}
        self._too_late: dict[tuple[str, str, str, str, int, int], None] = {}
        """The calls of listeners that ended when their queue was given up."""

    def _dropped(self, record: Record) -> None:
        self.judged += 1
        self._may_pull_once.add(_queue(record))
        self._dropped_us[_queue(record)] = record.ts_us

    def _pulls(self, record: Record) -> None:
        if not self.case.is_live or self._has(record):
            return
        self.judged += 1
        key = _queue(record)
        if key in self._may_pull_once:
            self._may_pull_once.remove(key)
            self.excuse(LATE_PULL)
        else:
            self.found(record.row, f"{record.node} pulls {_at(record)}, which it has given up")

    def _calls_listener(self, record: Record) -> None:
        if not self.case.is_live:
            return
        if self._has(record):
            self._called_again(record)
        else:
            self.judged += 1
            self.found(record.row, f"{record.node} calls its listener for {_at(record)}, which it has given up")

    def _called_again(self, record: Record) -> None:
        """The result of this call counts. Of several messages only the first one's place is told."""
        queue, first = _queue(record), record.queue_offset
        if record.messages == 1:
            self._too_late.pop((*queue, first), None)
        else:
            for late in [late for late in self._too_late if late[:-1] == queue and late[-1] >= first]:
                del self._too_late[late]

    def _listener_ended(self, record: Record) -> None:
        if self.case.is_live and not self._has(record):
            self._too_late[(*_queue(record), record.queue_offset)] = None

    def _gives_back(self, record: Record) -> None:
        if self.case.is_live and (*_queue(record), record.queue_offset) in self._too_late:
            self.judged += 1
            at = _at(record)
            self.found(record.row, f"{record.node} gives a message of {at} back, and has no say in it any more")

    def _hands_out(self, record: Record) -> None:
        for client, group, _ in clients_in(self.case.lab, record.node) if self.case.is_live else ():
            assigned = getattr(client.impl, "assigned_message_queue", None)
            if group != record.group or assigned is None:
                continue
            self.judged += 1
            queue = MessageQueue(record.topic, record.broker_name, record.queue_id)
            # What is cached of a topic that is read no more is there until the next rebalance.
            held = assigned.process_queue(queue) or client.impl.rebalance_impl.process_queue_table.get(queue)
            if held is not None and not held.dropped:
                continue
            if record.ts_us - self._dropped_us.get(_queue(record), -PREEMPTED_MOST_US) < PREEMPTED_MOST_US:
                self.excuse(LATE_POLL)
            else:
                self.found(record.row, f"{record.node} hands out messages of {_at(record)}, which it has given up")

    def _notes_offset(self, record: Record) -> None:
        if self.case.is_live and record.task.startswith("ConsumeMessageThread") and not self._has(record):
            self.judged += 1
            self.found(record.row, f"{record.node} notes an offset of {_at(record)}, which it has given up")

    def _has(self, record: Record) -> bool:
        """Does the consumer have the queue at this moment, or may it pop there? Others than push consumers are not
        judged.
        """
        consumer = push_consumer_of(self.case.lab, record.node, record.group)
        if consumer is None:
            return True
        # A listener sees messages of the retry topic under their own topic.
        held, popped = consumer.impl.rebalance_impl.process_queue_table, consumer.impl.pop_process_queue_table
        topic, broker, queue_id = record.topic, record.broker_name, record.queue_id
        if MessageQueue(topic, broker, queue_id) in held:
            return True
        if popped and (MessageQueue(topic, broker, -1) in popped or MessageQueue(topic, broker, queue_id) in popped):
            return True
        # With any of its queues a group is also given what comes again: that lies in a queue of its retry topic.
        if record.kind == "ConsumeStarted" and record.reconsume_times and any(
            queue.topic == topic and queue.broker_name == broker for queue in popped
        ):
            return True
        return MessageQueue(retry_topic(record.group), broker, queue_id) in held


class QueuesArePulled(Rule):
    """A push consumer that has a queue asks for its messages again and again, or says why it does not now.

    An answer comes after 30 s at the latest, and then it is its turn again at once, or when it has waited for its
    interval.
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "QueueAllocated": "_allocated", "PullRequested": "_turn", "PullPutOff": "_turn", "FlowControlled": "_turn",
        "QueueDropped": "_dropped", "NodeStarted": "_started",
    }  # fmt: skip
    kinds = tuple(LOOKS)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._turns_us: dict[tuple[str, str, str, str, int], int] = {}
        """Queue of a consumer -> when it last had its turn, or was allocated."""

    def _started(self, record: Record) -> None:
        for key in [key for key in self._turns_us if key[0] == record.target]:
            del self._turns_us[key]

    def _allocated(self, record: Record) -> None:
        self._turns_us[_queue(record)] = record.ts_us

    def _dropped(self, record: Record) -> None:
        self._judge(record, self._turns_us.pop(_queue(record), record.ts_us))

    def _turn(self, record: Record) -> None:
        key = _queue(record)
        if key in self._turns_us:
            self._judge(record, self._turns_us[key])
            self._turns_us[key] = record.ts_us

    def _judge(self, record: Record, last_us: int) -> None:
        if record.ts_us - last_us <= TURN_US:
            return
        consumer = push_consumer_of(self.case.lab, record.node, record.group)
        if consumer is not None:
            self._look(record.row, consumer, f"{record.node} had {_at(record)}", last_us, record.ts_us)

    def _look(self, row: Row | None, consumer: DefaultMQPushConsumer, who: str, last_us: int, now_us: int) -> None:
        late_us = now_us - last_us - consumer.pull_interval * 1_000
        if late_us > TURN_US and self.case.fault_times.none_between(last_us - TURN_US, now_us):
            self.found(row, f"{who}, and did not ask for its messages for {late_us // 1_000_000} s")

    def at_end(self) -> None:
        """Look at the queues that consumers have and have not asked of for long."""
        now_us = self.case.lab.world.now_us
        for process, client, member in consumers_of(self.case.lab):
            if not isinstance(client, DefaultMQPushConsumer) or not is_running(self.case.lab, process, member):
                continue
            for queue, held in client.impl.rebalance_impl.process_queue_table.items():
                last_us = self._turns_us.get((process, member.group_name, *queue), now_us)
                self.judged += 1
                if not held.dropped:
                    self._look(None, client, f"{process} has {queue}", last_us, now_us)


class ReceivesTakeTurns(Rule):
    """A simple consumer asks the queues that it knows of and may read one after the other, in turn.

    Java: org.apache.rocketmq.client.java.impl.consumer.SubscriptionLoadBalancer.
    """

    kinds = ("ReceiveRequested",)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._last: dict[tuple[str, str, str], tuple[tuple[str, int], object, object]] = {}
        """(process, group, topic) -> the queue that was asked last, by which life of a consumer, and its route then."""

    def on_event(self, record: Record) -> None:
        """Compare the queue with the one before; two consumers of a group in one process cannot be told apart."""
        if not self.case.is_live:
            return
        clients = [client for client, group, _ in clients_in(self.case.lab, record.node) if group == record.group]
        if len(clients) != 1 or not hasattr(clients[0], "receive"):
            return
        from mqlab.client.v5.client_impl import MASTER_BROKER_ID, is_readable

        impl = clients[0].impl
        route = impl.topic_route_cache.get(record.topic, ())
        consumer, asked = (record.node, record.group, record.topic), (record.broker_name, record.queue_id)
        before, life, route_before = self._last.get(consumer, (asked, None, ()))
        self._last[consumer] = asked, impl, route
        choice = [
            (queue.broker.name, queue.id)
            for queue in route
            if is_readable(queue) and queue.broker.id == MASTER_BROKER_ID
        ]
        if life is impl and route_before == route and before in choice:
            self.judged += 1
            broker, queue_id = choice[(choice.index(before) + 1) % len(choice)]
            if asked != (broker, queue_id):
                at = f"{record.broker_name} {record.topic} queue {record.queue_id}"
                self.found(record.row, f"{record.node} asks {at}, and it is the turn of {broker} queue {queue_id}")


class ToldIsShared(Rule):
    """A member that is told that its group has changed shares the queues anew at once, also when it is just at that.

    It asks who is in the group for that, or which queues it shall have (RebalanceService.wakeup); it may know nobody.
    """

    LOOKS: ClassVar[dict[str, str]] = {
        "RequestReceived": "_received", "RequestSent": "_sent", "ClientStopped": "_ended", "NodeCrashed": "_ended",
        "RebalanceSkipped": "_ended",
    }  # fmt: skip
    kinds = tuple(LOOKS)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._told: dict[str, Record] = {}
        """Process -> when it was told first, and has not asked since."""

    def _received(self, record: Record) -> None:
        if record.request_code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED and self.case.is_live:
            self._look(record.node, record.ts_us)
            if self._shares(record.node):
                self._told.setdefault(record.node, record)

    def _sent(self, record: Record) -> None:
        if record.node in self._told:
            self._look(record.node, record.ts_us)
            if record.request_code in ASKS_OF_SHARES and record.node in self._told:
                self.judged += 1
                del self._told[record.node]

    def _ended(self, record: Record) -> None:
        self._told.pop(record.target if record.kind == "NodeCrashed" else record.node, None)

    def at_end(self) -> None:
        """Look at those who have asked nobody since."""
        for process in list(self._told):
            self._look(process, self.case.lab.world.now_us)

    def _look(self, process: str, now_us: int) -> None:
        told = self._told.get(process)
        if told is None or now_us - told.ts_us < SHARED_US:
            return
        del self._told[process]
        if self.case.fault_times.none_between(told.ts_us - TURN_US, now_us):
            self.judged += 1
            since_ms = (now_us - told.ts_us) // 1_000
            self.found(told.row, f"{process} was told that a group has changed, and has asked nobody for {since_ms} ms")

    def _shares(self, process: str) -> bool:
        """Is there a consumer in this process that shares queues with others, and knows some?"""
        return any(
            isinstance(client, DefaultMQPushConsumer)
            and is_running(self.case.lab, process, member)
            and member.message_model is MessageModel.CLUSTERING
            and any(client.impl.rebalance_impl.topic_subscribe_info_table.values())
            for name, client, member in consumers_of(self.case.lab)
            if name == process
        )


class EachQueueHasAnOwner(SettledRule):
    """In the end each queue that the members of a group share belongs to one of them, to whom their strategy gives it.

    They share it anew at the next round, each 20 s, when the group or the route has changed; in order the lock of who
    had it before may be 60 s old by then.
    """

    kinds = (
        "ClientRegistered", "ClientUnregistered", "ClientExpired", "SubscriptionChanged", "RouteUpdated",
        "ClientStarted", "ClientStopped", "NodeStarted", "SubscriptionGroupDeleted",
    )  # fmt: skip
    EXCEPTIONS: ClassVar[dict[str, str]] = {GHOST: GHOST_TEXT}

    def at_end(self) -> None:
        """Compare the queues of all members of each group with those that there are."""
        groups: dict[str, list[DefaultMQPushConsumer]] = {}
        for process, client, member in consumers_of(self.case.lab):
            if isinstance(client, DefaultMQPushConsumer) and is_running(self.case.lab, process, member):
                groups.setdefault(member.group_name, []).append(client)
        for group, members in groups.items():
            first = members[0].impl
            most_us = LOCKS_US if first.consume_orderly else ROUND_US
            if first.message_model is MessageModel.CLUSTERING and self.same_us > most_us:
                for topic in first.rebalance_impl.subscription_inner:
                    self._look(group, topic, members)

    def _look(self, group: str, topic: str, members: list[DefaultMQPushConsumer]) -> None:
        if any(member.impl.pop_process_queue_table for member in members):
            return
        tables = [member.impl.rebalance_impl.topic_subscribe_info_table for member in members]
        shared = {queue for table in tables for queue in table.get(topic, ())}
        owned = Counter(
            queue
            for member in members
            for queue, held in member.impl.rebalance_impl.process_queue_table.items()
            if queue.topic == topic and not held.dropped
        )
        for queue in sorted(shared | set(owned)):
            self.judged += 1
            if owned[queue] == (queue in shared):
                continue
            if self._has_ghost(group):
                self.excuse(GHOST)
            else:
                self.found(None, f"{owned[queue]} members of {group} have {queue}, which {len(members)} share")
                return
        self._look_at_shares(group, topic, members, shared)

    def _look_at_shares(
        self, group: str, topic: str, members: list[DefaultMQPushConsumer], shared: set[MessageQueue]
    ) -> None:
        """Compare what each member has with what its strategy gives it."""
        ids = [member.impl.instance.client_id for member in members]
        for client_id, member in zip(ids, members, strict=True):
            share = share_of(member.allocate_message_queue_strategy, client_id, ids, list(shared))
            if share is None:
                continue
            self.judged += 1
            table = member.impl.rebalance_impl.process_queue_table
            has = sorted(queue for queue, held in table.items() if queue.topic == topic and not held.dropped)
            if has != share and self._has_ghost(group):
                self.excuse(GHOST)
            elif has != share:
                self.found(None, f"{client_id} of {group} has {has} of {topic}, and should have {share}")

    def _has_ghost(self, group: str) -> bool:
        """Does a broker count somebody as a member over a connection that has ended, be it beside a whole one?"""
        tables = [broker.running().consumer_manager.consumer_table.get(group) for broker in self.case.lab.brokers]
        return any(
            not info.channel.is_active
            for table in tables
            for info in (table.channel_info_table.values() if table is not None else ())
        )


def _queue(record: Record) -> tuple[str, str, str, str, int]:
    """Whose queue an event is about."""
    return record.node, record.group, record.topic, record.broker_name, record.queue_id


def _at(record: Record) -> str:
    return f"{record.broker_name} {record.topic} queue {record.queue_id}"
