"""Readers: who is to get the messages of a world, and how far each has come.

In clustering a group is one reader, whoever of its members is at it; in broadcasting every member is a reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mqlab.client import DefaultMQPushConsumer, MessageModel, OffsetStore, ServiceState
from mqlab.explore.conditions import Condition, condition_of
from mqlab.lab.processes import ClientProcess
from mqlab.protocol.heartbeat import ConsumeFromWhere, ExpressionType, SubscriptionData, build_subscription_data
from mqlab.protocol.message import MessageQueue

if TYPE_CHECKING:
    from mqlab.lab import Lab


class Subscriptions(Protocol):
    """The part of a rebalance that says what a consumer reads."""

    subscription_inner: dict[str, SubscriptionData]


class Member(Protocol):
    """What every consumer of a group has in common, pushed to or pulling."""

    service_state: ServiceState
    offset_store: OffsetStore

    @property
    def group_name(self) -> str:
        """The name of the group that reads."""

    @property
    def message_model(self) -> MessageModel:
        """Whether the group shares the messages (CLUSTERING), or each member gets all (BROADCASTING)."""

    @property
    def rebalance_impl(self) -> Subscriptions:
        """The part of the reader that knows what it has subscribed to."""


class Reader(NamedTuple):
    """A group, or one member of a broadcasting group: what it reads, and from where."""

    name: str
    group: str
    member: Member | None
    """The consumer that keeps the offsets; None when the brokers keep them."""
    topics: dict[str, frozenset[int]]
    """The topics with the hash codes of their tags; none are all. Of those that are wanted by a condition only those
    that can be judged.
    """
    tags: dict[str, frozenset[str]]
    conditions: dict[str, Condition]
    """The topics of which it wants what fulfils a condition."""
    from_first_offset: bool
    in_order: bool
    without_end: bool
    """Does its orderly listener get a message that fails again and again, without end (the default)?"""
    pushed_to: bool
    """Has it a listener, or does it ask for messages itself?"""
    hands_out: bool
    """Does it pull ahead, and hand messages out when it is asked (a lite pull consumer)?"""

    def is_choosy(self, topic: str) -> bool:
        """Does it want some messages of a topic and others not?"""
        return bool(self.topics.get(topic)) or topic in self.conditions


def clients_in(lab: Lab, process: str) -> Sequence[tuple[Any, str, dict[str, Any]]]:
    """What an application has made in this process, each with its group and settings; nothing in a server's."""
    found = lab.processes.get(process)
    return found.clients if isinstance(found, ClientProcess) else ()


def consumers_of(lab: Lab) -> Iterator[tuple[str, object, Member]]:
    """Every consumer of a lab: the name of its process, the application's object, and what is behind it."""
    for name, process in lab.processes.items():
        if isinstance(process, ClientProcess):
            for client, _, _ in process.clients:
                if hasattr(client.impl, "rebalance_impl"):
                    yield name, client, client.impl


def subscriptions_5_of(lab: Lab) -> dict[str, dict[str, SubscriptionData]]:
    """What groups of 5.x clients subscribe to: group -> topic -> subscription."""
    found: dict[str, dict[str, SubscriptionData]] = {}
    for process in lab.processes:
        for client, *_ in clients_in(lab, process):
            for topic, wanted in getattr(client, "subscription_expressions", {}).items():
                kind = ExpressionType.SQL92 if wanted.sql else ExpressionType.TAG
                subscription = build_subscription_data(topic, wanted.expression, kind)
                found.setdefault(client.consumer_group, {})[topic] = subscription
    return found


def push_consumer_of(lab: Lab, process: str, group: str) -> DefaultMQPushConsumer | None:
    """The push consumer of this group in this process."""
    for client, of_group, _ in clients_in(lab, process):
        if of_group == group and isinstance(client, DefaultMQPushConsumer):
            return client
    return None


def is_running(lab: Lab, process: str, member: Member) -> bool:
    """Does this consumer consume at present?"""
    return lab.processes[process].is_up() and member.service_state is ServiceState.RUNNING


def reader_name(group: str, process: str, broadcasting: bool) -> str:
    """The group; in broadcasting the group and the process of the member."""
    return f"{group} on {process}" if broadcasting else group


