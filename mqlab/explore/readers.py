"""Readers: who is to get the messages of a world, and how far each has come.

In clustering a group is one reader, whoever of its members is at it; in broadcasting every member is a reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..client import DefaultMQPushConsumer, MessageModel, ServiceState
from ..processes import ClientProcess
from ..protocol.heartbeat import ConsumeFromWhere
from ..protocol.message import MessageQueue

if TYPE_CHECKING:
    from ..lab import Lab

READ_ALL: frozenset[int] = frozenset()


class Reader(NamedTuple):
    """A group, or one member of a broadcasting group: what it reads, and from where."""

    name: str
    group: str
    member: DefaultMQPushConsumer | None
    """The consumer that keeps the offsets; None when the brokers keep them."""
    topics: dict[str, frozenset[int]]
    """The topics with the hash codes of their tags; none are all."""
    from_first_offset: bool
    in_order: bool


def push_consumers(lab: Lab) -> Iterator[tuple[str, DefaultMQPushConsumer]]:
    """Every push consumer of a lab with the name of its process."""
    for name, process in lab.processes.items():
        if isinstance(process, ClientProcess):
            for client, _, _ in process.clients:
                if isinstance(client, DefaultMQPushConsumer):
                    yield name, client


def is_running(lab: Lab, process: str, consumer: DefaultMQPushConsumer) -> bool:
    """Does this consumer consume at present?"""
    return lab.processes[process].state == "running" and consumer.impl.service_state is ServiceState.RUNNING


def reader_name(group: str, process: str, broadcasting: bool) -> str:
    """The group; in broadcasting the group and the process of the member."""
    return f"{group} on {process}" if broadcasting else group


def readers_of(lab: Lab, *, running: bool = False) -> dict[str, Reader]:
    """All readers of a lab by name; with `running` those of which somebody consumes at present."""
    readers: dict[str, Reader] = {}
    for process, consumer in push_consumers(lab):
        if running and not is_running(lab, process, consumer):
            continue
        broadcasting = consumer.message_model is MessageModel.BROADCASTING
        name = reader_name(consumer.consumer_group, process, broadcasting)
        known = readers.get(name)
        topics = dict(known.topics) if known else {}
        for topic, subscription in sorted(consumer.impl.rebalance_impl.subscription_inner.items()):
            topics[topic] = subscription.code_set
        readers[name] = Reader(
            name,
            consumer.consumer_group,
            consumer if broadcasting else None,
            topics,
            consumer.consume_from_where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            consumer.impl.consume_orderly,
        )
    return readers


def progress(lab: Lab, reader: Reader, broker: str, topic: str, queue_id: int) -> int:
    """The offset up to which a reader has consumed a queue for good; 0 where nothing is noted."""
    controller = next(b for b in lab.brokers if b.name == broker).running()
    if reader.member is None:
        return max(controller.consumer_offset_manager.query_offset(reader.group, topic, queue_id), 0)
    if reader.member.impl.service_state is not ServiceState.RUNNING:
        return 0
    queue = MessageQueue(topic, controller.broker_config.broker_name, queue_id)
    return max(reader.member.impl.offset_store.read_from_memory(queue), 0)