def is_abandoned(lab: Lab, process: str, client: object, member: Member) -> bool:
    """Does this consumer hold queues whose messages nobody asks for, because its application was not started again?

    A restarted process starts its consumers, but who polled a lite pull consumer ended with the old process.
    """
    polled = hasattr(client, "poll")
    return polled and is_running(lab, process, member) and lab.processes[process].node.life.number > 0


def what_readers_are(lab: Lab) -> list[tuple[object, ...]]:
    """All that `readers_of` goes by: who consumes, whether that has begun, and to what it subscribes."""
    return [
        (client, member.service_state, *member.rebalance_impl.subscription_inner.values())
        for _, client, member in consumers_of(lab)
    ]


Wanted = tuple[dict[str, frozenset[int]], dict[str, frozenset[str]], dict[str, Condition]]
"""What a reader wants of each topic: the hash codes of tags, the tags, and the conditions (see Reader)."""


def _wanted(subscriptions: Mapping[str, SubscriptionData]) -> Wanted:
    """What is said by subscriptions; those by a condition that cannot be judged are left out."""
    topics: dict[str, frozenset[int]] = {}
    tags: dict[str, frozenset[str]] = {}
    conditions: dict[str, Condition] = {}
    for topic, subscription in sorted(subscriptions.items()):
        if not ExpressionType.is_tag_type(subscription.expression_type):
            condition = condition_of(subscription.sub_string)
            if condition is None:
                continue
            conditions[topic] = condition
        topics[topic] = subscription.code_set
        tags[topic] = subscription.tags_set
    return topics, tags, conditions


def reader_5_of(group: str, subscriptions: Mapping[str, SubscriptionData]) -> Reader:
    """A group of 5.x clients, as far as it can be said what it wants; the brokers hand messages out to it."""
    return Reader(
        group,
        group,
        None,
        *_wanted(subscriptions),
        from_first_offset=False,
        in_order=False,
        without_end=False,
        pushed_to=False,
        hands_out=False,
    )


def readers_of(lab: Lab, *, running: bool = False) -> dict[str, Reader]:
    """All readers of a lab by name; with `running` those that consume at present, with no member abandoned."""
    readers: dict[str, Reader] = {}
    abandoned = [member.group_name for p, client, member in consumers_of(lab) if is_abandoned(lab, p, client, member)]
    for process, client, member in consumers_of(lab):
        if running and (member.group_name in abandoned or not is_running(lab, process, member)):
            continue
        broadcasting = member.message_model is MessageModel.BROADCASTING
        name = reader_name(member.group_name, process, broadcasting)
        topics, tags, conditions = _wanted(_subscriptions_of(client, member))
        if name in readers:
            former = readers[name]
            topics, tags = {**former.topics, **topics}, {**former.tags, **tags}
            conditions = {**former.conditions, **conditions}
        readers[name] = Reader(
            name,
            member.group_name,
            member if broadcasting else None,
            topics,
            tags,
            conditions,
            _begins_at_first(client),
            isinstance(client, DefaultMQPushConsumer) and client.impl.consume_orderly,
            isinstance(client, DefaultMQPushConsumer) and client.max_reconsume_times == -1,
            isinstance(client, DefaultMQPushConsumer),
            hasattr(client, "poll"),
        )
    return readers


def _subscriptions_of(client: object, member: Member) -> dict[str, SubscriptionData]:
    """What a consumer subscribes to; one that pulls by itself asks for what it has told the brokers of."""
    registered: dict[str, SubscriptionData] = getattr(client, "register_subscriptions", {})
    return {**member.rebalance_impl.subscription_inner, **registered}


def _begins_at_first(client: object) -> bool:
    """An application that pulls by itself begins where it likes, and is taken to like the beginning."""
    where = getattr(client, "consume_from_where", ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
    return where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


def progress(lab: Lab, reader: Reader, broker: str, topic: str, queue_id: int) -> int:
    """The offset up to which a reader has consumed a queue for good; 0 where nothing is noted."""
    controller = next(b for b in lab.brokers if b.name == broker).running()
    if reader.member is None:
        return max(controller.consumer_offset_manager.query_offset(reader.group, topic, queue_id), 0)
    if reader.member.service_state is not ServiceState.RUNNING:
        return 0
    queue = MessageQueue(topic, controller.broker_config.broker_name, queue_id)
    return max(reader.member.offset_store.read_from_memory(queue), 0)
